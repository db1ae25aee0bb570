"""How many Fourier coefficients to keep: in closed form, by simulation, by a private choice, by looking at the data.

The choice that minimises the error on the data at hand is part of what is released, so it leaks. Two of its forms are
measured: the k of least expected error of *this* chunk, which is a function of the chunk, so that any chunk on which it
differs is told apart with certainty; and the published form, the k of least |NMSE| over 100 noisy runs, whose law is
estimated for pairs of chunks.
"""

import math

import numpy as np
from numpy.typing import NDArray

from eyestream.core.additive.ball import l2_factor
from eyestream.core.calibration import PerFeatureTables
from eyestream.core.calibration.corpus import whole_chunks
from eyestream.core.mechanisms import build
from eyestream.core.spectrum import coordinate_weights
from eyestream.core.whole import release_rows
from eyestream.errors import ConfigError
from eyestream_lab.study.cells import Cell, Record
from eyestream_lab.study.plan import Plan
from eyestream_lab.study.sources import World
from eyestream_lab.study.ways import of_chunks, with_signals

__all__ = ["cells", "choice_law", "kept_error", "leak_bound", "measure", "tail"]

Array = NDArray[np.float64]

_SHARE = 0.1
"""Of a feature's epsilon that the private choice of k may use."""
_REPEATS = 60
"""Of the published choice, to estimate its law."""


