"""A study of the systems that release corpora: every system on one corpus of gaze, each cell kept when it is done.

The first set of parameters of every system comes first, then the second of each, and so on. Cells are made side by
side. The page is written again after each, so a study that is interrupted has a page of what is done.
"""

import datetime
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib import cpu_count
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from eyestream.errors import ConfigError, OperatorError
from eyestream.rim.files import recordings
from eyestream.rim.files.calibrations import load
from eyestream.rim.files.extraction import extract
from eyestream.rim.files.gaze import GazeRecording
from eyestream_lab.corpora.attacked import CELLS
from eyestream_lab.corpora.corpus import Dataset, Part, participants_table
from eyestream_lab.corpora.kinds import MAPS, ROWS, gaze_kind
from eyestream_lab.corpora.layouts import open_folder
from eyestream_lab.corpora.registry import SYSTEMS, make_system
from eyestream_lab.corpora.run import privatize_corpus
from eyestream_lab.releases.gaze import (
    EVENTS,
    EventsOf,
    GazePeople,
    Maps,
    events_in,
    predicted_deg,
    recognised_by_events,
    saliency,
    saliency_kl,
    shares_on_cells,
    statistics,
)
from eyestream_lab.releases.known import known_by_gaze, known_by_rows
from eyestream_lab.releases.measures import ATTACKERS, People, activities, halves, recognised, usable
from eyestream_lab.releases.page import page
from eyestream_lab.releases.plans import CHUNK, Wanted, key_of, systems
from eyestream_lab.releases.traits import TRAIT_ATTACKERS, Classes, classes_of, told_of
from eyestream_lab.workers import workers

Array = NDArray[np.float64]
Cell = dict[str, Any]


@dataclass(frozen=True)
class _Raw:
    """One corpus of gaze, and what was made of it once."""

    gaze: Dataset[GazeRecording]
    rows: Dataset[recordings.Recording]
    people: People
    recorded: GazePeople
    events: EventsOf
    maps: Maps
    classes: dict[str, Classes]
    about: Cell
    splits: list[tuple[list[str], list[str]]]
    deep: bool


