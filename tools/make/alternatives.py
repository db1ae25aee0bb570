"""Other laws in the place of klt's randomised response: the same innovations, with noise added to them.

python -m tools.make.alternatives GAZE_DIR [--release odd|even] [--seeds 5] [--chunk 32] [--epsilon E ...]

People, rows and explained variance (clipped) as in `frontier.py`. In every chunk the m most worthy directions of the
innovation are held to a body, and noise of pure epsilon is added to the m numbers:

K-norm    Euclidean ball of radius r; noise of density ~ exp(-epsilon |z| / (2 r)) (Hardt and Talwar 2010): its length
          is Gamma(m, 2 r / epsilon), its direction uniform, a coordinate's variance (m + 1) (2 r / epsilon)^2.
Laplace   box |y| <= c; Laplace noise of scale 2 c m / epsilon on each coordinate, epsilon split evenly.

m and the body are chosen anew for every chunk as klt chooses its code, by what the model says is removed of the error:
sum of worth alpha^2 / (alpha^2 + R), y -> alpha y + e the best linear description of body and noise for standard normal
y (Bussgang), R the variance of e. The receiver runs the same Kalman filter. Floating-point noise: for figures alone.
"""

import argparse
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc

from eyestream.core.calibration import Calibration, JointTables
from eyestream.core.frame import Page
from eyestream.core.mechanisms import build
from eyestream.core.mechanisms.klt.core import JointCore
from eyestream.core.mechanisms.klt.schedule import STEPS
from eyestream_lab.calibration.corpus import Corpus, whole_chunks
from eyestream_lab.calibration.joint import calibrate_joint
from eyestream_lab.calibration.row_parts import inverse_root
from tools.make import everyday
from tools.make.frontier import explained, groups_in, release

Array = NDArray[np.float64]
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24)
SIZES = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.3, 1.6, 2.0, 2.5, 3.0)
"""Of the body, in standard deviations of a coordinate (for the ball: of its distance, root mean square)."""


@dataclass(frozen=True)
class Body:
    """What m coordinates are held to, and the noise on them.

    Attributes
    ----------
    count, size : m, and the radius or half-width.
    slope, residual : alpha and R.
    """

    count: int
    size: float
    slope: float
    residual: float


def balls(epsilon: float) -> Iterator[Body]:
    """Of y ~ N(0, I_m), rho = |y|: P(rho < r) and the parts of E rho^2 by incomplete gamma functions."""
    for m in COUNTS:
        for size in SIZES:
            r = size * np.sqrt(m)
            inside, below = gammainc(m / 2 + 1, r * r / 2), gammainc(m / 2, r * r / 2)
            rho = np.sqrt(np.random.default_rng(0).chisquare(m, 100_000))
            beyond = float(np.where(rho > r, r * rho, 0.0).mean())
            slope = inside + beyond / m
            square = inside + r * r * (1 - below) / m
            yield Body(m, r, slope, square - slope**2 + (m + 1) * (2 * r / epsilon) ** 2)


def boxes(epsilon: float) -> Iterator[Body]:
    for m in COUNTS:
        for c in SIZES:
            inside, beyond = gammainc(0.5, c * c / 2), 1 - gammainc(0.5, c * c / 2)
            square = gammainc(1.5, c * c / 2) + c * c * beyond
            yield Body(m, c, inside, square - inside**2 + 2 * (2 * c * m / epsilon) ** 2)


def ball_noise(y: Array, body: Body, epsilon: float, rng: np.random.Generator) -> Array:
    m, r = body.count, body.size
    held = y * min(1.0, r / max(float(np.linalg.norm(y)), 1e-300))
    way = rng.standard_normal(m)
    return np.asarray(held + way / np.linalg.norm(way) * rng.gamma(m, 2 * r / epsilon))


def box_noise(y: Array, body: Body, epsilon: float, rng: np.random.Generator) -> Array:
    scale = 2 * body.size * body.count / epsilon
    return np.asarray(np.clip(y, -body.size, body.size) + rng.laplace(0.0, scale, body.count))


Law = tuple[Callable[[float], Iterator[Body]], Callable[[Array, Body, float, np.random.Generator], Array]]
LAWS: dict[str, Law] = {"K-norm": (balls, ball_noise), "Laplace": (boxes, box_noise)}


