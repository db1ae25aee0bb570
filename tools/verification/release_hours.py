"""Processor time and memory of releasing hours of simulated gaze at 100 Hz, by systems that release whole corpora.

OMP_NUM_THREADS=1 python -m tools.verification.release_hours SYSTEM HOURS... [--people 6]

The hours are those of all people together. Fixations of 0.2 to 0.5 s with jumps between them, one task. Each line is a
process of its own, so that its memory is its own.
"""

import argparse
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.datasets import gaze_kind, make_system, open_corpus, privatize_corpus, rows_of_gaze
from eyestream.offline.corpora.kinds import on_grid
from eyestream.offline.corpora.registry import SYSTEMS
from eyestream.rim.files import calibrations
from eyestream.rim.files.profiles import load_profile

RATE_HZ = 100.0
OPTIONS: dict[str, dict[str, Any]] = {
    "tile": {"epsilon": 10 / 3},
    "kaleido": {"epsilon": 10.0},
    "k-same-synth": {"k": 2},
    "event-synth-pd": {"k": 2, "gamma": 2.0},
    "event-synth-pd-centred": {"k": 2, "gamma": 2.0},
    "marginals-pd": {"k": 4},
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


def line(name: str, hours: float, people: int) -> None:
    """Print one measurement."""
    profile = load_profile("degrees")
    kind, options = gaze_kind(profile), dict(OPTIONS[name])
    if name == "tile":
        options["calibration"] = calibrations.load("everyday-tile")
    with tempfile.TemporaryDirectory() as scratch:
        folder, told = Path(scratch) / "in", ["participant_id\trecording\ttask"]
        folder.mkdir()
        for person in range(people):
            xy = walk(person, round(hours * 3600 * RATE_HZ / people))
            kind.save(on_grid(xy, RATE_HZ), folder / f"P{person}.csv.gz")
            told.append(f"P{person}\tP{person}.csv.gz\tA")
        (folder / "participants.tsv").write_text("\n".join(told) + "\n")
        corpus = open_corpus(folder, kind if SYSTEMS[name].reads == "gaze" else rows_of_gaze(profile))
        begun = time.process_time()
        privatize_corpus(make_system(name, **options), corpus, Path(scratch) / "out")
        seconds = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{name}: {hours:g} h of {people} people, {seconds:.1f} processor s, at most {peak:.0f} MB", flush=True)


def main() -> None:
    """A process for each measurement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("system", choices=OPTIONS)
    parser.add_argument("hours", type=float, nargs="+")
    parser.add_argument("--people", type=int, default=6)
    options = parser.parse_args()
    for hours in options.hours:
        process = multiprocessing.get_context("spawn").Process(
            target=line, args=(options.system, hours, options.people)
        )
        process.start()
        process.join()


if __name__ == "__main__":
    main()
