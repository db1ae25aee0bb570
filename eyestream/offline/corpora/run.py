"""A release of a corpus from beginning to end: refused before anything is written, whole or not there, resumable.

Everything is written to a private folder `.NAME.partial` beside the target `NAME`. Each finished unit leaves a mark, so
that a run that was interrupted goes on with the next one. Nothing of an interrupted unit is ever published: it is
released again with new random numbers. At the end one rename makes the folder the target.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from eyestream.errors import ConfigError
from eyestream.offline.corpora.claims import Promise, promise_json, promise_page
from eyestream.offline.corpora.corpus import PARTICIPANTS, Corpus, Part, Survey, participants_table
from eyestream.offline.corpora.draws import Draws
from eyestream.offline.corpora.kinds import Kind
from eyestream.offline.corpora.system import System, Unit
from eyestream.privacy.claims.kinds import NoClaim
from eyestream.version import VERSION

__all__ = ["privatize_corpus"]

Data = TypeVar("Data")
Progress = Callable[[int, int, str], None]


def privatize_corpus(
    system: System[Data],
    corpus: Corpus[Data],
    out: Path,
    *,
    draws: Draws | None = None,
    progress: Progress = lambda done, units, name: None,
) -> Promise:
    """Release `corpus` into the new folder `out`, with `participants.tsv`, `claim.json` and `CLAIM.md`.

    Parameters
    ----------
    draws
        Tests alone pass another source than the operating system. Then nothing is claimed.
    progress
        Called before each unit and at the end with units done, units in all, and the name of the next one.

    Raises
    ------
    ConfigError
        when `out` is there already, another run is at work on it, or the system refuses the corpus.
    RecordingError
        when a recording cannot be used; nothing has been written then.
    """
    out = out.resolve()
    if out.exists():
        raise ConfigError(f"{out}: is there already; a release needs a folder that is new")
    if out.is_relative_to(corpus.folder.resolve()):
        raise ConfigError(f"{out}: lies in the corpus; a release needs a folder outside it")
    survey = corpus.survey()
    draws = draws or Draws()
    units, promise = system.units(corpus, survey), system.promise(corpus, survey)
    if not draws.certified:
        promise = replace(promise, claim=NoClaim("random numbers came from a test source"), parts=())
    with _workshop(out, _run_mark(system, survey)) as workshop:
        whole = workshop / "whole"
        released = _release_units(system, corpus, survey, units, workshop, draws=draws, progress=progress)
        _describe(whole, corpus, system, promise, released)
        progress(len(units), len(units), "")
        os.rename(whole, out)
        _sync(out.parent)
    shutil.rmtree(workshop)
    return promise


def _run_mark(system: System[Data], survey: Survey) -> str:
    """What must be the same for an interrupted run to go on; it stays in the private folder."""
    return json.dumps([VERSION, system.name, dict(system.options), survey.digest], sort_keys=True)


@contextlib.contextmanager
def _workshop(out: Path, mark: str) -> Iterator[Path]:
    """The private folder of a run, held by this process alone."""
    folder = out.with_name(f".{out.name}.partial")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / "whole").mkdir(mode=0o755, exist_ok=True)
        with (folder / "run.json").open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.seek(0)
            before = file.read()
            if before not in ("", mark):
                raise ConfigError(f"{folder}: holds another run that was interrupted; finish that one, or remove it")
            file.truncate(0)
            file.write(mark)
            file.flush()
            yield folder
    except BlockingIOError:
        raise ConfigError(f"{folder}: another run is at work there") from None
    except OSError as error:
        raise ConfigError(f"{error.filename or out}: cannot be written: {error.strerror or error}") from None


def _release_units(
    system: System[Data],
    corpus: Corpus[Data],
    survey: Survey,
    units: list[Unit],
    workshop: Path,
    *,
    draws: Draws,
    progress: Progress,
) -> list[Part]:
    """Every unit that has no mark yet; the parts of all of them, in order."""
    kind: Kind[Any] = system.released_kind or corpus.kind
    parts: list[Part] = []
    for index, unit in enumerate(units):
        progress(index, len(units), unit.name)
        mark = workshop / f"unit-{index:05}.json"
        if not mark.exists():
            fresh = []
            for part, data in system.release(corpus, survey, unit, draws):
                named = replace(part, recording=kind.released_name(part.recording))
                kind.save(data, workshop / "whole" / named.recording)
                fresh.append([named.person, named.recording, named.task, list(named.labels)])
            _sync_all(workshop / "whole")
            _write(mark, json.dumps(fresh), workshop)
        told = json.loads(mark.read_text(encoding="utf-8"))
        parts += [Part(person, recording, task, tuple(labels)) for person, recording, task, labels in told]
    return parts


def _describe(whole: Path, corpus: Corpus[Data], system: System[Data], promise: Promise, released: list[Part]) -> None:
    """The three files beside the recordings.

    Lines come in the order of the corpus, and all recordings have one time of change: the order in which they were
    released tells who is in a group with whom.
    """
    own = {PARTICIPANTS, "claim.json", "CLAIM.md"}
    order = {(part.person, part.task): place for place, part in enumerate(corpus.parts)}
    released.sort(key=lambda part: order.get((part.person, part.task), -1))
    _write(whole / PARTICIPANTS, participants_table(corpus.label_names, released), whole.parent)
    now = time.time()
    for path in whole.iterdir():
        os.utime(path, (now, now))
    files = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in whole.iterdir() if path.name not in own
    }
    _write(whole / "claim.json", promise_json(system.name, system.options, promise, files), whole.parent)
    _write(whole / "CLAIM.md", promise_page(system.name, system.options, promise, files), whole.parent)
    _sync(whole)


def _write(path: Path, text: str, workshop: Path) -> None:
    """A text under its name as a whole, durably; what is half written lies outside the folder that is released."""
    beside = workshop / "new"
    with beside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


def _sync_all(folder: Path) -> None:
    for path in folder.iterdir():
        _sync(path)
    _sync(folder)


def _sync(path: Path) -> None:
    """Make a file or a folder durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
