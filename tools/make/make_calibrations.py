"""Make the calibrations that the package ships, from the 30-person corpus of everyday gaze (see docs/corpus.md).

python -m tools.make.make_calibrations GAZE_DIR [NAME ...]     GAZE_DIR holds PNN.csv.gz
"""

import sys
from pathlib import Path
from typing import Any

from eyestream.rim.files import calibrations
from eyestream_lab.calibration import calibrate
from eyestream_lab.calibration.corpus import Corpus
from eyestream_lab.calibration.joint import calibrate_joint
from eyestream_lab.files.books import shipped_books
from tools.make.everyday import DESCRIPTION, corpus

JOINT: dict[str, dict[str, Any]] = {
    "klt": {"ranks": False},
    "klt-one": {"ranks": False, "shed_identity": 1.0},
    "klt-mapped": {"books": shipped_books()},
    "klt-anchored": {"books": shipped_books(), "anchored": True},
}
"""How those of `klt` are made; the first two as version 0.1.0 coded."""

ASKED_ROWS = 64
"""Of a chunk of asked features: at equal epsilon a minute shorter and longer ones say less."""

TARGET = Path(__file__).resolve().parents[2] / "eyestream" / "data" / "calibrations"


def main() -> None:
    folder, wanted = Path(sys.argv[1]), sys.argv[2:]
    people = corpus(folder)
    TARGET.mkdir(parents=True, exist_ok=True)
    for n in (32, 64, 128):
        chunks = Corpus.of(people, n)
        for mechanism in ("lpa", "cfpa", "dcfpa", "asked", *JOINT):
            name = f"everyday-{mechanism}-{n}"
            if (wanted and name not in wanted) or (mechanism == "asked" and n != ASKED_ROWS):
                continue
            path = TARGET / ("asked" if mechanism == "asked" else "") / f"{name}.npz"
            if mechanism in JOINT:
                calibration = calibrate_joint(chunks, description=DESCRIPTION, **JOINT[mechanism])
            else:
                calibration = calibrate(mechanism, chunks, description=DESCRIPTION)
            calibrations.save(calibration, path)
            print(f"{name}: {path.stat().st_size} bytes, {len(chunks.chunks)} chunks", flush=True)


if __name__ == "__main__":
    main()
