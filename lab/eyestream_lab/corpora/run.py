"""A release of a corpus from beginning to end: refused before anything is written, whole or not there, resumable.

Everything is written to a private folder `.NAME.partial` beside the target `NAME`. Each finished unit leaves a mark, so
that a run that was interrupted goes on with the next one. Nothing of an interrupted unit is ever published: it is
released again with new random numbers. At the end one rename makes the folder the target.
"""

import functools
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from eyestream.core.kinds import NoClaim
from eyestream.core.noise import is_certified
from eyestream.errors import ConfigError
from eyestream.version import VERSION
from eyestream_lab.corpora.attacked import Attacked
from eyestream_lab.corpora.claims import Promise, promise_json, promise_page
from eyestream_lab.corpora.corpus import PARTICIPANTS, Dataset, Part, Survey, participants_table
from eyestream_lab.corpora.draws import Draws
from eyestream_lab.corpora.kinds import Kind
from eyestream_lab.corpora.system import System, Unit
from eyestream_lab.workers import workers
from eyestream_lab.workshop import once, sync, sync_all, workshop, write_whole

Data = TypeVar("Data")
Progress = Callable[[int, int, str], None]


def _silent(done: int, units: int, name: str) -> None:
    """Nobody is told."""


def privatize_corpus(
    system: System[Data],
    corpus: Dataset[Data],
    out: Path,
    *,
    attackers: Attacked | None = None,
    progress: Progress = _silent,
    cluster: str | None = None,
    jobs: int | None = None,
) -> Promise:
    """Release `corpus` into the new folder `out`, with `participants.tsv`, `claim.json` and `CLAIM.md`.

    Parameters
    ----------
    attackers
        What a study found for this system, for readers.
    progress
        Called before each unit and at the end with units done, units in all, and the name of the next one; with
        several processes after each, with its name.
    cluster, jobs
        URL of a Dask scheduler whose workers see the same files, or how many processes; neither: this process alone.

    Raises
    ------
    ConfigError
        when `out` is there already, another run is at work on it, or the system refuses the corpus.
    RecordingError
        when a recording cannot be used; nothing has been written then.
    """
    spread = cluster is not None or jobs is not None
    make = functools.partial(_make_units, cluster=cluster, jobs=jobs or 1, progress=progress) if spread else None
    return _release(system, corpus, out, Draws(), attackers=attackers, progress=progress, make=make)


def release_with(draws: Draws, system: System[Data], corpus: Dataset[Data], out: Path) -> Promise:
    """The same with the random numbers of a test; nothing is claimed."""
    return _release(system, corpus, out, draws, attackers=None, progress=_silent, make=None)


def _release(
    system: System[Data],
    corpus: Dataset[Data],
    out: Path,
    draws: Draws,
    *,
    attackers: Attacked | None,
    progress: Progress,
    make: Callable[..., None] | None,
) -> Promise:
    """Release like `privatize_corpus`; `make` lets workers make the units."""
    out = out.resolve()
    if out.exists():
        raise ConfigError(f"{out}: is there already; a release needs a folder that is new")
    if out.is_relative_to(corpus.folder.resolve()):
        raise ConfigError(f"{out}: lies in the corpus; a release needs a folder outside it")
    survey = corpus.survey()
    units = system.units(corpus, survey)
    promise = replace(system.promise(corpus, survey), attackers=attackers)
    if not is_certified(draws):
        promise = replace(promise, claim=NoClaim("random numbers came from a test source"), parts=())
    with workshop(out, _run_mark(system, survey)) as folder:
        whole = folder / "whole"
        if make is not None:
            make(system, corpus, survey, units, folder)
        said = progress if make is None else _silent  # all that it does then is to put them into place
        released = _release_units(system, corpus, survey, units, folder, draws=draws, progress=said)
        _describe(whole, corpus, system, promise, released)
        progress(len(units), len(units), "")
        os.rename(whole, out)
        sync(out.parent)
    shutil.rmtree(folder)
    return promise


def _run_mark(system: System[Data], survey: Survey) -> str:
    """Facts that must be the same for an interrupted run to go on; they stay in the private folder."""
    return json.dumps([VERSION, system.name, dict(system.options), survey.digest], sort_keys=True)


