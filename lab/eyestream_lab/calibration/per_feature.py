"""Calibration of the mechanisms that code every feature by itself: from a corpus, or from a declared range."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from eyestream.core.additive.ball import l1_factor, l2_factor
from eyestream.core.additive.signals import CHUNKS, DIFFERENCES, VALUES, Signals
from eyestream.core.calibration import Calibration, PerFeatureTables
from eyestream.core.spectrum import RealFourier, coordinate_count, most_coefficients
from eyestream.errors import CalibrationError
from eyestream_lab.calibration.corpus import WORDBOOK_MINIMA, Corpus, in_sequence
from eyestream_lab.calibration.persistence import lagged_moments, stable_part

Array = NDArray[np.float64]


def covering_ball(points: Array, coverage: float, order: int) -> tuple[Array, float]:
    """Mean of `points` (N, m) and the `coverage`-quantile of their distances to it in the L1 (1) or L2 (2) norm."""
    centre = points.mean(axis=0)
    distances = np.linalg.norm(points - centre, ord=order, axis=1)
    return centre, float(np.quantile(distances, coverage, method="higher"))


def enclosing_ball(points: Array, tolerance: float = 1e-6) -> tuple[Array, float]:
    """Smallest Euclidean ball that encloses `points` (N, m): centre (m,), radius.

    The dual is a concave quadratic over the simplex; away-step Frank-Wolfe (Wolfe 1970; Yildirim, SIAM J. Optim. 19(3),
    2008, for this problem) converges linearly. The radius returned is the largest distance to the centre, so the ball
    encloses whatever the accuracy; it exceeds the smallest one by at most the relative `tolerance`.
    """
    given, middle = points, points.mean(axis=0)
    points = points - middle  # distances come from differences of squares, which must not be large beside them
    squares = np.einsum("ij,ij->i", points, points)
    far = int(np.argmax(_distances(points, squares, points[0])))
    weights = np.zeros(len(points))
    weights[[far, int(np.argmax(_distances(points, squares, points[far])))]] = 0.5
    weights /= weights.sum()
    centre = weights @ points
    for _ in range(20_000):
        distances = _distances(points, squares, centre)
        dual = float(weights @ distances)  # squared radius from below
        outer = int(np.argmax(distances))
        inner = int(np.argmin(np.where(weights > 0, distances, np.inf)))
        if dual <= 0 or distances[outer] <= dual * (1 + tolerance) ** 2:
            break
        if distances[outer] - dual >= dual - distances[inner]:
            step = 0.5 * (distances[outer] - dual) / distances[outer]  # exact line search toward the farthest point
            vertex = outer
        else:
            most = weights[inner] / (1 - weights[inner]) if weights[inner] < 1 else np.inf
            gap = dual - distances[inner]
            step = -min(0.5 * gap / distances[inner], most) if distances[inner] > 0 else -most
            vertex = inner
        weights *= 1 - step
        weights[vertex] = max(weights[vertex] + step, 0.0)
        centre = weights @ points
    centre += middle
    return centre, float(np.linalg.norm(given - centre, axis=1).max())


def enclosing_l1_ball(points: Array, rounds: int = 400) -> tuple[Array, float]:
    """A small L1 ball that encloses `points` (N, m), by the subgradient method: centre (m,), radius.

    Encloses always; how near it is to the smallest one is seen by 2 radius / diameter, which cannot be below 1.
    """
    centre = (points.max(axis=0) + points.min(axis=0)) / 2
    best, radius = centre, np.inf
    for turn in range(rounds):
        distances = np.abs(points - centre).sum(axis=1)
        far = int(np.argmax(distances))
        if distances[far] < radius:
            best, radius = centre, float(distances[far])
        centre = centre + (points[far] - centre) * (0.5 / (turn + 2))
    return best, radius


def diameter(points: Array, order: int) -> float:
    """Largest distance between two of `points` (N, m) in the L1 (1) or L2 (2) norm."""
    if order == 2:
        points = points - points.mean(axis=0)
        squares = np.einsum("ij,ij->i", points, points)
        return float(np.sqrt(max(_distances(points, squares, p).max() for p in points)))
    return float(max(np.abs(points - p).sum(axis=1).max() for p in points))


def _distances(points: Array, squares: Array, centre: Array) -> Array:
    """Squared distances of `points` to `centre`, not negative."""
    return np.maximum(squares - 2 * (points @ centre) + centre @ centre, 0.0)


def calibrate_per_feature(
    corpus: Corpus,
    mechanism: str,
    signals: Signals,
    *,
    coverage: float = 0.95,
    k: int | None = None,
    declared: Sequence[str] = WORDBOOK_MINIMA,
    description: str = "recordings given by the user",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Calibration:
    """Calibration of a mechanism that codes every feature by itself.

    Parameters
    ----------
    mechanism, signals
        Its name, and what its balls hold.
    coverage
        Share of the corpus' signals inside the ball, around their mean; 1 for the smallest enclosing ball.
    k
        Number of coefficients, when the mechanism shall not choose it by itself.
    declared
        Names of features that are declared constants: released as `fill`, their input never read.
    progress
        Called with (features done, features).

    Raises
    ------
    CalibrationError
        when `coverage` is not in (0, 1].
    """
    if not 0 < coverage <= 1:
        raise CalibrationError(f"coverage must lie above 0 and at most at 1, not {coverage}")
    constant = np.isin(corpus.names, list(declared))
    columns = []
    for feature in range(len(corpus.names)):
        columns.append(_feature_tables(corpus, feature, signals, coverage))
        progress(feature + 1, len(corpus.names))
    tables = PerFeatureTables(**{name: np.array([c[name] for c in columns]) for name in columns[0]})
    return corpus.calibration(
        mechanism,
        tables,
        description=description,
        coverage=coverage,
        k=k,
        declared=constant,
        fill=np.where(constant, [_median(corpus, feature) for feature in range(len(constant))], corpus.fill),
    )


def _having(corpus: Corpus, feature: int) -> NDArray[np.bool_]:
    """(N,) the chunks that have the feature; all where none has, and it is a constant."""
    there = corpus.present[:, feature]
    return there if there.any() else np.ones(len(there), dtype=np.bool_)


def _median(corpus: Corpus, feature: int) -> float:
    return float(np.median(corpus.chunks[_having(corpus, feature), feature]))


def _feature_tables(corpus: Corpus, feature: int, space: Signals, coverage: float) -> dict[str, Array | float]:
    """Columns of `PerFeatureTables` for one feature."""
    there = _having(corpus, feature)
    chunks, person, index = corpus.chunks[there, feature], corpus.person[there], corpus.index[there]  # (N, n)
    signals, order = space.there(chunks), space.order
    if coverage < 1:
        centre, radius = covering_ball(signals, coverage, order)
    else:
        centre, radius = enclosing_l1_ball(signals) if order == 1 else enclosing_ball(signals)
    mean = chunks.mean(axis=0)
    figures: dict[str, Array | float] = _persistence(chunks, person, index) | {
        "centre": centre,
        "radius": radius,
        "mean": mean,
        "spread": float(((chunks - mean) ** 2).sum(axis=1).mean()),
        "diameter": diameter(signals, order),
        "between_people": max((diameter(signals[index == i], order) for i in np.unique(index)), default=0.0),
    }
    factor = l1_factor if order == 1 else l2_factor
    tiny = np.finfo(np.float64).tiny  # radius 0 makes the feature a constant; its figures are not used
    residual = signals - centre
    inside = centre + factor(residual, np.full(len(signals), max(radius, tiny))) * residual
    return figures | _error_tables(chunks, inside, mean, space)


def _persistence(chunks: Array, person: NDArray[np.intp], index: NDArray[np.intp]) -> dict[str, Array | float]:
    """Variances of chunks (N, n) for smoothing: stable within a person, transient, and inside a chunk.

    Of values clipped to the corpus' 0.5 % and 99.5 % quantiles: a few events decide the variance of some features.
    """
    clipped = np.clip(chunks, *np.quantile(chunks, [0.005, 0.995]))
    level = clipped.mean(axis=1) - clipped.mean()
    variance = float((level**2).mean())
    own = [in_sequence(level[person == one, None], index[person == one]) for one in np.unique(person)]
    stable = float(np.clip(stable_part(lagged_moments(own))[0, 0], 0.0, variance))
    return {
        "stable_variance": stable,
        "transient_variance": variance - stable,
        "detail": float(clipped.var(axis=1).mean()),
    }


def _error_tables(chunks: Array, inside: Array, mean: Array, space: Signals) -> dict[str, Array]:
    """T, A and B of the error model for every k, from chunks (N, n) and their projected signals."""
    count, n = chunks.shape
    if not space.truncates:
        return {
            "truncation": np.array([((chunks - inside) ** 2).sum(axis=1).mean()]),
            "overlap": np.array([((chunks - mean) * (inside - mean)).sum(axis=1).mean()]),
            "energy": np.array([((inside - mean) ** 2).sum(axis=1).mean()]),
        }
    most = most_coefficients(n)
    truncation, overlap, energy = np.empty(most), np.empty(most), np.empty(most)
    fourier = RealFourier(count + 1, n, most)
    coordinates = fourier.coordinates(np.vstack([inside, space.there(mean)])).copy()
    for k in range(1, most + 1):
        first = np.zeros_like(coordinates)
        first[:, : coordinate_count(n, k)] = coordinates[:, : coordinate_count(n, k)]
        back = space.back(fourier.signals(first))
        kept, kept_mean = back[:-1], back[-1]
        truncation[k - 1] = ((chunks - kept) ** 2).sum(axis=1).mean()
        overlap[k - 1] = ((chunks - mean) * (kept - kept_mean)).sum(axis=1).mean()
        energy[k - 1] = ((kept - kept_mean) ** 2).sum(axis=1).mean()
    return {"truncation": truncation, "overlap": overlap, "energy": energy}


def declared_per_feature(signals: Signals, calibration: Calibration, n: int) -> Calibration:
    """The same features with balls that hold every chunk of `n` rows inside the range, whatever corpus there was.

    The centre is the signal of the middle of the range; `Signals` has the radius, and the bound on what truncation can
    cost inside the range.
    """
    features = len(calibration.names)
    width = calibration.hi - calibration.lo
    middle = np.repeat(((calibration.hi + calibration.lo) / 2)[:, None], n, axis=1)
    radius = np.where(calibration.declared, 0.0, signals.reach(n) * width / 2)
    count = most_coefficients(n) if signals.truncates else 1
    truncation = np.repeat(signals.lost(n, width, radius)[:, None], count, axis=1)
    truncation[:, -1] = 0.0
    nothing = np.zeros(features)
    tables = PerFeatureTables(
        centre=signals.there(middle).copy(),
        radius=radius,
        mean=middle,
        spread=nothing,
        truncation=truncation,
        overlap=np.zeros((features, count)),
        energy=np.zeros((features, count)),
        stable_variance=nothing,
        transient_variance=nothing,
        detail=nothing,
        diameter=2 * radius,
        between_people=nothing,
    )
    provenance = replace(calibration.provenance, coverage=None, people=0, chunks=0)
    return replace(calibration, n=n, tables=tables, provenance=provenance)


calibrate_lpa = partial(calibrate_per_feature, mechanism="lpa", signals=VALUES)
calibrate_cfpa = partial(calibrate_per_feature, mechanism="cfpa", signals=CHUNKS)
calibrate_dcfpa = partial(calibrate_per_feature, mechanism="dcfpa", signals=DIFFERENCES)
declare_lpa = partial(declared_per_feature, VALUES)
declare_cfpa = partial(declared_per_feature, CHUNKS)
declare_dcfpa = partial(declared_per_feature, DIFFERENCES)
