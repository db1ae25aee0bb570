"""What the layer for OpenXR costs the application's thread: a frame with it and without it, by turns, in one process.

A frame is `xrSyncActions` and the location of the gaze space. The runtime is the tests' fake one, so the time
that a real one takes for two locations more is not in the figures. A socket that is read between frames stands for the
sidecar.
"""

import numpy as np

from benchmarks.report import Result, Table, amount
from tests.rigs.openxr_frames import frames_ns

__all__ = ["run"]


def run(quick: bool) -> Result:
    """Measure."""
    frames = 400 if quick else 8000
    result = Result("openxr")
    rows = []
    for ns, what in zip(frames_ns(frames), ("without the layer", "with the layer, gaze sent"), strict=True):
        median, p99 = np.percentile(ns * 1e-3, [50, 99])
        rows.append((what, amount(median), amount(p99)))
        result.records.append(
            {"benchmark": "openxr", "mechanism": what, "n": 1, "F": 2, "median_us": median, "p99_us": p99}
        )
    result.tables.append(Table("A frame of a program of OpenXR, in us", ("", "median", "p99"), rows))
    result.notes.append(f"{frames // 2:,} frames each, in turns of {frames // 8:,}; the runtime is a fake one.")
    return result
