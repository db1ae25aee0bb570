"""Reading the configuration: strict TOML, once and whole.

A key that is unknown, missing, of another type or out of range stops the program with one line that names the file, the
table, the key and what was expected. Paths in the file are relative to the file.
"""

import math
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from eyestream.errors import ConfigError, meant
from eyestream.rim.config import tables
from eyestream.rim.config.purposes import resolved
from eyestream.rim.config.tables import ONE_LINE, BrokerSettings, LoginSettings, Settings, SourceEntry, StreamSettings
from eyestream.rim.config.upgrade import upgraded_table
from eyestream.wire.topics import refuse_shared

__all__ = ["load", "load_login"]

Table = TypeVar("Table", bound=msgspec.Struct)

_KEYS = {
    key
    for kind in vars(tables).values()
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    for key in kind.__struct_fields__
}
_SECRETS_AND_CERTIFICATES = ("password_file", "ca_file", "cert_file", "key_file")
_FLEET = (*_SECRETS_AND_CERTIFICATES, "folder", "second_place")


def load(path: Path, notice: Callable[[str], None] = lambda line: None) -> Settings:
    """Read and check the file at `path`.

    Parameters
    ----------
    path
        The file; one of version 0.1.0, with ``[stream]`` and ``[privacy]``, is read too.
    notice
        Is given one line that says what changed since the version that the file was written for.

    Raises
    ------
    ConfigError
        The file cannot be read, is not TOML, or has a key that is unknown, missing, of another type or out of range.
    """
    table = _toml(path)
    current = upgraded_table(table)
    settings = _typed(path, _one_source(_with_purposes(path, current)), Settings, flat=current is not table)
    if current is not table:
        notice(
            f"{path}: written for 0.1.0: [stream] is now [[stream]] with a name, and [privacy] is [stream.privacy]; "
            f"`eyestream init --upgrade {path}` rewrites it"
        )
    _check_together(path, settings)
    return _anchored(settings, path.parent)


def _with_purposes(path: Path, table: dict[str, Any]) -> dict[str, Any]:
    """As `resolved`; errors name the file."""
    try:
        return resolved(table)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def load_login(path: Path) -> LoginSettings:
    """Read how somebody logs in: a TOML file with the keys of `LoginSettings`. Raises as `load`."""
    login = _typed(path, _toml(path), LoginSettings)
    return _with_paths(login, ("password_file", "cert_file", "key_file"), path.parent)


