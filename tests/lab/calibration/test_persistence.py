"""What of a figure is the person's own, and what changes from chunk to chunk."""

import numpy as np
import pytest

from eyestream_lab.calibration.persistence import lagged_moments, stable_part


def test_the_stable_part_is_separated_from_the_transient_one() -> None:
    rng = np.random.default_rng(7)
    own = []
    for _ in range(400):
        forgotten = [rng.normal()]
        for _ in range(39):
            forgotten.append(0.5 * forgotten[-1] + np.sqrt(0.75) * rng.normal())
        own.append(np.array(forgotten)[:, None] + 1.5 * rng.normal())
    stable = stable_part(lagged_moments(own))[0, 0]
    assert stable == pytest.approx(2.25, rel=0.15)
    assert stable_part(lagged_moments(own)[:1])[0, 0] == 0
