"""The plan: a configuration with everything that it names, resolved once. All commands read it.

What carries a configuration on its way:

| type | what it is for |
|---|---|
| `rim.config.Settings` | the tables of the file as they are written, read strictly |
| `rim.sources.registry.NamedSource` | a ``[[source]]`` table with the kind and the profile that it names |
| `plan.stream.StreamParts` | what a stream is made of: rows, front end, mechanism. No ceiling changes it |
| `core.scopes.Deployment` | what a mechanism's promises rest on: ceilings, and the streams beside its own |
| `StreamPlan` | a stream with all of that, and what is said of it |
| `Plan` | all streams and sources; what the sidecar, `check`, `guarantee` and `deploy` read |

Calibrations, profiles, classes of processes and mechanisms are loaded here and nowhere else. What takes long to
compute (words of guarantees above all) is computed when it is first asked for, and kept: a plan never changes.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from eyestream.core.calibration import Calibration
from eyestream.core.charge import EPSILON_UNITS, Ceilings, ceiling_units, charge_of
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.core.mechanisms.entry import referred
from eyestream.core.mechanisms.registry import check_live, entry_of
from eyestream.core.noise import Noise, SecureNoise
from eyestream.core.purposes import PURPOSES, chunk_price
from eyestream.core.scopes import Deployment, SiblingStream
from eyestream.errors import ConfigError, OperatorError
from eyestream.gaze.entry import SHIPPED, USUAL, FrontEndEntry
from eyestream.problems import Problems
from eyestream.rim.config import DeviceEntry, PrivacySettings, Settings, StreamSettings, read_tables
from eyestream.rim.config.purposes import check_window
from eyestream.rim.files import calibrations
from eyestream.rim.plan.ceilings import ceilings_of, check_ceilings, refuse_others, refuse_raised
from eyestream.rim.plan.stream import StreamParts, StreamPlan, sends_alone
from eyestream.streams import StreamKey, StreamSpec
from eyestream.wire.release import Meta

if TYPE_CHECKING:
    from eyestream.claims.correlation.published import Correlated
    from eyestream.gaze.profile import Profile
    from eyestream.rim.sources.registry import NamedSource
    from eyestream.rim.sources.source import Feeder, Source

__all__ = ["Plan", "StreamPlan", "load", "resolved"]

_MINUTES = 3.0
"""A window that is not given costs at most what so many minutes of a purpose cost."""


@dataclass(frozen=True, eq=False)
class Plan:
    """A configuration, resolved.

    Attributes
    ----------
    settings : its tables.
    base : the folder that paths in options of sources are relative to.
    named : its sources, each with its kind and profile.
    streams : by name, in the order of the configuration.
    """

    settings: Settings
    base: Path
    named: tuple["NamedSource", ...]
    streams: Mapping[str, StreamPlan]

    @property
    def mechanisms(self) -> dict[str, Mechanism]:
        """The mechanism of each stream, by the stream's name."""
        return {name: stream.mechanism for name, stream in self.streams.items()}

    @cached_property
    def ceilings(self) -> Ceilings:
        """Ceilings that the ledger holds every device to."""
        return ceilings_of(self.settings)

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

    def sources(self) -> "dict[StreamKey, Source | Feeder]":
        """New sources, by the stream that each serves; raises ConfigError or RecordingError as `make_sources`."""
        made: dict[StreamKey, Source | Feeder] = {}
        for source in self.named:
            from eyestream.rim.sources.registry import make_sources  # noqa: PLC0415  for who has a source

            names = source.entry.served
            served = [(self.streams[name].spec, self.streams[name].parts.front_end) for name in names]
            found = make_sources(source, served, self.base, self.settings.raw_broker)
            made |= {StreamKey(source.entry.device, name): one for name, one in zip(names, found, strict=True)}
        return made

    def lowered(self, settings: Settings) -> "Plan":
        """The plan with the lower ceilings of another configuration; its mechanisms stay.

        Raises
        ------
        ConfigError
            The other one differs in anything else, or a ceiling is higher, or too low for one chunk.
        """
        parts = {name: stream.parts for name, stream in self.streams.items()}
        settings = _filled(settings, parts)
        refuse_others(self.settings, settings)
        plan = _planned(settings, self.base, self.named, parts)
        check_ceilings(plan.settings, plan.mechanisms)
        refuse_raised(self.ceilings, plan.ceilings)
        return plan


