"""The configuration: strict TOML, read once and whole, into frozen settings.

A key that is unknown, missing, of another type or out of range is one line that names the file, the table, the key,
what was found and what was expected. All mistakes are said together. Paths in the file are relative to the file.
"""

import math
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from eyestream.doors import installed, loaded
from eyestream.errors import ConfigError, meant
from eyestream.problems import Problems
from eyestream.rim.config.purposes import resolve_purpose
from eyestream.rim.config.tables import (
    AddedTable,
    BrokerSettings,
    BudgetSettings,
    ControlSettings,
    DeviceEntry,
    LimitSettings,
    LoginSettings,
    LogSettings,
    MetricsSettings,
    PrivacySettings,
    Settings,
    SidecarSettings,
    SourceEntry,
    StreamBudgetSettings,
    StreamSettings,
    WearerBudgetSettings,
)
from eyestream.strict import Reader, TablePlace, expected, read, unknown_keys
from eyestream.wire.topics import refuse_shared

__all__ = [
    "AddedTable",
    "BrokerSettings",
    "BudgetSettings",
    "ConfigReading",
    "ControlSettings",
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
    "load",
    "load_login",
    "read_tables",
]

Table = TypeVar("Table", bound=msgspec.Struct)

_SECRETS_AND_CERTIFICATES = ("password_file", "ca_file", "cert_file", "key_file")


@dataclass
class ConfigReading:
    """The part of a file that could be read.

    Attributes
    ----------
    settings : tables without a mistake; those with one have their defaults, or are left out of their list.
    problems : the mistakes.
    wrong : the top tables that have a mistake.
    unread : the calibrations that streams with a mistake name, by their place in the file.
    """

    settings: Settings
    problems: Problems
    wrong: frozenset[str]
    unread: Mapping[str, str]


def load(path: Path) -> Settings:
    """Read and check the file at `path`.

    Raises
    ------
    ConfigError
        The file cannot be read, is not TOML, or has keys that are unknown, missing, of another type or out of range:
        a line for each.
    """
    reading = read_tables(path)
    reading.problems.refuse(f"{path}: ")
    return reading.settings


def read_tables(path: Path) -> ConfigReading:
    """Read like `load`, but return mistakes in tables, so that others can be found after them.

    Raises
    ------
    ConfigError
        The file cannot be read, is not TOML, or has the tables of version 0.1.0.
    """
    table = _toml(path)
    if isinstance(table.get("stream"), dict):
        raise ConfigError(
            f"{path}: has the tables of version 0.1.0: write [[stream]] in the place of [stream], and "
            "[stream.privacy], after it, in the place of [privacy]"
        )
    problems, values, wrong, unread = Problems(), dict[str, Any](), set[str](), dict[str, str]()
    kinds = _added(table)
    known: dict[str, Any] = {field.name: field.type for field in msgspec.structs.fields(Settings)} | kinds
    del known["added"]
    required = {"stream"} if kinds else {"stream", "device"}
    misspelt = unknown_keys(table, known, problems)
    if "fleet" in table and "fleet" not in known:
        problems.add("[fleet]: is a table of eyestream-fleet: pip install eyestream-fleet")
    tables = _one_source(table, problems)
    for name, kind in known.items():
        before = len(problems)
        if name in tables:
            tables |= {name: _sound(tables[name], problems, TablePlace(), name)}
        if name == "stream" and isinstance(tables.get("stream"), list):
            values["stream"] = tuple(_streams(tables["stream"], problems, unread))
        elif name in tables:
            values[name] = Reader(problems).value(kind, tables[name], TablePlace(), name)
        elif name in required and name not in misspelt:
            problems.add(f"[[{name}]]: missing; expected {expected(kind)}")
        if len(problems) > before:
            wrong.add(name)
    whole: dict[str, Any] = {key: value for key, value in values.items() if value is not None}
    for name in kinds:
        whole["added"] = added = whole.pop(name, None)
        if added is not None and added.private is not None:
            whole.setdefault("private", added.private)
    settings = Settings(**{"stream": (), "device": ()} | whole)
    _check_together(settings, wrong, problems)
    unread = {place: _calibration(name, path.parent) for place, name in unread.items()}
    return ConfigReading(_anchored(settings, path.parent), problems, frozenset(wrong), unread)


