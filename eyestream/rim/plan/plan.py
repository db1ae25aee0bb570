"""The whole plan, and how it is resolved from the tables of a configuration.

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

from eyestream.core.charge import EPSILON_UNITS, Ceilings, ceiling_units, charge_of
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.mechanism import Mechanism
from eyestream.core.noise import Noise, SecureNoise
from eyestream.core.scopes import Deployment, SiblingStream
from eyestream.problems import Problems
from eyestream.rim.config import DeviceEntry, Settings, StreamSettings, read_tables
from eyestream.rim.config.purposes import within_window
from eyestream.rim.files import calibrations
from eyestream.rim.plan.ceilings import ceilings_of, check_ceilings, refuse_others, refuse_raised
from eyestream.rim.plan.resolve import calibration_of, front_end_of, load_stream_parts, served_gaze, spec_of
from eyestream.rim.plan.stream import StreamParts, StreamPlan
from eyestream.streams import StreamKey
from eyestream.wire.messages import Meta

if TYPE_CHECKING:
    from eyestream.rim.sources.registry import NamedSource
    from eyestream.rim.sources.source import Feeder, Source

__all__ = ["Plan", "load", "resolved"]

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
        """What releases the chunks of each stream, by its name."""
        return {name: stream.mechanism for name, stream in self.streams.items()}

    @cached_property
    def ceilings(self) -> Ceilings:
        """What the ledger holds every device to."""
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
            profiles, answers = served_gaze(stream, sources)
            front_end = front_end_of(stream, None, gaze=bool(profiles))
            spec = spec_of(stream, None, front_end, profiles)
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
                calibration_of(stream)
            else:
                parts[stream.name] = load_stream_parts(settings, stream, sources, noise())
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
        within_window(purpose, stream.mechanism.epsilon, stream.touched, window / EPSILON_UNITS)


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
    shared = [settings.streams_of(device) for device in settings.device]
    others = [o for o in settings.stream if o is not stream and any(stream in own and o in own for own in shared)]
    beside = [parts[other.name] for other in others]
    return Deployment(
        parts[stream.name].spec,
        ceilings_of(settings),
        tuple(
            SiblingStream(one.spec, one.mechanism.n, one.mechanism.loss, one.mechanism.calibration.takes_off)
            for one in beside
        ),
    )