def schedule(core: JointCore, bodies: list[Body]) -> list[tuple[Array, Body, Array]]:
    """Directions (m, d), body and gain of each chunk; the recursion of `eyestream.core.mechanisms.klt.schedule`."""
    tables: JointTables = core.tables
    components, d = tables.covariances.shape[:2]
    total, target = np.tile(np.eye(d), components), np.kron(tables.weights, np.eye(d))
    motion, steps = core.schedule.motion, []
    state: Array = motion.stationary
    for turn in range(STEPS):
        state = motion.spread(state) if turn else state
        white = inverse_root(total @ state @ total.T)
        toward = white @ total @ state @ target.T
        worth, rotation = np.linalg.eigh(toward @ tables.expand @ tables.expand.T @ toward.T)
        gains = np.cumsum(np.maximum(worth[::-1], 0.0))
        fitting = [body for body in bodies if body.count <= d]
        best = max(fitting, key=lambda b: gains[b.count - 1] * b.slope**2 / (b.slope**2 + b.residual))
        directions = (rotation[:, ::-1].T @ white)[: best.count]
        seen = best.slope * directions @ total
        noise = best.residual * np.eye(best.count)
        gain = np.asarray(np.linalg.solve(seen @ state @ seen.T + noise, seen @ state).T, np.float64)
        state = state - gain @ seen @ state
        state = (state + state.T) / 2
        steps.append((directions, best, gain))
    return steps


@functools.cache
def plan(calibration: Calibration, law: str, epsilon: float) -> tuple[JointCore, Page, list[tuple[Array, Body, Array]]]:
    mechanism = build(calibration, epsilon)
    core = mechanism.core
    assert isinstance(core, JointCore)
    return core, Page(mechanism.frame), schedule(core, list(LAWS[law][0](epsilon)))


def released(calibration: Calibration, law: str, epsilon: float, person: Array, seed: int) -> Array:
    """Chunks (C, F, n) with noise, of one session."""
    core, page, steps = plan(calibration, law, epsilon)
    add, step, rng = LAWS[law][1], core.step(), np.random.default_rng(seed)
    state, out = core.start.copy(), []
    for turn, chunk in enumerate(person):
        directions, body, gain = steps[min(turn, len(steps) - 1)]
        state = core.schedule.motion.forward(state) if turn else state
        expected = state.reshape(len(core.tables.poles), -1).sum(axis=0)
        y = directions @ (step.scores(page.admit(chunk)) - expected)
        state = state + gain @ add(y, body, epsilon, rng)
        own = np.empty((core.mean.size, calibration.n))
        step.chunk(core.tables.weights @ state.reshape(len(core.tables.poles), -1), own)
        whole = np.tile(calibration.fill[:, None], (1, calibration.n))
        whole[~calibration.constant] = own
        out.append(whole)
    return np.array(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gaze", type=Path)
    parser.add_argument("--release", choices=("odd", "even"), default="odd")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--chunk", type=int, default=32)
    parser.add_argument("--epsilon", type=float, nargs="+", default=(0.48, 2.4, 4.8, 9.6, 24.0, 48.0))
    options = parser.parse_args()
    people = everyday.corpus(options.gaze)
    known, fresh = (people[::2], people[1::2]) if options.release == "odd" else (people[1::2], people[::2])
    calibration = calibrate_joint(Corpus.of(known, options.chunk), ranks=False)
    groups = groups_in(calibration, known)
    raw = [whole_chunks(r.features, options.chunk) for r in fresh]
    for epsilon in options.epsilon:
        for law in (*LAWS, "klt"):
            runs = [
                explained(
                    calibration,
                    groups,
                    raw,
                    [release(calibration, epsilon, {}, x, split=False) for x in raw]
                    if law == "klt"
                    else [released(calibration, law, epsilon, x, 1000 * seed + i) for i, x in enumerate(raw)],
                )
                for seed in range(options.seeds)
            ]
            plain, clipped, distinct, grouped = np.mean(runs, axis=0)
            print(f"epsilon {epsilon:5.2f} {law:8s} as they are {plain:.3f}, clipped {clipped:.3f}, ", end="")
            print(f"distinct {distinct:.3f}, groups {grouped:.3f}", flush=True)


if __name__ == "__main__":
    main()
