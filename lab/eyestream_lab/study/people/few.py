"""Attackers on releases of few numbers: a value a chunk of each feature, the word it came from, what the word says.

Each scores every unknown session against every known person; a person has one known session or several, which lie in
*slots*: the first known session of everybody, the second one. All sessions of a gallery are as long: equal lengths of
the halves of a recording would name it by themselves. Features may differ from slot to slot; then what is compared is
how people are in either, and each slot is brought to mean 0 and standard deviation 1 by itself.

`SUMMARIES` are vectors of a session, compared by distance in the six largest principal axes of all. `LEARNED` are
classifiers of single chunks, taught by the known ones. `LIKELIHOODS` compare how well one law of a person explains both
sessions with how well two do: laws of words (Dirichlet and multinomial), of steps from word to word, and a chain of
changes x' = a x + s N(0, 1) behind the randomised response, over a grid of (a, s). Nothing here sees raw rows.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from eyestream_lab.study.ways import Few

Array = NDArray[np.float64]
Words = NDArray[np.int64]

_AXES = 6
_CELLS = 8
_LEAST = 1e-3
_FIRST = 6


Known = Sequence[Sequence[Few]]
"""By slot, by person."""


def attack_all(known: Known, unknown: Sequence[Few], seed: int) -> dict[str, Array]:
    """Scores (P, P) of all attackers that can be run, larger is likelier, unknown sessions first; their mean rank."""
    found = {
        name: run(known, unknown, seed)
        for name, run in ATTACKERS.items()
        if name != "chains" or unknown[0].likely is not None
    }
    levels = [own.argsort(axis=1).argsort(axis=1) for own in found.values()]
    return found | {"all together": np.mean(levels, axis=0)}


def _log(values: NDArray[Any]) -> Array:
    logs: Array = np.log(np.abs(values) + _LEAST)
    return logs


def _steps(values: Array) -> Array:
    return np.diff(values, axis=0)


def _order(own: Few) -> Array:
    """Correlation with what came one, two and three chunks later."""
    centred = own.values - own.values.mean(axis=0)
    square = (centred**2).sum(axis=0) + _LEAST
    return np.concatenate([(centred[lag:] * centred[:-lag]).sum(axis=0) / square for lag in (1, 2, 3)])


def _shape(own: Few) -> Array:
    level = (own.values - own.values.mean(axis=0)) / (own.values.std(axis=0) + _LEAST)
    return np.concatenate([(level**3).mean(axis=0), (level**4).mean(axis=0)])


def _trend(own: Few) -> Array:
    time = np.linspace(-1, 1, len(own.values))
    return np.concatenate([time @ own.values, (time**2 - (time**2).mean()) @ own.values])


def _together(own: Few) -> Array:
    """Logarithm of the covariance of values and of their steps."""
    both = np.concatenate([own.values[1:], _steps(own.values)], axis=1)[:, :12]
    values, vectors = np.linalg.eigh(np.cov(both.T) + _LEAST * np.eye(both.shape[1]))
    return np.asarray(((vectors * np.log(values)) @ vectors.T)[np.triu_indices(both.shape[1])])


def _counted(places: Words, cells: int) -> Array:
    """Roots of counts: their distance is Hellinger's."""
    return np.sqrt(np.bincount(places.reshape(-1), minlength=cells).astype(np.float64))


def _counts(own: Few) -> Array:
    return np.concatenate([_counted(column, _CELLS) for column in own.words.T])


def _pairs(own: Few) -> Array:
    return np.concatenate(
        [
            _counted(one * _CELLS + other, _CELLS**2)
            for one, other in zip(own.words.T, np.roll(own.words, 1, axis=1).T, strict=True)
        ]
    )


def _transitions(own: Few) -> Array:
    return np.concatenate([_counted(column[:-1] * _CELLS + column[1:], _CELLS**2) for column in own.words.T])


