"""A program of OpenXR whose frames are timed, with the layer and without it, compiled on the spot."""

import subprocess
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["frames_ns"]

_ROOT = Path(__file__).resolve().parents[2]
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
