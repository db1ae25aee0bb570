"""The 30 people whose gaze lies beside the checkout."""

import gzip
from pathlib import Path

import numpy as np

import eyestream
from eyestream.gaze.intake import take_in
from eyestream.gaze.profile import Profile
from eyestream.gaze.profile_text import parse_profile
from eyestream.gaze.samples import Samples

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
