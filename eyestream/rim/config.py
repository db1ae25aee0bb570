"""The configuration: strict TOML, read once and whole, into frozen settings.

A key that is unknown, missing, of another type or out of range stops the program with one line that names the file, the
table, the key and what was expected. Paths in the file are relative to the file. `config/sidecar.toml` is the
commented example.
"""

import math
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from eyestream.errors import ConfigError

__all__ = [
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
    "StreamSettings",
    "load",
    "load_login",
]

_NAME = r"\A[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z"  # as `eyestream.wire.topics.is_name`

_ONE_LINE = r"\A[^\x00-\x1f\x7f]*\Z"

Name = Annotated[str, msgspec.Meta(pattern=_NAME)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Text = Annotated[str, msgspec.Meta(min_length=1, pattern=_ONE_LINE)]
Table = TypeVar("Table", bound=msgspec.Struct)


class SidecarSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[sidecar]``: its name in topics and client ids, and the file that remembers what was spent."""

    name: Name
    ledger: Path


class BrokerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[private]`` and ``[raw]``: where a broker is and how to log in."""

    url: Text
    username: Text | None = None
    password_file: Path | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None


class StreamSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[stream]``: what the trackers send; rows of any other schema or width are refused."""

    schema: Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
    rate_hz: Positive
    window_s: NotNegative
    names: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1, max_length=4096)]
    grace_s: NotNegative
    idle_s: Positive
    release: Literal["on_row", "on_clock"]
    jump_chunks: Count = 16


class PrivacySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[privacy]``: the calibration (a shipped name or a path) and the epsilon of one chunk, all features together.

    The other keys are options of some mechanisms; the others refuse them. None: not written.
    """

    calibration: Text
    epsilon: Positive
    k: Count | None = None
    shrink: bool | None = None
    clip: bool | None = None
    smooth: bool | None = None


class BudgetSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[budget]``: ceilings on the sum of epsilon; a chunk that would pass one is withheld."""

    window_chunks: Count
    window_epsilon: Positive
    session_epsilon: Positive
    day_epsilon: Positive


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
    """``[[device]]``: one tracker, by its pseudonym."""

    id: Name


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    sidecar: SidecarSettings
    private: BrokerSettings
    stream: StreamSettings
    privacy: PrivacySettings
    budget: BudgetSettings
    device: Annotated[tuple[DeviceEntry, ...], msgspec.Meta(min_length=1)]
    raw: BrokerSettings | None = None
    limits: LimitSettings = LimitSettings()
    log: LogSettings = LogSettings()
    metrics: MetricsSettings | None = None

    @property
    def raw_broker(self) -> BrokerSettings:
        """Where raw rows come from: ``[raw]``, or ``[private]`` when there is no such table."""
        return self.private if self.raw is None else self.raw


def load(path: Path) -> Settings:
    """Read and check the file at `path`.

    Raises
    ------
    ConfigError
        The file cannot be read, is not TOML, or has a key that is unknown, missing, of another type or out of range.
    """
    settings = _read(path, Settings)
    _check_together(path, settings)
    return _anchored(settings, path.parent)


def load_login(path: Path) -> LoginSettings:
    """Read how somebody logs in: a TOML file with the keys of `LoginSettings`. Raises as `load`."""
    login = _read(path, LoginSettings)
    keys = ("password_file", "cert_file", "key_file")
    given = {key: path.parent / getattr(login, key) for key in keys if getattr(login, key) is not None}
    return msgspec.structs.replace(login, **given)


def _read(path: Path, kind: type[Table]) -> Table:
    """The TOML file `path` as one table of `kind`."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the configuration: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not a text file in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not TOML: {error}") from None
    for where, number in _floats(table, "$"):
        if not math.isfinite(number):
            raise ConfigError(f"{path}: {_place(where)}: expected a finite number")
    try:
        return msgspec.convert(table, kind, dec_hook=_path)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {_sentence(str(error))}") from None


def _floats(value: object, where: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, float):
        yield where, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _floats(inner, f"{where}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _floats(inner, f"{where}[{index}]")


def _path(kind: type, value: object) -> object:
    """A non-empty string where a path is expected; msgspec adds the place of the key to what is raised."""
    if kind is Path and isinstance(value, str) and value and re.match(_ONE_LINE, value):
        return Path(value)
    raise ValueError("Expected a path")


def _check_together(path: Path, settings: Settings) -> None:
    """What one key alone cannot show."""
    for table, what, values in (
        ("[[device]] id", "every device once", [device.id for device in settings.device]),
        ("[stream] names", "every feature once", settings.stream.names),
    ):
        if len(set(values)) != len(values):
            raise ConfigError(f"{path}: {table}: expected {what}")
    if settings.sidecar.name in {device.id for device in settings.device}:
        raise ConfigError(f"{path}: [sidecar] name: expected another name than those of the devices")
    for table, broker in (("[private]", settings.private), ("[raw]", settings.raw)):
        if broker is None:
            continue
        if broker.password_file is not None and broker.username is None:
            raise ConfigError(f"{path}: {table} username: missing beside password_file")
        if (broker.cert_file is None) != (broker.key_file is None):
            raise ConfigError(f"{path}: {table}: expected cert_file and key_file together")


def _anchored(settings: Settings, base: Path) -> Settings:
    """The same settings with every path relative to `base`, the directory of the file."""

    def broker(table: BrokerSettings) -> BrokerSettings:
        keys = ("password_file", "ca_file", "cert_file", "key_file")
        given = {key: base / getattr(table, key) for key in keys if getattr(table, key) is not None}
        return msgspec.structs.replace(table, **given)

    changes: dict[str, Any] = {
        "sidecar": msgspec.structs.replace(settings.sidecar, ledger=base / settings.sidecar.ledger),
        "private": broker(settings.private),
    }
    if settings.raw is not None:
        changes["raw"] = broker(settings.raw)
    if "/" in settings.privacy.calibration:
        changes["privacy"] = msgspec.structs.replace(
            settings.privacy, calibration=str(base / settings.privacy.calibration)
        )
    return msgspec.structs.replace(settings, **changes)


def _sentence(message: str) -> str:
    """A message of msgspec, ``Expected `int`, got `str` - at `$.stream.schema` ``, in the terms of the file."""
    what, _, where = message.partition(" - at `")
    where = where.removesuffix("`") or "$"
    missing = re.fullmatch(r"Object missing required field `(.*)`", what)
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", what)
    if missing:
        return f"{_place(where, missing[1])}: missing"
    if unknown:
        return f"{_place(where, unknown[1])}: unknown key"
    if "matching regex" in what:
        name = "1 to 64 of A-Z a-z 0-9 _ -, a letter or digit first"
        return f"{_place(where)}: expected {name if 'A-Z' in what else 'a text without control characters'}"
    plain = what.replace("`", "").replace("object", "table")
    return f"{_place(where)}: {plain[0].lower()}{plain[1:]}"


def _place(where: str, key: str = "") -> str:
    """``$.device[0].id`` as ``[[device]] (number 1) id``."""
    parts = [*where.split(".")[1:], *([key] if key else [])]
    if not parts:
        return "the file"
    numbered = re.fullmatch(r"(\w+)\[(\d+)\]", parts[0])
    if numbered:
        head = f"[[{numbered[1]}]] (number {int(numbered[2]) + 1})"
    else:
        head = "[[device]]" if parts[0] == "device" else f"[{parts[0]}]"
    return " ".join([head, *parts[1:]])