def _toml(path: Path) -> dict[str, Any]:
    """The TOML file `path`."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the configuration: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not a text file in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not TOML: {error}") from None
    for where, leaf in _leaves(table, "$"):
        if isinstance(leaf, float) and not math.isfinite(leaf):
            raise ConfigError(f"{path}: {_place(where)}: expected a finite number")
        if isinstance(leaf, str):
            try:
                refuse_shared(leaf)
            except ConfigError as error:
                raise ConfigError(f"{path}: {_place(where)}: {error}") from None
    return table


def _typed(path: Path, table: dict[str, Any], kind: type[Table], *, flat: bool = False) -> Table:
    """`table` as one of `kind`; `flat`: errors are said in the form of version 0.1.0."""
    try:
        return msgspec.convert(table, kind, dec_hook=_path)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {_sentence(str(error), flat)}") from None


def _one_source(table: dict[str, Any]) -> dict[str, Any]:
    """The table with a plain ``[source]`` as the first of ``[[source]]``; device and stream are those there are.

    Where there are several devices or streams, each source must name its own.
    """
    sources = table.get("source")
    sources = [sources] if isinstance(sources, dict) else sources
    if not isinstance(sources, list) or not all(isinstance(source, dict) for source in sources):
        return table
    only: dict[str, Any] = {}
    for key, kind, name in (("device", "device", "id"), ("stream", "stream", "name")):
        known = table.get(kind)
        if isinstance(known, list) and len(known) == 1 and isinstance(known[0], dict) and name in known[0]:
            only[key] = known[0][name]
    return table | {"source": [only | source for source in sources]}


def _leaves(table: object, where: str) -> Iterator[tuple[str, object]]:
    if isinstance(table, dict):
        for key, inner in table.items():
            yield from _leaves(inner, f"{where}.{key}")
    elif isinstance(table, list):
        for index, inner in enumerate(table):
            yield from _leaves(inner, f"{where}[{index}]")
    else:
        yield where, table


def _path(kind: type, value: object) -> object:
    """A non-empty string where a path is expected; msgspec adds the place of the key to what is raised."""
    if kind is Path and isinstance(value, str) and value and re.match(ONE_LINE, value):
        return Path(value)
    raise ValueError("Expected a path")


def _check_together(path: Path, settings: Settings) -> None:
    """What one key alone cannot show."""
    streams = [stream.name for stream in settings.stream]
    _once(path, "[[device]] id", "every device once", [device.id for device in settings.device])
    _once(path, "[[stream]] name", "every stream once", streams)
    for stream in settings.stream:
        _once(path, "[stream] names", "every feature once", stream.names)
    if "sidecar" in streams:
        raise ConfigError(f"{path}: [[stream]] name: 'sidecar' is taken: expected another name")
    for device in settings.device:
        unknown = set(device.streams or ()) - set(streams)
        if unknown or device.streams == ():
            raise ConfigError(f"{path}: [[device]] streams: expected names of {', '.join(streams)}")
    sent = {(device.id, stream.name) for device in settings.device for stream in settings.streams_of(device)}
    for source in settings.source:
        if (source.device, source.stream) not in sent:
            raise ConfigError(f"{path}: [[source]] device, stream: expected a device of the file, and a stream of it")
    _once(path, "[[source]] device, stream", "one source", [f"{one.device}/{one.stream}" for one in settings.source])
    if settings.sidecar.name in {device.id for device in settings.device}:
        raise ConfigError(f"{path}: [sidecar] name: expected another name than those of the devices")
    for table, broker in (("[private]", settings.private), ("[raw]", settings.raw)):
        if broker is None:
            continue
        if broker.password_file is not None and broker.username is None:
            raise ConfigError(f"{path}: {table} username: missing beside password_file")
        if (broker.cert_file is None) != (broker.key_file is None):
            raise ConfigError(f"{path}: {table}: expected cert_file and key_file together")


def _once(path: Path, table: str, what: str, values: Sequence[str]) -> None:
    if len(set(values)) != len(values):
        raise ConfigError(f"{path}: {table}: expected {what}")


def _anchored(settings: Settings, base: Path) -> Settings:
    """The same settings with every path relative to `base`, the directory of the file."""

    def broker(table: BrokerSettings) -> BrokerSettings:
        return _with_paths(table, _SECRETS_AND_CERTIFICATES, base)

    def stream(table: StreamSettings) -> StreamSettings:
        privacy, process = table.privacy, table.privacy.correlation
        if "/" in privacy.calibration:
            privacy = msgspec.structs.replace(privacy, calibration=str(base / privacy.calibration))
        if process is not None and ("/" in process or process.endswith(".toml")):
            privacy = msgspec.structs.replace(privacy, correlation=str(base.absolute() / process))
        return msgspec.structs.replace(table, privacy=privacy)

    def source(table: SourceEntry) -> SourceEntry:
        if table.profile is None or ("/" not in table.profile and not table.profile.endswith(".toml")):
            return table
        return msgspec.structs.replace(table, profile=str(base.absolute() / table.profile))

    return msgspec.structs.replace(
        settings,
        sidecar=msgspec.structs.replace(settings.sidecar, ledger=base / settings.sidecar.ledger),
        private=broker(settings.private),
        raw=None if settings.raw is None else broker(settings.raw),
        stream=tuple(stream(table) for table in settings.stream),
        source=tuple(source(table) for table in settings.source),
        fleet=None if settings.fleet is None else _with_paths(settings.fleet, _FLEET, base),
    )


def _with_paths(table: Table, keys: Sequence[str], base: Path) -> Table:
    """`table` with its paths relative to `base`."""
    return msgspec.structs.replace(
        table, **{key: base / value for key in keys if (value := getattr(table, key)) is not None}
    )


def _sentence(message: str, flat: bool) -> str:
    """A message of msgspec, ``Expected `int`, got `str` - at `$.stream[0].schema` ``, in the terms of the file."""
    what, _, where = message.partition(" - at `")
    where = where.removesuffix("`") or "$"
    if flat:
        where = where.replace("$.stream[0].privacy", "$.privacy").replace("$.stream[0]", "$.stream")
    missing = re.fullmatch(r"Object missing required field `(.*)`", what)
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", what)
    if missing and flat and where == "$.stream" and missing[1] == "privacy":
        where = "$"
    if missing:
        return f"{_place(where, missing[1])}: missing"
    if unknown:
        return f"{_place(where, unknown[1])}: unknown key{meant(unknown[1], _KEYS)}"
    if "matching regex" in what:
        name = "1 to 64 of A-Z a-z 0-9 _ -, a letter or digit first"
        return f"{_place(where)}: expected {name if 'A-Z' in what else 'a text without control characters'}"
    plain = what.replace("`", "").replace("object", "table")
    return f"{_place(where)}: {plain[0].lower()}{plain[1:]}"


def _place(where: str, key: str = "") -> str:
    """``$.device[0].id`` as ``[[device]] (number 1) id``; ``$.stream[0].privacy.k`` as ``[stream.privacy] ... k``."""
    parts = [*where.split(".")[1:], *([key] if key else [])]
    if not parts:
        return "the file"
    if parts[:2] == ["budget", "wearer"] and len(parts) > 2:
        parts = ["budget.wearer", *parts[2:]]
    numbered = re.fullmatch(r"(\w+)\[(\d+)\]", parts[0])
    if numbered and len(parts) > 1 and parts[1] in {"privacy", "budget"}:
        return " ".join([f"[{numbered[1]}.{parts[1]}] (number {int(numbered[2]) + 1})", *parts[2:]])
    if numbered:
        head = f"[[{numbered[1]}]] (number {int(numbered[2]) + 1})"
    else:
        head = f"[[{parts[0]}]]" if parts[0] == "device" else f"[{parts[0]}]"
    return " ".join([head, *parts[1:]])
