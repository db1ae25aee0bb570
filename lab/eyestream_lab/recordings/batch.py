"""Many recordings released by many workers, each once: ``eyestream privatize --jobs`` and ``--cluster``.

Each recording is a task, which may be done twice and counts once (`eyestream_lab.workshop`). Nothing is at its
target before all are done. A run that was interrupted goes on with what is missing. In a ledger it books the missing
ones again: what an interrupted run had booked for them stays spent.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from eyestream.claims.correlation.published import Correlated
from eyestream.core.calibration import Calibration
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.core.reservation import Granted
from eyestream.rim.elsewhere import mechanism_elsewhere
from eyestream.rim.files import recordings
from eyestream.rim.files.recordings import Recording
from eyestream.streams import StreamKey
from eyestream.version import VERSION
from eyestream_lab.recordings.privatize import Booking, book, release_one
from eyestream_lab.recordings.released import claim_beside
from eyestream_lab.workers import workers
from eyestream_lab.workshop import once, sync, workshop

_RECORDING = StreamKey("recording", "features")


@dataclass(frozen=True)
class BatchSettings:
    """Common ground of all recordings of a batch, for a worker that builds the mechanism again.

    Attributes
    ----------
    calibration, epsilon, options : of the mechanism.
    place : of one that lives elsewhere, ``package.module:NAME``.
    every : one chunk in so many is released.
    first_row : chunks begin there; of rows before it nothing is released.
    levels : of the ledger's lifetime.
    correlated : what a whole recording tells, for the claim.
    """

    calibration: Calibration
    epsilon: float
    options: Mapping[str, Any]
    place: str | None = None
    every: int = 1
    first_row: int = 0
    levels: int = 1
    correlated: Correlated | None = None

    def mechanism(self) -> Mechanism:
        """Built here for each recording, so that its noise is of this process's own entropy.

        So is the release: what crosses to a worker are rows, figures and what was granted. Building takes 0.01 s of
        processor time, of klt with a baseline 0.25 s.
        """
        if self.place is not None:
            mechanism_elsewhere(self.place, "--mechanism")
        return build(self.calibration, self.epsilon, **self.options)


def privatize_batch(
    loaded: Sequence[Recording],
    targets: Sequence[Path],
    how: BatchSettings,
    booking: Booking | None = None,
    *,
    cluster: str | None = None,
    jobs: int = 1,
    progress: Callable[[int], None] = lambda count: None,
) -> list[dict[str, Any]]:
    """Release every recording to its target, with its claim beside it; gives the claims.

    Parameters
    ----------
    loaded, targets
        Recordings, and where each goes: files of one folder, which all workers of a cluster see.
    how
        It is released.
    booking
        Where it is booked, before the first is released.
    cluster, jobs
        URL of a Dask scheduler, or how many processes.
    progress
        Called with how many are done.

    Raises
    ------
    ConfigError, LinkError, LedgerError
        As `privatize`, `workers` and `workshop`.
    """
    with workshop(targets[0].parent / "release", _mark(loaded, targets, how)) as folder:
        places = [folder / "whole" / str(number) for number in range(len(loaded))]
        if not (folder / "moving").exists():
            todo = [number for number, place in enumerate(places) if not place.exists()]
            progress(len(loaded) - len(todo))
            missing = [loaded[number] for number in todo]
            session, answers = book(
                missing, how.calibration, how.mechanism(), booking, every=how.every, first_row=how.first_row
            )
            key = _RECORDING if booking is None else booking.key
            given = [
                (loaded[number], _Task(key, session + place, own, places[number], targets[number].name))
                for place, (number, own) in enumerate(zip(todo, answers, strict=True))
            ]
            with workers(cluster, jobs, how) as several:
                for count, _ in enumerate(several.done(_release, given), start=len(loaded) - len(todo) + 1):
                    progress(count)
            (folder / "moving").touch()  # from here on what is missing in the folder is at its target
            sync(folder)
        for place, target in zip(places, targets, strict=True):
            for path in sorted(place.iterdir()) if place.exists() else ():
                os.replace(path, target.parent / path.name)
        sync(targets[0].parent)
    shutil.rmtree(folder)
    return [json.loads(claim_beside(target).read_text(encoding="utf-8")) for target in targets]


class _Task(NamedTuple):
    """A recording's charges, and where its release goes."""

    key: StreamKey
    session: int
    answers: list[Granted] | None
    place: Path
    name: str


def _release(how: BatchSettings, recording: Recording, task: _Task) -> None:
    """One recording and its claim, in a folder of their own."""

    def fill(folder: Path) -> None:
        released = release_one(
            recording,
            how.calibration,
            how.mechanism(),
            task.answers,
            key=task.key,
            session=task.session,
            levels=how.levels,
            every=how.every,
            first_row=how.first_row,
        )
        released = replace(released, guarantee=replace(released.guarantee, correlated=how.correlated))
        recordings.save(released.recording, folder / task.name)
        released.save_claim(folder / task.name)

    once(task.place, fill)


def _mark(loaded: Sequence[Recording], targets: Sequence[Path], how: BatchSettings) -> str:
    """Facts that must be the same for a run to go on."""
    digests = [hashlib.blake2b(one.features.tobytes(), digest_size=16).hexdigest() for one in loaded]
    own = [
        how.calibration.content_hash,
        how.epsilon,
        dict(how.options),
        how.place,
        how.every,
        how.first_row,
        how.levels,
    ]
    return json.dumps([VERSION, own, digests, [target.name for target in targets]], sort_keys=True)
