"""Systems that release whole corpora, on real recordings: who and what is recognised, and how long it takes.

OMP_NUM_THREADS=1 python -m tools.verification.release_systems DATA OUT.json [--corpus gazegraph|nlgem|everyday]

DATA has `gazegraph/DesktopActivity.zip` and `nlgem/` (docs/releases-of-corpora.md says where they are from). Each cell
is saved when it is done, and a cell that is there is not made again.
"""

import argparse
import csv
import gzip
import io
import json
import sys
import tempfile
import time
import zipfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.datasets import ROWS, Corpus, gaze_kind, make_system, open_corpus, privatize_corpus
from eyestream.errors import OperatorError
from eyestream.lab.releases.measures import ATTACKERS, People, activities, halves, matched, recognised, usable
from eyestream.rim.files import recordings
from eyestream.rim.files.calibrations import load
from eyestream.rim.files.extraction import extract
from eyestream.rim.files.gaze import load_gaze
from eyestream.rim.files.profiles import load_profile

GAZE = gaze_kind(load_profile("degrees"))
KLT, LPA, CFPA, DCFPA = (load(f"everyday-{name}") for name in ("klt-32", "lpa-32", "cfpa-32", "dcfpa-32"))
FIELD_DEG = (99.0, 53.0)
"""Assumed size of the scene camera's image of gazegraph."""
_SPLITS = 8

ROW_SYSTEMS: list[tuple[str, dict[str, Any]]] = [
    *(("k-same-select", {"k": k}) for k in (2, 4, 6, 8)),
    *(("k-same-select-one-partition", {"k": k}) for k in (2, 4, 6, 8)),
    ("marginals-pd", {"k": 4}),
    *(("marginals-noised", {"epsilon": e, "delta": 1e-3, "calibration": LPA}) for e in (10.0, 40.0)),
    *(("exponential-dp", {"epsilon": e, "calibration": LPA}) for e in (10.0, 100.0)),
    *(("exponential-dp-as-printed", {"epsilon": e, "as_published": True}) for e in (10.0, 100.0)),
    ("fpa", {"epsilon": 48.0, "calibration": CFPA}),
    *(("chunks", {"epsilon": e, "calibration": c}) for c in (LPA, CFPA, DCFPA, KLT) for e in (4.8, 48.0)),
    *(("level-synth", {"epsilon": e, "calibration": KLT}) for e in (5.0, 10.0, 20.0, 40.0)),
]
GAZE_SYSTEMS: list[tuple[str, dict[str, Any]]] = [
    *(("k-same-synth", {"k": k}) for k in (2, 4, 6, 8)),
    *(("k-same-synth-timed", {"k": k}) for k in (2, 4, 6, 8)),
    *(("event-synth-pd", {"k": k, "gamma": g}) for k in (2, 4) for g in (1.5, 3.0)),
    *(("event-synth-pd-centred", {"k": k, "gamma": g}) for k in (2, 4) for g in (1.5, 3.0)),
]


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
    with (data / "nlgem" / "participants.tsv").open(newline="") as file:
        for line in csv.DictReader(file, delimiter="\t"):
            sessions[line["participant_id"]].append(line["recording"])
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
            lines.append((person, name, session))
    write_participants(folder, lines)


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


def write_participants(folder: Path, lines: list[tuple[str, str, str]]) -> None:
    text = "".join("\t".join(line) + "\n" for line in [("participant_id", "recording", "task"), *lines])
    (folder / "participants.tsv").write_text(text)


def rows_of(gaze: Corpus[Any], folder: Path) -> None:
    """The rows of the 52 features of a corpus of gaze, as a corpus."""
    lines = []
    for part in gaze.parts:
        name = f"{part.person}_{part.task}.npz"
        recordings.save(extract(gaze.load(part)), folder / name)
        lines.append((part.person, name, part.task))
    write_participants(folder, lines)


def as_people(corpus: Corpus[Any]) -> People:
    """The rows of a corpus, by person and task; of gaze, the rows that the front end makes of it."""
    found: dict[str, dict[str, np.ndarray]] = defaultdict(dict)
    for part in corpus.parts:
        loaded = corpus.load(part)
        found[part.person][part.task] = (loaded if corpus.kind is ROWS else extract(loaded)).features
    return usable(found, KLT.fill)


def judged(released: People, raw: People) -> dict[str, Any]:
    """What attackers and an application find."""
    tasks = sorted(next(iter(raw.values())))
    splits = halves(tasks, _SPLITS, 0)
    cell: dict[str, Any] = {"chance_person": 1 / len(raw), "chance_task": 1 / len(tasks)}
    for attacker in ATTACKERS:
        on_raw, on_released = recognised(attacker, released, (raw, released), splits)
        cell[f"{attacker}, raw tested"], cell[f"{attacker}, released tested"] = on_raw.tolist(), on_released.tolist()
    if len(tasks) > 2:
        cell["activity"] = activities(released, raw, 0)
    if len(raw) <= 8:
        cell["matched, one task"] = [matched(raw, released, [task]) for task in tasks]
        cell["matched, all tasks"] = matched(raw, released, tasks)
    return cell


def measured(name: str, options: dict[str, Any], corpus: Corpus[Any], raw: People, repeat: int) -> dict[str, Any]:
    """One release of a corpus, judged."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "out"
        system = make_system(name, **options)
        begun = time.process_time()
        promise = privatize_corpus(system, corpus, out)
        seconds = time.process_time() - begun
        released = open_corpus(out, system.released_kind or corpus.kind)
        cell = {"system": system.name, "options": dict(system.options), "promise": promise.claim.kind, "repeat": repeat}
        cell |= {"claim": promise.facts(), "processor_seconds": seconds}
        if corpus.kind is not ROWS:
            parts = [released.load(part).samples.valid.mean() for part in released.parts]
            cell["share_released"] = float(np.mean(parts))
        try:
            return cell | judged(as_people(released), raw)
        except OperatorError as error:
            return cell | {"not_judged": type(error).__name__}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--corpus", choices=("gazegraph", "nlgem", "everyday"), default="gazegraph")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    cells: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    with tempfile.TemporaryDirectory() as scratch:
        folders = {kind: Path(scratch) / kind for kind in ("gaze", "rows")}
        for folder in folders.values():
            folder.mkdir()
        {"gazegraph": gazegraph, "nlgem": nlgem, "everyday": everyday}[options.corpus](options.data, folders["gaze"])
        gaze = open_corpus(folders["gaze"], GAZE)
        rows_of(gaze, folders["rows"])
        rows = open_corpus(folders["rows"], ROWS)
        raw = as_people(rows)
        print(f"{options.corpus}: {len(gaze.people)} people, {len(gaze.parts)} recordings", file=sys.stderr)
        if "raw" not in cells:
            cells["raw"] = {"system": "none", "options": {}, **judged(raw, raw)}
        wanted = [(one, rows) for one in ROW_SYSTEMS] + [(one, gaze) for one in GAZE_SYSTEMS]
        for repeat in range(options.repeats):
            for (name, given), corpus in wanted:
                said = ", ".join(f"{k}={getattr(v, 'mechanism', v)}" for k, v in given.items())
                key = f"{name} {said} #{repeat}"
                if key in cells or (options.only and name not in options.only):
                    continue
                try:
                    cells[key] = measured(name, given, corpus, raw, repeat)
                except OperatorError as error:
                    cells[key] = {"system": name, "refused": str(error).partition(": ")[2]}
                options.out.write_text(json.dumps(cells, indent=1))
                print(key, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
