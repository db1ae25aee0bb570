"""Correlation of a feature stream with itself, and what it does to epsilon over time."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.core.spectrum import difference
from eyestream_lab.calibration.corpus import whole_chunks
from eyestream_lab.study import leakage
from eyestream_lab.study.cells import Cell, Record
from eyestream_lab.study.plan import Plan
from eyestream_lab.study.sources import World

Array = NDArray[np.float64]

_FIFTH, _MOST_ROWS = 4, 256
_LAGS = (1, 2, 4, 8, 16, 24, 32, 48, 60, 64, 96, 128, 192, 256)
_SERIES: dict[str, Callable[[Array], Array]] = {
    "raw": lambda rows: rows,
    "difference": lambda rows: difference(rows.T).T[1:],
}


def cells(plan: Plan, world: World) -> list[Cell]:
    """One cell for each kind of correlation, one for each chunk length of the leakage."""
    work: list[Cell] = [Cell("correlation", {"measured": what}) for what in ("correlation", "fifth")]
    for n in plan.chunks:
        settings: dict[str, Any] = {"measured": "leakage", "n": n, "states": plan.states, "epsilons": plan.epsilons}
        work.append(Cell("correlation", settings))
    return work


def measure(
    world: World, *, measured: str, n: int = 0, states: tuple[int, ...] = (), epsilons: tuple[float, ...] = ()
) -> list[Record]:
    """Correlation against lag of all people, or against the fifth row, or the leakage under a Markov model of those who
    calibrate."""
    if measured == "fifth":
        return [record for name in _SERIES for record in _fifths(world, name)]
    if measured == "correlation":
        return [record for name in _SERIES for record in _correlations(world, name)]
    return [record for count in states for record in _leakages(world, n, count, epsilons)]


def autocorrelation(series: Array, lag: int) -> Array:
    """Pearson's coefficient of each column of (m, F) with itself `lag` rows later; NaN where it does not vary."""
    early, late = series[:-lag] - series[:-lag].mean(axis=0), series[lag:] - series[lag:].mean(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        coefficient: Array = (early * late).sum(axis=0) / np.sqrt((early**2).sum(axis=0) * (late**2).sum(axis=0))
    return coefficient


def _correlations(world: World, name: str) -> list[Record]:
    records = []
    for lag in _LAGS:
        values = []
        for recording in range(len(world.population.people)):
            series = _SERIES[name](world.population.recording(recording)[:, world.active])
            if len(series) > 2 * lag:
                values.append(autocorrelation(series, lag))
        if values:
            found = np.array(values)
            found = found[np.isfinite(found)]
            low, middle, high = np.quantile(found, (0.1, 0.5, 0.9))
            record = {"signal": name, "lag": lag, "lag_s": lag / world.population.rate_hz, "mean": float(found.mean())}
            records.append(record | {"median": float(middle), "low": float(low), "high": float(high)})
    return records


def with_fifth(series: Array) -> Array:
    """(m, F) Pearson's coefficient over recordings of each row with the fifth; NaN where a row does not vary.

    As figures 3 to 6 of Bozkir et al. (PLOS ONE 2021) have it: whether who is high in the fifth row is high later.

    Parameters
    ----------
    series
        (R, m, F) recordings, rows, features; m is at least 5.
    """
    around = series - series.mean(axis=0)
    norm = np.sqrt((around**2).sum(axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        coefficient: Array = (around * around[:, [_FIFTH]]).sum(axis=0) / (norm * norm[_FIFTH])
    return coefficient


def _fifths(world: World, name: str) -> list[Record]:
    population = world.population
    series = [_SERIES[name](population.recording(r)[:, world.active]) for r in range(len(population.people))]
    rows = min(_MOST_ROWS, *map(len, series))
    if rows <= _FIFTH:
        return []
    records: list[Record] = []
    for row, values in enumerate(with_fifth(np.array([s[:rows] for s in series]))):
        found = values[np.isfinite(values)]
        if len(found):
            low, middle, high = np.quantile(found, (0.1, 0.5, 0.9))
            record = {"signal": name, "row": row + 1, "row_s": row / population.rate_hz, "mean": float(found.mean())}
            records.append(record | {"median": float(middle), "low": float(low), "high": float(high)})
    return records


def states_of(world: World, n: int, count: int) -> list[NDArray[np.intp]]:
    """State of each chunk of each calibrating recording: the leading principal component of the chunk means, cut at its
    quantiles into `count` states of equal weight."""
    means = [whole_chunks(world.population.recording(i), n).mean(axis=2) for i in world.population.calibrating]
    pooled = np.concatenate(means)[:, world.active]
    centre, deviation = pooled.mean(axis=0), pooled.std(axis=0)
    deviation[deviation == 0] = 1.0
    axis = np.linalg.svd((pooled - centre) / deviation, full_matrices=False)[2][0]
    cuts = np.quantile((pooled - centre) / deviation @ axis, np.arange(1, count) / count)
    return [np.searchsorted(cuts, (m[:, world.active] - centre) / deviation @ axis) for m in means]


def _leakages(world: World, n: int, count: int, epsilons: tuple[float, ...]) -> list[Record]:
    sequences = states_of(world, n, count)
    forward, backward = leakage.fit(sequences, count)
    longest = max(map(len, sequences))
    records: list[Record] = []
    for epsilon in epsilons:
        total = leakage.total_leakage(backward, forward, epsilon, longest)
        record: Record = {
            "states": count,
            "epsilon": epsilon,
            "length": longest,
            "persistence": float(np.trace(forward) / count),
            "leakage": float(total.max()),
            "backward_supremum": leakage.supremum(backward, epsilon),
            "forward_supremum": leakage.supremum(forward, epsilon),
            "sum": longest * epsilon,
        }
        record["supremum"] = record["backward_supremum"] + record["forward_supremum"] - epsilon
        records += [record | {"t": None}]
        if count == 4:
            records += [record | {"t": t + 1, "leakage": float(value)} for t, value in enumerate(total)]
    return records
