"""LPA, CFPA, DCFPA and FPA: mechanisms that code every feature by itself.

Bozkir, Guenlue, Fuhl, Schaefer, Kasneci: Differential privacy for eye tracking with temporal correlations, PLOS ONE
16(8), 2021. Each of the A features that are not constant gets an equal share eps_f = epsilon / A, and by sequential
composition the chunk costs epsilon.

What differs from the paper, and why: the sensitivity is enforced by projection onto a calibrated ball instead of being
read from the data; noise goes to the real and the imaginary part of each kept one-sided coefficient; k minimises a
closed form of public figures instead of the error on the data; DCFPA ends with the cumulative sum.
"""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import CalibrationError, ConfigError
from eyestream.privacy.additive import AdditiveMechanism, Output, Parts
from eyestream.privacy.ball import L1Lattice, L2Lattice, l1_factor, l2_factor, steps_for
from eyestream.privacy.calibration import Calibration, PerFeatureTables, declared_range
from eyestream.privacy.error_model import cfpa_noise, dcfpa_noise, lpa_noise
from eyestream.privacy.klt import KLT
from eyestream.privacy.laws import LaplaceLaw, ideal_rate
from eyestream.privacy.mechanism import Mechanism
from eyestream.privacy.noise import Noise
from eyestream.privacy.smoothing import Smoother
from eyestream.privacy.transforms import DifferenceFourierTransform, FourierTransform, TimeTransform, Transform
from eyestream.spectrum.difference import difference
from eyestream.spectrum.fourier import coordinate_count, coordinate_weights

__all__ = ["CFPA", "DCFPA", "FPA", "LPA", "build"]

Array = NDArray[np.float64]


class _PerFeature(AdditiveMechanism):
    """What the mechanisms of this module share: one block per feature, each with its share of epsilon."""

    @property
    def _tables(self) -> PerFeatureTables:
        tables = self.calibration.tables
        if not isinstance(tables, PerFeatureTables):
            raise CalibrationError("the calibration holds no figures for features coded by themselves")
        return tables

    def _law(self, sensitivity: NDArray[np.int64], count: int, largest: int) -> LaplaceLaw:
        """Discrete Laplace law of every block, from its integer L1 sensitivity (A,) and its count of integers."""
        share = self.epsilon / len(self._active)
        rates = np.array([ideal_rate(share, float(s), count) for s in sensitivity])
        return LaplaceLaw(rates, count, largest)

    def _gain(self, noise: Array, k: NDArray[np.intp]) -> Array:
        """(A, 1) gains toward the corpus mean for N (A,) times squared scale, and k (A,)."""
        self._need_corpus()
        tables, active = self._tables, self._active
        overlap, energy = tables.overlap[active, k - 1], tables.energy[active, k - 1]
        gain: Array = np.clip(overlap / (energy + noise), 0.0, 1.0)[:, None]
        return gain

    def _need_corpus(self) -> None:
        if not self._tables.spread[self._active].all():
            raise CalibrationError("shrink and smooth need figures of a corpus; this calibration has a range alone")

    def _make_smoother(self) -> Smoother:
        self._need_corpus()
        tables, active, parts = self._tables, self._active, self._parts
        components = np.stack([tables.stays[active], tables.forgets[active]], axis=1)
        coordinate_sd = np.broadcast_to(parts.law.sd[:, None] * parts.steps, parts.law.shape)
        level = np.zeros(len(active))
        for index in range(parts.law.shape[1]):  # variance of a chunk's mean, coordinate by coordinate
            unit = np.zeros(parts.law.shape)
            unit[:, index] = coordinate_sd[:, index]
            level += parts.transform.chunk(unit).mean(axis=1) ** 2
        around = np.maximum(parts.noise_sd**2 - level, 0.0)
        return Smoother(tables.mean[active], components, tables.detail[active], level, around)


