"""A profile as TOML text, strictly both ways, and the hash that names a front end."""

import dataclasses
import hashlib
import json
import math
import tomllib
from typing import Any, Literal, get_args, get_origin, get_type_hints

from eyestream.errors import ConfigError
from eyestream.gaze.features import FEATURES, STEP_S, WINDOW_S
from eyestream.gaze.profile import Profile
from eyestream.gaze.tables import Camera, Columns, Detection
from eyestream.streams.front_end import FrontEndMark

__all__ = ["ALGORITHM_VERSION", "detector_hash", "front_end_hash", "front_end_mark", "parse_profile", "profile_text"]

ALGORITHM_VERSION = 1
"""Goes up with every change by which the same gaze and the same profile give other rows."""

_TABLES: dict[str, Any] = {"columns": Columns, "camera": Camera, "detection": Detection}


def front_end_hash(profile: Profile) -> str:
    """16 hexadecimal digits that change with the profile, the features and the version of the algorithm.

    Rows, and the calibrations that were made of them, belong together when these are equal.
    """
    return _hash({**_algorithm(), "profile": dataclasses.asdict(profile)})


def detector_hash(profile: Profile) -> str:
    """As `front_end_hash`, but of the thresholds alone: equal for trackers whose rows mean the same in degrees.

    `frozen_s` is left out: it says what counts as lost, not what an event is.
    """
    thresholds = dataclasses.asdict(profile.detection)
    del thresholds["frozen_s"]
    return _hash({**_algorithm(), "detection": thresholds})


def front_end_mark(profile: Profile) -> FrontEndMark:
    """What the rows of this profile are known by."""
    return FrontEndMark(profile.name, front_end_hash(profile), detector_hash(profile))


def _algorithm() -> dict[str, Any]:
    features = [dataclasses.astuple(feature) for feature in FEATURES]
    return {"algorithm": ALGORITHM_VERSION, "window_s": WINDOW_S, "step_s": STEP_S, "features": features}


def _hash(told: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def parse_profile(text: str, where: str = "profile") -> Profile:
    """The profile that the TOML `text` describes.

    Parameters
    ----------
    where
        What the text is called in messages.

    Raises
    ------
    ConfigError
        naming the key that is unknown, missing, of another type or out of range.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where}: not TOML: {error}") from None
    for name, kind in _TABLES.items():
        if name in table:
            if not isinstance(table[name], dict):
                raise ConfigError(f"{where}: {name}: expected a table")
            table[name] = _built(kind, table[name], f"{where}: [{name}]")
    if "rate_hz" not in table:
        table["rate_hz"] = None
    profile: Profile = _built(Profile, table, f"{where}:")
    return profile


def _built(kind: Any, table: dict[str, Any], where: str) -> Any:
    """A frozen dataclass from a table with exactly its keys; those with a default may be missing."""
    hints = get_type_hints(kind)
    unknown = sorted(set(table) - set(hints))
    if unknown:
        raise ConfigError(f"{where} {unknown[0]}: unknown key")
    for field in dataclasses.fields(kind):
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if needed and field.name not in table:
            raise ConfigError(f"{where} {field.name}: missing")
    values = {name: _value(hints[name], value, f"{where} {name}") for name, value in table.items()}
    return kind(**values)


def _value(hint: Any, value: Any, where: str) -> Any:
    """`value` if it is of the type `hint`, whole numbers as floats where floats are wanted."""
    kinds = get_args(hint) if get_origin(hint) not in (Literal, tuple) and get_args(hint) else (hint,)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    for kind in kinds:
        if get_origin(kind) is Literal:
            if value in get_args(kind):
                return value
        elif get_origin(kind) is tuple:
            if isinstance(value, list) and all(isinstance(item, str) and item for item in value):
                return tuple(value)
        elif kind is float:
            if number and math.isfinite(value):
                return float(value)
        elif kind is int:
            if number and isinstance(value, int):
                return value
        elif isinstance(value, kind):
            return value
    raise ConfigError(f"{where}: expected {' or '.join(_expected(kind) for kind in kinds if kind is not type(None))}")


def _expected(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(repr(choice) for choice in get_args(kind))
    if get_origin(kind) is tuple:
        return "a list of names"
    names = {float: "a finite number", int: "a whole number", str: "a text", bool: "true or false"}
    return names.get(kind, f"a table [{kind.__name__.lower()}]")


def profile_text(profile: Profile) -> str:
    """TOML that `parse_profile` turns into the same profile; every value written out."""
    plain, tables = [], []
    for field in dataclasses.fields(profile):
        value = getattr(profile, field.name)
        if dataclasses.is_dataclass(value):
            tables.append(f"\n[{field.name}]")
            tables += [f"{inner.name} = {_toml(getattr(value, inner.name))}" for inner in dataclasses.fields(value)]
        elif value is not None:
            plain.append(f"{field.name} = {_toml(value)}")
    return "\n".join([*plain, *tables]) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, str):
        return json.dumps(value)  # a basic string of TOML, and ASCII
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value)