def load(path: Path) -> Plan:
    """Read and resolve the configuration at `path`.

    Raises
    ------
    ConfigError, CalibrationError
        As `eyestream.rim.config.load` and `resolved`; a line for each mistake, which begins with the file.
    """
    reading = read_tables(path)
    problems = Problems()
    problems.found += reading.problems.found
    for place, calibration in reading.unread.items():
        with problems.gathered(f"{place}: "):
            calibrations.load(calibration)
    plan = _resolved(reading.settings, path.parent, SecureNoise, problems, reading.wrong)
    problems.refuse(f"{path}: ")
    assert plan is not None
    return plan


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
        cost. Several mistakes are a line each.
    """
    problems = Problems()
    if mechanisms is not None:
        sources, _ = _named(settings, problems)
        problems.refuse()
        parts = {}
        for stream in settings.stream:
            profiles, answers = _served_gaze(stream, sources)
            front_end = _front_end_of(stream, None, gaze=bool(profiles))
            spec = _spec_of(stream, None, front_end, profiles)
            parts[stream.name] = StreamParts(spec, mechanisms[stream.name], front_end, profiles, answers)
        return _planned(_filled(settings, parts), base, sources, parts)
    plan = _resolved(settings, base, noise, problems)
    problems.refuse()
    assert plan is not None
    return plan


def _resolved(
    settings: Settings,
    base: Path,
    noise: Callable[[], Noise],
    problems: Problems,
    wrong: frozenset[str] = frozenset(),
) -> Plan | None:
    """The plan, or None where there is a problem; what rests on a top table that is `wrong` is not looked at."""
    sources, without = _named(settings, problems)
    parts: dict[str, StreamParts] = {}
    for stream in settings.stream:
        with problems.gathered(f"stream {stream.name!r}: "):
            if stream.name in without:
                _calibration_of(stream)
            else:
                parts[stream.name] = _load_stream_parts(settings, stream, sources, noise())
    if not parts or "budget" in wrong:
        return None
    whole = msgspec.structs.replace(settings, stream=tuple(s for s in settings.stream if s.name in parts))
    plan = _planned(_filled(whole, parts), base, sources, parts)
    for planned in plan.streams.values():
        with problems.gathered():
            _check_price(planned)
    with problems.gathered():
        check_ceilings(plan.settings, plan.mechanisms)
    return plan


def _named(settings: Settings, problems: Problems) -> tuple[list["NamedSource"], set[str]]:
    """The sources that can be used, and the streams that miss one of theirs."""
    sources: list[NamedSource] = []
    without: set[str] = set()
    for entry in settings.source:
        from eyestream.rim.sources.registry import named_source  # noqa: PLC0415  for who has a source

        before = len(sources)
        with problems.gathered(f"source of {entry.device}/{', '.join(entry.served)}: "):
            sources.append(named_source(entry))
        if len(sources) == before:
            without |= set(entry.served)
    return sources, without


def _check_price(stream: StreamPlan) -> None:
    """Raise ConfigError where a purpose comes to more than a window may cost."""
    purpose, window = stream.settings.privacy.purpose, stream.deployment.ceilings.window
    if purpose is not None and window is not None:
        check_window(purpose, stream.mechanism.epsilon, stream.touched, window / EPSILON_UNITS)


def _filled(settings: Settings, parts: Mapping[str, StreamParts]) -> Settings:
    """The tables with a ceiling of the window, where none is given."""
    budget = settings.budget
    if budget.window_epsilon is not None:
        return settings
    chunks = budget.window_chunks * max(charge_of(one.mechanism).epsilon for one in parts.values())
    window = chunks / EPSILON_UNITS
    if ceiling_units(window) < chunks:
        window = math.nextafter(window, math.inf)
    minutes = [stream.privacy.epsilon_per_minute for stream in settings.stream]
    window = max([window, *(_MINUTES * minute for minute in minutes if minute is not None)])
    return msgspec.structs.replace(settings, budget=msgspec.structs.replace(budget, window_epsilon=window))


def _planned(
    settings: Settings, base: Path, sources: Sequence["NamedSource"], parts: Mapping[str, StreamParts]
) -> Plan:
    streams = {
        stream.name: StreamPlan(stream, parts[stream.name], _deployment(settings, stream, parts), settings)
        for stream in settings.stream
    }
    return Plan(settings, base, tuple(sources), streams)


def _deployment(settings: Settings, stream: StreamSettings, parts: Mapping[str, StreamParts]) -> Deployment:
    """Streams stand beside one another when some device sends both."""
    others = [
        o for o in settings.stream if o is not stream and any(stream in own and o in own for own in settings.senders)
    ]
    beside = [parts[other.name] for other in others]
    return Deployment(
        parts[stream.name].spec,
        ceilings_of(settings),
        tuple(
            SiblingStream(one.spec, one.mechanism.n, one.mechanism.loss, one.mechanism.calibration.takes_off)
            for one in beside
        ),
    )


def _load_stream_parts(
    settings: Settings, stream: StreamSettings, sources: Sequence["NamedSource"], noise: Noise
) -> StreamParts:
    """Load the parts of a stream: calibration, front end and mechanism.

    Raises
    ------
    CalibrationError, ConfigError
        One of them does not fit the others, epsilon or an option cannot be used, or the mechanism is not for a live
        stream.
    """
    problems, calibration, front_end = Problems(), None, None
    profiles, answers = _served_gaze(stream, sources)
    with problems.gathered():
        calibration = _calibration_of(stream)
    with problems.gathered():
        front_end = _front_end_of(stream, calibration, gaze=bool(profiles))
    if calibration is None or len(problems):
        problems.refuse()
    assert calibration is not None
    spec = _spec_of(stream, calibration, front_end, profiles)
    _check_fit(stream, calibration, spec, front_end, profiles)
    mechanism = _built(settings, stream, calibration, spec, noise)
    check_live(mechanism)
    _check_measured(mechanism, profiles)
    for level in range(1, settings.budget.levels):
        _on_level(mechanism, level)
    return StreamParts(spec, mechanism, front_end, profiles, answers)


def _check_measured(mechanism: Mechanism, profiles: Sequence["Profile"]) -> None:
    """Raise ConfigError where features of pupils are asked for, and a tracker of the stream measures none."""
    pupils = [name for name in mechanism.schema.names if "diameter" in name]
    without = [profile.name for profile in profiles if profile.pupil_unit == "none"]
    if pupils and without and not mechanism.domain.keeps:
        raise ConfigError(f"features: {', '.join(pupils)} cannot be measured: profile {without[0]} has no pupils")


def _check_fit(
    stream: StreamSettings,
    calibration: Calibration,
    spec: StreamSpec,
    front_end: FrontEndEntry | None,
    profiles: Sequence["Profile"],
) -> None:
    """Refuse a calibration that was made for other rows, or for rows of another front end; all reasons together."""
    problems = Problems()
    with problems.gathered():
        calibration.check_stream(spec.names, calibration.rate_hz)
    with problems.gathered():
        calibration.check_stream(calibration.names, spec.rate_hz)
    known = front_end or _shipped(spec.names)
    if known is not None and spec.names == known.names and spec.window_s < known.window_s:
        problems.add(f"[[stream]] window_s: a row of these features describes {known.window_s:g} s, not less")
    for profile in profiles:
        assert front_end is not None
        with problems.gathered():
            calibration.check_front_end(front_end.mark(profile))
    if calibration.takes_off is not None and stream.idle_s is not None:
        with problems.gathered():
            _check_pause(spec, stream.idle_s)
    problems.refuse()


def _served_gaze(stream: StreamSettings, sources: Sequence["NamedSource"]) -> tuple[tuple["Profile", ...], bool | None]:
    """`profiles` and `answers` of a stream's `StreamParts`, by the sources of gaze that serve it."""
    serving = [source for source in sources if stream.name in source.entry.served]
    profiles = tuple(dict.fromkeys(source.profile for source in serving if source.profile is not None))
    live_gaze = [source.answers for source in serving if source.answers is not None]
    return profiles, all(live_gaze) if live_gaze else None