class LPA(_PerFeature):
    """Laplace perturbation: noise of scale Delta_1 / eps_f on every row, Delta_1 = 2 r of the L1 ball of the chunk."""

    name: ClassVar[str] = "lpa"

    def _assemble(self, k: int | None, shrink: bool) -> Parts:
        if k is not None:
            raise ConfigError("lpa keeps no coefficients: k cannot be given")
        active, tables, n = self._active, self._tables, self.n
        radius, centre = tables.radius[active], tables.centre[active]
        scale = 2 * radius * len(active) / self.epsilon
        steps = steps_for(scale, radius)
        lattice = L1Lattice(radius, steps, n)
        law = self._law(lattice.l1_diameter, n, lattice.largest)
        gain = np.ones((len(active), 1))
        offset = centre
        if shrink:
            gain = self._gain(lpa_noise(n)[0] * scale**2, np.ones(len(active), dtype=np.intp))
            offset = tables.mean[active] + gain * (centre - tables.mean[active])
        return Parts(
            transform=TimeTransform(centre),
            factor=l1_factor,
            radius=radius,
            lattice=lattice,
            law=law,
            steps=steps[:, None],
            output=Output(offset, gain),
            noise_sd=gain[:, 0] * law.sd * steps,
            k=(),
        )


class CFPA(_PerFeature):
    """Chunked Fourier perturbation: noise on the first k one-sided Fourier coefficients of the chunk, zero the rest.

    Noise of scale lambda = sqrt(n) sqrt(k) Delta_2 / eps_f on Re F_0 and on Re and Im of F_1 .. F_{k-1} (Re F_{n/2}
    alone at the end), Delta_2 = 2 r of the Euclidean ball. By Parseval sum w_i a_i^2 <= n Delta_2^2 with w = 1, 2, 2,
    ..., by Cauchy-Schwarz sum |a_i| <= sqrt(k) sqrt(n) Delta_2, attained: exactly eps_f, and no smaller scale would do.

    Parameters
    ----------
    fill_band
        Fill the coefficients that are not kept with those of the corpus mean instead of zero: post-processing.
    """

    name: ClassVar[str] = "cfpa"

    def __init__(
        self,
        calibration: Calibration,
        epsilon: float,
        *,
        k: int | None = None,
        noise: Noise | None = None,
        shrink: bool = False,
        clip: bool = False,
        smooth: bool = False,
        fill_band: bool = False,
    ) -> None:
        self._fill_band = fill_band or smooth
        super().__init__(calibration, epsilon, k=k, noise=noise, shrink=shrink, clip=clip, smooth=smooth)

    def _noise_factors(self) -> Array:
        """N(k) of the error model, (K,)."""
        return cfpa_noise(self.n)

    def _signal(self, chunk: Array) -> Array:
        """The signal (A, n) whose coefficients are kept."""
        return chunk

    def _transform(self, centre: Array, k: int) -> Transform:
        return FourierTransform(centre, k)

    def _coefficients(self, k: int | None, scale: Array, shrink: bool) -> NDArray[np.intp]:
        """(A,) number of coefficients of each feature, given or least in expected error; `scale` is 2 r / eps_f."""
        active, tables, count = self._active, self._tables, len(self._noise_factors())
        if k is not None:
            if type(k) is not int or not 1 <= k <= count:
                raise ConfigError(f"k must lie between 1 and n/2 + 1 = {count}, not {k}")
            return np.full(len(active), k, dtype=np.intp)
        noise = self._noise_factors() * scale[:, None] ** 2
        overlap, energy = tables.overlap[active], tables.energy[active]
        if shrink:
            error = tables.spread[active][:, None] - overlap**2 / (energy + noise)
        elif self._fill_band:
            error = tables.spread[active][:, None] - 2 * overlap + energy + noise
        else:
            error = tables.truncation[active] + noise
        best: NDArray[np.intp] = np.argmin(error, axis=1) + 1
        return best

    def _assemble(self, k: int | None, shrink: bool) -> Parts:
        active, tables, n = self._active, self._tables, self.n
        radius, centre, mean = tables.radius[active], tables.centre[active], tables.mean[active]
        unit = 2 * radius * len(active) / self.epsilon
        kept = self._coefficients(k, unit, shrink)
        most = int(kept.max())
        weights = np.zeros((len(active), coordinate_count(n, most)), dtype=np.int64)
        for row, own in enumerate(kept):
            weights[row, : coordinate_count(n, int(own))] = coordinate_weights(n, int(own))
        steps = steps_for(np.sqrt(n * kept) * unit, np.sqrt(n * weights.sum(axis=1)) * radius)
        lattice = L2Lattice(np.sqrt(n) * radius, steps, weights)
        law = self._law(lattice.l1_diameter, weights.shape[1], lattice.largest)
        transform = self._transform(np.zeros_like(centre), most)
        released = (weights > 0).astype(np.float64)
        noise_power = self._noise_factors()[kept - 1]
        gain = self._gain(noise_power * unit**2, kept) if shrink else np.ones((len(active), 1))
        base = transform.chunk(released * transform.coordinates(centre)).copy()
        if shrink or self._fill_band:  # b is the corpus mean: C (I - P) b
            base += mean - transform.chunk(released * transform.coordinates(self._signal(mean)))
        offset = mean + gain * (base - mean) if shrink else base
        sd = gain[:, 0] * np.sqrt(noise_power / (n * n * kept)) * (law.sd * steps) / np.sqrt(2)
        return Parts(
            transform=self._transform(centre, most),
            factor=l2_factor,
            radius=radius,
            lattice=lattice,
            law=law,
            steps=released * steps[:, None],
            output=Output(offset, gain),
            noise_sd=sd,
            k=tuple(map(int, kept)),
        )


