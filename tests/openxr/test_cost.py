"""What a frame costs the program's own thread."""

import numpy as np
import pytest

from tests.rigs.openxr_frames import frames_ns

MEDIAN_US, P99_US = 10.0, 60.0


@pytest.mark.alone
@pytest.mark.needs("cc", "make")
def test_a_frame_takes_microseconds_and_allocates_nothing() -> None:
    plain, layered = frames_ns(1600)
    median, p99 = np.percentile(layered * 1e-3, [50, 99])
    assert np.median(plain) * 1e-3 < median <= MEDIAN_US
    assert p99 <= P99_US
