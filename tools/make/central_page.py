"""The figures of the local and the central model, on simulated people.

python -m tools.make.central_page --out DIR

`eyestream study RECORDINGS --only central` makes the same tables of any recordings. What stands behind the last mark of
docs/central-figures.md stays.
"""

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from eyestream.rim.files.recordings import Recording
from eyestream_lab.simulation.people import NAMES, RATE_HZ, load_statistics, simulate
from eyestream_lab.study.plan import FULL
from eyestream_lab.study.run import Study

SEED, SECONDS, PEOPLE = 5, 160.0, 128
PLAN = replace(FULL, chunks=(32,), attack_chunks=(32,), epsilons=(0.48, 4.8, 48.0))
TARGET = Path(__file__).resolve().parents[2] / "docs/central-figures.md"
END = "<!-- end of what tools/make/central_page.py writes -->"
HEAD = f"""# Local and central, measured

Reference. [central.md](central.md) explains what these tables mean. Made by `tools/make/central_page.py` from
{PEOPLE} simulated people (half of them calibrate), chunks of 32 rows (16 s), 48 features.
`eyestream study RECORDINGS --only central` makes the tables of any recordings.

Neighbours in both models: one chunk of one person is replaced by any other, at the same epsilon. *Local*: N people
release, and the mean is taken of the releases. *Central*: every chunk is projected onto the calibrated ball. The mean
of them lies in it as well, and gets the mechanism's noise once, at 1/N of the scale. In closed form, for a feature with
its share eps_f of epsilon, ball radius r, T(k) what k coefficients lose and N(k) their noise
(`lab/eyestream_lab/study/central.py`):

    local     T(k) / N + N(k) (2 r / eps_f)^2 / N
    central   T(k) / N + N(k) (2 r / eps_f)^2 / N^2
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    drawn = simulate(load_statistics(), PEOPLE, SECONDS, SEED)
    recordings = [
        Recording(np.arange(len(rows)) / RATE_HZ, rows.astype(np.float64), NAMES, f"sim-{i:03d}", simulated=True)
        for i, rows in enumerate(drawn)
    ]
    said = partial(print, file=sys.stderr, flush=True)
    Study(recordings, options.out, PLAN, jobs=1, progress=said).parts(["central"])
    behind = TARGET.read_text().partition(END)[2] if TARGET.is_file() else "\n"
    TARGET.write_text(f"{HEAD}\n{(options.out / 'central.md').read_text().strip()}\n\n{END}{behind}")


if __name__ == "__main__":
    main()
