"""Recovery by an attacker who knows the corpus, from noisy releases.

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

from eyestream.core.mechanism import Mechanism
from eyestream.core.whole import release_rows
from eyestream_lab.calibration.corpus import whole_chunks
from eyestream_lab.study.cells import Cell, Record
from eyestream_lab.study.measures import explained_variance, tame
from eyestream_lab.study.plan import Plan
from eyestream_lab.study.sources import SOURCES, World
from eyestream_lab.study.ways import study_part

Array = NDArray[np.float64]


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


@dataclass(frozen=True, eq=False)
class Gains:
    """Steps of filter and smoother at each of T chunks: a function of the model, so that one serves all sessions.

    The state is (person constant, process), 2 A numbers.

    Attributes
    ----------
    decay : (2 A,) of the state from chunk to chunk.
    forward : (T, 2 A, A) from what was not expected of a chunk to the state.
    backward : (T - 1, 2 A, 2 A) of the Rauch-Tung-Striebel smoother.
    """

    decay: Array
    forward: Array
    backward: Array

    @classmethod
    def of(cls, dynamics: Dynamics, noise: Array, length: int) -> "Gains":
        """For sessions of up to `length` chunks whose statistic has noise of variance `noise` (A,)."""
        size = len(noise)
        decay = np.concatenate([np.ones(size), np.full(size, dynamics.persistence)])
        zero, look = np.zeros((size, size)), np.hstack([np.eye(size), np.eye(size)])
        drive = np.block([[zero, zero], [zero, (1 - dynamics.persistence**2) * dynamics.within]])
        covariance = np.block([[dynamics.between, zero], [zero, dynamics.within]])
        forward, backward, after = [], [], covariance
        for t in range(length):
            if t:
                covariance = decay[:, None] * after * decay + drive
                backward.append((after * decay) @ np.linalg.pinv(covariance, rcond=1e-10, hermitian=True))
            crossed = covariance @ look.T
            forward.append(np.linalg.solve(look @ crossed + np.diag(noise), crossed.T).T)
            after = covariance - forward[-1] @ crossed.T
            after = (after + after.T) / 2
        return cls(decay, np.array(forward), np.array(backward).reshape(-1, 2 * size, 2 * size))

    def states(self, seen: Array) -> tuple[Array, Array]:
        """Kalman filter: the state (T, 2 A) before and after each of the noisy `seen` (T, A)."""
        size = seen.shape[1]
        before, after = np.zeros((2, len(seen), 2 * size))
        for t, value in enumerate(seen):
            before[t] = self.decay * after[t - 1] if t else 0.0
            after[t] = before[t] + self.forward[t] @ (value - before[t, :size] - before[t, size:])
        return before, after


def filtered(gains: Gains, seen: Array) -> Array:
    """Estimates (T, A) of the statistic from noisy `seen` (T, A), each from the chunks so far."""
    after = gains.states(seen)[1]
    return after[:, : seen.shape[1]] + after[:, seen.shape[1] :]


def smoothed(gains: Gains, seen: Array) -> Array:
    """Rauch-Tung-Striebel smoother: estimates (T, A), each from all chunks."""
    size = seen.shape[1]
    before, after = gains.states(seen)
    for t in range(len(seen) - 2, -1, -1):
        after[t] += gains.backward[t] @ (after[t + 1] - before[t + 1])
    return after[:, :size] + after[:, size:]


ATTACKS = ("one feature, one chunk", "all features, one chunk", "chunks so far", "all chunks")


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
    chosen = world.build(world.calibrations[mechanism, n], epsilon)
    if measured == "averaging":
        return _averaging(world, chosen, repeats)
    return (
        _filtering(world, chosen, repeats)
        if study_part(chosen.name).statistic is not None
        else _released(world, chosen, repeats)
    )


def _averaging(world: World, mechanism: Mechanism, repeats: int) -> list[Record]:
    """Three chunks of each released recording, `repeats` times; the average, shrunk as its noise asks.

    What is an estimate already is averaged as it is: a lower bound on what could be had.
    """
    active, n = world.active, mechanism.n
    known = _Knowledge.of(world, mechanism) if study_part(mechanism.name).statistic is not None else None
    parts = [whole_chunks(world.population.recording(r), n) for r in world.population.released]
    chunks = np.concatenate([part[np.linspace(0, len(part) - 1, 3).astype(int)] for part in parts])
    centre = world.corpus_rows().mean(axis=0)[active, None]
    spread = ((chunks[:, active] - centre) ** 2).mean(axis=(0, 2))
    total = np.zeros((len(chunks), len(active), n))
    records = []
    stops = sorted({round(float(10**e)) for e in np.arange(0, np.log10(repeats) + 1e-9, 0.5)} | {repeats})
    for count in range(1, repeats + 1):
        for index, chunk in enumerate(chunks):
            total[index] += mechanism.release(chunk)[active]
        if count in stops:
            found = total / count if known is None else known.chunk_by_chunk(total / count, count)[:, :, None]
            error = ((found - chunks[:, active]) ** 2).mean(axis=(0, 2))
            spent = {"count": count, "spent": count * mechanism.epsilon}
            records.append(spent | explained_variance(error, spread))
    return records


@dataclass(frozen=True, eq=False)
class _Knowledge:
    """The attacker's knowledge of corpus and mechanism; everything in standard deviations from the corpus' mean.

    Attributes
    ----------
    centre, deviation : (A,) of the corpus' rows.
    pooled : (N, A) statistic of the corpus' chunks.
    slope : (A,) regression of a chunk's mean on its statistic.
    dynamics : of the statistic.
    noise : (A,) variance that the mechanism adds to the statistic.
    gains : of filter and smoother, for sessions as long as any.
    statistic : of chunks (..., n).
    """

    centre: Array
    deviation: Array
    pooled: Array
    slope: Array
    dynamics: Dynamics
    noise: Array
    gains: Gains
    statistic: Callable[[Array], Array]

    @classmethod
    def of(cls, world: World, mechanism: Mechanism) -> "_Knowledge":
        active, n, corpus = world.active, mechanism.n, world.corpus_rows()
        centre, deviation = corpus.mean(axis=0)[active], corpus.std(axis=0)[active]
        statistic = study_part(mechanism.name).statistic
        assert statistic is not None
        limits = (tame(corpus[:, active]) - centre) / deviation
        chunks = [whole_chunks(world.population.recording(r), n)[:, active] for r in world.population.calibrating]
        sequences = [np.clip((statistic(own) - centre) / deviation, *limits) for own in chunks]
        means = np.concatenate([np.clip((own.mean(axis=-1) - centre) / deviation, *limits) for own in chunks])
        pooled = np.concatenate(sequences)
        slope = (pooled * means).mean(axis=0) / (pooled**2).mean(axis=0)
        noise = _noise(mechanism, active, statistic) / deviation**2
        dynamics = Dynamics.of(sequences)
        longest = max(len(world.population.recording(r)) // n for r in world.population.released)
        gains = Gains.of(dynamics, noise, longest)
        return cls(centre, deviation, pooled, slope, dynamics, noise, gains, statistic)

    def see(self, released: Array) -> Array:
        """(T, A) standardised statistic of released chunks (T, A, n)."""
        return (self.statistic(released) - self.centre) / self.deviation

    def jointly(self, seen: Array, noise: Array) -> Array:
        """(T, A) estimate of the statistic of each chunk by itself, all features together, under this noise (A,)."""
        whole = self.dynamics.between + self.dynamics.within
        return seen @ np.linalg.solve(whole + np.diag(noise), whole)

    def chunk_by_chunk(self, released: Array, count: int) -> Array:
        """(T, A) estimates of the chunks' means, in the features' units, from averages of `count` releases each."""
        estimate = self.jointly(self.see(released), self.noise / count) * self.slope
        return self.centre + self.deviation * estimate

    def estimates(self, seen: Array) -> dict[str, Array]:
        """For each of `ATTACKS` the estimated means (T, A) of the chunks, standardised."""
        variance = (self.pooled**2).mean(axis=0)
        values = (
            seen * (variance / (variance + self.noise)),
            self.jointly(seen, self.noise),
            filtered(self.gains, seen),
            smoothed(self.gains, seen),
        )
        return {name: value * self.slope for name, value in zip(ATTACKS, values, strict=True)}


def _filtering(world: World, mechanism: Mechanism, repeats: int) -> list[Record]:
    active, n, known = world.active, mechanism.n, _Knowledge.of(world, mechanism)
    errors = {name: np.zeros(len(active)) for name in ATTACKS}
    spread, rows = np.zeros(len(active)), 0
    for recording in world.population.released:
        own = world.rows(recording, n)
        truth = (own[:, active] - known.centre) / known.deviation
        spread += (truth**2).sum(axis=0) * repeats
        rows += len(own) * repeats
        for _ in range(repeats):
            seen = known.see(whole_chunks(release_rows(mechanism, own), n)[:, active])
            for name, estimate in known.estimates(seen).items():
                errors[name] += ((np.repeat(estimate, n, axis=0) - truth) ** 2).sum(axis=0)
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


def _noise(mechanism: Mechanism, active: NDArray[np.intp], statistic: Callable[[Array], Array]) -> Array:
    """(A,) variance of the statistic's noise: measured by the attacker, on 400 releases of a chunk of missing values.

    What is measured is the mechanism's, not a person's; everyone can run it.
    """
    nothing = np.full((mechanism.features, mechanism.n), np.nan)
    drawn = statistic(np.array([mechanism.release(nothing)[active] for _ in range(400)]))
    variance: Array = drawn.var(axis=0)
    return variance
