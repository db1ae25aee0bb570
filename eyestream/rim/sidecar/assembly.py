"""A sidecar out of its configuration: calibrations, mechanisms, ledger, and whether they fit one another."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from eyestream.errors import ConfigError, OperatorError
from eyestream.privacy.calibration import Calibration
from eyestream.privacy.charge import Ceilings
from eyestream.privacy.correlated import Correlated
from eyestream.privacy.doors import live
from eyestream.privacy.mechanism import Mechanism
from eyestream.privacy.mechanisms import build
from eyestream.privacy.noise import Noise, SecureNoise
from eyestream.privacy.odometer import Odometer
from eyestream.rim.config import Settings, StreamSettings
from eyestream.rim.config.purposes import within_window
from eyestream.rim.elsewhere import mechanism_elsewhere
from eyestream.rim.files import calibrations
from eyestream.rim.files.features import FEATURES_52, WINDOW_52_S
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger
from eyestream.rim.sidecar.ceilings import ceilings_of, lowered, own_ceilings
from eyestream.rim.sidecar.correlated import correlated_of, kept_below
from eyestream.rim.sidecar.description import front_ends, lasting_words, metas, stream_spec
from eyestream.rim.sidecar.sidecar import Sidecar
from eyestream.rim.sources.registry import make_source
from eyestream.rim.sources.source import Feeder, Source
from eyestream.streams.key import StreamKey
from eyestream.streams.spec import StreamSpec
from eyestream.wire.messages import Meta

__all__ = ["Assembly", "assemble", "fitting_calibration", "mechanisms_of", "new_ledger", "sources_of"]


def fitting_calibration(settings: Settings, stream: StreamSettings) -> Calibration:
    """The calibration that a stream names.

    Raises
    ------
    CalibrationError
        There is none, or it was made for another stream, or from rows of another front end than that of a source of
        gaze which serves the stream: then the message has the remedy.
    ConfigError
        The features are those that describe 30 s of gaze each, and the stream says less: the figures for a gaze event
        would be too low. Or a baseline is taken off each session, and `idle_s` is shorter than what a row describes. Or
        the stream names a mechanism elsewhere that is not there, or not that of the calibration.
    """
    place, where = stream.privacy.mechanism, "[stream.privacy] mechanism"
    named = mechanism_elsewhere(place, where).name if place is not None else None
    calibration = calibrations.load(stream.privacy.calibration)
    if named not in (None, calibration.mechanism):
        raise ConfigError(f"{where}: {place} is {named}, and the calibration is one of {calibration.mechanism}")
    calibration.check_stream(stream.names, stream.rate_hz)
    if stream.names == FEATURES_52 and stream.window_s < WINDOW_52_S:
        raise ConfigError(f"[[stream]] window_s: a row of these features describes {WINDOW_52_S:g} s, not less")
    if profiles := front_ends(settings, stream):
        from eyestream.gaze.profile_text import front_end_mark  # noqa: PLC0415  for who has gaze

        for profile in profiles:
            calibration.check_front_end(front_end_mark(profile))
    if calibration.anchor is not None:
        _check_pause(stream_spec(settings, stream, calibration.units), stream.idle_s)
    return calibration


def _check_pause(rows: StreamSpec, idle_s: float) -> None:
    """Raise ConfigError where rows after a pause that ends a session still describe gaze of before it."""
    reach_s = round(rows.window_s + rows.memory_s, 6)
    if idle_s < reach_s:
        raise ConfigError(
            f"[[stream]] idle_s = {idle_s:g}: expected at least {reach_s:.8g} (window_s = {rows.window_s:g} and "
            f"memory_s = {rows.memory_s:g}): the calibration takes a baseline off each session, and rows after a "
            "shorter pause still describe gaze of before it"
        )


def new_ledger(settings: Settings, created: int) -> None:
    """Create the ledger that the configuration names; `created` is in seconds since 1970.

    Raises
    ------
    LedgerError
        It exists already, or cannot be written.
    CalibrationError
        As `fitting_calibration`: nothing is made for a configuration that cannot be run.
    """
    for stream in settings.stream:
        fitting_calibration(settings, stream)
    create_ledger(settings.sidecar.ledger, created=created)


def mechanisms_of(settings: Settings, noise: Callable[[], Noise] = SecureNoise) -> dict[str, Mechanism]:
    """The mechanism that each stream asks for, by the stream's name; `noise` gives each a source of its own.

    Raises
    ------
    ConfigError
        Epsilon or an option cannot be used; a mechanism is not for a live stream; or what a purpose comes to costs a
        second of gaze more than a window may.
    CalibrationError
        As `fitting_calibration`.
    """
    made: dict[str, Mechanism] = {}
    for stream in settings.stream:
        try:
            made[stream.name] = mechanism = _built(settings, stream, noise())
            live(mechanism)
            _priced(settings, stream, mechanism)
            for level in range(1, settings.budget.levels):
                _on_level(mechanism, level)
        except OperatorError as error:
            raise error if len(settings.stream) == 1 else type(error)(f"stream {stream.name!r}: {error}") from None
    return made


def _priced(settings: Settings, stream: StreamSettings, mechanism: Mechanism) -> None:
    if stream.privacy.purpose is not None:
        touched = stream_spec(settings, stream, mechanism.calibration.units).chunks_touched(mechanism.n, 1.0)
        within_window(stream.privacy.purpose, mechanism.epsilon, touched, settings.budget.window_epsilon)


def _on_level(mechanism: Mechanism, level: int) -> None:
    """Make it now, so that a level that cannot be is said before anything is released."""
    try:
        mechanism.faded(level)
    except OperatorError as error:
        raise ConfigError(f"[budget] lifetime_mode: 'fade' is not for this epsilon: {error}") from None


def _built(settings: Settings, stream: StreamSettings, noise: Noise) -> Mechanism:
    privacy, calibration = stream.privacy, fitting_calibration(settings, stream)
    if privacy.epsilon_prime is None:
        return build(calibration, privacy.epsilon, noise=noise, **privacy.given)

    def claimed(epsilon: float) -> tuple[Mechanism, Correlated]:
        mechanism = build(calibration, epsilon, noise=noise, **privacy.given)
        claim = correlated_of(settings, stream, mechanism, stream_spec(settings, stream, calibration.units))
        if claim is None:
            raise ConfigError("[stream.privacy] epsilon_prime: it is a figure of a class; name one with `correlation`")
        return mechanism, claim

    return kept_below(privacy.epsilon_prime, privacy.epsilon, claimed, "[stream.privacy] epsilon_prime")[0]


def sources_of(settings: Settings, mechanisms: Mapping[str, Mechanism], base: Path) -> dict[StreamKey, Source | Feeder]:
    """What serves a stream in this process, by its key; raises ConfigError for a source that cannot be used."""
    specs = {s.name: stream_spec(settings, s, mechanisms[s.name].calibration.units) for s in settings.stream}
    return {
        StreamKey(entry.device, entry.stream): make_source(entry, specs[entry.stream], base, settings.raw_broker)
        for entry in settings.source
    }


class Assembly:
    """A sidecar that is ready to run, and its ledger, which is open.

    Attributes
    ----------
    sidecar : what runs.
    guarantees : the claim about one chunk of each stream, in words, by the stream's name.
    """

    def __init__(self, settings: Settings, mechanisms: dict[str, Mechanism], ledger: Ledger, sidecar: Sidecar) -> None:
        self.sidecar = sidecar
        self.guarantees = {name: mechanism.guarantee for name, mechanism in mechanisms.items()}
        self._settings, self._mechanisms, self._ledger = settings, mechanisms, ledger

    @property
    def ceilings(self) -> Ceilings:
        """Of every device, as they hold now."""
        return ceilings_of(self._settings, self._mechanisms)

    def odometers(self) -> dict[str, Odometer]:
        """What every device has spent that the ledger knows. May wait for the disk: not for the event loop."""
        found = {device.id: self._ledger.odometer(device.id) for device in self._settings.device}
        return {device: odometer for device, odometer in found.items() if odometer is not None}

    def lasting(self) -> dict[str, str]:
        """How long the ceilings of a session, of a day and of all time last, in words, by the stream's name."""
        return {
            stream.name: lasting_words(self._settings, stream, self._mechanisms) for stream in self._settings.stream
        }

    async def reload(self, settings: Settings) -> None:
        """Let the lower ceilings of another configuration hold from now on; one call after the other.

        What is claimed with them may take a good part of a second to compute: that is done in a thread, and chunks go
        on meanwhile. The lower ceilings hold before they are told.

        Raises
        ------
        ConfigError
            It differs in anything else, or a ceiling is higher; nothing has changed.
        """
        told = await asyncio.to_thread(self._take_over, settings)
        self._settings = settings
        self.sidecar.describe_anew(settings, told)

    def _take_over(self, settings: Settings) -> dict[StreamKey, Meta]:
        """In a thread: what is told with other ceilings, and then let the ledger hold to them."""
        ceilings, own = lowered(self._settings, settings, self._mechanisms)
        told = metas(settings, self._mechanisms)
        self._ledger.lower(ceilings, own)
        return told