def study_datasets(
    gaze: Dataset[GazeRecording],
    out: Path,
    *,
    only: list[str] | None = None,
    name: str = "",
    splits: int = 8,
    quick: bool = False,
    deep: bool = False,
    jobs: int | None = None,
    cluster: str | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Path:
    """Release a corpus of gaze by every system and judge each release; the page `out`/datasets.md.

    Parameters
    ----------
    only
        Names of systems; None: all.
    name
        Of the corpus, as in `eyestream_lab.releases.published`.
    splits
        Ways to cut the tasks into a half to learn from and one to test.
    quick
        One set of parameters of each system, and two splits.
    deep
        Attack released gaze with a dense network too. Needs the extra `deep`.
    jobs, cluster
        Processes, None: one for each core; or the URL of a Dask scheduler, whose workers see the same files.

    Raises
    ------
    ConfigError
        A system of `only` is not known, or the corpus has a single task.
    LinkError
        There is no scheduler.
    """
    gaze = _declared(gaze)
    gaze.check_cohort(2)
    if len(gaze.tasks) < 2:
        raise ConfigError(f"{gaze.folder}: has one task; expected two or more, to learn from and to test")
    cells_at, target = out.resolve() / "cells", out / "datasets.md"
    cells_at.mkdir(parents=True, exist_ok=True)
    ways = halves(sorted(gaze.tasks), 2 if quick else splits, 0)
    lines = [("raw", None), *((key_of(*one), one) for one in _wanted(only, quick))]
    given = [(_place(cells_at, key, len(ways), deep), key, one) for key, one in lines]
    found = {key: json.loads(path.read_text(encoding="utf-8")) for path, key, _ in given if path.exists()}
    given = [one for one in given if one[1] not in found]
    _write(target, found, lines)
    if given:
        progress(f"{len(found)} of {len(lines)} cells done")
        with tempfile.TemporaryDirectory(dir=out.resolve()) as scratch:
            raw = _prepared(gaze, Path(scratch), ways, name, deep)
            with workers(cluster, min(jobs or cpu_count(), len(given)), raw) as several:
                for number, cell in several.done(_made, given):
                    found[given[number][1]] = cell
                    _write(target, found, lines)
                    progress(f"{len(found)} of {len(lines)} cells done, {given[number][1]} last")
    return target


def _declared(gaze: Dataset[GazeRecording]) -> Dataset[GazeRecording]:
    """The corpus at the rate of its first recording, where nobody declared one: a study publishes no recording."""
    known = gaze.kind.rate_hz is not None
    return gaze if known else replace(gaze, kind=gaze_kind(gaze.load(gaze.parts[0]).profile))


def _place(folder: Path, key: str, splits: int, deep: bool) -> Path:
    """File of a cell."""
    told = f"{key}-{splits}{'-deep' if deep else ''}"
    return folder / f"{told.replace(' ', '').replace('=', '-')}{CELLS}"


def _write(target: Path, found: dict[str, Cell], lines: Sequence[tuple[str, Wanted | None]]) -> None:
    """The page of what is there; everything stands beside raw gaze."""
    if "raw" in found:
        target.write_text(page({key: found[key] for key, _ in lines if key in found}), encoding="utf-8")


def _made(raw: _Raw, path: Path, line: str, one: Wanted | None) -> Cell:
    """A cell, kept unless it is a refusal: what was missing may be there the next time."""
    with threadpool_limits(1):  # others are made beside it
        told = _judged(raw, raw.gaze) if one is None else _measured(raw, *one)
    made_on = str(datetime.datetime.now(datetime.UTC).date())
    cell = raw.about | {"line": line, "made_on": made_on} | told
    if "refused" not in cell:
        path.with_suffix(".new").write_text(json.dumps(cell, indent=1), encoding="utf-8")
        path.with_suffix(".new").replace(path)
    return cell


def _wanted(only: list[str] | None, quick: bool) -> list[Wanted]:
    every = systems()
    unknown = [one for one in only or () if one not in {name for name, _ in every}]
    if unknown:
        raise ConfigError(f"--only {unknown[0]}: expected {', '.join(dict(every))}")
    chosen = [one for one in every if only is None or one[0] in only]
    return [one for at, one in enumerate(chosen) if not quick or one[0] not in dict(chosen[:at])]


def _prepared(
    gaze: Dataset[GazeRecording], scratch: Path, ways: list[tuple[list[str], list[str]]], name: str, deep: bool
) -> _Raw:
    """Rows of the 52 features as a corpus beside it."""
    recorded, parts = _loaded(gaze), []
    for part in gaze.parts:
        own = Part(part.person, f"{part.person}_{part.task}.npz", part.task)
        recordings.save(extract(recorded[part.person][part.task]), scratch / own.recording)
        parts.append(own)
    (scratch / "participants.tsv").write_text(participants_table((), parts))
    rows = open_folder(scratch, ROWS)
    about: Cell = {"corpus": name or "not named", "people": len(gaze.people), "tasks": len(gaze.tasks)}
    about |= {"splits": len(ways), "chance_person": 1 / len(gaze.people), "chance_task": 1 / len(gaze.tasks)}
    classes = classes_of(gaze)
    about["chance_traits"] = {name: 1 / len(set(own.values())) for name, own in classes.items()}
    events, maps = events_in(recorded), saliency(recorded)
    return _Raw(gaze, rows, _usable(_loaded(rows)), recorded, events, maps, classes, about, ways, deep)


def _loaded(corpus: Dataset[Any]) -> dict[str, dict[str, Any]]:
    """All recordings, by person and task."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for part in corpus.parts:
        found[part.person][part.task] = corpus.load(part)
    return found


def _usable(found: Mapping[str, Mapping[str, recordings.Recording]]) -> People:
    features = {person: {task: one.features for task, one in tasks.items()} for person, tasks in found.items()}
    return usable(features, load(f"everyday-klt-{CHUNK}").fill)


def _measured(raw: _Raw, name: str, options: dict[str, Any]) -> Cell:
    """One release, judged; where the corpus cannot be released so, the words of the refusal."""
    corpus: Dataset[Any] = raw.gaze if SYSTEMS[name].reads == "gaze" else raw.rows
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "out"
        begun = time.process_time()
        try:
            system = make_system(name, **options)
            promise = privatize_corpus(system, corpus, out)
            cell: Cell = {"mechanism": system.name, "options": dict(system.options), "claim": promise.facts()}
            cell["processor_s"] = round(time.process_time() - begun, 2)
            if system.released_kind == MAPS:
                maps = open_folder(out, MAPS)
                own = {part.task: shares_on_cells(maps.load(part)) for part in maps.parts}
                return cell | {"kl": round(saliency_kl(raw.maps, own), 5)}
            kind = corpus.kind if corpus.kind == ROWS else raw.gaze.kind
            return cell | _judged(raw, open_folder(out, kind))
        except OperatorError as error:
            return {"refused": str(error).partition(": ")[2]}


def _judged(raw: _Raw, released: Dataset[Any]) -> Cell:
    """Findings of attackers and applications; lists have a value for each person."""
    cell: Cell = {"recognised": {}, "known": {}}
    found = _loaded(released)
    if released.kind != ROWS:
        gaze: GazePeople = found
        cell["known"] |= known_by_gaze(raw.recorded, gaze)
        cell["statistics"] = {name: _told(own) for name, own in statistics(gaze).items()}
        cell["kl"] = round(saliency_kl(raw.maps, saliency(gaze)), 5)
        cell["predicted_deg"] = _told(predicted_deg(gaze, raw.recorded))
        own = events_in(gaze)
        cell["recognised"][EVENTS] = _both(recognised_by_events(own, (raw.events, own), raw.splits))
        if raw.deep:
            from eyestream_lab.releases.deep import SAMPLES, recognised_by_samples  # noqa: PLC0415  needs an extra

            cell["recognised"][SAMPLES] = _both(recognised_by_samples(gaze, (raw.recorded, gaze), raw.splits))
        try:
            found = {name: {task: extract(one) for task, one in tasks.items()} for name, tasks in gaze.items()}
        except OperatorError:
            return cell | {"without_rows": True}
    people = _usable(found)
    for attacker in ATTACKERS:
        cell["recognised"][attacker] = _both(recognised(attacker, people, (raw.people, people), raw.splits))
    cell["traits"] = {
        name: {one: _both(told_of(one, own, people, (raw.people, people), 0)) for one in TRAIT_ATTACKERS}
        for name, own in raw.classes.items()
    }
    tasks = sorted(raw.gaze.tasks)
    if len(tasks) > 2:
        cell["activity"] = _told(activities(people, raw.people, 0))
    cell["known"] |= known_by_rows(raw.people, people)
    return cell


def _both(shares: Array) -> dict[str, list[float | None]]:
    return {"raw": _told(shares[0]), "released": _told(shares[1])}


def _told(values: Array) -> list[float | None]:
    return [round(value, 4) if np.isfinite(value) else None for value in values.tolist()]
