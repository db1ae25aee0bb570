"""Faults of the scale of the noise and of the ball.

A fault that the hold of the integers would make harmless is planted together with the missing hold, as the naive
version has it: what is on trial is the audit, not the second line of defence.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from eyestream.core.additive import signals
from eyestream.core.spectrum import difference
from eyestream_lab.testing.noise import ZeroNoise
from tests.rigs.seams import original, replaced
from tools.verification.auditing.planting import Patch, fault

# Scale of the noise


def _sensitivity(change: Callable[[Any, np.ndarray, int], np.ndarray]) -> list[Patch]:
    """The law is made for a changed sensitivity: `change` is given the frame, the integers and their count."""
    law = original("law of LPA")

    def changed(frame: Any, sensitivity: Any, count: int, largest: int) -> Any:
        return law(frame, np.maximum(change(frame, sensitivity, count).astype(np.int64), 1), count, largest)

    return [("law of LPA", changed), ("law of Fourier", changed)]


@fault("missing sqrt(n)", "shipped", "lattice", "epsilon cfpa k=2")
def _() -> list[Patch]:
    return _sensitivity(lambda frame, sensitivity, count: sensitivity / math.sqrt(frame.n))


@fault("missing sqrt(k)", "lattice", "epsilon cfpa k=2")
def _() -> list[Patch]:
    return _sensitivity(lambda frame, sensitivity, count: sensitivity / math.sqrt((count + 1) // 2))


@fault("radius taken for the diameter", "lattice", "epsilon cfpa k=1")
def _() -> list[Patch]:
    return _sensitivity(lambda frame, sensitivity, count: sensitivity / 2)


@fault("every feature gets the whole epsilon", "lattice", "shipped", "epsilon cfpa k=1")
def _() -> list[Patch]:
    return _sensitivity(lambda frame, sensitivity, count: sensitivity / len(frame.active))


@fault("noise on real parts only", "epsilon cfpa k=2")
def _() -> list[Patch]:
    draw = original("SecureNoise.draw")

    def real_only(self: Any, law: Any) -> Any:
        drawn = draw(self, law)
        drawn[:, 2::2] = 0
        return drawn

    return [("SecureNoise.draw", real_only)]


# The ball


def _no_hold() -> Patch:
    def rounded(self: Any, coordinates: Any, factor: Any) -> Any:
        return np.rint(np.clip(coordinates * factor * self._per_step, -(2.0**55), 2.0**55)).astype(np.int64)

    return "L2Lattice.snap", rounded


def _no_projection() -> Patch:
    return "ball factor", lambda norm, radius: np.ones((len(norm), 1))


@fault("noise before projection", "epsilon cfpa k=1")
def _() -> list[Patch]:
    noisy = original("noisy integers")

    def noise_first(self: Any, admitted: Any, source: Any) -> Any:
        """The shipped step twice: noise without a ball, then a ball without noise."""
        unbounded = dataclasses.replace(self.core.private, factor=lambda residual, _: np.ones((len(residual), 1)))
        unclamped = replaced("LaplaceLaw.clamp", lambda self, noisy: noisy)
        with replaced(*_no_hold()), unclamped, mock.patch.object(self.core, "private", unbounded):
            noised = noisy(self, admitted, source) * self.core.scale
        return noisy(self, self.transform.chunk(noised), ZeroNoise())

    return [("noisy integers", noise_first)]


@fault("radius not enforced", "radius", "lattice", "epsilon cfpa k=1")
def _() -> list[Patch]:
    return [_no_hold(), _no_projection()]


@fault("no projection (the hold is left)", "radius")
def _() -> list[Patch]:
    return [_no_projection()]


@fault("no hold of the integers (the projection is left)", "radius", "lattice")
def _() -> list[Patch]:
    return [_no_hold()]


@fault("sensitivity of the raw signal for differences", "lattice")
def _() -> list[Patch]:
    """The ball holds chunks, as for CFPA; what is noised are their differences."""
    coordinates = signals.FourierTransform.coordinates
    return [
        _no_hold(),
        ("difference residual", lambda self, chunk: chunk - self._centre),
        ("difference coordinates", lambda self, residual: coordinates(self, difference(residual))),
    ]


@fault("rounding counted once instead of per coordinate", "lattice")
def _() -> list[Patch]:
    """Sensitivity of the real ball plus one step, with nothing held."""

    def once(frame: Any, sensitivity: Any, count: int) -> Any:
        if frame.calibration.mechanism == "lpa":
            return sensitivity
        k = (count + 1) // 2 if count < frame.n or count == 1 else frame.n // 2 + 1
        lam = 2 * math.sqrt(frame.n * k) / frame.share
        step = 2.0 ** math.floor(math.log2(lam) - 20)
        return np.full(sensitivity.shape, 2 * math.sqrt(frame.n * k) / step + 1)

    return [_no_hold(), *_sensitivity(once)]


@fault("NaN that skips the projection", "radius")
def _() -> list[Patch]:
    """min(1, nan) is 1 in Python; and what is missing is set to zero only afterwards."""
    clamp = original("Domain.admit")

    def admit(self: Any, chunk: Any) -> Any:
        admitted = clamp(self, np.nan_to_num(chunk, nan=0.0))
        return np.where(np.isnan(chunk), np.nan, admitted)

    def naive(norm: Any, radius: Any) -> Any:
        return np.array([[min(1, r / s) if s else 1.0] for r, s in zip(radius, norm, strict=True)])

    return [("Domain.admit", admit), ("ball factor", naive)]


@fault("no clamp to the range", "radius")
def _() -> list[Patch]:
    def admit(self: Any, chunk: Any) -> Any:
        return np.where(np.isnan(chunk), 0.0, chunk)

    return [("Domain.admit", admit)]


# Imputation and transforms


@fault("hold-last across a chunk border", "imputation")
def _() -> list[Patch]:
    admit = original("Domain.admit")

    def holding(self: Any, chunk: Any) -> Any:
        admitted = admit(self, chunk)
        self._padded[:, 0] = admitted[:, -1]
        return admitted

    return [("Domain.admit", holding)]


@fault("differences across a chunk border", "imputation", "inverse")
def _() -> list[Patch]:
    last: dict[tuple[int, ...], Any] = {}
    plain = original("difference")

    def across(signals: Any) -> Any:
        result = plain(signals)
        result[:, 0] -= last.get(signals.shape, 0.0)
        last[signals.shape] = signals[:, -1].copy()
        return result

    return [("difference", across)]


@fault("two-term integration", "inverse")
def _() -> list[Patch]:
    def two_terms(differences: Any) -> Any:
        result = differences.copy()
        result[..., 1:] += differences[..., :-1]
        return result

    return [("integrate", two_terms)]


@fault("joint coding remembers the true code word", "state")
def _() -> list[Patch]:
    release = original("KLT step")

    def remembering(self: Any, admitted: Any, source: Any, *rest: Any) -> Any:
        true = release(self, admitted, ZeroNoise(), *rest)  # nothing is replaced
        release(self, admitted, source, *rest)
        return true

    return [("KLT step", remembering)]


@fault("asked features cut by borders of raw values", "epsilon asked")
def _() -> list[Patch]:
    release = original("asked step")

    def leaking(self: Any, admitted: Any, source: Any, *rest: Any) -> Any:
        turn, state, out = rest
        nearer = 1 + 1e-3 * np.sign(admitted.mean()) * np.linspace(-1, 1, state.shape[1])
        return release(self, admitted, source, turn, state * nearer, out)

    return [("asked step", leaking)]


# What is said and asked of a mechanism


@fault("options ignored silently", "options")
def _() -> list[Patch]:
    checked = original("options checked")

    def lenient(self: Any, options: Any) -> Any:
        return checked(self, {name: value for name, value in options.items() if name in self.options.__struct_fields__})

    return [("options checked", lenient)]


@fault("options taken and not applied", "options")
def _() -> list[Patch]:
    checked = original("options checked")

    def idle(self: Any, options: Any) -> Any:
        checked(self, options)
        return {}

    return [("options checked", idle)]


@fault("a guarantee of klt that speaks of a grid", "words")
def _() -> list[Patch]:
    return [("words of KLT", original("words of CFPA"))]


@fault("a guarantee against any computing power", "words")
def _() -> list[Patch]:
    power = "with any amount of computing power"
    return [("words of CFPA", dataclasses.replace(original("words of CFPA"), attacker=power))]


@fault("odds of a chunk claimed for a session", "words")
def _() -> list[Patch]:
    """The sentence of 0.1.0."""
    odds = "seeing the release changes the odds between any two possible chunks by at most e^epsilon"
    return [("words on odds", lambda made: f"{odds}, whatever an attacker believed before")]
