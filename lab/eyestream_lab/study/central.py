"""Local against central: the mean over N people, when each protects himself and when somebody trusted adds the noise.

This program works in the local model: every chunk is protected before anybody has it. A trusted aggregator who holds
the chunks of N people at the same moment can publish their mean with far less noise at the same epsilon. What that is
worth is measured here; it is no mechanism of the program, and nobody is trusted with raw chunks.

*Neighbours, both models*: one chunk of one person is replaced by any other. *Local*: N people release theirs at
epsilon; the mean is taken of N releases. *Central*: every chunk is projected onto the calibrated ball of radius r, and
the mean of the projected chunks gets the mechanism's noise once. Replacing one chunk moves that mean by at most 2 r / N
instead of 2 r, and a ball is convex, so that the mean lies in it: the mechanism's own private step at N epsilon has
exactly that noise, and costs each person epsilon. (The last bit of the grid is not charged: this is an experiment.)

Closed form, one feature, sum over the n rows of a chunk, bands not kept filled with the corpus mean, people independent
and unbiased around it, E(k) = T(k) + N(k) (2 r / eps_f)^2 as in `eyestream.core.additive.signals` with T(k) what
truncation and projection lose of the distance to the corpus mean:

    local     T(k) / N + N(k) (2 r / eps_f)^2 / N
    central   T(k) / N + N(k) (2 r / eps_f)^2 / N^2

So the noise's share is N times smaller in the central model, its standard deviation sqrt(N) times. k minimises the sum
over features, each relative to its spread S, for each model and N.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.core.additive.ball import l1_factor, l2_factor
from eyestream.core.calibration import Calibration, PerFeatureTables
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms.registry import names
from eyestream.core.whole import release_rows
from eyestream_lab.calibration.corpus import whole_chunks
from eyestream_lab.study.cells import Cell, Record
from eyestream_lab.study.plan import Plan
from eyestream_lab.study.sources import World
from eyestream_lab.study.ways import of_chunks, study_part, with_signals

Array = NDArray[np.float64]

MODELS = ("local", "central")
TARGETS = (1.0, 0.1, 0.01)
"""Errors over the variance of one person's chunk; what N people vary among themselves is 1 / N of it."""

_SUBSETS = 20


@dataclass(frozen=True, eq=False)
class _Figures:
    """Released features: spread S (A,), T(k) (A, K), and N(k) (2 r A / epsilon)^2 at epsilon 1, (A, K)."""

    spread: Array
    lost: Array
    noise: Array

    @classmethod
    def of(cls, calibration: Calibration) -> "_Figures":
        tables, active = _tables(calibration), ~calibration.constant
        spread, overlap, energy = tables.spread[active], tables.overlap[active], tables.energy[active]
        unit = 2 * tables.radius[active] * int(active.sum())
        noise = with_signals()[calibration.mechanism].noise(calibration.n)
        return cls(spread, spread[:, None] - 2 * overlap + energy, noise * unit[:, None] ** 2)


def cells(plan: Plan, world: World) -> list[Cell]:
    """One cell for each mechanism, chunk length and epsilon; those without a closed form in the local model alone."""
    return [
        Cell("central", {"mechanism": mechanism, "n": n, "epsilon": epsilon, "seed": 0})
        for mechanism in names()
        if study_part(mechanism).ways
        for n in plan.attack_chunks[:1]
        for epsilon in plan.epsilons
    ]


