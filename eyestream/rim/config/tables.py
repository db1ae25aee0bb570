"""The tables of the configuration, as frozen settings. `config/sidecar.toml` is the commented example."""

import socket
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

import msgspec

from eyestream.core.charge import LEVELS, NEW_WEARERS
from eyestream.core.purposes import DAY_EPSILON, SESSION_EPSILON
from eyestream.errors import ConfigError
from eyestream.strict import NAME, ONE_LINE

if TYPE_CHECKING:
    from eyestream.claims.facts import TrustModel

Name = Annotated[str, msgspec.Meta(pattern=NAME)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Text = Annotated[str, msgspec.Meta(min_length=1, pattern=ONE_LINE)]

LOCAL_BROKER = "mqtt://localhost:1883"
"""The broker of a configuration and of a command that name none."""

_PORTS = {"mqtt": 1883, "mqtts": 8883}
_URL = "expected mqtt://host[:port], mqtts://host[:port] or unix:///path"


class SidecarSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[sidecar]``: its name in topics, and the file that remembers what was spent.

    `second_place` is a file on another disk that remembers how long the ledger was, so that an older copy is refused.
    `ledger_key` is a file with the key that seals the ledger on its disk.
    """

    name: Name = "sidecar"
    ledger: Path = Path("ledger")
    second_place: Path | None = None
    ledger_key: Path | None = None


class BrokerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[private]`` and ``[raw]``: where a broker is, how to log in, and which version of MQTT to speak."""

    url: Text
    username: Text | None = None
    password_file: Path | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    version: Literal["auto", "5", "3.1.1"] = "auto"

    @property
    def place(self) -> tuple[str, str, int]:
        """Scheme, host (or path) and port; raises ConfigError where `url` is none of a broker."""
        try:
            parts = urlsplit(self.url)
        except ValueError:  # half an IPv6 address in brackets
            raise ConfigError(f"{self.url}: {_URL}") from None
        try:
            port = parts.port
        except ValueError:
            raise ConfigError(f"{self.url}: expected a port between 1 and 65535") from None
        if parts.username is not None or parts.password is not None:
            raise ConfigError("a broker's URL carries no user name nor password; use username and password_file")
        if parts.scheme == "unix" and parts.path and not parts.netloc:
            if not hasattr(socket, "AF_UNIX"):
                raise ConfigError(f"{self.url}: this system has no sockets with a path; write mqtt://127.0.0.1")
            return "unix", parts.path, 0
        if parts.scheme not in _PORTS or not parts.hostname or parts.path not in ("", "/") or port == 0:
            raise ConfigError(f"{self.url}: {_URL}")
        return parts.scheme, parts.hostname, port or _PORTS[parts.scheme]


class PrivacySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[stream.privacy]``: the calibration (a shipped name or a path), and epsilon of a chunk, all features together.

    A file may have `purpose` and `epsilon_per_minute` in their place: `load` fills in the two that they come to now.
    Beside the purpose ``tasks`` stands the calibration, and epsilon of a chunk follows from its length.
    `mechanism` is the place of one that lives elsewhere, ``package.module:NAME``; else it comes with the calibration.
    `correlation` names the class of processes (a shipped name or a path) under which the guarantee says what a whole
    session tells; `epsilon_prime` lowers epsilon until that stays below it.
    The others are options of the mechanism, ``[stream.privacy.options]`` those that have no key of their own; one that
    it does not take is refused.
    """

    calibration: Text
    epsilon: Positive
    purpose: Literal["adapt", "tasks", "trends", "unrecognised"] | None = None
    epsilon_per_minute: Positive | None = None
    mechanism: Text | None = None
    correlation: Text | None = None
    epsilon_prime: Positive | None = None
    k: Count | None = None
    shrink: bool | None = None
    clip: bool | None = None
    smooth: bool | None = None
    focus: list[str] | None = None
    features: list[str] | None = None
    options: dict[str, Any] = {}

    @property
    def given(self) -> dict[str, object]:
        """The options that are written in the file; raises ConfigError where one is there twice."""
        own = {key: getattr(self, key) for key in ("k", "shrink", "clip", "smooth", "focus", "features")}
        own = {key: value for key, value in own.items() if value is not None}
        for key in own.keys() & self.options.keys():
            raise ConfigError(f"[stream.privacy.options] {key}: it stands in [stream.privacy] already; take one out")
        return self.options | own


class StreamBudgetSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[stream.budget]``: ceilings of this stream alone, beneath those of its device."""

    session_epsilon: Positive | None = None
    day_epsilon: Positive | None = None
    lifetime_epsilon: Positive | None = None
    session_delta: Share | None = None
    day_delta: Share | None = None
    lifetime_delta: Share | None = None


class StreamSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[[stream]]``: what the trackers send, and how it is released; rows of another schema or width are refused.

    `front_end` makes its rows of gaze: a name, or the place of one that lives elsewhere, ``package.module:NAME``.
    Where it is not given, a source of gaze has the usual one. `names`, `rate_hz` and `window_s` that are not given are
    those of the front end. Without one, `names` and `rate_hz` are those of the calibration; `window_s` must be given
    for rows that no front end of ours makes. `idle_s` is 60 s, or what a row describes if that is longer.
    """

    privacy: PrivacySettings
    name: Name = "features"
    schema: Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)] = 1
    rate_hz: Positive | None = None
    window_s: NotNegative | None = None
    names: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1, max_length=4096)] | None = None
    grace_s: NotNegative = 1.0
    idle_s: Positive | None = None
    release: Literal["on_row", "on_clock"] = "on_row"
    front_end: Text | None = None
    memory_s: NotNegative = 0.0
    jump_chunks: Count = 16
    budget: StreamBudgetSettings | None = None


class WearerBudgetSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[budget.wearer]``: ceilings of each wearer who is named, beneath those of the device that is worn.

    `new_a_day` is how many handles of a device may be new on one day; of one more, nothing is released that day.
    """

    day_epsilon: Positive | None = None
    lifetime_epsilon: Positive | None = None
    day_delta: Share | None = None
    lifetime_delta: Share | None = None
    new_a_day: Count = NEW_WEARERS


class BudgetSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[budget]``: ceilings on what a device spends over all its streams; a chunk that would pass one is withheld.

    `lifetime_mode`: what becomes of chunks as `lifetime_epsilon` nears: ``stop``: they cost what they cost, until it is
    reached; ``fade``: epsilon of a chunk halves, level by level (`eyestream.core.charge`).

    A window that is not given costs what `window_chunks` of the dearest chunks cost, and never withholds one. Where a
    stream has a purpose, it is three times `epsilon_per_minute`, which no newer version of the program changes.
    """

    window_chunks: Count = 2
    window_epsilon: Positive | None = None
    session_epsilon: Positive = SESSION_EPSILON
    day_epsilon: Positive = DAY_EPSILON
    lifetime_epsilon: Positive | None = None
    window_delta: Share | None = None
    session_delta: Share | None = None
    day_delta: Share | None = None
    lifetime_delta: Share | None = None
    lifetime_mode: Literal["stop", "fade"] = "stop"
    wearer: WearerBudgetSettings | None = None

    @property
    def levels(self) -> int:
        """Levels of the lifetime; 1: it does not fade."""
        return LEVELS if self.lifetime_mode == "fade" else 1


class SourceEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[source]``, or ``[[source]]`` for several: rows of one stream of one device that are not on the raw broker.

    Gaze becomes rows through the front end of each stream that the source serves; `profile` says what the numbers of
    the tracker are: a shipped one by name, or a path. A source of gaze may serve several `streams`.
    """

    kind: Text
    device: Name
    stream: Name = "features"
    streams: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)] | None = None
    profile: Text | None = None
    rate_hz: Positive | None = None
    options: dict[str, Any] = {}

    @property
    def served(self) -> tuple[str, ...]:
        """The streams of its device that it serves."""
        return self.streams or (self.stream,)


class LimitSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[limits]``: what the process holds at most; what is past it is dropped, oldest first, and counted."""

    raw_messages: Count = 512
    released_chunks: Count = 512
    deadline_s: Positive = 60.0


class ControlSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[control]``: the socket that `pause` and `resume` come over, beside the ledger when it is not given.

    The user of the sidecar and root may use it, and `users`, by name. `indicator` is a program that is started with
    ``on`` before anything is released, and with ``off`` after the last release.
    """

    socket: Path | None = None
    users: tuple[Text, ...] = ()
    indicator: Path | None = None


class LogSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[log]``: how log lines look, on stderr."""

    format: Literal["text", "json"] = "text"


class MetricsSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[metrics]``: /metrics and /healthz on this port; without the table nothing listens.

    `address` is where it listens: in a container, whose network is its own, Prometheus needs ``0.0.0.0``.
    """

    port: Annotated[int, msgspec.Meta(ge=1, le=65535)]
    address: Text = "127.0.0.1"


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


class AddedTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table that another distribution adds: what commands ask of it.

    An entry point of the group ``eyestream.tables`` has the name of the table, and refers to a class of this kind. It
    is loaded where a file has the table.

    Attributes
    ----------
    paths : of the class: keys that are paths, relative to the file.
    instead : of the class: what does for such a file what `run` and `budget --new` do for others; for errors.
    """

    paths: ClassVar[tuple[str, ...]] = ()
    instead: ClassVar[str] = ""

    @property
    def private(self) -> BrokerSettings | None:
        """``[private]`` of a file that leaves it out."""
        return None

    @property
    def trust_model(self) -> "TrustModel | None":
        """The trust model, in the place of a sidecar's."""
        return None

    @property
    def ledgers(self) -> list[Path]:
        """The ledgers that are on this host, in the place of ``[sidecar] ledger``."""
        return []

    def findings(self, settings: "Settings") -> Iterable[tuple[str, str | None, str]]:
        """For `eyestream check`: what must be, what is wrong with it (None: nothing), and what mends it."""
        return ()


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file. It names no device only where an added table knows them."""

    stream: Annotated[tuple[StreamSettings, ...], msgspec.Meta(min_length=1)]
    device: Annotated[tuple[DeviceEntry, ...], msgspec.Meta(min_length=1)]
    sidecar: SidecarSettings = SidecarSettings()
    private: BrokerSettings = BrokerSettings(LOCAL_BROKER)
    budget: BudgetSettings = BudgetSettings()
    raw: BrokerSettings | None = None
    source: tuple[SourceEntry, ...] = ()
    limits: LimitSettings = LimitSettings()
    control: ControlSettings = ControlSettings()
    log: LogSettings = LogSettings()
    metrics: MetricsSettings | None = None
    added: AddedTable | None = None

    @property
    def raw_broker(self) -> BrokerSettings:
        """Where raw rows come from: ``[raw]``, or ``[private]`` when there is no such table."""
        return self.private if self.raw is None else self.raw

    @property
    def rows_cross_a_broker(self) -> bool:
        """Whether some stream of some device has no source in this process."""
        served = {(source.device, name) for source in self.source for name in source.served}
        return any((d.id, stream.name) not in served for d in self.device for stream in self.streams_of(d))

    def streams_of(self, device: DeviceEntry) -> tuple[StreamSettings, ...]:
        """The streams that a device sends."""
        return tuple(s for s in self.stream if device.streams is None or s.name in device.streams)

    @property
    def senders(self) -> list[tuple[StreamSettings, ...]]:
        """The streams of each device; where the file names none, one that may send all."""
        return [self.streams_of(device) for device in self.device] or [self.stream]
