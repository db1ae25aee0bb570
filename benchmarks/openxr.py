"""What the layer for OpenXR costs the application's thread: a frame with it and without it, by turns, in one process.

A frame is `xrSyncActions` and the location of the gaze space. The runtime is the tests' fake one, so the time
that a real one takes for two locations more is not in the figures. A socket that is read between frames stands for the
sidecar.
"""

import subprocess
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Result, Table, amount

__all__ = ["frames_ns", "run"]

_ROOT = Path(__file__).resolve().parents[1]
_LAYER = _ROOT / "openxr" / "eyestream_openxr" / "layer"
_SOURCES = ("layer.c", "objects.c", "gaze.c", "link_posix.c")
_TESTS = _ROOT / "tests" / "openxr"


def frames_ns(frames: int) -> NDArray[np.int64]:
    """What frames took, in ns: (2, frames // 2), without the layer and with it; needs cc, make and awk.

    Raises
    ------
    subprocess.CalledProcessError
        It does not compile, a frame allocated memory, or the sidecar heard nothing.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "place").mkdir(mode=0o700)
        subprocess.run(["make", "-s", "-C", str(_LAYER), f"OUT={folder}", "HEADERS=", f"{folder}/policy.h"], check=True)
        sources = [
            str(path)
            for path in (_TESTS / "driver.c", _TESTS / "fake_runtime.c", *(_LAYER / name for name in _SOURCES))
        ]
        words = [
            "cc",
            "-std=c11",
            "-O2",
            "-pthread",
            "-DCOUNT_ALLOCATIONS",
            f'-DPLACES="{folder}/place"',
            f"-I{_LAYER}",
            f"-I{folder}",
        ]
        subprocess.run([*words, "-o", str(folder / "driver"), *sources, "-lm"], check=True)
        words = [str(folder / "driver"), str(folder / "place"), "cost", str(frames)]
        done = subprocess.run(words, check=True, capture_output=True, text=True)
    told = np.array([line.split() for line in done.stdout.splitlines()], np.int64)
    return np.stack([told[told[:, 0] == layered, 1] for layered in (0, 1)])


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