def _added(table: dict[str, Any]) -> dict[str, type[AddedTable]]:
    """The kind of the table that another distribution adds, by its name, if the file has one."""
    own = Settings.__struct_fields__
    points = [point for point in installed("eyestream.tables") if point.name in table] if table.keys() - own else []
    return {point.name: loaded(point, type) for point in points[:1] if point.name not in own}


def _streams(tables: list[object], problems: Problems, unread: dict[str, str]) -> Iterator[StreamSettings]:
    """The streams without a mistake; `unread` takes the calibrations of the others."""
    if not tables:
        problems.add("[[stream]]: missing; expected a list of tables, at least 1")
    for number, table in enumerate(tables):
        place, before = TablePlace().numbered("stream", number, table), len(problems)
        told = table.get("privacy") if isinstance(table, dict) else None
        whole = table
        if isinstance(table, dict) and isinstance(told, dict):
            privacy = {key: value for key, value in told.items() if key not in {"purpose", "epsilon_per_minute"}}
            privacy |= {"calibration": "-", "epsilon": 1.0}
            with problems.gathered():  # the rest of the table is read all the same
                privacy = resolve_purpose(told, str(place.table("privacy")))
            whole = table | {"privacy": privacy}
        made = read(StreamSettings, whole, problems, place)
        if made is not None and len(problems) == before:
            yield made
        elif isinstance(told, dict) and isinstance(named := told.get("calibration"), str):
            unread[place.table("privacy").key("calibration")] = named


def load_login(path: Path) -> LoginSettings:
    """Read how somebody logs in: a TOML file with the keys of `LoginSettings`. Raises as `load`."""
    problems = Problems()
    login = read(LoginSettings, _toml(path), problems)
    problems.refuse(f"{path}: ")
    assert login is not None
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
    return table


def _sound(value: Any, problems: Problems, place: TablePlace, key: str) -> Any:
    """The value of a key without numbers that are not finite, and without names of shared subscriptions.

    Each is a problem, also within options that only a mechanism or a source knows. Something harmless stands in its
    place, so that it is said once.
    """
    if isinstance(value, dict):
        return {name: _sound(one, problems, place.table(key), name) for name, one in value.items()}
    if isinstance(value, list):
        return [
            {name: _sound(item, problems, place.numbered(key, i, one), name) for name, item in one.items()}
            if isinstance(one, dict)
            else _sound(one, problems, place, f"{key}[{i}]")
            for i, one in enumerate(value)
        ]
    if isinstance(value, float) and not math.isfinite(value):
        problems.add(f"{place.key(key)}: expected a finite number, found {value}")
        return 1
    if isinstance(value, str):
        before = len(problems)
        with problems.gathered(f"{place.key(key)}: "):
            refuse_shared(value)
        return value if len(problems) == before else "shared"
    return value


def _one_source(table: dict[str, Any], problems: Problems) -> dict[str, Any]:
    """The table with a plain ``[source]`` as the first of ``[[source]]``; device and stream are those there are.

    Where there are several devices or streams, each source must name its own.
    """
    sources = table.get("source")
    sources = [sources] if isinstance(sources, dict) else sources
    if not isinstance(sources, list) or not all(isinstance(source, dict) for source in sources):
        return table
    if any(source.keys() >= {"stream", "streams"} for source in sources):
        problems.add("[[source]]: expected stream or streams, found both")
    only: dict[str, Any] = {}
    for key, kind, name in (("device", "device", "id"), ("stream", "stream", "name")):
        known = table.get(kind)
        if isinstance(known, list) and len(known) == 1 and isinstance(known[0], dict) and name in known[0]:
            only[key] = known[0][name]
    return table | {"source": [only | source for source in sources]}


