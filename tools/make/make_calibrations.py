"""Make the calibrations that the package ships, from the 30-person corpus of everyday gaze (see README).

python tools/make/make_calibrations.py CORPUS_DIR [NAME ...]     CORPUS_DIR holds PNN.npz feature recordings
"""

import sys
from pathlib import Path

from eyestream.privacy.additive.calibrate import calibrate_per_feature
from eyestream.privacy.calibration.corpus import Corpus
from eyestream.privacy.joint.calibrate import calibrate_joint
from eyestream.rim.files import calibrations, recordings

DESCRIPTION = (
    "52 window features (30 s window, 0.5 s step) of 30 people's everyday gaze, from the public data release of "
    "Hoppe, Loetscher, Morey, Bulling, Frontiers in Human Neuroscience 2018 (BSD-3-Clause)"
)
TARGET = Path(__file__).resolve().parents[2] / "eyestream" / "data" / "calibrations"


def main() -> None:
    folder, wanted = Path(sys.argv[1]), sys.argv[2:]
    people = [recordings.load(path) for path in sorted(folder.glob("P*.npz"))]
    TARGET.mkdir(parents=True, exist_ok=True)
    for n in (32, 64, 128):
        corpus = Corpus.of(people, n)
        for mechanism in ("lpa", "cfpa", "dcfpa", "klt", "klt-shed"):
            name = f"everyday-{mechanism}-{n}"
            if wanted and name not in wanted:
                continue
            path = TARGET / f"{name}.npz"
            if mechanism.startswith("klt"):
                shed = 1.0 if mechanism == "klt-shed" else 0.0
                calibration = calibrate_joint(corpus, shed_identity=shed, description=DESCRIPTION)
            else:
                calibration = calibrate_per_feature(corpus, mechanism, description=DESCRIPTION)
            calibrations.save(calibration, path)
            print(f"{name}: {path.stat().st_size} bytes, {len(corpus.chunks)} chunks", flush=True)


if __name__ == "__main__":
    main()
