"""A sidecar of features and of coarse gaze, from a tracker that looks at three places and is lost, in turn."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.gaze.samples import Samples
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.plan import Plan, load
from tests.rigs.fast_gaze import RATE_HZ, fast_tracker

__all__ = ["DEVICE", "EPSILON", "PROFILE", "STAY_S", "TEXT", "TRACKER", "gaze_at", "planned"]

DEVICE, EPSILON = "hmd-1", 6.0
STAY_S = 3.0
PLACES = ((-20.0, 8.0), (0.0, 0.0), (20.0, -8.0), (math.nan, math.nan))
PROFILE = load_profile("degrees").at_rate(RATE_HZ)


def gaze_at(t: np.ndarray[Any, Any]) -> Samples:
    """Three seconds at each of three places, three lost, and again."""
    x, y = np.array(PLACES)[np.floor((t - 0.001) / STAY_S).astype(int) % 4].T
    return Samples.of(t, x, y, valid=np.isfinite(x))


TRACKER = fast_tracker(gaze_at)

TEXT = """
[private]
url = "{url}"
[[device]]
id = "hmd-1"
[[source]]
kind = "tests.rigs.tile_stream:TRACKER"
rate_hz = 100.0
streams = ["features", "gaze"]
[[stream]]
name = "features"
[stream.privacy]
calibration = "everyday-cfpa-32"
epsilon = 4.8
[[stream]]
name = "gaze"
schema = 2
front_end = "slots"
[stream.privacy]
calibration = "everyday-tile"
mechanism = "tile"
epsilon = 6.0
[budget]
window_chunks = 2
session_epsilon = {session}
"""


def planned(
    folder: Path, url: str = "mqtt://localhost", session: float = 1152.0, changed: tuple[str, str] = ("", "")
) -> Plan:
    """The plan of the configuration `TEXT`, written into `folder`, with one text of it changed."""
    text = TEXT.format(url=url, session=session)
    assert changed[0] in text
    if changed[0]:
        text = text.replace(*changed)
    path = folder / "sidecar.toml"
    path.write_text(text)
    return load(path)
