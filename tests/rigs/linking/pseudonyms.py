"""Attackers who compare pseudonyms of many sessions: do these two belong to one person?

All know the public model, how large the parts of simulated people are, the tasks' means, and which task each session
was: who reads released tasks knows nearly that.

contrasts
    Log likelihood ratio of one person against two, of all released levels at once, under the Gaussian law of the
    parts. It undoes the history, as residuals are an invertible map of contrasts, and uses what a person does
    otherwise in a task. Of raw levels it uses the constant level too.
matcher
    Inner product of the mean released levels. It knows nothing of the parts, nor of the history.
spread
    Inner product of how far levels and rows go, feature by feature, by logarithms less their mean over pseudonyms.
habits
    Log likelihood ratio of how often each task occurs, under frequencies of a Dirichlet law with 1/2 a task.
all
    The sum of these, each brought to a standard deviation of 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lgamma

import numpy as np
from numpy.typing import NDArray

from tests.rigs.linking.pairs import area
from tests.rigs.linking.people import Parts

__all__ = ["SeenPseudonym", "link_pseudonyms", "pairs_of", "raw_levels", "residual_map"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SeenPseudonym:
    """What was released under one pseudonym.

    Attributes
    ----------
    person : whose it is; no attacker looks.
    tasks : (T,) of all sessions, withheld ones included.
    levels : (S, D) released level of each session of which something was released, less what its tasks make of it.
    takes : (S, T) how these come from the levels of all sessions; the identity where levels are raw.
    squares : (D,) mean square of released chunks about their session's level.
    noise : variance that the release adds to a level, and the session's rows.
    """

    person: int
    tasks: NDArray[np.intp]
    levels: Array
    takes: Array
    squares: Array
    noise: float


def residual_map(sessions: int, drift: float = 0.0) -> Array:
    """(T - 1, T) from levels to residuals of a pseudonym, as `eyestream_lab.words.history` makes them."""
    every = np.eye(sessions)
    expected, error, rows = every[0], 1.0 + drift, []
    for level in every[1:]:
        rows.append(level - expected)
        gain = error / (error + 1)
        expected, error = expected + gain * rows[-1], gain + drift
    return np.array(rows)


def raw_levels(residuals: Array, session: int, raw: Array, drift: float = 0.0) -> Array:
    """(T, D) levels of all sessions of a pseudonym, from its residuals (T - 1, D) and the raw level (D,) of one
    session.

    Residuals say every contrast, and the one level says the constant.
    """
    sessions = len(residuals) + 1
    apart = np.linalg.pinv(residual_map(sessions, drift)) @ residuals
    return np.asarray(apart + raw - apart[session])


def pairs_of(seen: Sequence[SeenPseudonym], others: int = 5) -> list[tuple[int, int]]:
    """Places of the two pseudonyms of each person, and of the first ones with the second ones of `others` others."""
    of: dict[int, list[int]] = {}
    for place, one in enumerate(seen):
        of.setdefault(one.person, []).append(place)
    both = [places for places in of.values() if len(places) == 2]
    return [(a[0], both[(i + k) % len(both)][1]) for k in range(others + 1) for i, a in enumerate(both)]


def link_pseudonyms(seen: Sequence[SeenPseudonym], parts: Parts) -> dict[str, float]:
    """Area of every attacker over `pairs_of` the pseudonyms."""
    pairs = pairs_of(seen)
    same: NDArray[np.bool_] = np.array([seen[a].person == seen[b].person for a, b in pairs])
    logs = np.array([_log_spread(one, parts) for one in seen])
    logs = (logs - logs.mean(axis=0)) / logs.std(axis=0)
    scores = {
        "contrasts": np.array([_contrasts(seen[a], seen[b], parts) for a, b in pairs]),
        "matcher": np.array([seen[a].levels.mean(axis=0) @ seen[b].levels.mean(axis=0) for a, b in pairs]),
        "spread": np.array([logs[a] @ logs[b] for a, b in pairs]),
        "habits": np.array([_habits(seen[a].tasks, seen[b].tasks) for a, b in pairs]),
    }
    scores["all"] = np.sum([one / max(one.std(), 1e-12) for one in scores.values()], axis=0)
    return {name: area(own, same) for name, own in scores.items()}


def _shared(one: SeenPseudonym, other: SeenPseudonym, parts: Parts) -> Array:
    """(S, S') covariance of the released levels of one person, without what each session has of its own."""
    between = parts.person + parts.by_task * (one.tasks[:, None] == other.tasks)
    return np.asarray(one.takes @ between @ other.takes.T)


def _covariance(one: SeenPseudonym, parts: Parts) -> Array:
    return _shared(one, one, parts) + one.takes @ one.takes.T + one.noise * np.eye(len(one.takes))


def _contrasts(one: SeenPseudonym, other: SeenPseudonym, parts: Parts) -> float:
    """The features are alike and independent: the ratio is a sum over them."""
    size, levels = len(one.levels), np.concatenate([one.levels, other.levels])
    together = np.zeros((len(levels), len(levels)))
    together[:size, :size], together[size:, size:] = _covariance(one, parts), _covariance(other, parts)
    apart = together.copy()
    together[:size, size:] = _shared(one, other, parts)
    together[size:, :size] = together[:size, size:].T
    return _log_density(levels, together) - _log_density(levels, apart)


def _log_density(levels: Array, covariance: Array) -> float:
    """Of columns (S, D) that are normal with mean 0, up to what no covariance changes."""
    root = np.linalg.cholesky(covariance)
    white = np.linalg.solve(root, levels)
    return float(-0.5 * (white**2).sum() - levels.shape[1] * np.log(np.diagonal(root)).sum())


def _log_spread(one: SeenPseudonym, parts: Parts) -> Array:
    """(2 D,) of levels, whitened by their law, and of chunks in a session."""
    white = np.linalg.solve(np.linalg.cholesky(_covariance(one, parts)), one.levels)
    return np.asarray(np.log(np.concatenate([(white**2).mean(axis=0), one.squares]) + 1e-9))


def _habits(one: NDArray[np.intp], other: NDArray[np.intp]) -> float:
    count = int(max(one.max(), other.max())) + 1
    a, b = np.bincount(one, minlength=count), np.bincount(other, minlength=count)
    return _evidence(a + b) - _evidence(a) - _evidence(b)


def _evidence(counts: NDArray[np.intp]) -> float:
    each = sum(lgamma(0.5 + count) - lgamma(0.5) for count in counts.tolist())
    return each + lgamma(0.5 * len(counts)) - lgamma(0.5 * len(counts) + float(counts.sum()))