def cells(plan: Plan, world: World) -> list[Cell]:
    """One cell for each mechanism, chunk length, epsilon and way of choosing."""
    work = []
    beyond = (10 * plan.wall[-1],) if plan.runs >= 20 else ()
    for epsilon in (*plan.epsilons, *plan.wall, *beyond):
        for mechanism in (name for name, signals in with_signals().items() if signals.truncates):
            settings = {
                "mechanism": mechanism,
                "n": plan.chunks[0],
                "epsilon": epsilon,
                "runs": max(plan.runs // 33, 1),
            }
            work.append(Cell("coefficients", {"measured": "error"} | settings))
        runs = 100 if plan.runs >= 20 else 10  # as published, and fewer where figures need not mean much
        settings = {"mechanism": of_chunks(), "n": plan.chunks[0], "epsilon": epsilon, "runs": runs}
        work.append(Cell("coefficients", {"measured": "choice"} | settings))
    return work


def measure(world: World, *, measured: str, mechanism: str, n: int, epsilon: float, runs: int) -> list[Record]:
    """Error against k, or what the ways of choosing k cost and leak."""
    if measured == "error":
        return _errors(world, mechanism, n, epsilon, runs)
    return _choices(world, mechanism, n, epsilon, runs)


def _tables(world: World, mechanism: str, n: int) -> PerFeatureTables:
    tables = world.calibrations[mechanism, n].tables
    assert isinstance(tables, PerFeatureTables)
    return tables


def _errors(world: World, mechanism: str, n: int, epsilon: float, runs: int) -> list[Record]:
    """Mean squared error over corpus variance on the people who calibrated, for each k: closed form and simulated."""
    calibration, tables, active = world.calibrations[mechanism, n], _tables(world, mechanism, n), world.active
    rows = np.concatenate([world.rows(i, n) for i in world.population.calibrating])
    variance = rows[:, active].var(axis=0)
    scale = 2 * tables.radius[active] * np.count_nonzero(~calibration.constant) / epsilon
    noise = with_signals()[mechanism].noise(n)
    records = []
    for k in sorted({1, 2, 3, 4, 6, 8, 12, 16, n // 4, n // 2, n // 2 + 1}):
        expected = (tables.truncation[active, k - 1] + noise[k - 1] * scale**2) / n / variance
        record: Record = {"k": k, "closed_form": float(expected.mean()), "simulated": None}
        try:
            chosen = build(calibration, epsilon, k=k)
        except ConfigError:  # the mechanism refuses an epsilon that its integers cannot hold
            records.append(record)
            continue
        squares = np.mean([(release_rows(chosen, rows)[:, active] - rows[:, active]) ** 2 for _ in range(runs)], (0, 1))
        records.append(record | {"simulated": float((squares / variance).mean())})
    return records


def kept_error(signals: Array, projected: Array) -> Array:
    """(N, K) squared error ||x - P_k y||^2 of keeping the first k = 1 .. n/2 + 1 coefficients of y, for x (N, n)."""
    n = signals.shape[1]
    weights = np.full(n // 2 + 1, 2.0)
    weights[0] = weights[-1] = 1.0
    x, y = np.fft.rfft(signals), np.fft.rfft(projected)
    gained: Array = (weights * (2 * (x * y.conj()).real - np.abs(y) ** 2)).cumsum(axis=1) / n
    lost: Array = np.maximum((signals**2).sum(axis=1)[:, None] - gained, 0.0)
    return lost


def tail(projected: Array) -> Array:
    """(N, K) norm ||(I - P_k) y|| for y (N, n): moves by at most ||dy||, so by 2 r inside a ball."""
    norm: Array = np.sqrt(kept_error(projected, projected))
    return norm


def choice_law(score: Array, sensitivity: float, epsilon: float) -> Array:
    """Probabilities (N, K) of the exponential mechanism: P(k) ~ exp(epsilon score_k / (2 sensitivity))."""
    exponent = epsilon * score / (2 * sensitivity)
    weights = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    law: Array = weights / weights.sum(axis=1, keepdims=True)
    return law


def _choices(world: World, mechanism: str, n: int, epsilon: float, runs: int) -> list[Record]:
    """For CFPA: error of the public k, the private k (own epsilon), the k of least error of each chunk, and leaks."""
    tables, active = _tables(world, mechanism, n), world.active
    pooled = np.concatenate([whole_chunks(world.population.recording(i), n) for i in world.population.calibrating])
    noise, share = with_signals()[mechanism].noise(n), epsilon / len(active)
    rng = np.random.default_rng(n)
    totals: dict[str, list[float]] = {}
    for feature in active:
        x, radius = pooled[:, feature], float(tables.radius[feature])
        centre = tables.centre[feature]
        y = centre + l2_factor(x - centre, np.full(len(x), radius)) * (x - centre)
        lost, spread = kept_error(x, y), x.var() * n
        whole, less = noise * (2 * radius / share) ** 2, noise * (2 * radius / (share * (1 - _SHARE))) ** 2
        law = choice_law(-np.sqrt(tail(y) ** 2 + less), 2 * radius, share * _SHARE)
        best = np.argmin(lost + whole, axis=1)
        public = int(np.argmin(lost.mean(axis=0) + whole))
        found = {
            "public": float((lost + whole)[:, public].mean() / spread),
            "private": float((law * (lost + less)).sum(axis=1).mean() / spread),
            "own": float((lost + whole).min(axis=1).mean() / spread),
            "bits": _entropy(np.bincount(best)),
            "differs": float(np.mean(best != public)),
            "leaked_published": _published_leak(x, y, 2 * radius / share, runs, rng),
        }
        for name, value in found.items():
            totals.setdefault(name, []).append(value)
    record: Record = {name: float(np.mean(values)) for name, values in totals.items()}
    record |= {f"{name}_median": float(np.median(totals[name])) for name in ("public", "private", "own")}
    record["leaked_published_sum"] = float(np.sum(totals["leaked_published"]))
    return [record | {"share": _SHARE, "differs_worst": float(np.max(totals["differs"]))}]


def _entropy(counts: NDArray[np.intp]) -> float:
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log2(p)).sum())


def _published_leak(x: Array, y: Array, scale: float, runs: int, rng: np.random.Generator) -> float:
    """Lower bound on the epsilon of the published choice, from the two chunks of one feature that lie farthest from
    each other in mean."""
    means = x.mean(axis=1)
    pair = [int(np.argmin(means)), int(np.argmax(means))]
    counts = [_published_choices(x[i], y[i], scale, runs, rng) for i in pair]
    return leak_bound(counts[0], counts[1])


def _published_choices(x: Array, y: Array, scale: float, runs: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """How often each k has the least |NMSE|, averaged over `runs` noisy runs; k = 1, 2, 4, ..., n/2, n/2 + 1.

    An analysis of the choice, not a release: the noise is drawn in floating point, in the space of the coefficients.
    """
    n = len(x)
    options = sorted({2**i for i in range(int(math.log2(n)))} | {n // 2 + 1})
    lost = kept_error(x[None], y[None])[0]
    spectrum_y, centre = np.fft.rfft(y), x.mean()
    score = np.empty((_REPEATS, len(options)))
    for column, k in enumerate(options):
        weights = coordinate_weights(n, k)
        noise = rng.laplace(0.0, math.sqrt(n * k) * scale, (_REPEATS, runs, len(weights)))
        lag = np.fft.rfft(x - y)[:k]
        crossed = np.concatenate([lag.real[:1], np.stack([lag.real[1:], lag.imag[1:]], axis=1).ravel()])[: len(weights)]
        square = (weights * (noise**2 - 2 * noise * crossed)).sum(axis=2) / n + lost[k - 1]
        mean = (spectrum_y[0].real + noise[:, :, 0]) / n
        with np.errstate(divide="ignore", invalid="ignore"):
            score[:, column] = np.abs((square / n / (centre * mean)).mean(axis=1))
    return np.bincount(np.argmin(np.nan_to_num(score, nan=np.inf), axis=1), minlength=len(options))


def leak_bound(first: NDArray[np.intp], second: NDArray[np.intp], confidence: float = 0.999) -> float:
    """Lower bound on max_k |log(P(k) / P'(k))| from counts of choices, at the confidence, for all k together.

    Each probability is bounded by Hoeffding's inequality in Chernoff's form, a share of the error for each of the
    comparisons.
    """
    level = math.log(4 * len(first) / (1 - confidence))
    best = 0.0
    for one, other in ((first, second), (second, first)):
        low, high = _chernoff(one, level)[0], _chernoff(other, level)[1]
        with np.errstate(divide="ignore"):
            best = max(best, float(np.max(np.log(low) - np.log(high))))
    return best


def _chernoff(counts: NDArray[np.intp], level: float) -> tuple[Array, Array]:
    """Bounds of probabilities p with total * KL(counts / total, p) <= level, by bisection."""
    total = int(counts.sum())
    share = counts / total
    bounds = []
    for end in (0.0, 1.0):
        inner, outer = share.copy(), np.full(len(share), end)
        for _ in range(60):
            middle = (inner + outer) / 2
            fine = total * _divergence(share, middle) <= level
            inner, outer = np.where(fine, middle, inner), np.where(fine, outer, middle)
        bounds.append(inner)
    return bounds[0], bounds[1]


def _divergence(p: Array, q: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        one = np.where(p > 0, p * np.log(p / q), 0.0)
        other = np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0.0)
    total: Array = one + other
    return total
