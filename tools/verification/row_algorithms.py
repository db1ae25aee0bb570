"""Asked features of rows by the event detector's algorithms 1 and 2: what is left, and who is recognised.

python -m tools.verification.row_algorithms GAZE [--minute 9] [--divisions 4]     GAZE holds PNN.csv.gz

The study's part of asked features (`eyestream_lab.study.asked`) on everyday gaze, once for each algorithm: calibrations
of two thirds of the people, releases of the others. docs/features.md has the figures.
"""

import argparse
import dataclasses
import tempfile
from pathlib import Path
from typing import Literal

from threadpoolctl import threadpool_limits

from eyestream.rim.files.extraction import load_rows
from eyestream.rim.files.profiles import load_profile
from eyestream_lab.study import asked
from eyestream_lab.study.cells import Record
from eyestream_lab.study.plan import FULL
from eyestream_lab.study.population import Population
from eyestream_lab.study.sources import World, prepare

KEPT = ("way", "set", "minute", "split")


def world(gaze: Path, algorithm: Literal[1, 2], folder: Path) -> World:
    """Everybody's rows by one algorithm."""
    profile = load_profile("smi-glasses")
    detection = dataclasses.replace(profile.detection, algorithm=algorithm)
    own = dataclasses.replace(profile, detection=detection)
    rows = [load_rows(path, own) for path in sorted(gaze.glob("P*.csv.gz"))]
    return prepare(Population.of(rows, None), (asked.N,), lambda text: None, folder / str(algorithm), {})


def main() -> None:
    """Measure, and print a row of Markdown for each feature and each set."""
    parser = argparse.ArgumentParser()
    parser.add_argument("gaze", type=Path)
    parser.add_argument("--minute", type=float, default=9.0)
    parser.add_argument("--divisions", type=int, default=4)
    options = parser.parse_args()
    plan = dataclasses.replace(FULL, minutes=(options.minute,), splits=options.divisions, frontier_splits=0)
    found: dict[tuple[str, int, str], list[str]] = {}
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        algorithms: tuple[Literal[1, 2], ...] = (1, 2)
        for algorithm in algorithms:
            people, records = world(options.gaze, algorithm, Path(folder)), list[Record]()
            for cell in asked.cells(plan, people):
                if cell.settings["way"] == asked.ASKED:
                    base = {key: cell.settings[key] for key in KEPT}
                    records += [base | record for record in asked.measure(people, **cell.settings)]
            for row in asked.summarise(records):
                name = "area" if row["known"] else "r"
                figures = f"{row[name]:.2f} [{row[name + '_low']:.2f}, {row[name + '_high']:.2f}]"
                explained = "" if row["known"] else f", R squared {row['explained']:.2f}"
                found.setdefault((row["set"], row["known"], row.get("feature", "")), []).append(figures + explained)
    for (label, known, feature), (first, second) in found.items():
        what = f"area, {known} known" if known else f"`{feature}`, r"
        print(f"| {label} | {what} | {first} | {second} |")


if __name__ == "__main__":
    main()
