"""Under one noise tape the tile response releases the same, to the last bit and on every machine.

Its model of motion is of whole numbers, so no fingerprint of arithmetic is asked for. The digests were made when the
model of motion was last changed.
"""

import numpy as np
import pytest

from eyestream.core.mechanisms import build
from eyestream.rim.files import calibrations
from eyestream_lab.testing.noise import WordNoise
from tests.product.tape.cases import Tape, digest

RECORDED = {0.48: "1c4ea0eee73a9af4d890eebc", 3.3: "aef67721992c64cb31caaaf6", 12.0: "759cd0f12dbce07effff527b"}
SLOTS = 40


def released(epsilon: float, label: str) -> np.ndarray:
    """(SLOTS, 5) of a session whose slots are whole numbers of another tape; some are lost."""
    calibration = calibrations.load("everyday-tile")
    words = Tape("slots of gaze").words(SLOTS * 4).reshape(SLOTS, 4).astype(np.int64)
    session = build(calibration, epsilon, noise=WordNoise(Tape(label))).session()
    found = []
    for cell, beside, share, lost in words % 1008:
        chunk = np.zeros((len(calibration.names), 1))
        chunk[cell] += 1 + share
        chunk[beside] += 600
        chunk[-1] = 5_000 if lost < 150 else lost
        found.append(session.release(chunk)[:, 0])
    return np.stack(found)


@pytest.mark.parametrize("epsilon", RECORDED)
def test_releases_are_those_that_were_recorded(epsilon: float) -> None:
    assert digest(released(epsilon, f"tile {epsilon:g}")) == RECORDED[epsilon]


def test_another_tape_is_noticed() -> None:
    assert digest(released(3.3, "another")) != RECORDED[3.3]
