"""What comes through of features that are asked for, and who is recognised: two pages of the study.

python -m tools.make.asked_figures DATA OUT [--jobs J]     DATA holds hoppe2018/ and gazegraph/

Writes `lab/eyestream_lab/data/asked.json` too, from which `advise --features` says who was recognised.

Everyday gaze: one recording a person, of whom parts are sessions. Another tracker (GazeGraph): seven people with six
recordings each, released with the shipped calibration as the others adapt it. docs/figures.md has the figures.

About 25 minutes of processor time. An interrupted run goes on where it was.
"""

import argparse
import csv
import json
import tempfile
from pathlib import Path

from eyestream.rim.files.extraction import load_rows
from eyestream.rim.files.profiles import load_profile
from eyestream_lab.study.asked import ASKED, PART, SETS
from eyestream_lab.study.plan import FULL
from eyestream_lab.study.run import Study
from tools.make.everyday import corpus
from tools.verification.release_systems import gazegraph

ADVISED = Path(__file__).resolve().parents[2] / "lab" / "eyestream_lab" / "data" / "asked.json"


def advised(rows: list[dict[str, str]]) -> str:
    """Attacks with one known session on sets that are released as they are, an epsilon a line."""
    own = [row for row in rows if row["known"] == "1" and row["way"] == ASKED]
    figures = ("area", "area_low", "area_high", "control")
    lines = [
        json.dumps(
            {"features": SETS[row["set"]], "minute": float(row["minute"])}
            | {name: round(float(row[name]), 4) for name in figures}
            | {name: int(row[name]) for name in ("people", "attackers")}
        )
        for row in own
    ]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--jobs", type=int)
    options = parser.parse_args()
    everyday = corpus(options.data / "hoppe2018" / "gaze")
    with tempfile.TemporaryDirectory() as folder:
        gazegraph(options.data, Path(folder))
        profile = load_profile("degrees").at_rate(30.0)
        other = [load_rows(path, profile) for path in sorted(Path(folder).glob("P*.csv.gz"))]
    names = [Path(recording.path).name.partition(".")[0] for recording in other]
    labels = {name: {"person": name.partition("_")[0]} for name in names}
    for name, recordings, people in (("everyday", everyday, None), ("gazegraph", other, labels)):
        study = Study(recordings, options.out / name, FULL, people, options.jobs, progress=print)
        print(study.table(PART))
        if name == "everyday":
            with (study.parts([PART]) / f"{PART}.csv").open(newline="", encoding="utf-8") as file:
                ADVISED.write_text(advised(list(csv.DictReader(file))), encoding="utf-8")


if __name__ == "__main__":
    main()
