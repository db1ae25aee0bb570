"""Cells of work: cut small, computed in parallel, kept in files, never computed twice."""

import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from joblib import cpu_count
from threadpoolctl import threadpool_limits

from eyestream_lab.study.sources import World
from eyestream_lab.testing.noise import SeededNoise
from eyestream_lab.workers import workers

VERSION = 2
"""Version of what cells compute; a change of a measure raises it, and what was kept is computed anew."""

Record = dict[str, Any]
"""One row of a table: strings, numbers and None."""

Measure = Callable[..., list[Record]]


@dataclass(frozen=True)
class Cell:
    """One piece of work of a part: a call `measure(world, **settings)`.

    Attributes
    ----------
    part : name of the part.
    settings : plain values; those called `mechanism` and `n` name the calibration that is used.
    """

    part: str
    settings: dict[str, Any]


def key_of(world: World, cell: Cell, seed: int | None = None) -> str:
    """Hash of everything that a cell's records depend on, 32 hexadecimal digits; noise without a seed apart."""
    mechanism, n = str(cell.settings.get("mechanism", "")), int(cell.settings.get("n", 0))
    parts = [VERSION, cell.part, cell.settings, world.population.content_hash, world.calibration_hash(mechanism, n)]
    if not mechanism:
        parts.append(sorted(calibration.content_hash for calibration in world.calibrations.values()))
    return _digest(parts if seed is None else [*parts, {"seed": seed}])


def _digest(parts: list[Any]) -> str:
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).hexdigest()


def _noise_of(cell: Cell, seed: int) -> SeededNoise:
    """What a cell of a study with a seed draws: the same wherever, and in whatever order, cells are computed."""
    return SeededNoise((seed, int(_digest([cell.part, cell.settings]), 16)))


def compute(
    world: World,
    cells: Sequence[Cell],
    *,
    measures: dict[str, Measure],
    folder: Path,
    jobs: int | None,
    cluster: str | None = None,
    seed: int | None = None,
    progress: Callable[[int, int, float | None], None],
) -> dict[str, list[Record]]:
    """Records of every part, from `folder` where they lie there already.

    Linear algebra is held to one thread a process: the cells are what runs side by side. On a machine that is busy
    otherwise, threads that wait for each other took thirty times as long.

    Parameters
    ----------
    measures
        For each part's name the function that computes a cell; picklable.
    folder
        Where each cell's records are kept as soon as they are there: an interrupted study goes on from them.
    jobs, cluster
        Processes, None: one for each core; or the URL of a Dask scheduler in their place.
    seed
        Of the noise of every mechanism; None: it is the operating system's, as everywhere but in a study.
    progress
        Called with (cells done, cells, seconds left), None as long as nothing can be said.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{cell.part}-{key_of(world, cell, seed)}.json" for cell in cells]
    found = {i: _read(path) for i, path in enumerate(paths) if path.is_file()}
    todo = _in_turn(cells, [i for i in range(len(cells)) if i not in found])
    pace = Pace(Counter(cells[i].part for i in todo))
    progress(len(found), len(cells), None)
    work = [(measures[cells[i].part], cells[i], seed) for i in todo]
    if work:
        with workers(cluster, min(jobs or cpu_count(), len(work)), world) as several:
            for place, (records, took) in several.done(_one, work):
                index = todo[place]
                _write(paths[index], records)
                found[index] = records
                pace.done(cells[index].part, took)
                progress(len(found), len(cells), pace.left())
    by_part: dict[str, list[Record]] = {part: [] for part in measures}
    for index, cell in enumerate(cells):
        by_part[cell.part] += [_plain(cell.settings) | record for record in found[index]]
    return by_part


def _one(world: World, measure: Measure, cell: Cell, seed: int | None) -> tuple[list[Record], float]:
    """Records of a cell, and the seconds that it took."""
    began = time.perf_counter()
    own = world if seed is None else replace(world, noise=_noise_of(cell, seed))
    with threadpool_limits(1):
        return measure(own, **cell.settings), time.perf_counter() - began


def _in_turn(cells: Sequence[Cell], todo: Sequence[int]) -> list[int]:
    """The same with the cells of every part spread over the whole: what is left can then be told early."""
    place: dict[int, float] = {}
    counts, seen = Counter(cells[i].part for i in todo), Counter[str]()
    for i in todo:
        part = cells[i].part
        seen[part] += 1
        place[i] = (seen[part] - 0.5) / counts[part]
    return sorted(todo, key=place.__getitem__)


@dataclass(eq=False)
class Pace:
    """How long the rest takes, from how long cells of each part took so far.

    Attributes
    ----------
    waiting : cells of each part that are still to do.
    began : by the clock of the process.
    """

    waiting: Counter[str]
    began: float = field(default_factory=time.perf_counter)
    _times: dict[str, list[float]] = field(default_factory=dict)

    def done(self, part: str, seconds: float) -> None:
        """One cell of `part` is there, after so long."""
        self.waiting[part] -= 1
        self._times.setdefault(part, []).append(seconds)

    def left(self) -> float:
        """Seconds, with as many cells side by side as until now; a part that was not seen counts as the mean of all."""
        every = [seconds for times in self._times.values() for seconds in times]
        usual = sum(every) / len(every)
        means = {part: sum(times) / len(times) for part, times in self._times.items()}
        work = sum(count * means.get(part, usual) for part, count in self.waiting.items())
        elapsed = time.perf_counter() - self.began
        return work * elapsed / max(sum(every), 1e-9)


def how_far(done: int, total: int, left: float | None) -> str:
    """In words.

    Examples
    --------
    >>> how_far(10, 40, 240.0)
    '10 of 40 cells done, about 4 min left'
    """
    if left is None or done == total:
        return f"{done} of {total} cells done"
    told = f"{left / 60:.0f} min" if left >= 90 else f"{left:.0f} s"
    return f"{done} of {total} cells done, about {told} left"


def _plain(settings: dict[str, Any]) -> Record:
    return {name: value for name, value in settings.items() if isinstance(value, str | int | float | None)}


def _read(path: Path) -> list[Record]:
    records: list[Record] = json.loads(path.read_text())
    return records


def _write(path: Path, records: list[Record]) -> None:
    """Whole or not at all, also when the process is killed."""
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps(records))
    partial.replace(path)
