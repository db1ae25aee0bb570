"""Small corpora of made-up people."""

import functools
import gzip
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eyestream.rim.files import recordings
from eyestream.rim.files.gaze import GazeRecording
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.files.recordings import Recording
from eyestream_lab.corpora.draws import Draws
from eyestream_lab.datasets import ROWS, Dataset, gaze_kind, open_corpus
from eyestream_lab.simulation.people import NAMES, load_statistics, simulate
from eyestream_lab.testing.noise import SeededNoise

Array = NDArray[np.float64]
RATE_HZ = 60.0


def seeded(seed: int) -> Draws:
    return Draws(SeededNoise(seed))


def participants(folder: Path, lines: Sequence[Sequence[str]], header: Sequence[str] = ()) -> None:
    names = header or ("participant_id", "recording", "task")
    text = "".join("\t".join(line) + "\n" for line in (names, *lines))
    (folder / "participants.tsv").write_text(text)


@functools.cache
def _simulated(count: int) -> list[NDArray[np.float32]]:
    return list(simulate(load_statistics(), count, 100.0, 3))


def rows_corpus(
    folder: Path,
    people: int = 5,
    tasks: Sequence[str] = ("READ", "PLAY"),
    rows: Callable[[int], int] = lambda i: 70 + i,
) -> Dataset[Recording]:
    """Simulated rows of the 52 features; recording i has `rows(i)` of them, in the order of people, then tasks."""
    folder.mkdir(exist_ok=True)
    made = _simulated(people * len(tasks))
    lines = []
    for person in range(people):
        for at, task in enumerate(tasks):
            index = person * len(tasks) + at
            own = made[index][: rows(index)].astype(np.float64)
            name = f"P{person}_{task}.npz"
            recordings.save(Recording(10.0 + np.arange(len(own)) / 2, own, NAMES), folder / name)
            lines.append((f"P{person}", name, task, "f" if person % 2 else "m"))
    participants(folder, lines, ("participant_id", "recording", "task", "sex"))
    return open_corpus(folder, ROWS)


def gaze_of(rng: np.random.Generator, seconds: float, spread: float, centre: Array) -> Array:
    """(n, 2) fixations of 0.2 to 0.5 s around places near `centre`, with jumps of four samples between them."""
    parts, place = [], centre
    while sum(map(len, parts)) < seconds * RATE_HZ:
        count = int(rng.integers(12, 30))
        parts.append(place + spread * rng.standard_normal((count, 2)))
        target = centre + rng.uniform(-12, 12, 2)
        way = np.array([0.1, 0.4, 0.8, 0.97])[:, None]
        parts.append(place + way * (target - place))
        place = target
    return np.concatenate(parts)[: int(seconds * RATE_HZ)]


def gaze_corpus(
    folder: Path,
    people: int = 4,
    tasks: Sequence[str] = ("READ",),
    seconds: Callable[[int], float] = lambda person: 8.0 + person,
    spreads: Mapping[int, float] | None = None,
) -> Dataset[GazeRecording]:
    folder.mkdir(exist_ok=True)
    lines = []
    for person in range(people):
        for at, task in enumerate(tasks):
            rng = np.random.default_rng((5, person, at))
            xy = gaze_of(rng, seconds(person), (spreads or {}).get(person, 0.1), np.array([2.0 * person, 0.0]))
            name = f"P{person}_{task}.csv.gz"
            table = [f"{i / RATE_HZ:.6f},{x:.4f},{y:.4f}" for i, (x, y) in enumerate(xy)]
            (folder / name).write_bytes(gzip.compress("\n".join(["t_s,x_deg,y_deg", *table]).encode()))
            lines.append((f"P{person}", name, task))
    participants(folder, lines)
    return open_corpus(folder, gaze_kind(load_profile("degrees").at_rate(RATE_HZ)))
