"""Faults of the sampler and of its entropy."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from auditing.planting import Patch, fault

from eyestream.privacy import mechanism, workspaces
from eyestream.privacy.additive import ball, core
from eyestream.privacy.noise import bits, digits, laws, response, source

# Sampler


@fault("float Laplace", "reachable")
def _() -> list[Patch]:
    def sample(self: Any, source: Any) -> Any:
        uniform = (source.words(self.shape[0] * self.shape[1]).reshape(self.shape) + 0.5) / 2**32 - 0.5
        return -np.sign(uniform) * np.log1p(-2 * np.abs(uniform)) * (self.sd / math.sqrt(2))[:, None]

    shares = {
        kind: lambda self, coordinates, factor: np.clip(coordinates * factor * self._per_step, -(2.0**40), 2.0**40)
        for kind in (ball.L2Lattice, ball.L1Lattice)
    }
    return [(laws.LaplaceLaw, "sample", sample), *((kind, "snap", share) for kind, share in shares.items())]


def _unverified() -> Patch:
    return laws, "digits_within", lambda *_: True


def _uniform_low(share: float) -> list[Patch]:
    thresholds = digits.digit_thresholds

    def uniform_low(log_p: Any) -> Any:
        return thresholds(np.where(log_p > -math.log(2) - share, -math.log(2), log_p))

    return [_unverified(), (digits, "digit_thresholds", uniform_low)]


@fault("thresholds that nobody verifies", "sampler")
def _() -> list[Patch]:
    return [_unverified()]


@fault("uniform low bits in the sampler", "epsilon cfpa k=1 small", "sampler")
def _() -> list[Patch]:
    return _uniform_low(1 / 32)


@fault("uniform lowest bits, the finest tenth of a per cent", "sampler")
def _() -> list[Patch]:
    return _uniform_low(1e-3)


def _drawn(change: Callable[[Any, Any], Any]) -> list[Patch]:
    sample = laws.LaplaceLaw.sample
    return [(laws.LaplaceLaw, "sample", lambda self, source: change(self, sample(self, source)))]


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
    return [(laws.LaplaceLaw, "clamp", lambda self, noisy: noisy)]


@fault("public interval too wide for the reach", "reachable")
def _() -> list[Patch]:
    def wide(self: Any, noisy: Any) -> Any:
        reach = 1 << len(self.digits.words)
        return np.clip(noisy, -reach, reach)

    return [(laws.LaplaceLaw, "clamp", wide)]


@fault("response replaces half as often", "epsilon klt", "sampler")
def _() -> list[Patch]:
    numerator = response._replace_numerator
    return [(response, "_replace_numerator", lambda epsilon, count: numerator(epsilon, count) // 2)]


@fault("response with the whole epsilon for each coordinate", "epsilon klt")
def _() -> list[Patch]:
    create = response.ResponseLaw.__init__
    return [(response.ResponseLaw, "__init__", lambda self, own, epsilon: create(self, own, epsilon * len(own)))]


@fault("noise scaled to the chunk's own spread", "reachable")
def _() -> list[Patch]:
    noisy = core.AdditiveStep.noisy

    def adaptive(self: Any, admitted: Any, source: Any) -> Any:
        own = np.minimum(np.linalg.norm(self.transform.residual(admitted), axis=1, keepdims=True), 1.0)
        return noisy(self, admitted, _Scaled(source, own))

    return [(core.AdditiveStep, "noisy", adaptive)]


class _Scaled:
    def __init__(self, source: Any, factor: Any) -> None:
        self._source, self._factor = source, factor

    def draw(self, law: Any) -> Any:
        return np.rint(self._factor * self._source.draw(law)).astype(np.int64)


@fault("a feature that was not seen gets no noise", "reachable")
def _() -> list[Patch]:
    release = mechanism.Mechanism.release

    def sparing(self: Any, chunk: Any) -> Any:
        released = release(self, chunk)
        released[np.isnan(chunk).all(axis=1)] = 0.0
        return released

    return [(mechanism.Mechanism, "release", sparing)]


# Entropy


@fault("seeded generator", "entropy")
def _() -> list[Patch]:
    return [(bits.os, "urandom", lambda size: bytes(range(size)))]


@fault("a copy of the process goes on with the words of the original", "entropy")
def _() -> list[Patch]:
    def words(self: Any, count: int) -> Any:
        """As in 0.1.0: one stream, that only the hook of Python's fork renews."""
        return np.frombuffer(self._free[0].update(bytes(4 * count)), np.uint32)

    return [(bits.SystemBits, "words", words)]


@fault("noise drawn ahead outlives a copy of the process", "entropy")
def _() -> list[Patch]:
    draw = source.SecureNoise.draw

    def ahead(self: Any, law: Any) -> Any:
        ready = self.__dict__.setdefault("ready", draw(self, law))
        self.ready = draw(self, law)
        return ready

    return [(source.SecureNoise, "draw", ahead)]


@fault("noise drawn once is used for every chunk", "entropy")
def _() -> list[Patch]:
    draw = source.SecureNoise.draw
    return [(source.SecureNoise, "draw", lambda self, law: self.__dict__.setdefault("ready", draw(self, law)).copy())]


@fault("two threads in one mechanism at once", "entropy")
def _() -> list[Patch]:
    return [(workspaces.Workspaces, "take", lambda self: self._free[0]), (workspaces.Workspaces, "give", _nothing)]


def _nothing(self: Any, work: Any) -> None:
    """A workspace that was never taken out is not given back."""
