"""What an attacker who knows the corpus gets back from noisy releases.

Two attacks. *Averaging*: the same chunk, released again and again. *Filtering*: one release of every chunk, and the
knowledge that features go together and people change slowly. The attacker's estimate is linear and best in the mean
square for a Gaussian model of public figures: the corpus' mean, covariance between and within people, correlation of
successive chunks, and the mechanism's own noise. How good an estimate is, is its explained variance on people outside
the corpus: 0 is what the corpus' mean alone gives.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.corpus.calibrate import whole_chunks
from eyestream.privacy.mechanism import Mechanism
from eyestream.privacy.mechanisms import build
from eyestream.privacy.whole import release_rows
from eyestream.study.cells import Cell, Record
from eyestream.study.measures import explained_variance, tame
from eyestream.study.plan import Plan
from eyestream.study.sources import SOURCES, World

__all__ = ["ATTACKS", "Dynamics", "cells", "filtered", "measure", "smoothed"]

Array = NDArray[np.float64]

ATTACKS = ("one feature, one chunk", "all features, one chunk", "chunks so far", "all chunks")

_STATISTIC: dict[str, Callable[[Array], Array]] = {
    "lpa": lambda chunks: chunks.mean(axis=-1),
    "cfpa": lambda chunks: chunks.mean(axis=-1),
    "dcfpa": lambda chunks: chunks[..., -1],  # its first coefficient is the sum of the differences: the last row
}
"""What a release tells best about a chunk (..., n), one number a feature."""


def cells(plan: Plan, world: World) -> list[Cell]:
    """One cell for each mechanism, epsilon and attack."""
    work = []
    n = plan.attack_chunks[0]
    for source in SOURCES:
        if not source.chunked or not source.attacked:
            continue
        for epsilon in (*plan.epsilons, *plan.wall):
            base = {"source": source.label, "mechanism": source.mechanism, "n": n, "epsilon": epsilon}
            if epsilon in plan.epsilons:
                work.append(Cell("recovery", {"measured": "averaging", "repeats": plan.repeats} | base))
            work.append(Cell("recovery", {"measured": "filtering", "repeats": max(plan.runs // 20, 2)} | base))
    return work


def measure(
    world: World, *, measured: str, source: str, mechanism: str, n: int, epsilon: float, repeats: int
) -> list[Record]:
    """Explained variance of the attacker's estimates."""
    chosen = build(world.calibrations[mechanism, n], epsilon)
    estimate = mechanism not in _STATISTIC
    if measured == "averaging":
        return _averaging(world, chosen, repeats, estimate)
    return _released(world, chosen, repeats) if estimate else _filtering(world, chosen, repeats)


def _averaging(world: World, mechanism: Mechanism, repeats: int, estimate: bool) -> list[Record]:
    """Three chunks of each released recording, `repeats` times; the average shrunk as its noise asks.

    What is an estimate already is averaged as it is: a lower bound on what could be had.
    """
    active, n, corpus = world.active, mechanism.n, world.corpus_rows()
    centre = corpus.mean(axis=0)[active, None]
    variance = np.clip(corpus, *tame(corpus)).var(axis=0)[active, None]
    noise = np.zeros((len(active), 1)) if estimate else mechanism.noise_sd[active, None] ** 2
    parts = [whole_chunks(world.population.recording(r), n) for r in world.population.released]
    chunks = np.concatenate([part[np.linspace(0, len(part) - 1, 3).astype(int)] for part in parts])
    spread = ((chunks[:, active] - centre) ** 2).mean(axis=(0, 2))
    total = np.zeros((len(chunks), len(active), n))
    records = []
    stops = sorted({round(float(10**e)) for e in np.arange(0, np.log10(repeats) + 1e-9, 0.5)} | {repeats})
    for count in range(1, repeats + 1):
        for index, chunk in enumerate(chunks):
            total[index] += mechanism.release(chunk)[active]
        if count in stops:
            gain = variance / (variance + noise / count)
            error = ((centre + gain * (total / count - centre) - chunks[:, active]) ** 2).mean(axis=(0, 2))
            spent = {"count": count, "spent": count * mechanism.epsilon}
            records.append(spent | explained_variance(error, spread))
    return records


@dataclass(frozen=True, eq=False)
class Dynamics:
    """A person's statistic over chunks: person constant ~ N(0, between) plus a process of stationary covariance
    `within`, each step correlated with the last by `persistence`; A features, standardised."""

    between: Array
    within: Array
    persistence: float

    @classmethod
    def of(cls, sequences: list[Array]) -> "Dynamics":
        """From the standardised sequences (T, A) of the people of the corpus."""
        means = np.array([sequence.mean(axis=0) for sequence in sequences])
        inner = [sequence - mean for sequence, mean in zip(sequences, means, strict=True)]
        rows = np.concatenate(inner)
        lagged = sum(float((s[1:] * s[:-1]).sum()) for s in inner)
        squares = sum(float((s[:-1] ** 2).sum()) for s in inner)
        within = rows.T @ rows / max(len(rows) - len(inner), 1)
        return cls(means.T @ means / len(means), within, min(max(lagged / squares, 0.0), 0.99))


