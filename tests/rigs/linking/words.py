"""Decision words as an attacker reads them: what public people's residual levels were with these words.

The attacker knows each session's task. What is left to a word is what makes a session of a task be taken for another
one. The mean residual level of public sessions with the same task and word, less what tasks make of it, is read as a
noisy level, so that the attackers on levels apply. A session has one word, or one for each of several equal parts of
it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import lgamma

import numpy as np
from numpy.typing import NDArray

from eyestream.core.noise import Noise
from eyestream_lab.words.decision import DecisionLaw, Judge, decide
from tests.rigs.linking.pairs import area
from tests.rigs.linking.people import SimulatedSession, simulate_tasks, task_means
from tests.rigs.linking.pseudonyms import SeenPseudonym, link_pseudonyms, pairs_of
from tests.rigs.linking.release import FEATURES, PUBLIC, TASKS, Public, residual

__all__ = ["Worded", "link_words", "worded"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

_STEADY = 6.0
"""How many words the public frequencies of a task count beside a person's own."""


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
    usual : (K, K) how often public sessions of a task have each word.
    """

    public: Public
    judge: Judge
    law: DecisionLaw
    noise: Noise
    parts: int
    read: Array
    error: float
    usual: Array

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


def link_words(worded: Worded, people: int, sessions: int, seed: int) -> dict[str, float]:
    """Area of every attacker over two pseudonyms of each of so many simulated people."""
    every = simulate_tasks(worded.public.parts, people, 2 * sessions, seed)
    seen, counts = [], []
    for person, own in enumerate(every):
        for part in (own[:sessions], own[sessions:]):
            words, tasks = worded.words(part), _tasks(part)
            takes = residual(part, worded.public.remembering)[1]
            levels = worded.levels(part, words)
            seen.append(SeenPseudonym(person, tasks, levels, takes, np.ones(FEATURES), worded.error))
            counts.append(_counted(tasks[1:], words))
    pairs = pairs_of(seen)
    same: NDArray[np.bool_] = np.array([seen[a].person == seen[b].person for a, b in pairs])
    law = _STEADY * worded.usual
    mistakes = np.array(
        [
            _evidence(counts[a] + counts[b], law) - _evidence(counts[a], law) - _evidence(counts[b], law)
            for a, b in pairs
        ]
    )
    return link_pseudonyms(seen, worded.public.parts) | {"mistakes": area(mistakes, same)}


def _counted(tasks: Integers, words: Integers) -> Array:
    """(K, K) how often each task has each word."""
    counts = np.zeros((TASKS, TASKS))
    np.add.at(counts, (np.broadcast_to(tasks[:, None], words.shape), words), 1.0)
    return counts


def _evidence(counts: Array, law: Array) -> float:
    """Log probability of counts (K, K), the words of each task drawn with frequencies of a Dirichlet law (K, K)."""
    each = zip(counts.ravel().tolist(), law.ravel().tolist(), strict=True)
    whole = zip(counts.sum(axis=1).tolist(), law.sum(axis=1).tolist(), strict=True)
    return sum(lgamma(a + c) - lgamma(a) for c, a in each) - sum(lgamma(a + c) - lgamma(a) for c, a in whole)


def worded(
    public: Public, epsilon: float, noise: Noise, *, parts: int = 1, people: int = 200, sessions: int = 8
) -> Worded:
    """Judge and reading, from so many public people; `epsilon` is of a word."""
    simulated = simulate_tasks(public.parts, people, sessions, PUBLIC + 1)
    each = np.concatenate([_levels(public, own, parts) for own in simulated])
    tasks = np.concatenate([_tasks(own)[1:] for own in simulated])
    judge = Judge.learned(each.reshape(-1, FEATURES), np.char.mod("%d", np.repeat(tasks, parts)))
    none = np.zeros((TASKS, TASKS, FEATURES))
    blank = Worded(public, judge, DecisionLaw(TASKS, epsilon), noise, parts, none, 0.0, none[:, :, 0])
    told = [blank.words(own) for own in simulated]
    means = task_means(public.parts, TASKS, FEATURES)
    expected = [residual(own, public.remembering)[1] @ means[_tasks(own)] for own in simulated]
    off = each.mean(axis=1) - np.concatenate(expected)
    read = replace(blank, read=_read(np.concatenate(told), tasks, off))
    guessed = np.concatenate([read.levels(own, words) for own, words in zip(simulated, told, strict=True)])
    share = float((guessed * off).sum() / (guessed**2).sum())
    missed = float(((share * guessed - off) ** 2).mean() / (off**2).mean())
    usual = 0.5 + np.sum([_counted(_tasks(own)[1:], words) for own, words in zip(simulated, told, strict=True)], axis=0)
    return replace(
        read,
        read=share * read.read / (1 - missed),
        error=float((off**2).mean()) * missed / (1 - missed),
        usual=usual / usual.sum(axis=1, keepdims=True),
    )


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