def _release_units(
    system: System[Data],
    corpus: Dataset[Data],
    survey: Survey,
    units: list[Unit],
    folder: Path,
    *,
    draws: Draws,
    progress: Progress,
) -> list[Part]:
    """Every unit that has no mark yet; the parts of all of them, in order."""
    parts: list[Part] = []
    for index, unit in enumerate(units):
        progress(index, len(units), unit.name)
        mark = folder / f"unit-{index:05}.json"
        made = _made(folder, index)
        if not mark.exists() and made.exists():  # by a worker, and whole
            for path in made.iterdir():
                if path.name != _PARTS:
                    os.replace(path, folder / "whole" / path.name)
            sync_all(folder / "whole")
            os.replace(made / _PARTS, mark)
        elif not mark.exists():
            fresh = _save_unit(system, corpus, survey, unit, draws=draws, folder=folder / "whole")
            sync_all(folder / "whole")
            write_whole(mark, json.dumps(fresh), folder)
        told = json.loads(mark.read_text(encoding="utf-8"))
        parts += [Part(person, recording, task, tuple(labels)) for person, recording, task, labels in told]
    return parts


_PARTS = "parts.json"


def _made(folder: Path, index: int) -> Path:
    """Where a worker puts a unit."""
    return folder / f"made-{index:05}"


def _make_units(
    system: System[Data],
    corpus: Dataset[Data],
    survey: Survey,
    units: list[Unit],
    folder: Path,
    *,
    cluster: str | None,
    jobs: int,
    progress: Progress,
) -> None:
    """Every unit that nobody has made yet, by workers, each in a folder of its own."""
    given = [
        (unit, _made(folder, index))
        for index, unit in enumerate(units)
        if not (folder / f"unit-{index:05}.json").exists()
    ]
    with workers(cluster, jobs, system, corpus, survey) as several:
        for count, (index, _) in enumerate(several.done(_make_unit, given)):
            progress(len(units) - len(given) + count + 1, len(units), given[index][0].name)


def _make_unit(system: System[Data], corpus: Dataset[Data], survey: Survey, unit: Unit, place: Path) -> None:
    """The task: it may be done twice, and the first wins."""

    def fill(own: Path) -> None:
        fresh = _save_unit(system, corpus, survey, unit, draws=Draws(), folder=own)
        (own / _PARTS).write_text(json.dumps(fresh), encoding="utf-8")

    once(place, fill)


def _save_unit(
    system: System[Data], corpus: Dataset[Data], survey: Survey, unit: Unit, *, draws: Draws, folder: Path
) -> list[list[Any]]:
    """Release a unit into `folder`; its parts."""
    kind: Kind[Any] = system.released_kind or corpus.kind
    fresh: list[list[Any]] = []
    for part, data in system.release(corpus, survey, unit, draws):
        named = replace(part, recording=kind.released_name(part.recording))
        kind.save(data, folder / named.recording)
        fresh.append([named.person, named.recording, named.task, list(named.labels)])
    return fresh


def _describe(whole: Path, corpus: Dataset[Data], system: System[Data], promise: Promise, released: list[Part]) -> None:
    """The three files beside the recordings.

    Lines come in the order of the corpus, and all recordings have one time of change: the order in which they were
    released tells who is in a group with whom.
    """
    own = {PARTICIPANTS, "claim.json", "CLAIM.md"}
    order = {(part.person, part.task): place for place, part in enumerate(corpus.parts)}
    released.sort(key=lambda part: order.get((part.person, part.task), -1))
    write_whole(whole / PARTICIPANTS, participants_table(corpus.label_names, released), whole.parent)
    now = time.time()
    for path in whole.iterdir():
        os.utime(path, (now, now))
    files = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in whole.iterdir() if path.name not in own
    }
    write_whole(whole / "claim.json", promise_json(system.name, system.options, promise, files), whole.parent)
    write_whole(whole / "CLAIM.md", promise_page(system.name, system.options, promise, files), whole.parent)
    sync(whole)