@contextmanager
def assemble(
    settings: Settings,
    today: Callable[[], int],
    base: Path = Path(),
    sources: Mapping[StreamKey, Source | Feeder] = MappingProxyType({}),
) -> Iterator[Assembly]:
    """A sidecar that is ready to run, with its ledger open.

    Parameters
    ----------
    settings
        The configuration.
    today
        Days since 1970, UTC.
    base
        What paths in the options of sources are relative to: the directory of the configuration.
    sources
        What serves a stream beside the sources that the configuration names.

    Raises
    ------
    ConfigError
        Epsilon, an option, a ceiling, a source or a broker's settings cannot be used; a device has another ledger.
    CalibrationError
        As `fitting_calibration`.
    LedgerError
        There is no ledger, or it cannot be used.
    """
    mechanisms = mechanisms_of(settings)
    ceilings, own = ceilings_of(settings, mechanisms), own_ceilings(settings, mechanisms)
    with Ledger(settings.sidecar.ledger, ceilings=ceilings, streams=own) as ledger:
        for device in settings.device:
            if device.id in ledger.gone:
                raise ConfigError(
                    f"[[device]] {device.id}: was moved to another ledger (eyestream budget --export); "
                    "a device belongs to one sidecar"
                )
        served = {**sources_of(settings, mechanisms, base), **sources}
        sidecar = Sidecar(
            settings,
            mechanisms,
            ledger,
            today=today,
            sources=served,
            ledger_id=ledger.header.ledger_id,
            givers=ledger.givers,
        )
        yield Assembly(settings, mechanisms, ledger, sidecar)
