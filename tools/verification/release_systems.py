"""Systems that release whole corpora, on real recordings: who and what is recognised, and how long it takes.

python -m tools.verification.release_systems DATA OUT [--corpus NAME] [--only SYSTEM]

DATA has `gazegraph/DesktopActivity.zip`, `nlgem/` and `hoppe2018/` (docs/corpora-findings.md says where they are
from). OUT/CORPUS gets the corpus as a folder with `participants.tsv`. Then follows what `eyestream study --datasets`
does with such a folder; OUT/CORPUS-study has its page, and cells that are not made again.
"""

import argparse
import csv
import gzip
import io
import sys
import zipfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from eyestream.errors import OperatorError
from eyestream.rim.files.extraction import extract
from eyestream.rim.files.gaze import load_gaze
from eyestream.rim.files.profiles import load_profile
from eyestream_lab.datasets import gaze_kind, open_corpus
from eyestream_lab.releases.study import study_datasets

GAZE = gaze_kind(load_profile("degrees"))
FIELD_DEG = (99.0, 53.0)
"""Assumed size of the scene camera's image of gazegraph."""


def table(samples: np.ndarray) -> bytes:
    """A packed table of gaze for the profile `degrees`."""
    lines = [f"{t:.6f},{x:.4f},{y:.4f}" for t, x, y in samples]
    return gzip.compress("\n".join(["t_s,x_deg,y_deg", *lines]).encode(), mtime=0)


def gazegraph(data: Path, folder: Path) -> None:
    """Seven people (the eighth is a copy of the third), six activities of five minutes."""
    lines = []
    with zipfile.ZipFile(data / "gazegraph" / "DesktopActivity.zip") as archive:
        for name in sorted(archive.namelist()):
            if not name.endswith(".csv") or "/P8/" in name:
                continue
            person, task = Path(name).stem.split("_")
            xy = np.loadtxt(io.BytesIO(archive.read(name)), delimiter=",")
            degrees = (xy - 0.5) * FIELD_DEG
            (folder / f"{person}_{task}.csv.gz").write_bytes(
                table(np.column_stack((np.arange(len(xy)) / 30.0, degrees)))
            )
            lines.append((person, f"{person}_{task}.csv.gz", task))
    write_participants(folder, lines)


def nlgem(data: Path, folder: Path) -> None:
    """The first two sessions, as tasks, of the people who have two at 60 Hz with ten seconds of rows or more."""
    sessions: dict[str, list[str]] = defaultdict(list)
    labels: dict[str, tuple[str, ...]] = {}
    with (data / "nlgem" / "participants.tsv").open(newline="") as file:
        for line in csv.DictReader(file, delimiter="\t"):
            sessions[line["participant_id"]].append(line["recording"])
            labels[line["participant_id"]] = (line["sex"], line["age"])
    lines = []
    for person, names in sorted(sessions.items()):
        try:
            loaded = [GAZE.load(data / "nlgem" / name) for name in sorted(names)[:2]]
            rows = [extract(recording) for recording in loaded]
        except OperatorError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        if (
            len(loaded) < 2
            or {one.profile.fixed_rate_hz for one in loaded} != {60.0}
            or min(int(np.isfinite(one.features).any(axis=1).sum()) for one in rows) < 20
        ):
            continue
        for session, name in zip(("first", "second"), sorted(names)[:2], strict=True):
            (folder / name).write_bytes((data / "nlgem" / name).read_bytes())
            lines.append((person, name, session, *labels[person]))
    write_participants(folder, lines, ("sex", "age"))


def everyday(data: Path, folder: Path) -> None:
    """Thirty people in everyday life, each recording cut into quarters that stand for tasks."""
    lines = []
    profile = load_profile("smi-glasses")
    for path in sorted((data / "hoppe2018" / "gaze").glob("*.csv.gz")):
        samples = load_gaze(path, profile).samples
        for number, quarter in enumerate(np.array_split(np.arange(len(samples)), 4)):
            own = samples.picked(quarter)
            xy = np.where(own.valid, (own.x, own.y), np.nan)
            person = path.name.partition(".")[0]
            (folder / f"{person}_Q{number}.csv.gz").write_bytes(table(np.column_stack((own.t, *xy))))
            lines.append((person, f"{person}_Q{number}.csv.gz", f"Q{number}"))
    write_participants(folder, lines)


def write_participants(folder: Path, lines: Sequence[tuple[str, ...]], labels: tuple[str, ...] = ()) -> None:
    text = "".join("\t".join(line) + "\n" for line in [("participant_id", "recording", "task", *labels), *lines])
    (folder / "participants.tsv").write_text(text)


MAKERS = {"gazegraph": gazegraph, "nlgem": nlgem, "everyday": everyday}


def main() -> None:
    """Make the corpus where it is not there yet, and study it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--corpus", choices=MAKERS, default="gazegraph")
    parser.add_argument("--splits", type=int, default=8)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--jobs", type=int, help="processes; one for each core without it")
    options = parser.parse_args()
    folder = options.out / options.corpus
    if not folder.exists():
        folder.mkdir(parents=True)
        MAKERS[options.corpus](options.data, folder)
    study_datasets(
        open_corpus(folder, GAZE),
        options.out / f"{options.corpus}-study",
        only=options.only,
        name=options.corpus,
        splits=options.splits,
        quick=options.quick,
        jobs=options.jobs,
        progress=lambda text: print(text, file=sys.stderr, flush=True),
    )


if __name__ == "__main__":
    main()
