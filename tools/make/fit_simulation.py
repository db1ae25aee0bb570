"""Make `eyestream/data/simulation.npz` from the gaze of the 30-person corpus (see docs/corpus.md).

    python -m tools.make.fit_simulation ../shared/data/hoppe2018/gaze

The result is a function of the recordings and the front end: the same files give the same bytes. It holds statistics of
all people together; every node of a quantile function is the mean of at least 16 rows.
"""

import sys
from dataclasses import asdict
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.simulation.people import FOLLOWERS, NAMES, TRAITS, WINDOW_S, windowed
from tests.rigs.likeness import measure
from tools.make.everyday import corpus

Floats = NDArray[np.float64]

CELL = 0.04  # width of a cell of the quantile functions, in normal scores
CELL_ROWS = 16
FAR = range(200, 900, 20)  # rows: lags where two rows of a person share nothing but the person
NEAR = (*range(16), *range(16, 128, 4), *range(128, 400, 16))  # rows: lags where the autocorrelation is fitted
FLOOR = 1e-3  # smallest variance of a component
ORDER = 80  # of the Hermite series
_DRAWN = (*TRAITS, *FOLLOWERS)
OUT = Path(__file__).resolve().parents[2] / "eyestream" / "data" / "simulation.npz"


def traits_of(features: Floats) -> Floats:
    """(m, T + f) traits of one recording, followers last; nan where the eye, or what they are made from, is missing."""
    column = {name: features[:, i] for i, name in enumerate(NAMES)}
    present = np.ones(len(features), bool)
    fixations, saccades, blinks = (
        column[f] * WINDOW_S > 0.5 for f in ("rate_fixations", "rate_saccades", "blink_rate")
    )
    needs = dict.fromkeys(("ratio_saccades_fixations", *NAMES[14:25]), fixations)
    needs |= dict.fromkeys(("rightward", *NAMES[7:14]), saccades) | dict.fromkeys(NAMES[25:27], blinks)
    count = np.maximum(np.rint(column["rate_saccades"] * WINDOW_S), 1)
    column["rightward"] = (column["ratio_positive_saccades"] - column["ratio_negative_saccades"]) * np.sqrt(count)
    for w in (1, 2, 3, 4):
        words = np.rint(column[f"wb{w}_mean"] * 24**w)
        column[f"wb{w}_repeats"] = 1 - column[f"wb{w}_nonzero"] / np.maximum(words, 1)
        column[f"wb{w}_dispersion"] = column[f"wb{w}_var"] / np.maximum(column[f"wb{w}_mean"], 1e-9)
        needs |= dict.fromkeys([name for name in _DRAWN if name.startswith(f"wb{w}_")], words > 0)
    return np.stack([np.where(needs.get(name, present), column[name], np.nan) for name in _DRAWN], axis=1)


def normal_scores(values: Floats) -> tuple[Floats, Floats]:
    """Standard normal scores (m,) by rank, ties at their middle, nan stays nan; and the border above each tie."""
    scores = np.full(len(values), np.nan)
    present = np.isfinite(values)
    _, place, count = np.unique(values[present], return_inverse=True, return_counts=True)
    above = np.cumsum(count)
    quantile = np.vectorize(NormalDist().inv_cdf)
    scores[present] = quantile((above - count / 2) / count.sum())[place]
    return scores, quantile(above[:-1] / count.sum())


def quantile_functions(traits: Floats) -> tuple[Floats, Floats]:
    """Nodes (q,) in normal scores and values (T, q); all traits are put on the nodes of the shortest."""
    present = [np.sort(column[np.isfinite(column)]) for column in traits.T]
    scores = nodes(min(map(len, present)))[0]
    tables = []
    for column in present:
        at, cells = nodes(len(column))
        tables.append(np.interp(scores, at, [column[cell].mean() for cell in cells]))
    return scores, np.array(tables)


def nodes(rows: int) -> tuple[Floats, list[slice]]:
    """Scores of the nodes and the ranks that each node averages, of `rows` sorted values."""
    at = np.array([NormalDist().inv_cdf((i + 0.5) / rows) for i in range(rows)])
    cells, start = [], 0
    while start < rows:
        stop = max(int(np.searchsorted(at, at[start] + CELL)), start + CELL_ROWS)
        stop = rows if rows - stop < CELL_ROWS else stop
        cells.append(slice(start, stop))
        start = stop
    return np.array([at[cell].mean() for cell in cells]), cells


def hermite(tops: Floats, levels: Floats) -> Floats:
    """(ORDER,) coefficients from order 1 of the step function from a normal score to the middle score of its tie.

    The integral of He_k phi from a to b is He_(k-1)(a) phi(a) - He_(k-1)(b) phi(b).
    """
    density = np.exp(-(tops**2) / 2) / np.sqrt(2 * np.pi)
    before, now = np.zeros_like(tops), density
    steps = np.diff(levels)
    coefficients = []
    for k in range(1, ORDER + 1):  # `now` is He_(k-1) phi / sqrt((k-1)!)
        coefficients.append(float(steps @ now) / np.sqrt(k))
        before, now = now, (tops * now - np.sqrt(k - 1) * before) / np.sqrt(k)
    return np.array(coefficients)


