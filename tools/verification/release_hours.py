"""Processor time and memory of releasing hours of simulated gaze at 100 Hz, by systems that release whole corpora.

OMP_NUM_THREADS=1 python -m tools.verification.release_hours OUT HOURS... [--only SYSTEM...] [--people 6]

The hours are those of all people together. Fixations of 0.2 to 0.5 s with jumps between them, one task. Each release is
a process of its own, so that its memory is its own. OUT/hours.json has a cell for each, and none is made again.
"""

import argparse
import datetime
import json
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.rim.files import calibrations
from eyestream.rim.files.profiles import load_profile
from eyestream_lab.corpora.kinds import on_grid
from eyestream_lab.corpora.registry import SYSTEMS
from eyestream_lab.datasets import gaze_kind, make_system, open_corpus, privatize_corpus, rows_of_gaze

RATE_HZ = 100.0
OPTIONS: dict[str, dict[str, Any]] = {
    "event-synth-pd-centred": {"k": 2, "gamma": 2.0},
    "k-same-synth": {"k": 2},
    "event-synth-pd": {"k": 2, "gamma": 2.0},
    "marginals-pd": {"k": 4},
    "kaleido": {"epsilon": 10.0},
    "tile": {"epsilon": 10 / 3},
}


def walk(seed: int, count: int) -> np.ndarray:
    """(count, 2) gaze of somebody."""
    rng = np.random.default_rng(seed)
    parts, place, made = [], rng.uniform(-10, 10, 2), 0
    while made < count:
        target, still = rng.uniform(-15, 15, 2), int(rng.integers(20, 50))
        way = np.linspace(0.1, 0.97, 5)[:, None] * (target - place)
        parts += [place + 0.1 * rng.standard_normal((still, 2)), place + way]
        place, made = target, made + still + len(way)
    return np.concatenate(parts)[:count]


def corpus_of(folder: Path, hours: float, people: int) -> None:
    """Write a corpus of so many hours."""
    kind, lines = gaze_kind(load_profile("degrees")), ["participant_id\trecording\ttask"]
    for person in range(people):
        xy = walk(person, round(hours * 3600 * RATE_HZ / people))
        kind.save(on_grid(xy, RATE_HZ), folder / f"P{person}.csv.gz")
        lines.append(f"P{person}\tP{person}.csv.gz\tA")
    (folder / "participants.tsv").write_text("\n".join(lines) + "\n")


def released(name: str, folder: Path, cell: Path) -> None:
    """Release the corpus, and write what it took."""
    profile, options = load_profile("degrees"), dict(OPTIONS[name])
    if name == "tile":
        options["calibration"] = calibrations.load("everyday-tile")
    kind = gaze_kind(profile) if SYSTEMS[name].reads == "gaze" else rows_of_gaze(profile)
    with tempfile.TemporaryDirectory() as scratch:
        begun = time.process_time()
        privatize_corpus(make_system(name, **options), open_corpus(folder, kind), Path(scratch) / "out")
        seconds = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cell.write_text(json.dumps({"processor_s": round(seconds, 1), "peak_mb": round(peak)}))


def alone(target: Any, *given: Any) -> None:
    """Run in a process of its own."""
    process = multiprocessing.get_context("spawn").Process(target=target, args=given)
    process.start()
    process.join()
    if process.exitcode != 0:
        raise SystemExit(f"{target.__name__} {given}: ended with {process.exitcode}")


def main() -> None:
    """A corpus for each number of hours, and a process for each release of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("hours", type=float, nargs="+")
    parser.add_argument("--only", nargs="+", choices=OPTIONS, default=list(OPTIONS))
    parser.add_argument("--people", type=int, default=6)
    options = parser.parse_args()
    kept = options.out / "hours.json"
    cells = json.loads(kept.read_text()) if kept.exists() else {}
    options.out.mkdir(parents=True, exist_ok=True)
    for hours in options.hours:
        wanted = {name: f"{name}, {hours:g} h, {options.people} people" for name in options.only}
        with tempfile.TemporaryDirectory() as scratch:
            folder, cell = Path(scratch) / "in", Path(scratch) / "cell.json"
            folder.mkdir()
            if missing := [name for name in options.only if wanted[name] not in cells]:
                alone(corpus_of, folder, hours, options.people)
            for name in missing:
                alone(released, name, folder, cell)
                about = {"system": name, "hours": hours, "people": options.people}
                about["made_on"] = str(datetime.datetime.now(datetime.UTC).date())
                cells[wanted[name]] = about | json.loads(cell.read_text())
                print(cells[wanted[name]], flush=True)
                kept.with_suffix(".new").write_text(json.dumps(cells, indent=1) + "\n")
                kept.with_suffix(".new").replace(kept)


if __name__ == "__main__":
    main()