class DCFPA(CFPA):
    """Difference- and chunk-based Fourier perturbation: CFPA of the chunk's difference signal, then the cumulative sum.

    The ball holds difference signals (first element kept), so the noise is scaled to *their* sensitivity; the
    cumulative sum is post-processing. Differences restart in every chunk.
    """

    name: ClassVar[str] = "dcfpa"

    def _noise_factors(self) -> Array:
        return dcfpa_noise(self.n)

    def _signal(self, chunk: Array) -> Array:
        return difference(chunk)

    def _transform(self, centre: Array, k: int) -> Transform:
        return DifferenceFourierTransform(centre, k)


class FPA(CFPA):
    """CFPA with one chunk as long as the recording: offline only, and with the declared range as its domain.

    Parameters
    ----------
    calibration
        Any calibration of these features; its range [lo, hi] is what counts, Delta_2 = sqrt(n) (hi - lo).
    rows
        Length of the recording. It is public.
    k
        By default 1, the best choice for eps_f below 8.4: a second coefficient adds 18 n (R / eps_f)^2 of noise, and
        cannot gain more than n R^2 / 4.
    """

    name: ClassVar[str] = "fpa"

    def __init__(
        self, calibration: Calibration, epsilon: float, rows: int, *, k: int = 1, noise: Noise | None = None
    ) -> None:
        whole = declared_range(replace(calibration, mechanism="fpa", k=None), rows)
        super().__init__(whole, epsilon, k=k, noise=noise)


_BY_NAME: dict[str, type[Mechanism]] = {mechanism.name: mechanism for mechanism in (LPA, CFPA, DCFPA, KLT)}


def build(calibration: Calibration, epsilon: float, **options: Any) -> Mechanism:
    """The mechanism that `calibration` was made for; `options` as its class takes them.

    Raises
    ------
    CalibrationError
        when there is no such mechanism.
    ConfigError
        when the mechanism refuses epsilon or k.
    """
    if calibration.mechanism not in _BY_NAME:
        raise CalibrationError(f"there is no mechanism {calibration.mechanism!r}; there are {', '.join(_BY_NAME)}")
    return _BY_NAME[calibration.mechanism](calibration, epsilon, **options)
