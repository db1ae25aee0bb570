"""Fidelity of a release to behaviour, by measures that do not flatter.

- **Clipped**: rows are clipped at the corpus' 0.5 % and 99.5 % quantiles, frozen before anything is released. A few
  events outweigh all other rows of some features; clipping harder would flatter.
- **Distinct**: features that follow from each other (|r| of at least 0.95 in the corpus) count as one.
- **Mean and median.** A feature that hardly moves in the people at hand can be far below 0 and sink the mean of all
  others. The median over features says what comes of most of them; both belong together.
- **Two baselines**. Against the *common* mean of the released people: what an application has without a release. And
  each person's *own*, of what is raw and of what is released: what remains of behaviour when who it is counts nothing.
- **Missing values raise nothing.** A value that was there and was not released counts as if the common mean, or the
  person's own, had been released; `coverage` says how many were released.
- **Correlations** are within people, of the means of chunks: both sides less the person's own mean, then pooled (Bland
  and Altman, BMJ 310, 1995). The partial one holds the saccade rate fixed: a mechanism that releases nothing but how
  active the eye is has none.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError
from eyestream_lab.calibration.redundancy import groups_of

Array = NDArray[np.float64]

CLIPPED = 0.005
HELD_FIXED = "rate_saccades"


@dataclass(frozen=True, eq=False)
class Yardstick:
    """Scales that are fixed before anything is measured, from rows of a public corpus.

    Attributes
    ----------
    names : of the F features.
    lo, hi : (F,) what rows are clipped to.
    group : (F,) number of each feature's group, -1 for features that are not released.
    """

    names: tuple[str, ...]
    lo: Array
    hi: Array
    group: NDArray[np.intp]

    @classmethod
    def of(cls, rows: Array, names: tuple[str, ...], active: NDArray[np.intp]) -> "Yardstick":
        """From rows (m, F), NaN is missing; `active` features are released."""
        with np.errstate(all="ignore"):
            lo, hi = np.nanquantile(rows, (CLIPPED, 1 - CLIPPED), axis=0)
        group = np.full(len(names), -1, dtype=np.intp)
        group[active] = groups_of(np.clip(rows[:, active], lo[active], hi[active]))
        return cls(names, lo, hi, group)

    def distinct(self, figures: Array) -> float:
        """Mean over the groups of the mean over each group's features of `figures` (F,); NaN: no figure."""
        each = self._each(figures)
        return float(each.mean()) if len(each) else float("nan")

    def middle(self, figures: Array) -> float:
        """The median in the place of the mean over the groups."""
        each = self._each(figures)
        return float(np.median(each)) if len(each) else float("nan")

    def _each(self, figures: Array) -> Array:
        """(G,) mean of `figures` (F,) of every group that has one."""
        known = (self.group >= 0) & np.isfinite(figures)
        groups, place = np.unique(self.group[known], return_inverse=True)
        return np.asarray(np.bincount(place, figures[known], len(groups)) / np.bincount(place, minlength=len(groups)))


@dataclass(frozen=True, eq=False)
class Fidelity:
    """Figures of each of F features; NaN where a feature is not released or does not vary.

    Attributes
    ----------
    explained : share of the spread around the common mean.
    own : the same around each person's own mean, offsets of both sides removed.
    correlation : within people, of the means of chunks.
    partial : the same with the saccade rate held fixed.
    coverage : share of the values that were there and were released.
    distinct, distinct_own : mean of `explained` and `own`, features that follow from each other counted once.
    middle, middle_own : the median of the same.
    """

    explained: Array
    own: Array
    correlation: Array
    partial: Array
    coverage: float
    distinct: float
    distinct_own: float
    middle: float
    middle_own: float


def fidelity(yardstick: Yardstick, raw: Sequence[Array], released: Sequence[Array], n: int) -> Fidelity:
    """Compare rows (m, F) of each person with what was released of them; NaN is missing.

    Parameters
    ----------
    n
        Rows of a chunk; a rest that fills none is left out of the correlations.

    Raises
    ------
    ConfigError
        The two sides have other shapes.
    """
    wanted, given = _compared(yardstick, raw, released)
    explained = _explained(wanted, given, _common(wanted))
    own = _explained([_centred(x) for x in wanted], [_centred(y) for y in given], 0.0)
    means = [(_chunk_means(x, n), _chunk_means(y, n)) for x, y in zip(wanted, given, strict=True)]
    correlation, partial = _correlations(means, yardstick.names)
    active = yardstick.group >= 0
    there = sum(int(np.isfinite(x[:, active]).sum()) for x in wanted)
    told = sum(int(np.isfinite(y[:, active]).sum()) for y in given)
    hide = np.where(active, 0.0, np.nan)
    return Fidelity(
        explained=explained + hide,
        own=own + hide,
        correlation=correlation + hide,
        partial=partial + hide,
        coverage=told / max(there, 1),
        distinct=yardstick.distinct(explained),
        distinct_own=yardstick.distinct(own),
        middle=yardstick.middle(explained),
        middle_own=yardstick.middle(own),
    )


