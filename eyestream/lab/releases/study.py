"""A study of the systems that release corpora: every system on one corpus of gaze, each cell kept when it is done."""

import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.errors import ConfigError, OperatorError
from eyestream.lab.releases.gaze import GazePeople, predicted_deg, recognised_by_events, saliency_kl, statistics
from eyestream.lab.releases.measures import ATTACKERS, People, activities, halves, matched, recognised, usable
from eyestream.lab.releases.page import page
from eyestream.lab.releases.plans import CHUNK, Wanted, key_of, systems
from eyestream.offline.corpora.corpus import Corpus, Part, participants_table
from eyestream.offline.corpora.kinds import MAPS, ROWS
from eyestream.offline.corpora.layouts import open_folder
from eyestream.offline.corpora.registry import SYSTEMS, make_system
from eyestream.offline.corpora.run import privatize_corpus
from eyestream.rim.files import recordings
from eyestream.rim.files.calibrations import load
from eyestream.rim.files.extraction import extract
from eyestream.rim.files.gaze import GazeRecording

__all__ = ["Cell", "study_datasets"]

Cell = dict[str, Any]
_FEW = 8
"""People of whom all assignments can be tried."""
EVENTS = "networks on events"
_VERSION = 1
"""Of what a cell holds; a change of a measure raises it, and cells are made again."""


@dataclass(frozen=True)
class _Raw:
    """One corpus of gaze, and what was made of it once."""

    gaze: Corpus[GazeRecording]
    rows: Corpus[recordings.Recording]
    people: People
    recorded: GazePeople
    splits: list[tuple[list[str], list[str]]]


def study_datasets(
    gaze: Corpus[GazeRecording],
    out: Path,
    *,
    only: list[str] | None = None,
    name: str = "",
    splits: int = 8,
    quick: bool = False,
    progress: Callable[[str], None] = lambda text: None,
) -> Path:
    """Release a corpus of gaze by every system and judge each release; the page `out`/datasets.md.

    Parameters
    ----------
    only
        Names of systems; None: all.
    name
        Of the corpus, as in `eyestream.lab.releases.published`.
    splits
        Ways to cut the tasks into a half to learn from and one to test.
    quick
        One set of parameters of each system, and two splits.

    Raises
    ------
    ConfigError
        when a system of `only` is not known, or the corpus has a single task.
    """
    gaze.check_cohort(2)
    if len(gaze.tasks) < 2:
        raise ConfigError(f"{gaze.folder}: has one task; expected two or more, to learn from and to test")
    wanted = _wanted(only, quick)
    cells_at = out / "cells"
    cells_at.mkdir(parents=True, exist_ok=True)
    found: dict[str, Cell] = {}
    with tempfile.TemporaryDirectory() as scratch:
        raw = _prepared(gaze, Path(scratch), 2 if quick else splits)
        for done, (key, one) in enumerate([("raw", None), *((key_of(*one), one) for one in wanted)]):
            progress(f"{done} of {len(wanted) + 1} cells done, next {key}")
            path = cells_at / f"{key.replace(' ', '').replace('=', '-')}-{len(raw.splits)}-v{_VERSION}.json"
            if not path.exists():
                cell = _judged(raw, gaze) if one is None else _measured(raw, *one)
                path.with_suffix(".new").write_text(json.dumps(cell, indent=1))
                path.with_suffix(".new").replace(path)
            found[key] = json.loads(path.read_text())
    target = out / "datasets.md"
    target.write_text(page(found, name, len(gaze.people), len(gaze.tasks)), encoding="utf-8")
    return target


def _wanted(only: list[str] | None, quick: bool) -> list[Wanted]:
    every = systems()
    unknown = [one for one in only or () if one not in {name for name, _ in every}]
    if unknown:
        raise ConfigError(f"--only {unknown[0]}: expected {', '.join(dict(every))}")
    chosen = [one for one in every if only is None or one[0] in only]
    return list(dict(reversed(chosen)).items())[::-1] if quick else chosen


def _prepared(gaze: Corpus[GazeRecording], scratch: Path, splits: int) -> _Raw:
    """Rows of the 52 features as a corpus beside it."""
    parts = []
    for part in gaze.parts:
        own = Part(part.person, f"{part.person}_{part.task}.npz", part.task)
        recordings.save(extract(gaze.load(part)), scratch / own.recording)
        parts.append(own)
    (scratch / "participants.tsv").write_text(participants_table((), parts))
    rows = open_folder(scratch, ROWS)
    return _Raw(gaze, rows, _people(rows), _recorded(gaze), halves(sorted(gaze.tasks), splits, 0))


def _people(corpus: Corpus[Any]) -> People:
    """The rows of a corpus, by person and task; of gaze, those that the front end makes of it."""
    found: dict[str, dict[str, np.ndarray]] = defaultdict(dict)
    for part in corpus.parts:
        loaded = corpus.load(part)
        found[part.person][part.task] = (loaded if corpus.kind is ROWS else extract(loaded)).features
    return usable(found, load(f"everyday-klt-{CHUNK}").fill)


def _recorded(corpus: Corpus[GazeRecording]) -> GazePeople:
    found: dict[str, dict[str, GazeRecording]] = defaultdict(dict)
    for part in corpus.parts:
        found[part.person][part.task] = corpus.load(part)
    return found


def _measured(raw: _Raw, name: str, options: dict[str, Any]) -> Cell:
    """One release, judged; where the corpus cannot be released so, the words of the refusal."""
    corpus: Corpus[Any] = raw.gaze if SYSTEMS[name].reads == "gaze" else raw.rows
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "out"
        begun = time.process_time()
        try:
            system = make_system(name, **options)
            promise = privatize_corpus(system, corpus, out)
            cell: Cell = {"claim": promise.facts(), "processor_s": time.process_time() - begun}
            if system.released_kind is MAPS:
                return cell
            kind = corpus.kind if corpus.kind is ROWS else raw.gaze.kind
            return cell | _judged(raw, open_folder(out, kind))
        except OperatorError as error:
            return {"refused": str(error).partition(": ")[2]}


def _judged(raw: _Raw, released: Corpus[Any]) -> Cell:
    """What attackers and applications find."""
    tasks = sorted(raw.gaze.tasks)
    cell: Cell = {"chance_person": 1 / len(raw.people), "chance_task": 1 / len(tasks)}
    if released.kind is not ROWS:
        gaze = _recorded(released)
        cell["statistics"], cell["kl"] = statistics(gaze), saliency_kl(raw.recorded, gaze)
        cell["predicted_deg"] = predicted_deg(gaze, raw.recorded)
        on_raw, on_released = recognised_by_events(gaze, (raw.recorded, gaze), raw.splits)
        cell[f"{EVENTS}, raw tested"], cell[f"{EVENTS}, released tested"] = on_raw.tolist(), on_released.tolist()
    try:
        people = _people(released)
    except OperatorError:
        return cell | {"without_rows": True}
    for attacker in ATTACKERS:
        on_raw, on_released = recognised(attacker, people, (raw.people, people), raw.splits)
        cell[f"{attacker}, raw tested"], cell[f"{attacker}, released tested"] = on_raw.tolist(), on_released.tolist()
    if len(tasks) > 2:
        cell["activity"] = activities(people, raw.people, 0)
    if len(people) <= _FEW:
        cell["matched, all tasks"] = matched(raw.people, people, tasks)
    return cell
