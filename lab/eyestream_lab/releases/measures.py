"""Recognition of people and of activities in a released corpus, by rows of features.

The attackers are those of the papers and ours (`eyestream_lab.study.classifiers`). Tasks are split in two halves, in
every way or in so many random ones. The attacker learns people from *released* recordings of one half, labelled with
their participant ids, and gets recordings of the other half: raw ones, as in the papers, or released ones. One decision
for a person, from the mean of the scores of all rows.

An activity is learned from released recordings of all people but one, and decided for each raw recording of that one.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.corpora.ksame import filled
from eyestream_lab.study.classifiers import match_means, window_scores

Array = NDArray[np.float64]
People = Mapping[str, Mapping[str, Array]]
"""Rows (m, F) by person and task; the same people and tasks for everybody."""

ATTACKERS = ("RBF network", "random forest", "mean matcher")
ROWS = 50
"""Rows overlap in time: the papers too train on one in 5 to 20."""
_BLOCK = 2


def usable(people: People, fill: Array) -> dict[str, dict[str, Array]]:
    """About `ROWS` rows of each recording, evenly spaced, and `fill` (F,) where it has no value of a feature at all."""
    return {person: {task: _thinned(rows, fill) for task, rows in tasks.items()} for person, tasks in people.items()}


def _thinned(rows: Array, fill: Array) -> Array:
    full = filled(rows)
    return np.where(np.isfinite(full), full, fill)[:: max(1, len(full) // ROWS)]


def halves(tasks: Sequence[str], most: int, seed: int) -> list[tuple[list[str], list[str]]]:
    """Different ways to cut the tasks into a half to learn from and one to test, at most `most`, drawn with `seed`."""
    ways = [(list(half), [t for t in tasks if t not in half]) for half in combinations(tasks, len(tasks) // 2)]
    order = np.random.default_rng(seed).permutation(len(ways))
    return [ways[i] for i in order[:most]]


def recognised(
    attacker: str, known: People, unknown: Sequence[People], splits: Sequence[tuple[list[str], list[str]]]
) -> Array:
    """(u, N) share of splits in which each person is named rightly, learned from `known`, in each of u `unknown`."""
    people, found = sorted(known), []
    for seed, (learn, test) in enumerate(splits):
        train = _joined(known, people, learn)
        given = [_joined(one, people, test) for one in unknown]
        if attacker == "mean matcher":
            scores = [match_means(train, own, _BLOCK) for own in given]
        else:
            rows = window_scores(attacker, train, given, seed)
            scores = [np.array([own.mean(axis=0) for own in one]) for one in rows]
        found.append([right(one) for one in scores])
    return np.asarray(np.mean(found, axis=0))


def _joined(people: People, names: Sequence[str], tasks: Sequence[str]) -> list[Array]:
    """The rows of each person at some tasks."""
    return [np.concatenate([people[name][task] for task in tasks]) for name in names]


def matched(raw: People, released: People, tasks: Sequence[str]) -> float:
    """Share of people whom an attacker names rightly who knows all raw recordings of some tasks, and tries everything.

    Of all N! assignments of released to raw people, at most 8, those of the least sum of squared distances between
    standardised sequences; several that are as good share the guess.
    """
    people = sorted(raw)
    costs = np.zeros((len(people), len(people)))
    for task in tasks:
        length = max(len(one[person][task]) for one in (raw, released) for person in people)
        known, found = ([_ended(one[person][task], length) for person in people] for one in (raw, released))
        everything = np.concatenate(known)
        scale = everything.std(axis=0)
        scale = np.where(scale > 1e-9 * np.abs(everything).max(axis=0), scale, 1.0)  # a constant has one of rounding
        costs += [[float((((a - b) / scale) ** 2).sum()) for b in found] for a in known]
    orders = np.array(list(permutations(range(len(people)))))
    sums = costs[np.arange(len(people)), orders].sum(axis=1)
    best = orders[sums <= sums.min() * (1 + 1e-12)]
    return float((best == np.arange(len(people))).mean())


def _ended(rows: Array, length: int) -> Array:
    """`length` rows, the last one again and again."""
    return np.concatenate((rows, np.repeat(rows[-1:], length - len(rows), axis=0)))


def right(scores: Array, own: Sequence[int] | None = None) -> Array:
    """(m,) 1 for rows whose own column is the largest; several that are as large share the guess.

    `own` has a column for each row; by default row i has column i.
    """
    largest = scores >= scores.max(axis=1, keepdims=True) - 1e-12 * np.abs(scores).max()
    rows = np.arange(len(scores))
    return np.asarray(largest[rows, rows if own is None else own] / largest.sum(axis=1))


def activities(released: People, raw: People, seed: int) -> Array:
    """(N,) share of each person's raw recordings whose activity a random forest names, from the others' releases."""
    people = sorted(raw)
    tasks = sorted(raw[people[0]])
    found = []
    for person in people:
        train = [np.concatenate([released[other][task] for other in people if other != person]) for task in tasks]
        scores = window_scores("random forest", train, [[raw[person][task] for task in tasks]], seed)[0]
        found.append(right(np.array([own.mean(axis=0) for own in scores])).mean())
    return np.array(found)
