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
from auditing.planting import Patch, fault

from eyestream.privacy import transforms
from eyestream.spectrum.difference import difference
from eyestream.testing.noise import ZeroNoise
from eyestream.testing.seams import original, replaced

# Scale of the noise


def _sensitivity(change: Callable[[Any, np.ndarray, int], np.ndarray]) -> list[Patch]:
    """The law is made for a changed sensitivity: `change` is given the mechanism, the integers and their count."""
    law = original("additive law")

    def changed(frame: Any, sensitivity: Any, count: int, largest: int) -> Any:
        return law(frame, np.maximum(change(frame, sensitivity, count).astype(np.int64), 1), count, largest)

    return [("additive law", changed)]


@fault("missing sqrt(n)", "shipped", "epsilon cfpa k=2", "lattice")
def _() -> list[Patch]:
    return _sensitivity(lambda frame, sensitivity, count: sensitivity / math.sqrt(frame.n))


@fault("missing sqrt(k)", "epsilon cfpa k=2", "lattice")
def _() -> list[Patch]:
    return _sensitivity(lambda frame, sensitivity, count: sensitivity / math.sqrt((count + 1) // 2))


@fault("radius taken for the diameter", "epsilon cfpa k=1", "lattice")
def _() -> list[Patch]:
    return _sensitivity(lambda frame, sensitivity, count: sensitivity / 2)


@fault("every feature gets the whole epsilon", "shipped", "epsilon cfpa k=1", "lattice")
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
        parts, source = self._parts, self._noise
        with replaced(*_no_hold()), mock.patch.object(parts.law, "clamp", lambda noisy: noisy):
            self._parts = dataclasses.replace(parts, factor=lambda residual, radius: np.ones((len(residual), 1)))
            noised = noisy(self, admitted) * self._scale
        self._parts, self._noise = parts, ZeroNoise()
        try:
            return noisy(self, parts.transform.chunk(noised))
        finally:
            self._noise = source

    return [("noisy integers", noise_first)]


@fault("radius not enforced", "epsilon cfpa k=1", "radius", "lattice")
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
    coordinates = transforms.FourierTransform.coordinates
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
    release = original("KLTSession.release")

    def remembering(self: Any, chunk: Any) -> Any:
        before, turn = self._state, self._turn
        released = release(self, chunk)
        source, self._state, self._turn = self._mechanism._noise, before, turn
        self._mechanism._noise = ZeroNoise()  # nothing is replaced
        release(self, chunk)
        self._mechanism._noise = source
        return released

    return [("KLTSession.release", remembering)]
