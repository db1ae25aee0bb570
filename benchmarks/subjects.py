"""The mechanisms under test, by name, at any size; and the floor under each."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyfftw
from numpy.typing import NDArray

from eyestream.core.additive.core import AdditiveStep
from eyestream.core.calibration import Calibration, JointTables
from eyestream.core.frame import Page
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.core.mechanisms.klt.core import JointStep
from eyestream.core.noise import Law, Noise, SystemBits
from eyestream.rim.files import calibrations
from eyestream.wire.release import PrivateChunk, encode_private
from eyestream_lab.calibration import declared_range

__all__ = ["EPSILON", "MECHANISMS", "a_chunk", "encode", "fft_pair", "floor", "stages", "subject", "words_consumed"]

Array = NDArray[np.float64]

MECHANISMS = ("lpa", "cfpa", "dcfpa", "klt")
EPSILON = 4.8
KEPT = 8
"""Coefficients kept by those that keep some: the size at which the targets are stated."""


def subject(name: str, features: int, n: int, *, k: int | None = KEPT, noise: Noise | None = None) -> Mechanism:
    """The mechanism `name` for chunks (features, n); `k` where it keeps coefficients."""
    return build(_calibration(name, features, n), EPSILON, k=k if name in {"cfpa", "dcfpa"} else None, noise=noise)


def _calibration(name: str, features: int, n: int) -> Calibration:
    """The shipped one where there is one; else its features cut or repeated, and the declared range as the ball."""
    shipped = f"everyday-{name}-{n}"
    if features == 52 and shipped in calibrations.shipped():
        return calibrations.load(shipped)
    whole = calibrations.load(f"everyday-{name}-64")
    here = np.arange(features) % 52
    resized = {
        "names": tuple(f"{whole.names[i]}.{turn}" for turn, i in enumerate(here)),
        "units": tuple(whole.units[i] for i in here),
        **{key: getattr(whole, key)[here] for key in ("declared", "lo", "hi", "fill")},
    }
    if not isinstance(whole.tables, JointTables):
        tables = replace(whole.tables, **{key: getattr(whole.tables, key)[here] for key in vars(whole.tables)})
        return declared_range(replace(whole, **resized, tables=tables), n)
    return replace(whole, **resized, n=n, tables=_joint(whole, here, n))


def _joint(whole: Calibration, here: NDArray[np.intp], n: int) -> JointTables:
    """Tables of the right sizes, for speed alone: what they release is of no use."""
    tables = whole.tables
    assert isinstance(tables, JointTables)
    modes = len(tables.modes)
    place = {feature: row for row, feature in enumerate(np.flatnonzero(~whole.constant).tolist())}
    rows = np.concatenate([np.arange(modes) + modes * place[i] for i in here.tolist() if i in place])
    waves = np.sqrt(2 / n) * np.cos(np.pi / n * np.arange(modes)[:, None] * (np.arange(n) + 0.5))
    waves[0] = np.sqrt(1 / n)
    return replace(
        tables,
        mean=tables.mean[here],
        sd=tables.sd[here],
        residual=tables.residual[here],
        modes=waves,
        basis=np.ascontiguousarray(tables.basis[rows]),
        expand=np.ascontiguousarray(tables.expand[:, rows]),
    )


def a_chunk(mechanism: Mechanism) -> Array:
    """A chunk with values in and around the range; the work does not depend on them."""
    calibration = mechanism.calibration
    width = (calibration.hi - calibration.lo)[:, None]
    noise = np.random.default_rng(1).normal(0.5, 0.2, size=(mechanism.features, mechanism.n))
    return calibration.lo[:, None] + width * noise


class _CountingNoise:
    """The production sampler over words that are counted."""

    def __init__(self) -> None:
        self.count = 0
        self._bits = SystemBits()

    def words(self, count: int) -> NDArray[np.uint32]:
        self.count += count
        return self._bits.words(count)

    def draw(self, law: Law) -> NDArray[np.int64]:
        return law.sample(self)


def words_consumed(name: str, features: int, n: int, *, k: int | None = KEPT) -> int:
    """32-bit words that one release takes from the source of random bits."""
    noise = _CountingNoise()
    mechanism = subject(name, features, n, k=k, noise=noise)
    mechanism.release(a_chunk(mechanism))
    return noise.count


def fft_pair(signals: int, n: int) -> Callable[[], object]:
    """A planned FFTW transform forth and back of (signals, n), nothing else."""
    x = pyfftw.zeros_aligned((signals, n))
    spectrum = pyfftw.zeros_aligned((signals, n // 2 + 1), dtype=np.complex128)
    back = pyfftw.zeros_aligned((signals, n))
    forward = pyfftw.FFTW(x, spectrum, axes=(1,)).execute
    inverse = pyfftw.FFTW(spectrum, back, axes=(1,), direction="FFTW_BACKWARD").execute

    def pair() -> None:
        forward()
        inverse()

    return pair


def floor(name: str, features: int, n: int, *, k: int | None = KEPT) -> Callable[[], object]:
    """The planned FFT pair and the random words that the sampler takes: what cannot be left out."""
    active = int((~_calibration(name, features, n).constant).sum())
    pair, words, count = fft_pair(active, n), SystemBits().words, words_consumed(name, features, n, k=k)

    def unavoidable() -> None:
        pair()
        words(count)

    return unavoidable


def encode(released: Array) -> bytes:
    """A released chunk as it goes on the wire."""
    values = released.astype(np.float32)
    return encode_private(PrivateChunk(1, 2, 32.0, 0.5, values, EPSILON, 0.0))


def stages(mechanism: Mechanism) -> dict[str, Callable[[], object]]:
    """The parts of a release in their order, each as something to time; reaches into the mechanism for them."""
    chunk = a_chunk(mechanism)
    released = mechanism.release(chunk)
    step, page, noise = mechanism.core.step(), Page(mechanism.frame), mechanism.noise
    if isinstance(step, JointStep):
        law, admitted = step.core.schedule.steps[0].law, page.admit(chunk).copy()
        scores = step.scores(admitted)

        def joint_inverse() -> None:
            step.chunk(scores, page.released)
            page.complete()

        return {
            "project": lambda: page.admit(chunk),
            "transform": lambda: step.scores(admitted),
            "noise": lambda: noise.draw(law),
            "inverse": joint_inverse,
            "encode": lambda: encode(released),
        }
    assert isinstance(step, AdditiveStep)
    parts = step.core.private
    admitted = page.admit(chunk).copy()
    residual = step.transform.residual(admitted).copy()
    factor, noisy = parts.factor(residual, parts.radius), step.noisy(admitted, noise)

    def inverse() -> None:
        step.plain(noisy, page.released)
        page.complete()

    return {
        "project": lambda: parts.factor(step.transform.residual(page.admit(chunk)), parts.radius),
        "transform": lambda: parts.lattice.snap(step.transform.coordinates(residual), factor),
        "noise": lambda: noise.draw(step.law),
        "inverse": inverse,
        "encode": lambda: encode(released),
    }
