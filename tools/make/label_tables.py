"""The tables on labels, on simulated people who read three documents each.

python tools/make/label_tables.py --out DIR [--people 40] [--page docs/tables.md]

DIR keeps cells and calibrations: what is there is not computed again. `eyestream simulate --labels` makes the same
people, and `eyestream study --labels FILE --only tables` the same tables of any recordings.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from eyestream.offline.corpus.labelled import simulate_labelled
from eyestream.offline.corpus.simulation import NAMES, RATE_HZ, load_statistics
from eyestream.offline.study.plan import FULL
from eyestream.offline.study.run import run_only
from eyestream.rim.files.recordings import Recording

SEED, SECONDS = 2023, 660.0
PLAN = replace(FULL, chunks=(32,), attack_chunks=(32,), stride=30)
LABELS = ("person", "document", "gender")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--people", type=int, default=40)
    options = parser.parse_args()
    made = list(simulate_labelled(load_statistics(), options.people, SECONDS, SEED))
    recordings = [
        Recording(np.arange(len(m.rows)) / RATE_HZ, m.rows.astype(np.float64), NAMES, m.name, simulated=True)
        for m in made
    ]
    labels = {m.name: {column: m.labels[column] for column in LABELS} for m in made}
    said = run_only(
        recordings,
        options.out,
        PLAN,
        ["tables"],
        labels=labels,
        jobs=1,
        progress=lambda text: print(text, file=sys.stderr, flush=True),
    )
    print(said)


if __name__ == "__main__":
    main()