def _runs(own: Few) -> Array:
    same = own.words[1:] == own.words[:-1]
    near = np.abs(np.diff(own.words, axis=0)) <= 1
    ends = (own.words == 0) | (own.words == own.words.max(axis=0))
    return np.concatenate([same.mean(axis=0), near.mean(axis=0), ends.mean(axis=0)])


def _moments(own: Few) -> Array:
    return np.concatenate(
        [own.values.mean(axis=0), _log(own.values.std(axis=0)), _log(np.abs(_steps(own.values)).mean(axis=0))]
    )


SUMMARIES: dict[str, Callable[[Few], Array]] = {
    "mean": lambda own: own.values.mean(axis=0),
    "variance": lambda own: _log(own.values.std(axis=0)),
    "steps": lambda own: _log(np.abs(_steps(own.values)).mean(axis=0)),
    "mean, variance, steps": _moments,
    "variance of steps": lambda own: _log(_steps(own.values).std(axis=0)),
    "second steps": lambda own: _log(np.abs(np.diff(own.values, 2, axis=0)).mean(axis=0)),
    "autocorrelation": _order,
    "quantiles": lambda own: np.quantile(own.values, (0.1, 0.25, 0.5, 0.75, 0.9), axis=0).reshape(-1),
    "extremes": lambda own: np.concatenate(
        [own.values.min(axis=0), own.values.max(axis=0), _log(np.ptp(own.values, axis=0))]
    ),
    "skew and tails": _shape,
    "trend": _trend,
    "course": lambda own: own.values[:_FIRST].reshape(-1),
    "spectrum": lambda own: _log(np.fft.rfft(own.values - own.values.mean(axis=0), axis=0)[1:]).reshape(-1),
    "covariance": _together,
    "word counts": _counts,
    "counts of pairs": _pairs,
    "transitions": _transitions,
    "runs": _runs,
    "spectrum of words": lambda own: _log(np.fft.rfft(own.words - own.words.mean(axis=0), axis=0)[1:]).reshape(-1),
}


def _compared(summary: Callable[[Few], Array], known: Known, unknown: Sequence[Few], seed: int) -> Array:
    sides = [np.array([summary(one) for one in slot]) for slot in (*known, unknown)]
    width = max(side.shape[1] for side in sides)
    sides = [np.pad(_standard(side), ((0, 0), (0, width - side.shape[1]))) for side in sides]
    size, axes = np.linalg.svd(np.concatenate(sides), full_matrices=False)[1:]
    kept = slice(0, min(_AXES, int(np.count_nonzero(size > _LEAST))))
    points = [side @ axes[kept].T / np.sqrt(size[kept]) for side in sides]
    return -np.asarray(((points[-1][:, None] - np.mean(points[:-1], axis=0)) ** 2).sum(axis=2))


def _standard(rows: Array) -> Array:
    sd = rows.std(axis=0)
    return np.asarray((rows - rows.mean(axis=0)) / np.where(sd > _LEAST, sd, np.inf))


def _described(slot: Sequence[Few]) -> list[Array]:
    """(T - 1, 4 d) of each person's chunks: value, step to it, size of the step, word."""
    own = [
        np.concatenate([one.values[1:], _steps(one.values), np.abs(_steps(one.values)), one.words[1:]], axis=1)
        for one in slot
    ]
    return _apart(_standard(np.concatenate(own)), own)


def _apart(every: Array, parts: Sequence[Array]) -> list[Array]:
    """The rows of all `parts` together, each part's by itself again."""
    return np.split(every, np.cumsum([len(part) for part in parts])[:-1])


LEARNED: dict[str, Callable[[int], Any]] = {
    "discriminants": lambda seed: LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
    "naive Bayes": lambda seed: GaussianNB(var_smoothing=0.1),
    "logistic": lambda seed: LogisticRegression(C=0.1, max_iter=200),
    "nearest": lambda seed: KNeighborsClassifier(5),
    "forest": lambda seed: RandomForestClassifier(100, min_samples_leaf=2, random_state=seed),
}