def _check_together(settings: Settings, wrong: set[str], problems: Problems) -> None:
    """Check what one key alone cannot show; left out where a table that it needs has a mistake."""
    streams = [stream.name for stream in settings.stream]
    _once("[[device]] id", "every device once", [device.id for device in settings.device], problems)
    _once("[[stream]] name", "every stream once", streams, problems)
    for stream in settings.stream:
        _once(f"[[stream]] {stream.name!r} names", "every feature once", stream.names or (), problems)
    if "sidecar" in streams:
        problems.add("[[stream]] name: 'sidecar' is taken: expected another name")
    if settings.sidecar.name in {device.id for device in settings.device}:
        problems.add("[sidecar] name: expected another name than those of the devices")
    if settings.added is not None and settings.sidecar.ledger_key is not None:
        problems.add("[sidecar] ledger_key: the ledgers of this file cannot be sealed; take it out")
    _check_brokers(settings, problems)
    if not wrong & {"stream", "device"}:
        _check_devices(settings, problems)
    _once(
        "[[source]] device, stream",
        "one source",
        [f"{one.device}/{name}" for one in settings.source for name in one.served],
        problems,
    )


def _check_devices(settings: Settings, problems: Problems) -> None:
    """Check who sends which stream, and which source serves it."""
    streams = [stream.name for stream in settings.stream]
    for device in settings.device:
        for name in device.streams or ():
            if name not in streams:
                where, names = f"[[device]] {device.id!r} streams", ", ".join(streams)
                problems.add(f"{where}: expected names of {names}, found {name!r}{meant(name, streams)}")
        if device.streams == ():
            problems.add(f"[[device]] {device.id!r} streams: expected names of {', '.join(streams)}, found none")
    sent = {(device.id, stream.name) for device in settings.device for stream in settings.streams_of(device)}
    for source in settings.source:
        for name in source.served:
            if (source.device, name) not in sent:
                known = [f"{device}/{stream}" for device, stream in sorted(sent)]
                found = f"{source.device}/{name}"
                problems.add(
                    "[[source]] device, stream: expected a device of the file, and a stream of it, found "
                    f"{found}{meant(found, known)}"
                )


def _check_brokers(settings: Settings, problems: Problems) -> None:
    for table, broker in (("[private]", settings.private), ("[raw]", settings.raw)):
        if broker is None:
            continue
        with problems.gathered(f"{table} url: "):
            _ = broker.place
        if broker.password_file is not None and broker.username is None:
            problems.add(f"{table} username: missing beside password_file")
        if (broker.cert_file is None) != (broker.key_file is None):
            problems.add(f"{table}: expected cert_file and key_file together")


def _once(place: str, what: str, values: Sequence[str], problems: Problems) -> None:
    twice = [value for value, count in Counter(values).items() if count > 1]
    if twice:
        problems.add(f"{place}: expected {what}, found {twice[0]!r} again")


def _anchored(settings: Settings, base: Path) -> Settings:
    """The same settings with every path relative to `base`, the directory of the file."""

    def stream(table: StreamSettings) -> StreamSettings:
        privacy, process = table.privacy, table.privacy.correlation
        privacy = msgspec.structs.replace(privacy, calibration=_calibration(privacy.calibration, base))
        if process is not None and ("/" in process or process.endswith(".toml")):
            privacy = msgspec.structs.replace(privacy, correlation=str(base.absolute() / process))
        return msgspec.structs.replace(table, privacy=privacy)

    def source(table: SourceEntry) -> SourceEntry:
        if table.profile is None or ("/" not in table.profile and not table.profile.endswith(".toml")):
            return table
        return msgspec.structs.replace(table, profile=str(base.absolute() / table.profile))

    return msgspec.structs.replace(
        settings,
        sidecar=_with_paths(settings.sidecar, ("ledger", "second_place", "ledger_key"), base),
        control=_with_paths(settings.control, ("socket", "indicator"), base),
        private=_with_paths(settings.private, _SECRETS_AND_CERTIFICATES, base),
        raw=None if settings.raw is None else _with_paths(settings.raw, _SECRETS_AND_CERTIFICATES, base),
        stream=tuple(stream(table) for table in settings.stream),
        source=tuple(source(table) for table in settings.source),
        added=None if settings.added is None else _with_paths(settings.added, settings.added.paths, base),
    )


def _calibration(name: str, base: Path) -> str:
    """The same name, or the path relative to `base`."""
    return str(base / name) if "/" in name else name


def _with_paths(table: Table, keys: Sequence[str], base: Path) -> Table:
    """`table` with its paths relative to `base`."""
    return msgspec.structs.replace(
        table, **{key: base / value for key in keys if (value := getattr(table, key)) is not None}
    )
