"""The attackers of the benchmark: a fixed list with versions. Each scores every unnamed person against every known one.

| name | learns |
|---|---|
| discriminants, also of motion | linear discriminants with shrunk covariance, on windows of 12 s |
| forest, also of places, of motion | 300 random trees on the same windows |
| other people, also places, motion | see below |
| discriminants, forest, other people on rows | the same, on windows of the 52 features |
| networks on events | the papers' radial basis function networks on fixations and saccades |
| networks, means on rows | the papers' network on the 52 features, and the distance of means |
| together | the sum of the standardised scores of all above but the papers' |

**Other people**: from people who are not to be named, whose two sessions it knows, it learns how sessions of one person
differ. It scores each pair by the likelihood that both are of one person. An **inverted** attacker names the least
likely one: an area below one half is its finding.

Either side, the named and the unnamed, is standardised by its own mean and spread: a change that a system makes to
everybody does not stop them. A score counts beside those of other people: it is standardised over the candidates of an
unnamed person, and over the unnamed people of a candidate. A list has one version, and changes with any attacker on it.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier

from eyestream_lab.benchmark.seen import ROWS, Seen
from eyestream_lab.benchmark.windows import GROUPS
from eyestream_lab.study.classifiers import match_means, window_scores
from eyestream_lab.study.people.rbfn import EventNetworks

Array = NDArray[np.float64]
LIST_VERSION = "2"
TOGETHER = "together"
_MOTION = tuple(group for group in GROUPS if group != "place")
_TREES, _FOLDS, _AXES = 300, 6, 30
_FLOOR = 1e-12


@dataclass(frozen=True)
class RecognitionTrial:
    """Named and unnamed recordings of the same P people, in one order; each has one or more on either side."""

    known: Sequence[Sequence[Seen]]
    unknown: Sequence[Sequence[Seen]]

    def windows(self, groups: Sequence[str]) -> tuple[list[Array], list[Array]]:
        """Windows (W, f) of each person, either side standardised by itself."""
        known, unknown = (
            [np.concatenate([np.concatenate([one.windows[g] for g in groups], axis=1) for one in own]) for own in side]
            for side in (self.known, self.unknown)
        )
        return _alike(known), _alike(unknown)

    def has(self, groups: Sequence[str]) -> bool:
        """Whether every recording has all of these."""
        return all(
            g in one.windows for side in (self.known, self.unknown) for own in side for one in own for g in groups
        )


def standardised(scores: Array) -> Array:
    """Scores (U, P) beside those of other candidates, and of other unnamed people."""
    return _scaled(scores, 1) + _scaled(scores, 0)


def _scaled(scores: Array, axis: int) -> Array:
    spread = scores.std(axis=axis, keepdims=True)
    return np.asarray((scores - scores.mean(axis=axis, keepdims=True)) / np.where(spread > _FLOOR, spread, np.inf))


def _alike(side: list[Array]) -> list[Array]:
    """Standardised by all windows of a side; a figure that stands still is 0."""
    rows = np.concatenate(side)
    mean, spread = rows.mean(axis=0), rows.std(axis=0)
    scale = np.where(spread > 1e-9 * (1.0 + np.abs(mean)), spread, np.inf)
    return [(own - mean) / scale for own in side]


def _discriminants(groups: Sequence[str], trial: RecognitionTrial, seed: int) -> Array:
    known, unknown = trial.windows(groups)
    rows, who = np.concatenate(known), np.repeat(np.arange(len(known)), [len(own) for own in known])
    if len(rows) <= len(known):  # one window each: nothing tells how a person varies
        return -np.array([[float(((a.mean(axis=0) - b.mean(axis=0)) ** 2).sum()) for a in known] for b in unknown])
    moving = rows.std(axis=0) > 0
    if not moving.any():  # nothing tells anybody apart: a system may have lost all rows
        return np.zeros((len(unknown), len(known)))
    learned = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(rows[:, moving], who)
    return np.array([np.maximum(learned.predict_log_proba(own[:, moving]), -50.0).mean(axis=0) for own in unknown])


def _forest(groups: Sequence[str], trial: RecognitionTrial, seed: int) -> Array:
    known, unknown = trial.windows(groups)
    who = np.repeat(np.arange(len(known)), [len(own) for own in known])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of many people with few windows, which is what they have
        learned = ExtraTreesClassifier(_TREES, random_state=seed).fit(np.concatenate(known), who)
    return np.array([learned.predict_proba(own).mean(axis=0) for own in unknown])


def _other_people(groups: Sequence[str], trial: RecognitionTrial, seed: int) -> Array:
    """Log likelihood ratio of one person against two, under two normal laws: of people, and of sessions of a person.

    Both laws are learned from both sessions of other people: a pair is scored by laws that saw neither of its people.
    """
    means = [np.array([own.mean(axis=0) for own in side]) for side in trial.windows(groups)]
    known, unknown = (_alike([side])[0] for side in means)
    axes = np.linalg.svd(np.concatenate([known, unknown]), full_matrices=False)[2][:_AXES]
    known, unknown = known @ axes.T, unknown @ axes.T
    people = len(known)
    fold = np.random.default_rng(seed).permutation(people) % min(_FOLDS, people)
    scores = np.zeros((people, people))
    for one in range(fold.max() + 1):
        for other in range(one, fold.max() + 1):
            # Laws of as many people for each pair: with more for pairs of one fold, their scores told who is who.
            public = (fold != one) & (fold != (other if other != one else (one + 1) % (fold.max() + 1)))
            if public.sum() < 3:
                continue
            axes_of_law, alike = _laws(known[public], unknown[public])
            for unnamed, candidate in {(one, other), (other, one)}:
                rows, columns = np.flatnonzero(fold == unnamed), np.flatnonzero(fold == candidate)
                pairs = _likelier(unknown[rows] @ axes_of_law, known[columns] @ axes_of_law, alike)
                scores[np.ix_(rows, columns)] = pairs
    return scores


def _laws(known: Array, unknown: Array) -> tuple[Array, Array]:
    """Axes (A, A) in which a session has variance 1, and the correlation (A,) of two sessions of one person in each."""
    apart = (known - unknown) / np.sqrt(2)
    within = apart.T @ apart / len(apart)
    diagonal = np.diag(np.diag(within))
    within = 0.7 * within + 0.3 * diagonal + 0.06 * np.eye(len(within)) * max(np.trace(within) / len(within), _FLOOR)
    total = np.atleast_2d(np.cov(np.concatenate([known, unknown]).T))
    white = np.linalg.inv(np.linalg.cholesky(within))
    values, vectors = np.linalg.eigh(white @ total @ white.T)
    between = np.maximum(values - 1.0, 1e-3)
    return np.asarray(white.T @ vectors / np.sqrt(1.0 + between)), between / (1.0 + between)


def _likelier(unknown: Array, known: Array, alike: Array) -> Array:
    square, cross = -(alike**2) / (2 * (1 - alike**2)), alike / (1 - alike**2)
    return np.asarray((unknown**2 @ square)[:, None] + known**2 @ square + (unknown * cross) @ known.T)


def _event_networks(trial: RecognitionTrial, seed: int) -> Array:
    networks = EventNetworks([[one.events for one in own if one.events] for own in trial.known], seed)
    return np.array([np.mean([networks.scores(s.events) for s in own if s.events], axis=0) for own in trial.unknown])


def _rows(side: Sequence[Sequence[Seen]]) -> list[Array]:
    return [np.concatenate([one.rows for one in own if one.rows is not None]) for own in side]


def _row_networks(trial: RecognitionTrial, seed: int) -> Array:
    (found,) = window_scores("RBF network", _rows(trial.known), [_rows(trial.unknown)], seed)
    return np.array([own.mean(axis=0) for own in found])


def _row_means(trial: RecognitionTrial, seed: int) -> Array:
    return match_means(_rows(trial.known), _rows(trial.unknown), 2)


@dataclass(frozen=True)
class _Listed:
    """An attacker, what a trial needs to have for it, and whether it is one of the papers."""

    run: Callable[[RecognitionTrial, int], Array]
    needs: tuple[str, ...] = ()
    papers: bool = False


ATTACKERS: Mapping[str, _Listed] = {
    "discriminants": _Listed(partial(_discriminants, GROUPS), GROUPS),
    "discriminants of motion": _Listed(partial(_discriminants, _MOTION), _MOTION),
    "forest": _Listed(partial(_forest, GROUPS), GROUPS),
    "forest of places": _Listed(partial(_forest, ("place",)), ("place",)),
    "forest of motion": _Listed(partial(_forest, _MOTION), _MOTION),
    "other people": _Listed(partial(_other_people, GROUPS), GROUPS),
    "other people, places": _Listed(partial(_other_people, ("place",)), ("place",)),
    "other people, motion": _Listed(partial(_other_people, _MOTION), _MOTION),
    "discriminants on rows": _Listed(partial(_discriminants, (ROWS,)), (ROWS,)),
    "forest on rows": _Listed(partial(_forest, (ROWS,)), (ROWS,)),
    "other people on rows": _Listed(partial(_other_people, (ROWS,)), (ROWS,)),
    "networks on events": _Listed(_event_networks, ("place",), papers=True),
    "networks on rows": _Listed(_row_networks, (ROWS,), papers=True),
    "means on rows": _Listed(_row_means, (ROWS,), papers=True),
}


def attack_all(
    trial: RecognitionTrial, seed: int, only: Sequence[str] | None = None, *, papers: bool = True
) -> dict[str, Array]:
    """Standardised scores (P, P) of all that can be run, and `TOGETHER`: larger is likelier, unnamed people first.

    Parameters
    ----------
    papers
        With those of the papers, which take most of the time and find less.
    """
    chosen = {
        name: one for name, one in ATTACKERS.items() if (only is None or name in only) and (papers or not one.papers)
    }
    found = {name: standardised(one.run(trial, seed)) for name, one in chosen.items() if trial.has(one.needs)}
    ours = [scores for name, scores in found.items() if not ATTACKERS[name].papers]
    if len(ours) > 1:
        found[TOGETHER] = standardised(np.sum(ours, axis=0))
    return found
