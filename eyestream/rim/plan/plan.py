"""The whole plan, and how it is resolved from the tables of a configuration.

Calibrations, profiles, classes of processes and mechanisms are loaded here and nowhere else. What takes long to
compute (words of guarantees above all) is computed when it is first asked for, and kept: a plan never changes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from eyestream.chunking.settings import DeviceSettings
from eyestream.errors import ConfigError, OperatorError
from eyestream.privacy.calibration import Calibration
from eyestream.privacy.correlated import Correlated
from eyestream.privacy.mechanism import Mechanism
from eyestream.privacy.mechanisms import build
from eyestream.privacy.noise import Noise, SecureNoise
from eyestream.privacy.scopes import Beside, Deployment
from eyestream.rim.config import DeviceEntry, Settings, StreamSettings
from eyestream.rim.config import load as load_tables
from eyestream.rim.config.purposes import within_window
from eyestream.rim.elsewhere import mechanism_elsewhere
from eyestream.rim.files import calibrations
from eyestream.rim.files.features import FEATURES_52, WINDOW_52_S
from eyestream.rim.plan.ceilings import AllCeilings, ceilings_of, check_lowered
from eyestream.rim.plan.correlated import correlated_of, kept_below
from eyestream.rim.plan.stream import Parts, StreamPlan
from eyestream.rim.sources.registry import front_end_of, make_source
from eyestream.rim.sources.source import Feeder, Source
from eyestream.streams.key import StreamKey
from eyestream.streams.spec import StreamSpec
from eyestream.wire.messages import Meta

if TYPE_CHECKING:
    from eyestream.gaze.profile import Profile

__all__ = ["Plan", "fitting", "load", "resolved"]


@dataclass(frozen=True, eq=False)
class Plan:
    """A configuration, resolved.

    Attributes
    ----------
    settings : its tables.
    base : the folder that paths in options of sources are relative to.
    streams : by name, in the order of the configuration.
    """

    settings: Settings
    base: Path
    streams: Mapping[str, StreamPlan]

    @property
    def mechanisms(self) -> dict[str, Mechanism]:
        """What releases the chunks of each stream, by its name."""
        return {name: stream.mechanism for name, stream in self.streams.items()}

    @cached_property
    def ceilings(self) -> AllCeilings:
        """What the ledger holds every device to; raises ConfigError as `ceilings_of`."""
        return ceilings_of(self.settings, self.mechanisms)

    def streams_of(self, device: DeviceEntry) -> list[StreamPlan]:
        """The streams that a device sends."""
        return [self.streams[stream.name] for stream in self.settings.streams_of(device)]

    @cached_property
    def served(self) -> dict[StreamKey, tuple[DeviceSettings, StreamPlan]]:
        """Every stream of every device."""
        return {
            StreamKey(device.id, stream.name): (stream.device(device.id), stream)
            for device in self.settings.device
            for stream in self.streams_of(device)
        }

    @property
    def metas(self) -> dict[StreamKey, Meta]:
        """The description of every stream of every device."""
        return {key: stream.meta for key, (_, stream) in self.served.items()}

    def sources(self) -> dict[StreamKey, Source | Feeder]:
        """New sources, by the stream that each serves; raises ConfigError or RecordingError as `make_source`."""
        broker = self.settings.raw_broker
        return {
            StreamKey(entry.device, entry.stream): make_source(
                entry, self.streams[entry.stream].spec, self.base, broker
            )
            for entry in self.settings.source
        }

    def lowered(self, settings: Settings) -> "Plan":
        """The plan with the lower ceilings of another configuration; its mechanisms stay.

        Raises
        ------
        ConfigError
            The other one differs in anything else, or a ceiling is higher, or too low for one chunk.
        """
        check_lowered(self.settings, settings)
        plan = _planned(settings, self.base, {name: stream.parts for name, stream in self.streams.items()})
        assert plan.ceilings
        return plan


def load(path: Path, notice: Callable[[str], None] = lambda line: None) -> Plan:
    """Read and resolve the configuration at `path`; `notice` as for `eyestream.rim.config.load`.

    Raises
    ------
    ConfigError, CalibrationError
        As `eyestream.rim.config.load` and `resolved`; the message begins with the file.
    """
    settings = load_tables(path, notice)
    try:
        return resolved(settings, path.parent)
    except OperatorError as error:
        raise type(error)(f"{path}: {error}") from None


def resolved(
    settings: Settings,
    base: Path = Path(),
    *,
    mechanisms: Mapping[str, Mechanism] | None = None,
    noise: Callable[[], Noise] = SecureNoise,
) -> Plan:
    """The plan of a configuration.

    Parameters
    ----------
    settings
        Its tables.
    base
        What paths in the options of sources are relative to: the folder of the configuration.
    mechanisms
        What releases each stream, by name, in the place of what the configuration says: for tests.
    noise
        Makes the source of noise of each mechanism.

    Raises
    ------
    CalibrationError
        There is no such calibration, or it was made for another stream, or from rows of another front end.
    ConfigError
        Epsilon, an option or a ceiling cannot be used. The features are those that describe 30 s of gaze each, and the
        stream says less. A baseline is taken off each session, and `idle_s` is shorter than what a row describes. A
        mechanism elsewhere is not there, or not that of the calibration. A purpose comes to more than a window may
        cost.
    """
    if mechanisms is not None:
        return _planned(settings, base, {s.name: _given(settings, s, mechanisms[s.name]) for s in settings.stream})
    parts: dict[str, Parts] = {}
    for stream in settings.stream:
        try:
            parts[stream.name] = _parts(settings, stream, noise())
        except OperatorError as error:
            raise error if len(settings.stream) == 1 else type(error)(f"stream {stream.name!r}: {error}") from None
    plan = _planned(settings, base, parts)
    _ = plan.ceilings  # refused now, where one is too low
    return plan


def _planned(settings: Settings, base: Path, parts: Mapping[str, Parts]) -> Plan:
    streams = {
        stream.name: StreamPlan(
            stream, settings.budget, parts[stream.name], _deployment(settings, stream, parts), _alone(settings)
        )
        for stream in settings.stream
    }
    return Plan(settings, base, streams)


def _alone(settings: Settings) -> bool:
    return all(len(settings.streams_of(device)) < 2 for device in settings.device)


def _deployment(settings: Settings, stream: StreamSettings, parts: Mapping[str, Parts]) -> Deployment:
    """Streams stand beside one another when some device sends both."""
    budget = settings.budget
    shared = [settings.streams_of(device) for device in settings.device]
    others = [o for o in settings.stream if o is not stream and any(stream in own and o in own for own in shared)]
    beside = [parts[other.name] for other in others]
    return Deployment(
        stream=parts[stream.name].spec,
        window_chunks=budget.window_chunks,
        window_epsilon=budget.window_epsilon,
        session_epsilon=budget.session_epsilon,
        day_epsilon=budget.day_epsilon,
        lifetime_epsilon=budget.lifetime_epsilon,
        window_delta=budget.window_delta,
        session_delta=budget.session_delta,
        day_delta=budget.day_delta,
        lifetime_delta=budget.lifetime_delta,
        lifetime_levels=budget.levels,
        beside=tuple(
            Beside(one.spec, one.mechanism.n, one.mechanism.loss, one.mechanism.calibration.anchor is not None)
            for one in beside
        ),
    )


def _given(settings: Settings, stream: StreamSettings, mechanism: Mechanism) -> Parts:
    return Parts((), _spec(settings, stream, ("1",) * len(stream.names)), mechanism)


def _spec(settings: Settings, stream: StreamSettings, units: tuple[str, ...], memory_s: float = 0.0) -> StreamSpec:
    """What the rows of a stream are; the longer memory holds, of the configuration and of a front end here."""
    return StreamSpec(
        name=stream.name,
        schema=stream.schema,
        names=stream.names,
        units=units,
        rate_hz=stream.rate_hz,
        window_s=stream.window_s,
        memory_s=max(stream.memory_s, memory_s),
    )


def fitting(settings: Settings, stream: StreamSettings) -> "tuple[Calibration, StreamSpec, tuple[Profile, ...]]":
    """The calibration that a stream names, what the rows of the stream are, and the front ends that make them.

    Raises
    ------
    CalibrationError, ConfigError
        As `resolved`: one of them does not fit the others.
    """
    calibration = _calibration(stream)
    found = (front_end_of(entry) for entry in settings.source if entry.stream == stream.name)
    front_ends = tuple(dict.fromkeys(profile for profile in found if profile is not None))
    spec = _spec(settings, stream, calibration.units, max((made.memory_s for made in front_ends), default=0.0))
    if front_ends:
        from eyestream.gaze.profile_text import front_end_mark  # noqa: PLC0415  for who has gaze

        for profile in front_ends:
            calibration.check_front_end(front_end_mark(profile))
    if calibration.anchor is not None:
        _check_pause(spec, stream.idle_s)
    return calibration, spec, front_ends


def _parts(settings: Settings, stream: StreamSettings, noise: Noise) -> Parts:
    """What a stream is made of, with each thing fitting the others."""
    calibration, spec, front_ends = fitting(settings, stream)
    mechanism = _built(settings, stream, calibration, spec, noise)
    if stream.privacy.purpose is not None:
        touched = spec.chunks_touched(mechanism.n, 1.0)
        within_window(stream.privacy.purpose, mechanism.epsilon, touched, settings.budget.window_epsilon)
    for level in range(1, settings.budget.levels):
        _on_level(mechanism, level)
    return Parts(front_ends, spec, mechanism)


def _calibration(stream: StreamSettings) -> Calibration:
    """The calibration that a stream names, which was made from such rows."""
    place, where = stream.privacy.mechanism, "[stream.privacy] mechanism"
    named = mechanism_elsewhere(place, where).name if place is not None else None
    calibration = calibrations.load(stream.privacy.calibration)
    if named not in (None, calibration.mechanism):
        raise ConfigError(f"{where}: {place} is {named}, and the calibration is one of {calibration.mechanism}")
    calibration.check_stream(stream.names, stream.rate_hz)
    if stream.names == FEATURES_52 and stream.window_s < WINDOW_52_S:
        raise ConfigError(f"[[stream]] window_s: a row of these features describes {WINDOW_52_S:g} s, not less")
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


def _built(
    settings: Settings, stream: StreamSettings, calibration: Calibration, spec: StreamSpec, noise: Noise
) -> Mechanism:
    privacy = stream.privacy
    if privacy.epsilon_prime is None:
        return build(calibration, privacy.epsilon, noise=noise, **privacy.given)

    def claimed(epsilon: float) -> tuple[Mechanism, Correlated]:
        mechanism = build(calibration, epsilon, noise=noise, **privacy.given)
        claim = correlated_of(stream, settings.budget, mechanism, spec, alone=_alone(settings))
        if claim is None:
            raise ConfigError("[stream.privacy] epsilon_prime: it is a figure of a class; name one with `correlation`")
        return mechanism, claim

    return kept_below(privacy.epsilon_prime, privacy.epsilon, claimed, "[stream.privacy] epsilon_prime")[0]


def _on_level(mechanism: Mechanism, level: int) -> None:
    """Make it now, so that a level that cannot be is refused before anything is released."""
    try:
        mechanism.faded(level)
    except OperatorError as error:
        raise ConfigError(f"[budget] lifetime_mode: 'fade' is not for this epsilon: {error}") from None