def _front_end_of(stream: StreamSettings, calibration: Calibration | None, *, gaze: bool) -> FrontEndEntry | None:
    """The front end that a stream names, or the usual one where a source has gaze.

    A mechanism may have a front end of its own, which follows from its calibration.

    Raises
    ------
    ConfigError
        There is no such front end.
    """
    own = None if calibration is None else entry_of(calibration.mechanism).front_end
    if own is not None:
        entry: FrontEndEntry = referred(own)(calibration)
        if stream.front_end in (None, entry.name):
            return entry
    if stream.front_end is not None:
        from eyestream.rim.elsewhere import front_end_named  # noqa: PLC0415  for who names one

        return front_end_named(stream.front_end, "[[stream]] front_end")
    return USUAL if gaze else None


def _spec_of(
    stream: StreamSettings,
    calibration: Calibration | None,
    front_end: FrontEndEntry | None,
    profiles: Sequence["Profile"],
) -> StreamSpec:
    """Specification of a stream's rows; what its table leaves out comes with its front end and its calibration.

    The memory of a front end in this process is known, whatever the table says: the longest memory holds.

    Raises
    ------
    ConfigError
        Nothing says what the rows are.
    """
    usual = front_end or calibration
    names = stream.names or (None if usual is None else usual.names)
    rate_hz = stream.rate_hz or (None if usual is None else usual.rate_hz)
    known = front_end or (None if names is None else _shipped(names))
    window_s = known.window_s if stream.window_s is None and known is not None else stream.window_s
    if names is None or rate_hz is None or window_s is None:
        key = "window_s" if window_s is None else "names" if names is None else "rate_hz"
        raise ConfigError(f"[[stream]] {key}: missing; no front end of the configuration makes such rows")
    units = ("1",) * len(names) if front_end is None else front_end.units
    memories = [front_end.memory_s(profile) for profile in profiles] if front_end is not None else []
    return StreamSpec(
        name=stream.name,
        schema=stream.schema,
        names=names,
        units=calibration.units if calibration is not None and calibration.names == names else units,
        rate_hz=rate_hz,
        window_s=window_s,
        memory_s=max([stream.memory_s, *memories]),
    )


