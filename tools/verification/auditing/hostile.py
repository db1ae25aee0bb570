"""Chunks that an adversary would send, and the mechanisms that they are sent to."""

import itertools
import math

import numpy as np

from eyestream.core.additive.core import AdditiveStep
from eyestream.core.frame import Page
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.core.noise import Noise
from eyestream.core.spectrum import coordinate_weights, integrate, most_coefficients
from eyestream_lab.mechanisms.additive import Array, worst_signal
from eyestream_lab.testing.noise import ZeroNoise
from tests.rigs.calibrations import synthetic

__all__ = ["Subject", "additive_step", "admitted", "hostile_chunks", "subjects"]


class Subject:
    """A mechanism that is looked into: as many equal features as there are hostile chunks, each at `epsilon`."""

    def __init__(self, name: str, n: int, k: int | None, epsilon: float, width: float = 1e9) -> None:
        self.name, self.n, self.k, self.epsilon = name, n, k, epsilon
        self.label = f"{name} n={n} k={k or '-'}"
        self.width = width
        self.scale = 2 / epsilon * (1 if k is None else math.sqrt(n * k))
        self.step = 2.0 ** math.floor(math.log2(self.scale) - 20)
        self.chunks = hostile_chunks(name, n, k, self.step)
        self.features = len(self.chunks)
        self.mechanism = self.with_noise(ZeroNoise())
        self.weights = np.ones(n, dtype=np.int64) if k is None else coordinate_weights(n, k)

    def with_noise(self, noise: Noise | None) -> Mechanism:
        """The same mechanism, made anew with another noise; None is the real one."""
        calibration = synthetic(self.name, self.n, self.features, self.width)
        return build(calibration, self.features * self.epsilon, k=self.k, noise=noise)


def additive_step(mechanism: Mechanism) -> AdditiveStep:
    """The private step of an additive mechanism, with its figures in `core.private`."""
    step = mechanism.core.step()
    assert isinstance(step, AdditiveStep)
    return step


def admitted(mechanism: Mechanism, chunk: Array) -> Array:
    """(A, n) what the private step gets for a chunk (F, n)."""
    return Page(mechanism.frame).admit(chunk)


def subjects(epsilon: float = 1.0, width: float = 1e9) -> list[Subject]:
    """LPA, and CFPA and DCFPA at a low, a middle and the highest k."""
    fourier = [Subject(name, 8, k, epsilon, width) for name in ("cfpa", "dcfpa") for k in (1, 3, most_coefficients(8))]
    return [Subject("lpa", 8, None, epsilon, width), *fourier]


def hostile_chunks(name: str, n: int, k: int | None, step: float) -> Array:
    """(chunks, n): in the ball, at its border, far outside, next to where rounding turns, and not numbers at all."""
    rng = np.random.default_rng(1)
    rows = [np.zeros(n), np.ones(n), (-1.0) ** np.arange(n), np.eye(n)[0], np.eye(n)[n // 2], np.linspace(-1, 1, n)]
    rows += list(rng.normal(size=(12, n))) + list(rng.choice((-1.0, 1.0), size=(12, n)))
    rows += [worst_signal(n, j)[1] for j in range(1, most_coefficients(n) + 1)]
    rows += [_integrated(name, worst_signal(n, j)[1]) for j in range(1, most_coefficients(n) + 1)]
    finite = np.array([sign * size * row for row in rows for sign in (1, -1) for size in (0.3, 1.0, 1000.0)])
    turning = _turning(name, n, k, step)
    broken = 1000 * rng.normal(size=(16, n))
    broken[np.arange(16), rng.integers(n, size=16)] = np.tile([np.nan, np.inf, -np.inf, 1e308], 4)
    broken = np.concatenate([broken, [np.full(n, value) for value in (np.nan, np.inf, 1e308, -1e308, 5e-324)]])
    return np.concatenate([finite, turning, -turning, broken])


def _integrated(name: str, signal: Array) -> Array:
    return integrate(signal) if name == "dcfpa" else signal


def _turning(name: str, n: int, k: int | None, step: float) -> Array:
    """Chunks (chunks, n) in the ball whose coordinates stand a little beyond halves, so that each rounds outward."""
    over = 0.5 + 2.0**-10
    if k is None:
        c = np.full(n, math.floor(1 / step / n) - 1 + over)
        c[0] += math.floor(1 / step - c.sum() - 2.0**-8)
        return np.stack([c, c[::-1]]) * step
    weights = coordinate_weights(n, k)
    target = worst_signal(n, k)[0] / step
    choices = np.array(list(itertools.product((-2, -1, 0, 1), repeat=len(weights))))
    c = np.floor(target) + choices + over
    c = c[(weights * c**2).sum(axis=1) <= n / step**2 * (1 - 2.0**-48)]
    best = c[np.argsort(c.sum(axis=1))[-4:]] * step
    reals = np.zeros((len(best), 2 * most_coefficients(n)))
    reals[:, 0], reals[:, 2 : len(weights) + 1] = best[:, 0], best[:, 1:]
    return _integrated(name, np.fft.irfft(reals[:, 0::2] + 1j * reals[:, 1::2], n, axis=1))