def measure(world: World, *, mechanism: str, n: int, epsilon: float, seed: int) -> list[Record]:
    """Squared error of the mean over N people, over the variance of one person's chunk: mean and median feature.

    N goes in powers of two up to the number of released people; random subsets of them (with `seed`), the chunks that
    all of them have. `expected` is the closed form, where there is one. Then, from the closed form alone, how many
    people each `target` error needs.
    """
    calibration = world.calibrations[mechanism, n]
    active = np.flatnonzero(~calibration.constant)
    rows = _one_each(world, n)
    chunks = np.array([whole_chunks(own, n) for own in rows])  # (P, T, F, n)
    closed = mechanism in with_signals()
    spread = _Figures.of(calibration if closed else world.calibrations[of_chunks(), n]).spread
    records: list[Record] = []
    for people in 2 ** np.arange(int(np.log2(len(rows))) + 1):
        for model in MODELS if closed else MODELS[:1]:
            k = choose_k(calibration, epsilon, int(people), model) if closed else 0
            built = world.build(calibration, epsilon * (people if model == "central" else 1), **_options(mechanism, k))
            if model == "local":
                released = np.array([whole_chunks(release_rows(built, own), n) for own in rows])[:, :, active]
            else:
                released = projected(calibration, chunks[:, :, active])
            errors = []
            for chosen in _subsets(len(rows), int(people), seed):
                mean = released[chosen].mean(axis=0)
                if model == "central":
                    mean = np.array([release_of_mean(built, one) for one in mean])
                errors.append(((mean - chunks[chosen][:, :, active].mean(axis=0)) ** 2).sum(axis=2).mean(axis=0))
            error = np.mean(errors, axis=0) / spread
            record: Record = {"model": model, "people": int(people), "k": k}
            record |= {"error": float(error.mean()), "error_median": float(np.median(error))}
            records.append(record | (_told(calibration, epsilon, int(people), model) if k else {}))
    for target in TARGETS if closed else ():
        for model in MODELS:
            needed = people_needed(calibration, epsilon, model, target)
            records.append({"model": model, "people": needed, "k": choose_k(calibration, epsilon, needed, model)})
            records[-1] |= {"target": target}
    return records


def people_needed(calibration: Calibration, epsilon: float, model: str, target: float) -> int:
    """The least number of people with whom the closed form is at most `target` times the variance of one person."""

    def reached(people: int) -> bool:
        return float(_errors(calibration, epsilon, people, model).mean(axis=0).min()) <= target

    most = 1
    while not reached(most):
        most *= 2
    least = most // 2
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if reached(middle) else (middle, most)
    return most


def _told(calibration: Calibration, epsilon: float, people: int, model: str) -> Record:
    """The closed form at its best k, over the variance of one person's chunk."""
    errors = _errors(calibration, epsilon, people, model)[:, choose_k(calibration, epsilon, people, model) - 1]
    return {"expected": float(errors.mean()), "expected_median": float(np.median(errors))}


def choose_k(calibration: Calibration, epsilon: float, people: int, model: str) -> int:
    """The number of coefficients, one for all features, of least expected error; 1 for LPA, which cuts nothing."""
    return int(np.argmin(_errors(calibration, epsilon, people, model).mean(axis=0))) + 1


def _errors(calibration: Calibration, epsilon: float, people: int, model: str) -> Array:
    """(A, K) the closed form, over the variance of one person's chunk."""
    figures = _Figures.of(calibration)
    power = people if model == "local" else people**2
    errors: Array = (figures.lost / people + figures.noise / epsilon**2 / power) / figures.spread[:, None]
    return errors


def projected(calibration: Calibration, chunks: Array) -> Array:
    """Chunks (.., A, n) of the released features, each signal on the calibrated ball."""
    tables, active = _tables(calibration), ~calibration.constant
    space = with_signals()[calibration.mechanism]
    factor = l1_factor if space.order == 1 else l2_factor
    centre, radius = tables.centre[active], tables.radius[active]
    residual = space.there(chunks) - centre
    flat = residual.reshape(-1, residual.shape[-1])
    scaled = flat * factor(flat, np.tile(radius, len(flat) // len(radius)))
    return space.back(centre + scaled.reshape(residual.shape))


def release_of_mean(mechanism: Mechanism, mean: Array) -> Array:
    """The private step on a mean (A, n) of projected chunks, which lies in the ball: the noise of the mechanism."""
    core = mechanism.core
    out = np.empty_like(mean)
    core.step().release(mean, mechanism.noise, 0, None, out)
    return out


def _options(mechanism: str, k: int) -> dict[str, Any]:
    signals = with_signals().get(mechanism)
    return {"k": k, "fill_band": True} if signals is not None and signals.truncates else {}


def _one_each(world: World, n: int) -> list[Array]:
    """Rows (m, F) of the first recording of each released person, cut to the shortest."""
    first: dict[str, int] = {}
    for recording in world.population.released:
        first.setdefault(world.population.people[recording], recording)
    rows = [world.rows(recording, n) for recording in first.values()]
    return [own[: min(map(len, rows))] for own in rows]


def _subsets(of: int, people: int, seed: int) -> Sequence[NDArray[np.intp]]:
    """Random subsets of `people` out of `of`; the whole once."""
    rng = np.random.default_rng((seed, people))
    return [rng.permutation(of)[:people] for _ in range(_SUBSETS if people < of else 1)]


def _tables(calibration: Calibration) -> PerFeatureTables:
    assert isinstance(calibration.tables, PerFeatureTables)
    return calibration.tables
