"""The kinds of source, by name: a new one is a file beside this one and a line here, its place.

A source of rows serves a stream as it is; a source of gaze does so through the front end of a profile.

One that lives elsewhere is named by its entry point in the group ``eyestream.sources``, or by its place: ``kind =
"package.module:NAME"``, NAME being a `SourceKind`. Who writes the configuration so chooses code that sees raw rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from eyestream.doors import installed
from eyestream.errors import ConfigError, meant
from eyestream.gaze.entry import USUAL, FrontEndEntry
from eyestream.problems import Problems
from eyestream.rim.config import BrokerSettings, SourceEntry
from eyestream.rim.elsewhere import imported
from eyestream.rim.sources.source import Feeder, Source, SourceKind
from eyestream.streams import StreamSpec, same_rate
from eyestream.strict import TablePlace, read

if TYPE_CHECKING:
    from eyestream.gaze.profile import Profile
    from eyestream.rim.sources.gaze import GazeKind

_PLACES = {
    "core": "eyestream.rim.sources.core:CORE",
    "lsl": "eyestream.rim.sources.lsl:LSL",
    "mqtt": "eyestream.rim.sources.mqtt:MQTT",
    "neon": "eyestream.rim.sources.neon:NEON",
    "recording": "eyestream.rim.sources.recording:RECORDING",
}
"""Imported when a configuration names them: a sidecar does not carry the others."""

HOST_SPEED = 1.0
"""Seconds of live gaze that pass in one second; tests alone hurry."""


@dataclass(frozen=True, eq=False)
class NamedSource:
    """A ``[source]`` table with what it names, read once.

    Attributes
    ----------
    entry : the table.
    kind : of the source.
    profile : turns its gaze into rows, with its rate; None for a source of rows.
    """

    entry: SourceEntry
    kind: "SourceKind | GazeKind"
    profile: "Profile | None"

    @property
    def answers(self) -> bool | None:
        """Whether the tracker of live gaze is asked if it is there; None for other sources."""
        return None if isinstance(self.kind, SourceKind) else self.kind.answers


def named_source(entry: SourceEntry) -> NamedSource:
    """A ``[source]`` table, with the kind and the profile that it names.

    Raises
    ------
    ConfigError
        There is no such kind or profile, its rate is missing, or it is made for another rate.
    """
    kind = _kind(entry)
    return NamedSource(entry, kind, _profile(entry, kind))


def _profile(entry: SourceEntry, kind: "SourceKind | GazeKind") -> "Profile | None":
    usual = None if isinstance(kind, SourceKind) else kind.profile
    name = usual if entry.profile is None else entry.profile
    if name is None:
        if entry.rate_hz is not None:
            raise ConfigError(f"[source] rate_hz: {entry.kind!r} without a profile is no source of gaze")
        return None
    if usual is None and kind.name != "recording":
        raise ConfigError(f"[source] profile: {entry.kind!r} is no source of gaze")
    from eyestream.rim.files.profiles import load_profile  # noqa: PLC0415  for who has gaze

    profile = load_profile(name)
    if entry.rate_hz is not None:
        profile = profile.at_rate(entry.rate_hz)
    if profile.rate_hz is None:
        raise ConfigError(f"[source] rate_hz: missing: profile {profile.name} is for trackers of any rate")
    return profile


def make_source(entry: SourceEntry, spec: StreamSpec, base: Path, broker: BrokerSettings) -> Source | Feeder:
    """The source of a ``[source]`` table that serves one stream; raises as `named_source` and `make_sources`."""
    (source,) = make_sources(named_source(entry), [(spec, None)], base, broker)
    return source


def make_sources(
    source: NamedSource, streams: Sequence[tuple[StreamSpec, FrontEndEntry | None]], base: Path, broker: BrokerSettings
) -> Sequence[Source | Feeder]:
    """Make what serves each stream of a source. Gaze comes from one tracker once, however many streams it serves.

    Parameters
    ----------
    source
        Paths in its options are relative to `base`.
    streams
        That it serves: what the rows of each are, and what makes them of gaze; None: the usual front end.
    broker
        Where raw data comes from.

    Raises
    ------
    ConfigError
        Its options are not what it takes, or gaze cannot become such rows.
    RecordingError
        The file that it plays is no recording.
    """
    entry, kind, profile = source.entry, source.kind, source.profile
    options = _options(entry, kind, base)
    if isinstance(kind, SourceKind) and profile is None:
        if len(streams) > 1:
            raise ConfigError(f"[source] streams: {entry.kind!r} is a source of rows, and serves one stream")
        return [kind.make(options, streams[0][0])]
    assert profile is not None
    from eyestream.rim.sources.gaze import GazeFeeder, Place  # noqa: PLC0415  for who has gaze

    entries = [front_end or USUAL for _, front_end in streams]
    for (made, _), front_end in zip(streams, entries, strict=True):
        if made.names != front_end.names or not same_rate(made.rate_hz, front_end.rate_hz):
            what = f"{len(front_end.names)} features, {front_end.rate_hz:g} a second"
            raise ConfigError(f"[source]: front end {front_end.name} makes rows of {what}, and no others")
    if not isinstance(kind, SourceKind):
        gaze = kind.make(options, profile, Place(entry.device, broker))
        return [GazeFeeder(gaze, profile, kind.answers, HOST_SPEED, front_end) for front_end in entries]
    from eyestream.rim.sources.gaze_recording import gaze_recordings  # noqa: PLC0415  as the places above
    from eyestream.rim.sources.recording import RecordingOptions  # noqa: PLC0415

    assert isinstance(options, RecordingOptions)
    return gaze_recordings(options, profile, entries)


def _kind(entry: SourceEntry) -> "SourceKind | GazeKind":
    where = "[[source]] kind"
    found = {point.name: point.value for point in installed("eyestream.sources")}
    places = _PLACES | found | _PLACES  # no other distribution takes a name of ours
    place = entry.kind if ":" in entry.kind else places.get(entry.kind)
    if place is None:
        raise ConfigError(f"{where}: {entry.kind!r} is none of {', '.join(places)}{meant(entry.kind, places)}")
    kind = imported(place, object, where)
    if isinstance(kind, SourceKind):
        return kind
    from eyestream.rim.sources.gaze import GazeKind  # noqa: PLC0415  for who has gaze

    if not isinstance(kind, GazeKind):
        raise ConfigError(f"{where}: {place!r} is no SourceKind or GazeKind")
    return kind


def _options(entry: SourceEntry, kind: "SourceKind | GazeKind", base: Path) -> msgspec.Struct:
    """Read ``[source.options]``."""
    problems = Problems()
    options = read(kind.options, entry.options, problems, TablePlace(("source", "options")), lambda text: base / text)
    problems.refuse(f"source {entry.device}/{entry.stream}, {entry.kind}: ")
    assert options is not None
    return options
