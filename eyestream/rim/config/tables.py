"""The tables of the configuration, as frozen settings. `config/sidecar.toml` is the commented example."""

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from eyestream.privacy.fading import LEVELS
from eyestream.rim.config.fleet import FleetSettings
from eyestream.wire.topics import NAME

__all__ = [
    "NAME_PATTERN",
    "ONE_LINE",
    "BrokerSettings",
    "BudgetSettings",
    "DeviceEntry",
    "LimitSettings",
    "LogSettings",
    "LoginSettings",
    "MetricsSettings",
    "PrivacySettings",
    "Settings",
    "SidecarSettings",
    "SourceEntry",
    "StreamBudgetSettings",
    "StreamSettings",
    "WearerBudgetSettings",
]

NAME_PATTERN = rf"\A{NAME}\Z"
ONE_LINE = r"\A[^\x00-\x1f\x7f]*\Z"

Name = Annotated[str, msgspec.Meta(pattern=NAME_PATTERN)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Text = Annotated[str, msgspec.Meta(min_length=1, pattern=ONE_LINE)]


class SidecarSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[sidecar]``: its name in topics, and the file that remembers what was spent."""

    name: Name
    ledger: Path


class BrokerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[private]`` and ``[raw]``: where a broker is, how to log in, and which version of MQTT to speak.

    `client` is of earlier versions, which had two clients to choose from. It is read and does nothing.
    """

    url: Text
    username: Text | None = None
    password_file: Path | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    version: Literal["auto", "5", "3.1.1"] = "auto"
    client: Literal["own", "aiomqtt"] = "own"


class PrivacySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[stream.privacy]``: the calibration (a shipped name or a path), and epsilon of a chunk, all features together.

    A file may have `purpose` and `epsilon_per_minute` in their place: `load` fills in the two that they come to now.
    `mechanism` is the place of one that lives elsewhere, ``package.module:NAME``; else it comes with the calibration.
    `correlation` names the class of processes (a shipped name or a path) under which the guarantee says what a whole
    session tells; `epsilon_prime` lowers epsilon until that stays below it.
    The others are options of the mechanism, ``[stream.privacy.options]`` those that have no key of their own; one that
    it does not take is refused.
    """

    calibration: Text
    epsilon: Positive
    purpose: Literal["adapt", "trends", "unrecognised"] | None = None
    epsilon_per_minute: Positive | None = None
    mechanism: Text | None = None
    correlation: Text | None = None
    epsilon_prime: Positive | None = None
    k: Count | None = None
    shrink: bool | None = None
    clip: bool | None = None
    smooth: bool | None = None
    focus: list[str] | None = None
    options: dict[str, Any] = {}

    @property
    def given(self) -> dict[str, object]:
        """The options that are written in the file."""
        own = {key: getattr(self, key) for key in ("k", "shrink", "clip", "smooth", "focus")}
        return self.options | {key: value for key, value in own.items() if value is not None}


class StreamBudgetSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[stream.budget]``: ceilings of this stream alone, beneath those of its device."""

    session_epsilon: Positive | None = None
    day_epsilon: Positive | None = None
    lifetime_epsilon: Positive | None = None
    session_delta: Share | None = None
    day_delta: Share | None = None
    lifetime_delta: Share | None = None


class StreamSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[[stream]]``: what the trackers send, and how it is released; rows of another schema or width are refused."""

    name: Name
    schema: Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
    rate_hz: Positive
    window_s: NotNegative
    names: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1, max_length=4096)]
    grace_s: NotNegative
    idle_s: Positive
    release: Literal["on_row", "on_clock"]
    privacy: PrivacySettings
    memory_s: NotNegative = 0.0
    jump_chunks: Count = 16
    budget: StreamBudgetSettings | None = None


class WearerBudgetSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[budget.wearer]``: ceilings of each wearer whom a tracker names, beneath those of the device that is worn."""

    day_epsilon: Positive | None = None
    lifetime_epsilon: Positive | None = None
    day_delta: Share | None = None
    lifetime_delta: Share | None = None


class BudgetSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[budget]``: ceilings on what a device spends over all its streams; a chunk that would pass one is withheld.

    `lifetime_mode`: what becomes of chunks as `lifetime_epsilon` nears: ``stop``: they cost what they cost, until it is
    reached; ``fade``: epsilon of a chunk halves, level by level (`eyestream.privacy.fading`).
    """

    window_chunks: Count
    window_epsilon: Positive
    session_epsilon: Positive
    day_epsilon: Positive
    lifetime_epsilon: Positive | None = None
    window_delta: Share | None = None
    session_delta: Share | None = None
    day_delta: Share | None = None
    lifetime_delta: Share | None = None
    lifetime_mode: Literal["stop", "fade"] = "stop"
    wearer: WearerBudgetSettings | None = None

    @property
    def levels(self) -> int:
        """Of the lifetime; 1: it does not fade."""
        return LEVELS if self.lifetime_mode == "fade" else 1


class SourceEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[source]``, or ``[[source]]`` for several: rows of one stream of one device that are not on the raw broker.

    Gaze becomes rows through the front end of a profile: a shipped one by name, or a path.
    """

    kind: Text
    device: Name
    stream: Name = "features"
    profile: Text | None = None
    rate_hz: Positive | None = None
    options: dict[str, Any] = {}


class LimitSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[limits]``: what the process holds at most; what is past it is dropped, oldest first, and counted."""

    raw_messages: Count = 512
    released_chunks: Count = 512
    deadline_s: Positive = 60.0


class LogSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[log]``: how log lines look, on stderr."""

    format: Literal["text", "json"] = "text"


class MetricsSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[metrics]``: /metrics and /healthz on this port of 127.0.0.1; without the table nothing listens."""

    port: Annotated[int, msgspec.Meta(ge=1, le=65535)]


class LoginSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How somebody other than the sidecar logs in, as far as a check needs to know."""

    username: Text | None = None
    password_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None


class DeviceEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[[device]]``: one tracker, by its pseudonym, and which of the streams it sends: all when none is named."""

    id: Name
    streams: tuple[Name, ...] | None = None


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    sidecar: SidecarSettings
    private: BrokerSettings
    stream: Annotated[tuple[StreamSettings, ...], msgspec.Meta(min_length=1)]
    budget: BudgetSettings
    device: Annotated[tuple[DeviceEntry, ...], msgspec.Meta(min_length=1)]
    raw: BrokerSettings | None = None
    source: tuple[SourceEntry, ...] = ()
    limits: LimitSettings = LimitSettings()
    log: LogSettings = LogSettings()
    metrics: MetricsSettings | None = None
    fleet: FleetSettings | None = None

    @property
    def raw_broker(self) -> BrokerSettings:
        """Where raw rows come from: ``[raw]``, or ``[private]`` when there is no such table."""
        return self.private if self.raw is None else self.raw

    @property
    def rows_cross_a_broker(self) -> bool:
        """Whether some stream of some device has no source in this process."""
        served = {(source.device, source.stream) for source in self.source}
        return any((d.id, stream.name) not in served for d in self.device for stream in self.streams_of(d))

    def streams_of(self, device: DeviceEntry) -> tuple[StreamSettings, ...]:
        """The streams that a device sends."""
        return tuple(s for s in self.stream if device.streams is None or s.name in device.streams)