@dataclass(frozen=True, eq=False)
class Spread:
    """Squared errors of each of P people and F features, and what they are compared with; sums over what is there.

    Sums over people, and their ratio, are what `fidelity` says; so people can be drawn anew for an interval.

    Attributes
    ----------
    error, base : (P, F) of the release, and of the common mean of these people.
    own_error, own_base : the same with each person's own mean removed from both sides.
    """

    error: Array
    base: Array
    own_error: Array
    own_base: Array


def spread_over_people(yardstick: Yardstick, raw: Sequence[Array], released: Sequence[Array]) -> Spread:
    """Parts of `fidelity`, for each person; rows (m, F) of each, NaN is missing."""
    wanted, given = _compared(yardstick, raw, released)
    centred = [_centred(x) for x in wanted], [_centred(y) for y in given]
    return Spread(*_squares(wanted, given, _common(wanted)), *_squares(*centred, 0.0))


def _compared(yardstick: Yardstick, raw: Sequence[Array], released: Sequence[Array]) -> tuple[list[Array], list[Array]]:
    """Raw rows, clipped, and what was released of the values that are there."""
    if [r.shape for r in raw] != [r.shape for r in released] or not raw:
        raise ConfigError("expected as many released rows as raw ones, of at least one person")
    wanted = [np.where(np.isfinite(r), np.clip(r, yardstick.lo, yardstick.hi), np.nan) for r in raw]
    given = [np.where(np.isfinite(x) & np.isfinite(y), y, np.nan) for x, y in zip(wanted, released, strict=True)]
    return wanted, given


def _common(wanted: Sequence[Array]) -> Array:
    every = np.concatenate(wanted)
    there = np.isfinite(every)
    mean: Array = np.where(there, every, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
    return mean


def _centred(rows: Array) -> Array:
    return rows - _common([rows])


def _explained(wanted: Sequence[Array], given: Sequence[Array], mean: Array | float) -> Array:
    """(F,) 1 - squared error / squared distance to `mean`; what is not given counts as `mean`."""
    error, base = (each.sum(axis=0) for each in _squares(wanted, given, mean))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(base > 0, 1 - error / base, np.nan)


def _squares(wanted: Sequence[Array], given: Sequence[Array], mean: Array | float) -> tuple[Array, Array]:
    """(P, F) squared errors and squared distances to `mean`; what is not given counts as `mean`."""
    pairs = [(x, np.where(np.isfinite(y), y, mean)) for x, y in zip(wanted, given, strict=True)]
    error = np.array([np.nansum((x - y) ** 2, axis=0) for x, y in pairs])
    base = np.array([np.nansum((x - mean) ** 2, axis=0) for x, _ in pairs])
    return error, base


def _chunk_means(rows: Array, n: int) -> Array:
    """(C, F); NaN where a chunk has no value."""
    chunks = rows[: len(rows) // n * n].reshape(-1, n, rows.shape[1])
    there = np.isfinite(chunks)
    count = there.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(count > 0, np.where(there, chunks, 0.0).sum(axis=1) / count, np.nan)


def _correlations(means: Sequence[tuple[Array, Array]], names: tuple[str, ...]) -> tuple[Array, Array]:
    """(F,) within people, and the same with the raw saccade rate held fixed."""
    features = means[0][0].shape[1]
    fixed = names.index(HELD_FIXED) if HELD_FIXED in names else None
    plain, partial = np.full((2, features), np.nan)
    for f in range(features):
        columns: list[Array] = []
        for x, y in means:
            held = x[:, fixed] if fixed is not None else np.zeros(len(x))
            three = np.stack([x[:, f], y[:, f], held], axis=1)
            three = three[np.isfinite(three).all(axis=1)]
            if len(three) > 1:
                columns.append(three - three.mean(axis=0))
        if columns:
            plain[f], partial[f] = _correlation(np.concatenate(columns))
        if f == fixed:
            partial[f] = np.nan
    return plain, partial


def _correlation(three: Array) -> tuple[float, float]:
    """Correlation of the first two columns, and with the third held fixed; 0 where a side does not move at all."""
    x, y, z = three.T
    residuals = []
    for side in (x, y):
        slope = side @ z / (z @ z) if z @ z > 0 else 0.0
        residuals.append(side - slope * z)
    return _r(x, y), _r(*residuals)


def _r(x: Array, y: Array) -> float:
    below = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / below if below > 1e-12 * max(float(x @ x), 1e-300) else 0.0
