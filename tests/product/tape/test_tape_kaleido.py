"""Under one noise tape Kaleido releases the same, to the last bit and on every machine.

Its noise is integers, its acceptance decimal digits, and its tests are roots of whole numbers. The digests were made
after the mechanism was added.
"""

import numpy as np
import pytest

from eyestream.core.mechanisms import build
from eyestream.rim.files import calibrations
from eyestream_lab.testing.noise import WordNoise
from tests.product.tape.cases import Tape, digest

RECORDED = {7.2: "2490323b1909ceeee8fc5b52", 360.5: "b8a26243f55e135a544f1e9d", 3605.0: "b0a60a0e01cb2843c78e316f"}
SLOTS, W = 8, 50


def released(epsilon: float, label: str) -> np.ndarray:
    """(SLOTS, 4, W) of a session of fixations and jumps, of whole numbers of another tape; some samples are lost."""
    words = Tape("places of gaze").words(SLOTS * 3 * W).reshape(SLOTS, 3, W).astype(np.int64)
    session = build(calibrations.load("kaleido-r2"), epsilon, noise=WordNoise(Tape(label))).session()
    found = []
    for across, upright, lost in words:
        places = np.stack((across[W // 10 * (np.arange(W) // 10)] % 61 - 30, upright % 8 / 4.0))
        chunk = np.concatenate((*places, lost % 9 > 0)).astype(np.float64)
        found.append(session.release(chunk[:, None]))
    return np.stack(found)


@pytest.mark.parametrize("epsilon", RECORDED)
def test_releases_are_those_that_were_recorded(epsilon: float) -> None:
    assert digest(released(epsilon, f"kaleido {epsilon:g}")) == RECORDED[epsilon]


def test_another_tape_is_noticed() -> None:
    assert digest(released(360.5, "another")) != RECORDED[360.5]
