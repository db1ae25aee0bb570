"""Cells of work: cut small, computed in parallel, kept in files, never computed twice."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from eyestream.offline.study.sources import World

__all__ = ["Cell", "Record", "compute", "key_of"]

VERSION = 1
"""Of what cells compute; a change of a measure raises it, and what was kept is computed anew."""

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


def key_of(world: World, cell: Cell) -> str:
    """Hash of everything that a cell's records depend on, 32 hexadecimal digits; noise apart."""
    mechanism, n = str(cell.settings.get("mechanism", "")), int(cell.settings.get("n", 0))
    parts = [VERSION, cell.part, cell.settings, world.population.content_hash, world.calibration_hash(mechanism, n)]
    if not mechanism:
        parts.append(sorted(calibration.content_hash for calibration in world.calibrations.values()))
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).hexdigest()


def compute(
    world: World,
    cells: Sequence[Cell],
    *,
    measures: dict[str, Measure],
    folder: Path,
    jobs: int | None,
    progress: Callable[[int, int], None],
) -> dict[str, list[Record]]:
    """Records of every part, from `folder` where they lie there already.

    Parameters
    ----------
    measures
        For each part's name the function that computes a cell; picklable.
    folder
        Where each cell's records are kept as soon as they are there: an interrupted study goes on from them.
    jobs
        Processes; None: as the caller's `joblib.parallel_config` says, which is how a cluster is plugged in.
    progress
        Called with (cells done, cells).
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{cell.part}-{key_of(world, cell)}.json" for cell in cells]
    found = {i: _read(path) for i, path in enumerate(paths) if path.is_file()}
    todo = [i for i in range(len(cells)) if i not in found]
    progress(len(found), len(cells))
    work = (delayed(_one)(measures[cells[i].part], world, cells[i].settings, i) for i in todo)
    results: Iterable[tuple[int, list[Record]]] = Parallel(n_jobs=jobs, return_as="generator_unordered")(work)
    for index, records in results if todo else ():
        _write(paths[index], records)
        found[index] = records
        progress(len(found), len(cells))
    by_part: dict[str, list[Record]] = {part: [] for part in measures}
    for index, cell in enumerate(cells):
        by_part[cell.part] += [_plain(cell.settings) | record for record in found[index]]
    return by_part


def _one(measure: Measure, world: World, settings: dict[str, Any], index: int) -> tuple[int, list[Record]]:
    return index, measure(world, **settings)


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
