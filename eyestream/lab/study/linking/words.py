"""Decision words as an attacker reads them: what public people's residual levels were with these words.

The attacker knows each session's task. What is left to a word is what makes a session of a task be taken for another
one. The mean residual level of public sessions with the same task and word, less what tasks make of it, is read as a
noisy level, so that the attackers on levels apply. A session has one word, or one for each of several equal parts of
it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eyestream.lab.corpus.task_sessions import SimulatedSession, simulate_tasks, task_means
from eyestream.lab.study.linking.pseudonyms import SeenPseudonym
from eyestream.lab.study.linking.release import FEATURES, PUBLIC, TASKS, Public, residual
from eyestream.privacy.noise import Noise
from eyestream.privacy.tasks.decision import DecisionLaw, Judge, decide

__all__ = ["Worded", "worded"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Worded:
    """A judge, a law, and how the words are read.

    Attributes
    ----------
    public : of the simulation.
    judge, law, noise : that make words.
    parts : words of a session.
    read : (K, K, F) level that a task's session with a word stands for.
    error : variance of a level that is read so.
    """

    public: Public
    judge: Judge
    law: DecisionLaw
    noise: Noise
    parts: int
    read: Array
    error: float

    def seen(self, people: int, sessions: int, seed: int) -> list[SeenPseudonym]:
        """Two pseudonyms of each of so many people."""
        every = simulate_tasks(self.public.parts, people, 2 * sessions, seed)
        return [
            self._seen(person, own[part : part + sessions])
            for person, own in enumerate(every)
            for part in (0, sessions)
        ]

    def right(self, people: int, sessions: int, seed: int) -> float:
        """Share of words that are the session's task; the first session of each person has none."""
        every = simulate_tasks(self.public.parts, people, sessions, seed)
        return float(np.mean([self.words(own) == _tasks(own)[1:, None] for own in every]))

    def words(self, sessions: Sequence[SimulatedSession]) -> Integers:
        """(T - 1, W) released words."""
        levels = _levels(self.public, sessions, self.parts)
        return np.array([[decide(self.judge, self.law, one, self.noise) for one in own] for own in levels])

    def levels(self, sessions: Sequence[SimulatedSession], words: Integers) -> Array:
        """(T - 1, F) what the words are read as."""
        return np.asarray(self.read[_tasks(sessions)[1:, None], words].mean(axis=1))

    def _seen(self, person: int, sessions: Sequence[SimulatedSession]) -> SeenPseudonym:
        levels = self.levels(sessions, self.words(sessions))
        _, takes = residual(sessions, self.public.remembering)
        return SeenPseudonym(person, _tasks(sessions), levels, takes, np.ones(FEATURES), self.error)


def worded(
    public: Public, epsilon: float, noise: Noise, *, parts: int = 1, people: int = 200, sessions: int = 8
) -> Worded:
    """Judge and reading, from so many public people; `epsilon` is of a word."""
    simulated = simulate_tasks(public.parts, people, sessions, PUBLIC + 1)
    each = np.concatenate([_levels(public, own, parts) for own in simulated])
    tasks = np.concatenate([_tasks(own)[1:] for own in simulated])
    judge = Judge.learned(each.reshape(-1, FEATURES), np.char.mod("%d", np.repeat(tasks, parts)))
    none = np.zeros((TASKS, TASKS, FEATURES))
    blank = Worded(public, judge, DecisionLaw(TASKS, epsilon), noise, parts, none, 0.0)
    told = [blank.words(own) for own in simulated]
    means = task_means(public.parts, TASKS, FEATURES)
    expected = [residual(own, public.remembering)[1] @ means[_tasks(own)] for own in simulated]
    off = each.mean(axis=1) - np.concatenate(expected)
    read = replace(blank, read=_read(np.concatenate(told), tasks, off))
    guessed = np.concatenate([read.levels(own, words) for own, words in zip(simulated, told, strict=True)])
    share = float((guessed * off).sum() / (guessed**2).sum())
    missed = float(((share * guessed - off) ** 2).mean() / (off**2).mean())
    return replace(read, read=share * read.read / (1 - missed), error=float((off**2).mean()) * missed / (1 - missed))


def _read(told: Integers, tasks: Integers, off: Array) -> Array:
    """(K, K, F) mean level (S, F) of the sessions (S,) that have each word (S, W), held toward 0 where they are few."""
    read = np.zeros((TASKS, TASKS, FEATURES))
    for task in range(TASKS):
        for word in range(TASKS):
            weight = (told == word).mean(axis=1) * (tasks == task)
            read[task, word] = weight @ off / (weight.sum() + 5.0)
    return read


def _tasks(sessions: Sequence[SimulatedSession]) -> Integers:
    return np.array([session.task for session in sessions])


def _levels(public: Public, sessions: Sequence[SimulatedSession], parts: int) -> Array:
    """(T - 1, W, F) residual levels of the parts of each session of a pseudonym that is not withheld."""
    rows = np.array(residual(sessions, public.remembering)[0])
    return np.asarray(rows.reshape(len(rows), parts, -1, FEATURES).mean(axis=2))
