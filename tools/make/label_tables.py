"""The tables on labels and the linkage of demographics and gaze, on simulated people who read three documents each.

python -m tools.make.label_tables --out DIR [--people 24] [--only PART...]

DIR keeps cells and calibrations: what is there is not computed again. `eyestream simulate --labels` makes the same
people, and `eyestream study --labels FILE --only tables linkage` the same tables of any recordings. When both parts are
there, docs/tables.md is written; what stands behind its last mark stays.
"""

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from eyestream.rim.files.recordings import Recording
from eyestream_lab.simulation.labelled import simulate_labelled
from eyestream_lab.simulation.people import NAMES, RATE_HZ, load_statistics
from eyestream_lab.study.plan import FULL
from eyestream_lab.study.run import Study

SEED, SECONDS = 2023, 660.0
PLAN = replace(FULL, chunks=(32,), attack_chunks=(32,), stride=60)
PARTS = {"tables": ("person", "document", "gender"), "linkage": ("person", "gender", "age")}
"""What is computed, and of which labels."""

TARGET = Path(__file__).resolve().parents[2] / "docs/tables.md"
END = "<!-- end of what tools/make/label_tables.py writes -->"
HEAD = """# The papers' tables, on labels

Made by `tools/make/label_tables.py`. **Nobody here exists**: the corpus has no labels, so these are {people} simulated
people who read a comic, a newspaper and a textbook, {minutes:g} minutes each, of which the first one comes before the
document. They vary as the 30 people of the corpus do; how much a label moves them was fixed before any mechanism was
looked at (`lab/eyestream_lab/simulation/labelled.py`). So a figure says how a mechanism treats a signal of that size
beside another mechanism, and not how well real documents are told apart.

Half of the people calibrate; the other half is released and attacked. Every source costs the same epsilon a minute:
1.8, 18 and 180 are 0.48, 4.8 and 48 for a chunk of 32 rows (16 s), the papers' own. FPA spends a whole recording's
epsilon at once. A figure is accuracy by majority with half of its 95 % interval over people. Windows are rows of 30 s:
none overlaps the next for labels, and there is one each 15 s for people. A verdict takes the best of four classifiers
(nearest neighbours, support vectors, tree, forest; each learns from, and is tested on, the same release, as published).
*Another session*: the two halves of a recording are released as two sessions, and it is this by which a verdict says
whether people are recognised. *At chance* is what is not above chance by more than its interval: with this few people a
weak effect hides there. A task is *kept* when it is above chance and at most 15 points below raw.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--people", type=int, default=24)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    options = parser.parse_args()
    made = list(simulate_labelled(load_statistics(), options.people, SECONDS, SEED))
    recordings = [
        Recording(np.arange(len(m.rows)) / RATE_HZ, m.rows.astype(np.float64), NAMES, m.name, simulated=True)
        for m in made
    ]
    for part in options.only:
        labels = {m.name: {column: m.labels[column] for column in PARTS[part]} for m in made}
        said = partial(print, file=sys.stderr, flush=True)
        Study(recordings, options.out, PLAN, labels, jobs=1, progress=said).parts([part])
    pages = [options.out / f"{part}.md" for part in PARTS]
    if all(page.is_file() for page in pages):
        write_page("\n".join(page.read_text() for page in pages), options.people)


def write_page(made: str, people: int) -> None:
    """Put what was computed between the head and what is written by hand behind it."""
    head = HEAD.format(people=people, minutes=SECONDS / 60)
    behind = TARGET.read_text().partition(END)[2] if TARGET.is_file() else "\n"
    TARGET.write_text(f"{head}\n{made.strip()}\n\n{END}{behind}")


if __name__ == "__main__":
    main()
