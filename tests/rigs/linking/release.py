"""Simulated people's pseudonyms as attackers see them, by each way of releasing."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.core.noise import Noise
from eyestream.rim.files.recordings import Recording
from eyestream_lab.calibration.corpus import whole_chunks
from eyestream_lab.words.directions import LabelledSession, calibrate_tasks, remembering_of
from eyestream_lab.words.history import History, Remembering, SessionLevel
from tests.rigs.linking.people import Parts, SimulatedSession, simulate_tasks, task_means
from tests.rigs.linking.pseudonyms import SeenPseudonym, residual_map

__all__ = ["FEATURES", "PUBLIC", "TASKS", "Public", "Sessions", "Walk", "kept_apart", "learned", "raw", "residual"]

Array = NDArray[np.float64]

TASKS, FEATURES, CHUNKS, N = 6, 8, 8, 4
"""Of the simulation: tasks, features, chunks of a session, rows of a chunk of 32 s."""
_ROW_S = 8.0
PUBLIC = 1_000_003
"""Seed of public people."""


Sessions = Sequence[SimulatedSession]
Walk = Callable[[Sessions, Remembering], tuple[list[Array], Array]]
"""The released rows (m, F) of a pseudonym by session, and how its levels become theirs."""


def raw(sessions: Sessions, remembering: Remembering) -> tuple[list[Array], Array]:
    """Rows as they are."""
    return [session.rows for session in sessions], np.eye(len(sessions))


def residual(sessions: Sessions, remembering: Remembering) -> tuple[list[Array], Array]:
    """Rows less the earlier sessions, whatever their tasks."""
    return list(_walked(sessions, remembering)), residual_map(len(sessions), remembering.drift)


def kept_apart(sessions: Sessions, remembering: Remembering) -> tuple[list[Array], Array]:
    """Rows less the earlier sessions of the same stated task: a history for each, whose first session is withheld."""
    tasks = np.array([session.task for session in sessions])
    rows: list[Array] = []
    takes = [np.zeros((0, len(tasks)))]
    for task in np.unique(tasks):
        places = np.flatnonzero(tasks == task)
        if len(places) > 1:
            rows += _walked([sessions[i] for i in places.tolist()], remembering)
            takes.append(residual_map(len(places), remembering.drift) @ np.eye(len(tasks))[places])
    return rows, np.concatenate(takes)


def _walked(sessions: Sessions, remembering: Remembering) -> Iterator[Array]:
    history = History.begun(replace(remembering, sessions=len(sessions) + 1))
    for session in sessions:
        level, chunks = SessionLevel(remembering), whole_chunks(session.rows, N)
        if not history.withholds:
            yield np.concatenate([history.off(chunk).T for chunk in chunks])
        for chunk in chunks:
            level.take(chunk)
        history = history.after(level)


@dataclass(frozen=True, eq=False)
class Public:
    """What is learned from simulated people who are nobody's target, and what an attacker learns from them.

    Attributes
    ----------
    parts : of everybody.
    remembering : of histories.
    mechanism : that codes rows; None: rows are released as they are.
    axes : (D, F) along which levels are compared: those that releases have.
    noise : variance that a release and the session's chunks add to a level.
    """

    parts: Parts
    remembering: Remembering
    mechanism: Mechanism | None
    axes: Array
    noise: float

    def seen(self, people: int, sessions: int, seed: int, walk: Walk) -> list[SeenPseudonym]:
        """Two pseudonyms of `sessions` sessions of each of so many people; those without any release are left out."""
        return [
            one
            for person, every in enumerate(simulate_tasks(self.parts, people, 2 * sessions, seed))
            for one in (self._seen(person, own, walk) for own in (every[:sessions], every[sessions:]))
            if len(one.levels)
        ]

    def _seen(self, person: int, sessions: Sessions, walk: Walk) -> SeenPseudonym:
        rows, takes = walk(sessions, self.remembering)
        tasks = np.array([session.task for session in sessions])
        chunks = [self.released(one) for one in rows]
        levels = np.array([one.mean(axis=0) for one in chunks]).reshape(-1, len(self.axes.T))
        expected = takes @ task_means(self.parts, TASKS, FEATURES)[tasks]
        squares = np.mean([(one @ self.axes.T).var(axis=0) for one in chunks] or [np.ones(len(self.axes))], axis=0)
        return SeenPseudonym(person, tasks, (levels - expected) @ self.axes.T, takes, squares, self.noise)

    def released(self, rows: Array) -> Array:
        """(C, F) means of the released chunks of one session's rows (m, F)."""
        chunks = whole_chunks(rows, N)
        if self.mechanism is None:
            return np.asarray(chunks.mean(axis=2))
        session = self.mechanism.session()
        return np.array([session.release(chunk).mean(axis=1) for chunk in chunks])


def learned(
    parts: Parts,
    epsilon: float | None = None,
    noise: Noise | None = None,
    *,
    trust: float = 0.0,
    drift: float = 0.0,
    people: int = 24,
    sessions: int = 8,
) -> Public:
    """From so many public people: histories, and, with an epsilon of a chunk, task directions for `klt`."""
    simulated = simulate_tasks(parts, people, sessions, PUBLIC)
    labelled = [[LabelledSession(str(one.task), _recording(one)) for one in own] for own in simulated]
    public = [session.rows for own in labelled for session in own]
    remembering = remembering_of(public, sessions + 1, drift=drift, trust=trust)
    whole = Public(parts, remembering, None, np.eye(FEATURES), parts.chunk / CHUNKS)
    if epsilon is None:
        return whole
    mechanism = build(calibrate_tasks(labelled, N, remembering), epsilon, noise=noise)
    coded = replace(whole, mechanism=mechanism)
    rows = [one for own in simulated for one in _walked(own, remembering)]
    out = np.array([coded.released(one).mean(axis=0) for one in rows])
    axes = np.linalg.svd(out - out.mean(axis=0), full_matrices=False)[2][: TASKS - 1]
    missed = (out - np.array([one.mean(axis=0) for one in rows])) @ axes.T
    return replace(coded, axes=axes, noise=parts.chunk / CHUNKS + float((missed**2).mean()))


def _recording(session: SimulatedSession) -> Recording:
    names = tuple(f"feature {i}" for i in range(FEATURES))
    return Recording(_ROW_S * np.arange(len(session.rows), dtype=np.float64), session.rows, names)
