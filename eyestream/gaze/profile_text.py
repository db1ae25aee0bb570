"""A profile from TOML text, strictly, and the hash that names a front end."""

import dataclasses
import hashlib
import json
import tomllib
from typing import Any

from eyestream.errors import ConfigError
from eyestream.gaze.features import FEATURES, STEP_S, WINDOW_S
from eyestream.gaze.profile import Profile, Table
from eyestream.problems import Problems
from eyestream.streams import FrontEndMark
from eyestream.strict import read

ALGORITHM_VERSION = 1
"""Goes up with every change by which the same gaze and the same profile give other rows."""


def front_end_hash(profile: Profile) -> str:
    """16 hexadecimal digits that change with the profile, the features and the version of the algorithm.

    Rows, and the calibrations that were made of them, belong together when these are equal. Keys that came later do not
    change the hash of a profile without them.
    """
    return _hash({**_algorithm(), "profile": profile_fields(profile)})


def profile_fields(profile: Profile) -> dict[str, Any]:
    """A profile's keys and values, for hashes: without the keys that came later where they are not set."""
    told = dataclasses.asdict(profile)
    for key, unset in (("table", dataclasses.asdict(Table())), ("confidence_min", 0.0)):
        if told[key] == unset:
            del told[key]
    if not profile.table.names:
        told.get("table", {}).pop("names", None)
    if not told["columns"]["confidence"]:
        del told["columns"]["confidence"]
    told["detection"] = _thresholds(profile)
    return told


def _thresholds(profile: Profile) -> dict[str, Any]:
    """Those of the detector, without the key that came later where it is as before."""
    told = dataclasses.asdict(profile.detection)
    if told["algorithm"] == 1:
        del told["algorithm"]
    return told


def detector_hash(profile: Profile) -> str:
    """Hash like `front_end_hash`, of the thresholds alone: equal for trackers whose rows mean the same in degrees.

    `frozen_s` is left out: it says what counts as lost, not what an event is.
    """
    thresholds = _thresholds(profile)
    del thresholds["frozen_s"]
    return _hash({**_algorithm(), "detection": thresholds})


def front_end_mark(profile: Profile) -> FrontEndMark:
    """The mark by which the rows of this profile are known."""
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
    problems = Problems()
    profile = read(Profile, {"rate_hz": None} | table, problems)
    problems.refuse(f"{where}: ")
    assert profile is not None
    return profile