def filtered(dynamics: Dynamics, noise: Array, seen: Array) -> tuple[Array, list[tuple[Array, Array, Array, Array]]]:
    """Kalman filter: estimates (T, A) of the statistic from noisy `seen` (T, A), each from the chunks so far.

    The state is (person constant, process). Also returned is what `smoothed` needs: for each chunk the predicted and
    the corrected mean and covariance.
    """
    size = len(noise)
    step = np.diag(np.concatenate([np.ones(size), np.full(size, dynamics.persistence)]))
    zero = np.zeros((size, size))
    drive = np.block([[zero, zero], [zero, (1 - dynamics.persistence**2) * dynamics.within]])
    mean, covariance = np.zeros(2 * size), np.block([[dynamics.between, zero], [zero, dynamics.within]])
    look = np.hstack([np.eye(size), np.eye(size)])
    estimates, history = [], []
    for t, value in enumerate(seen):
        if t:
            mean, covariance = step @ mean, step @ covariance @ step.T + drive
        crossed = covariance @ look.T
        gain = np.linalg.solve(look @ crossed + np.diag(noise), crossed.T).T
        after = mean + gain @ (value - look @ mean)
        corrected = covariance - gain @ crossed.T
        history.append((mean, covariance, after, (corrected + corrected.T) / 2))
        mean, covariance = history[-1][2], history[-1][3]
        estimates.append(look @ mean)
    return np.array(estimates), history


def smoothed(dynamics: Dynamics, noise: Array, seen: Array) -> Array:
    """Rauch-Tung-Striebel smoother: estimates (T, A), each from all chunks."""
    size = len(noise)
    history = filtered(dynamics, noise, seen)[1]
    step = np.diag(np.concatenate([np.ones(size), np.full(size, dynamics.persistence)]))
    mean = history[-1][2]
    estimates = [mean[:size] + mean[size:]]
    for t in range(len(seen) - 2, -1, -1):
        predicted_mean, predicted = history[t + 1][0], history[t + 1][1]
        gain = history[t][3] @ step.T @ np.linalg.pinv(predicted, rcond=1e-10, hermitian=True)
        mean = history[t][2] + gain @ (mean - predicted_mean)
        estimates.append(mean[:size] + mean[size:])
    return np.array(estimates[::-1])


def _filtering(world: World, mechanism: Mechanism, repeats: int) -> list[Record]:
    active, n, corpus = world.active, mechanism.n, world.corpus_rows()
    centre, deviation = corpus.mean(axis=0)[active], corpus.std(axis=0)[active]
    statistic = _STATISTIC[mechanism.name]
    known = [whole_chunks(world.population.recording(r), n)[:, active] for r in world.population.calibrating]
    limits = (tame(corpus[:, active]) - centre) / deviation
    sequences = [np.clip((statistic(chunks) - centre) / deviation, *limits) for chunks in known]
    pooled = np.concatenate(sequences)
    means = np.clip(np.concatenate([(chunks.mean(axis=-1) - centre) / deviation for chunks in known]), *limits)
    slope = (pooled * means).mean(axis=0) / (pooled**2).mean(axis=0)  # from the statistic to the chunk's mean
    dynamics, noise = Dynamics.of(sequences), _noise(mechanism, active, statistic) / deviation**2
    errors = {name: np.zeros(len(active)) for name in ATTACKS}
    spread, rows = np.zeros(len(active)), 0
    for recording in world.population.released:
        own = world.rows(recording, n)
        truth = (own[:, active] - centre) / deviation
        spread += (truth**2).sum(axis=0) * repeats
        rows += len(own) * repeats
        for _ in range(repeats):
            seen = (statistic(whole_chunks(release_rows(mechanism, own), n)[:, active]) - centre) / deviation
            for name, estimate in _estimates(dynamics, noise, pooled, seen).items():
                errors[name] += ((np.repeat(estimate * slope, n, axis=0) - truth) ** 2).sum(axis=0)
    return [{"attack": name} | explained_variance(error / rows, spread / rows) for name, error in errors.items()]


def _released(world: World, mechanism: Mechanism, repeats: int) -> list[Record]:
    """Explained variance of a release that is the best linear estimate from the chunks so far by itself."""
    active, n = world.active, mechanism.n
    centre = world.corpus_rows().mean(axis=0)[active]
    error, spread = np.zeros(len(active)), np.zeros(len(active))
    for recording in world.population.released:
        own = world.rows(recording, n)
        spread += ((own[:, active] - centre) ** 2).sum(axis=0)
        for _ in range(repeats):
            error += ((release_rows(mechanism, own) - own)[:, active] ** 2).sum(axis=0) / repeats
    return [{"attack": ATTACKS[2]} | explained_variance(error, spread)]


def _estimates(dynamics: Dynamics, noise: Array, pooled: Array, seen: Array) -> dict[str, Array]:
    variance = (pooled**2).mean(axis=0)
    whole = dynamics.between + dynamics.within
    joint = np.linalg.solve(whole + np.diag(noise), whole).T
    values = (
        seen * (variance / (variance + noise)),
        seen @ joint.T,
        filtered(dynamics, noise, seen)[0],
        smoothed(dynamics, noise, seen),
    )
    return dict(zip(ATTACKS, values, strict=True))


def _noise(mechanism: Mechanism, active: NDArray[np.intp], statistic: Callable[[Array], Array]) -> Array:
    """(A,) variance of the statistic's noise: measured by the attacker, on 400 releases of a chunk of missing values.

    What is measured is the mechanism's, not a person's; everyone can run it.
    """
    nothing = np.full((mechanism.features, mechanism.n), np.nan)
    drawn = statistic(np.array([mechanism.release(nothing)[active] for _ in range(400)]))
    variance: Array = drawn.var(axis=0)
    return variance
