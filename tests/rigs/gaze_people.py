"""Gaze to test with: of the 30 people whose gaze lies beside the checkout, and of one who is made up."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np

import eyestream
from eyestream.gaze.intake import take_in
from eyestream.gaze.profile import Columns, Detection, Profile
from eyestream.gaze.profile_text import parse_profile
from eyestream.gaze.samples import Samples
from eyestream_lab.simulation.gaze import GazePerson, Labels, gaze_of

PEOPLE = tuple(f"P{i:02d}" for i in range(33) if i not in (10, 16, 24))
PROFILES = Path(eyestream.__file__).parent / "data" / "profiles"


def shipped(name: str) -> Profile:
    path = PROFILES / f"{name}.toml"
    return parse_profile(path.read_text(), path.name)


def person(shared_data: Path, name: str) -> tuple[Profile, Samples]:
    made = shipped("smi-glasses")
    with gzip.open(shared_data / "hoppe2018" / "gaze" / f"{name}.csv.gz", "rt") as file:
        table = np.genfromtxt(file, delimiter=",", skip_header=1, usecols=(0, 1, 2, 3, 4))
    return made, take_in(made, table[:, 0], table[:, 1:3], pupil=table[:, 3:5])


def profile(rate_hz: float, **detection: Any) -> Profile:
    """Degrees, with a pupil."""
    columns = Columns("t_s", ("x_deg", "y_deg"), pupil=("pupil_mm",))
    made = Detection(**detection)
    return Profile("simulated", rate_hz, "s", "deg", "up", columns, detection=made, pupil_unit="mm")


def gaze(
    rate_hz: float,
    seconds: float,
    seed: int = 0,
    *,
    noise_deg: float = 0.03,
    pursuits: float = 0.05,
    jitter_s: float = 0.0,
    start_s: float = 0.0,
) -> tuple[Samples, Labels]:
    """Of a person like any other, but for these."""
    made, rng = GazePerson(noise_deg=noise_deg, pursuits=pursuits), np.random.default_rng(seed)
    return gaze_of(made, rate_hz, seconds, rng, jitter_s=jitter_s, start_s=start_s)
