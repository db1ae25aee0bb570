"""Make the books of points that `eyestream calibrate` gives to calibrations of `klt`: a minute; no recording enters.

python -m tools.make.make_books
"""

from pathlib import Path
from typing import Any

import numpy as np

from eyestream_lab.calibration.joint import shelved
from tests.rigs.trained_books import trained

TARGET = Path(__file__).resolve().parents[2] / "lab" / "eyestream_lab" / "data" / "books.npz"


def main() -> None:
    shelf: dict[str, Any] = shelved(tuple(trained()))
    np.savez_compressed(TARGET, **shelf)
    print(f"{TARGET}: {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