def _learned(make: Callable[[int], Any], known: Known, unknown: Sequence[Few], seed: int) -> Array:
    parts = [_described(slot) for slot in known]
    who = np.concatenate([np.full(len(part), person) for slot in parts for person, part in enumerate(slot)])
    learner = make(seed)
    learner.fit(np.concatenate([part for slot in parts for part in slot]), who)
    asked = _described(unknown)
    told = np.log(learner.predict_proba(np.concatenate(asked)) + 0.01)
    return np.array([part.mean(axis=0) for part in _apart(told, asked)])


def _evidence(counts: Array) -> Array:
    """(...,) logarithm of the chance of a sequence with counts (..., m), under Dirichlet's law of all laws."""
    spread = 0.5 * np.ones(counts.shape[-1])
    total = gammaln(spread.sum()) - gammaln(spread.sum() + counts.sum(axis=-1))
    return np.asarray(total + (gammaln(spread + counts) - gammaln(spread)).sum(axis=-1))


def _same_law(summary: Callable[[Few], Array], known: Known, unknown: Sequence[Few], seed: int) -> Array:
    """One law of words for both sessions against one each; roots of counts are counts again."""
    mine = np.sum([[summary(one) ** 2 for one in slot] for slot in known], axis=0)
    theirs = np.array([summary(one) ** 2 for one in unknown])
    rows = [(part.reshape(len(part), -1, _CELLS)) for part in (mine, theirs)]
    together = _evidence(rows[1][:, None] + rows[0][None])
    return np.asarray((together - _evidence(rows[0])[None] - _evidence(rows[1])[:, None]).sum(axis=2))


@cache
def _laws(points: int) -> tuple[Array, Array]:
    """(K, G, G) steps of a grid of chains, and (G,) where they begin."""
    grid = np.linspace(-4, 4, points)
    pairs = [(a, s) for a in (0.4, 0.7, 0.95) for s in (0.2, 0.35, 0.6, 1.0, 1.6)]
    laws = np.array([np.exp(-0.5 * ((grid - a * grid[:, None]) / s) ** 2) + 1e-6 for a, s in pairs])
    start = np.exp(-0.5 * (grid / 1.2) ** 2)
    return laws / laws.sum(axis=2, keepdims=True), start / start.sum()


def _chained(slot: Sequence[Few]) -> Array:
    """(P, d, K) logarithm of the chance of each session's words under each chain."""
    likely = np.array([one.likely for one in slot]).transpose(1, 0, 2, 3)
    laws, start = _laws(likely.shape[-1])
    belief, told = (
        np.broadcast_to(start, (*likely.shape[1:3], len(laws), len(start))),
        np.zeros((*likely.shape[1:3], len(laws))),
    )
    for turn, seen in enumerate(likely):
        moved = np.einsum("pdkg,kgh->pdkh", belief, laws, optimize=True) if turn else belief
        weighed = moved * seen[:, :, None]
        mass = weighed.sum(axis=3)
        belief, told = weighed / mass[..., None], told + np.log(mass)
    return told


def _same_chain(known: Known, unknown: Sequence[Few], seed: int) -> Array:
    mine, theirs = sum(_chained(slot) for slot in known), _chained(unknown)
    both = logsumexp(theirs[:, None] + np.asarray(mine)[None], axis=3)
    return np.asarray((both - logsumexp(mine, axis=2)[None] - logsumexp(theirs, axis=2)[:, None]).sum(axis=2))


Attacker = Callable[[Known, Sequence[Few], int], Array]

ATTACKERS: dict[str, Attacker] = {
    **{name: partial(_compared, summary) for name, summary in SUMMARIES.items()},
    **{name: partial(_learned, make) for name, make in LEARNED.items()},
    "law of words": partial(_same_law, _counts),
    "law of transitions": partial(_same_law, _transitions),
    "chains": _same_chain,
}
"""By name; `attack_all` adds one that averages the ranks that all give."""