def _shipped(names: tuple[str, ...]) -> FrontEndEntry | None:
    """The front end of ours that makes rows of these features."""
    return next((entry for entry in SHIPPED.values() if entry.names == names), None)


def _calibration_of(stream: StreamSettings) -> Calibration:
    """The calibration that a stream names; raises CalibrationError or ConfigError."""
    place, where = stream.privacy.mechanism, "[stream.privacy] mechanism"
    named = None
    if place is not None:
        from eyestream.rim.elsewhere import mechanism_named  # noqa: PLC0415  for who names one

        named = mechanism_named(place, where).name
    calibration = calibrations.load(stream.privacy.calibration)
    if named not in (None, calibration.mechanism):
        raise ConfigError(f"{where}: {place} is {named}, and the calibration is one of {calibration.mechanism}")
    return calibration


def _check_pause(rows: StreamSpec, idle_s: float) -> None:
    """Raise ConfigError where rows after a pause that ends a session still describe gaze of before it."""
    reach_s = round(rows.window_s + rows.memory_s, 6)
    if idle_s < reach_s:
        raise ConfigError(
            f"[[stream]] idle_s = {idle_s:g}: expected at least {reach_s:.8g} (window_s = {rows.window_s:g} and "
            f"memory_s = {rows.memory_s:g}): the calibration takes a baseline or a history off each session, and rows "
            "after a shorter pause still describe gaze of before it"
        )


def _built(
    settings: Settings, stream: StreamSettings, calibration: Calibration, spec: StreamSpec, noise: Noise
) -> Mechanism:
    privacy = stream.privacy
    if privacy.purpose not in (None, *PURPOSES):
        return _at_a_minute(privacy, calibration, noise)
    if privacy.epsilon_prime is None:
        return build(calibration, privacy.epsilon, noise=noise, **privacy.given)
    from eyestream.rim.plan.correlated import correlated_of, kept_below  # noqa: PLC0415  for who names a class

    def claimed(epsilon: float) -> "tuple[Mechanism, Correlated]":
        mechanism = build(calibration, epsilon, noise=noise, **privacy.given)
        claim = correlated_of(stream, ceilings_of(settings), mechanism, spec, alone=sends_alone(settings))
        if claim is None:
            raise ConfigError("[stream.privacy] epsilon_prime: it is a figure of a class; name one with `correlation`")
        return mechanism, claim

    return kept_below(privacy.epsilon_prime, privacy.epsilon, claimed, "[stream.privacy] epsilon_prime")[0]


def _at_a_minute(privacy: PrivacySettings, calibration: Calibration, noise: Noise) -> Mechanism:
    """The mechanism of a purpose whose calibration is the operator's: that one, at its price a minute."""
    if not calibration.sessions:
        raise ConfigError(
            f"[stream.privacy] calibration: expected one of {privacy.purpose}, which eyestream calibrate --labels "
            f"makes, not one of {calibration.mechanism}"
        )
    assert privacy.epsilon_per_minute is not None
    epsilon = chunk_price(privacy.epsilon_per_minute, calibration.n, calibration.rate_hz)
    return build(calibration, epsilon, noise=noise, **privacy.given)


def _on_level(mechanism: Mechanism, level: int) -> None:
    """Make it now, so that a level that cannot be is refused before anything is released."""
    try:
        mechanism.faded(level)
    except OperatorError as error:
        raise ConfigError(f"[budget] lifetime_mode: 'fade' is not for this epsilon: {error}") from None