class Latent:
    """From the covariance of observed scores to the correlation of the scores behind them, for each pair of traits.

    A trait with ties shows less than what is behind it. For a Gaussian pair of correlation rho the observed covariance
    is sum_k a_k b_k rho^k, a and b the Hermite coefficients of the two steps (Mehler); it is inverted on a grid.
    """

    def __init__(self, series: Floats) -> None:
        self._grid = np.sin(np.linspace(-np.pi / 2, np.pi / 2, 801))
        powers = self._grid[:, None] ** np.arange(1, ORDER + 1)
        self._seen = np.einsum("gk,ik,jk->ijg", powers, series, series, optimize=True)

    def __call__(self, seen: Floats) -> Floats:
        """(T, T) covariances to (T, T) correlations."""
        pairs = [
            [np.interp(value, curve, self._grid) for value, curve in zip(*row, strict=True)]
            for row in zip(seen, self._seen, strict=True)
        ]
        return np.array(pairs)


def lagged(people: list[tuple[Floats, Floats]], lag: int) -> Floats:
    """(T, T) mean of the products of scores `lag` rows apart, made symmetric; missing scores are left out in pairs."""
    total = sum(scores[: len(scores) - lag].T @ scores[lag:] for scores, _ in people)
    count = sum(present[: len(present) - lag].T @ present[lag:] for _, present in people)
    mean = np.asarray(total / count)
    return np.asarray((mean + mean.T) / 2)


def covariances(people: list[Floats], latent: Latent) -> tuple[Floats, Floats, Floats]:
    """Factor between people, factor within, and how each component moves: its shares of the parts.

    What two rows of a person share beyond any event is the person: between = the mean covariance at far lags.
    The components within are those that have no correlation at lag 0 nor on average over lags 1 to 96.
    """
    filled = [(np.nan_to_num(scores), np.isfinite(scores).astype(float)) for scores in people]
    whole = latent(lagged(filled, 0))
    np.fill_diagonal(whole, 1.0)
    person = factor(latent(np.mean([lagged(filled, lag) for lag in FAR], axis=0)), 0.0)
    between = person @ person.T
    root = factor(whole - between, FLOOR)
    inverse = np.linalg.inv(root)
    lags = np.array([inverse @ (latent(lagged(filled, lag)) - between) @ inverse.T for lag in NEAR])
    rotation = np.linalg.eigh(np.mean([lags[NEAR.index(lag)] for lag in (1, *range(4, 97, 4))], axis=0))[1]
    basis = root @ rotation
    size = np.sqrt((basis**2).sum(axis=1) + np.diag(between))[:, None]
    measured = np.einsum("tc,ltu,uc->cl", rotation, lags, rotation)
    parts = windowed()[:, NEAR]
    return person / size, basis / size, np.array([shares(column, parts) for column in measured])


def shares(measured: Floats, parts: Floats) -> Floats:
    """(p,) shares of variance, 0 or more and of sum 1, with which the (p, l) `parts` come closest to (l,) `measured`.

    Pairwise Frank-Wolfe, exact along each line. Far lags count less: fewer independent rows are behind them.
    """
    weight = np.sqrt(1 / (1 + np.array(NEAR) / 32))
    target, columns = measured[1:] * weight[1:], parts[:, 1:] * weight[1:]
    found = np.full(len(parts), 1 / len(parts))
    for _ in range(20_000):
        slope = columns @ (found @ columns - target)
        best, worst = int(slope.argmin()), int(np.where(found > 0, slope, -np.inf).argmax())
        if slope[worst] - slope[best] < 1e-9:
            break
        way = columns[best] - columns[worst]
        step = min((slope[worst] - slope[best]) / float(way @ way), found[worst])
        found[best] += step
        found[worst] -= step
    return found


def factor(covariance: Floats, floor: float) -> Floats:
    """(T, r) factor of the nearest covariance with no eigenvalue below `floor`; empty directions are left out."""
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, floor)
    return np.asarray((vectors * np.sqrt(values))[:, values > 1e-6])


def fit(recordings: list[Floats]) -> dict[str, Floats]:
    """Arrays of the shipped file: a `Statistics`, and the `Likeness` of the corpus for comparison."""
    traits = [traits_of(features) for features in recordings]
    pooled = np.concatenate(traits)
    scores, quantiles = quantile_functions(pooled)
    scored = [normal_scores(column) for column in pooled.T[: len(TRAITS)]]
    series = [hermite(tops, np.unique(column[np.isfinite(column)])) for column, tops in scored]
    people = np.split(np.stack([column for column, _ in scored], axis=1), np.cumsum([len(x) for x in traits])[:-1])
    person, basis, shares_ = covariances(people, Latent(np.array(series)))
    without_pupil = [np.isnan(x[:, TRAITS.index("mean_mean_diameter")]).all() for x in traits]
    return {
        "scores": scores,
        "quantiles": quantiles,
        "person": person,
        "basis": basis,
        "shares": shares_,
        "without_pupil": np.mean(without_pupil),
        "people": np.array(len(recordings)),
        **{f"corpus_{name}": value for name, value in asdict(measure(recordings)).items()},
    }


def main() -> None:
    people = corpus(Path(sys.argv[1]))
    statistics = fit([recording.features for recording in people])
    tables: dict[str, Any] = {name: np.asarray(value, np.float32) for name, value in statistics.items()}
    np.savez_compressed(OUT, **tables)
    print(f"{OUT}: {OUT.stat().st_size} bytes from {len(people)} recordings")


if __name__ == "__main__":
    main()
