"""Faults of the sampler and of its entropy."""

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from tests.rigs.seams import original
from tools.verification.auditing.planting import Patch, fault

# Sampler


@fault("float Laplace", "reachable")
def _() -> list[Patch]:
    def sample(self: Any, source: Any) -> Any:
        uniform = (source.words(self.shape[0] * self.shape[1]).reshape(self.shape) + 0.5) / 2**32 - 0.5
        return -np.sign(uniform) * np.log1p(-2 * np.abs(uniform)) * (self.sd / math.sqrt(2))[:, None]

    def share(self: Any, coordinates: Any, factor: Any) -> Any:
        return np.clip(coordinates * factor * self._per_step, -(2.0**40), 2.0**40)

    return [("LaplaceLaw.sample", sample), ("L2Lattice.snap", share), ("L1Lattice.snap", share)]


def _unverified() -> Patch:
    return "thresholds verified", lambda rate, digits, deviation: True


def _uniform_low(share: float) -> list[Patch]:
    thresholds = original("digit thresholds")

    def uniform_low(odds: Any) -> Any:
        return thresholds([Decimal(1) if one < 2 * math.exp(share) - 1 else one for one in odds])

    return [_unverified(), ("digit thresholds", uniform_low)]


@fault("thresholds that nobody verifies", "sampler")
def _() -> list[Patch]:
    return [_unverified()]


@fault("uniform low bits in the sampler", "sampler", "epsilon cfpa k=1 small")
def _() -> list[Patch]:
    return _uniform_low(1 / 32)


@fault("uniform lowest bits, the finest tenth of a per cent", "sampler")
def _() -> list[Patch]:
    return _uniform_low(1e-3)


def _drawn(change: Callable[[Any, Any], Any]) -> list[Patch]:
    sample = original("LaplaceLaw.sample")
    return [("LaplaceLaw.sample", lambda self, source: change(self, sample(self, source)))]


@fault("noise of one sign", "epsilon cfpa k=1 small", "sampler")
def _() -> list[Patch]:
    return _drawn(lambda law, drawn: np.where(drawn < 0, ~drawn, drawn))


@fault("two zeros: -G in the place of -(G + 1)", "sampler")
def _() -> list[Patch]:
    return _drawn(lambda law, drawn: np.where(drawn < 0, drawn + 1, drawn))


@fault("one noise for all coordinates", "epsilon cfpa k=2", "sampler")
def _() -> list[Patch]:
    return _drawn(lambda law, drawn: np.repeat(drawn[:, :1], drawn.shape[1], axis=1))


@fault("no clamp of the noisy integers", "reachable")
def _() -> list[Patch]:
    return [("LaplaceLaw.clamp", lambda self, noisy: noisy)]


@fault("public interval too wide for the reach", "reachable")
def _() -> list[Patch]:
    def wide(self: Any, noisy: Any) -> Any:
        reach = 1 << len(self.digits.words)
        return np.clip(noisy, -reach, reach)

    return [("LaplaceLaw.clamp", wide)]


@fault("response replaces half as often", "sampler", "epsilon klt")
def _() -> list[Patch]:
    numerator = original("response numerator")
    return [("response numerator", lambda epsilon, rarest: numerator(epsilon, rarest) // 2)]


@fault("response counts words as drawn alike that are not", "sampler")
def _() -> list[Patch]:
    numerator = original("response numerator")
    return [("response numerator", lambda epsilon, rarest: numerator(epsilon, round(rarest)))]


@fault("response with the whole epsilon for each coordinate", "epsilon klt", "epsilon asked", "sampler")
def _() -> list[Patch]:
    create = original("ResponseLaw.__init__")
    return [("ResponseLaw.__init__", lambda self, own, epsilon: create(self, own, epsilon * len(own)))]


@fault("noise scaled to the chunk's own spread", "reachable")
def _() -> list[Patch]:
    noisy = original("noisy integers")

    def adaptive(self: Any, admitted: Any, source: Any) -> Any:
        own = np.minimum(np.linalg.norm(self.transform.residual(admitted), axis=1, keepdims=True), 1.0)
        return noisy(self, admitted, _Scaled(source, own))

    return [("noisy integers", adaptive)]


class _Scaled:
    def __init__(self, source: Any, factor: Any) -> None:
        self._source, self._factor = source, factor

    def draw(self, law: Any) -> Any:
        return np.rint(self._factor * self._source.draw(law)).astype(np.int64)


@fault("a feature that was not seen gets no noise", "reachable")
def _() -> list[Patch]:
    release = original("mechanism releases")

    def sparing(self: Any, chunk: Any, turn: int, state: Any) -> Any:
        released, state = release(self, chunk, turn, state)
        released[np.isnan(chunk).all(axis=1)] = 0.0
        return released, state

    return [("mechanism releases", sparing)]


# Entropy


@fault("seeded generator", "entropy")
def _() -> list[Patch]:
    return [("system entropy", lambda size: bytes(i % 256 for i in range(size)))]


@fault("a copy of the process goes on with the words of the original", "entropy")
def _() -> list[Patch]:
    stream = np.random.Generator(np.random.PCG64())  # before there is a copy

    def words(self: Any, count: int) -> Any:
        """One stream, that nothing renews."""
        return stream.integers(2**32, size=count, dtype=np.uint32)

    return [("SystemBits.words", words)]


@fault("noise drawn ahead outlives a copy of the process", "entropy")
def _() -> list[Patch]:
    draw = original("SecureNoise.draw")

    def ahead(self: Any, law: Any) -> Any:
        ready = self.__dict__.setdefault("ready", draw(self, law))
        self.ready = draw(self, law)
        return ready

    return [("SecureNoise.draw", ahead)]


@fault("noise drawn once is used for every chunk", "entropy")
def _() -> list[Patch]:
    draw = original("SecureNoise.draw")
    return [("SecureNoise.draw", lambda self, law: self.__dict__.setdefault("ready", draw(self, law)).copy())]


@fault("two threads in one mechanism at once", "entropy")
def _() -> list[Patch]:
    return [("workspace taken", lambda self: self._free[0]), ("workspace given", lambda self, work: None)]
