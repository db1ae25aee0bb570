"""The noise of the shipped mechanisms has the derived scale, and the wrong versions of the papers are seen.

Wrong versions are made by changing the shipped code in place, never by typing it again.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.additive import core as per_feature
from eyestream.core.additive import signals as transforms
from eyestream.core.additive.ball import L2Lattice
from eyestream.core.calibration import PerFeatureTables
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import CFPA, DCFPA, LPA, fourier
from eyestream.core.noise import Law
from eyestream.core.spectrum import difference
from eyestream_lab.testing.noise import SeededNoise, ZeroNoise
from tests.rigs.small_corpus import calibrated, repeated

Array = NDArray[np.float64]
Patch = pytest.MonkeyPatch
N, COPIES, DRAWS = 32, 400, 6
SHARE = 0.5  # epsilon of one feature


def noise_reals(mechanism: type[CFPA], k: int, noise: Any) -> tuple[Array, float]:
    """(samples, 2k - 1) noise in each coefficient's reals of released chunks, and the derived scale lambda."""
    calibration = repeated(calibrated(mechanism.name, N), 1, COPIES)
    tables = calibration.tables
    assert isinstance(tables, PerFeatureTables)
    noisy = mechanism(calibration, SHARE * COPIES, k=k, noise=noise)
    quiet = mechanism(calibration, SHARE * COPIES, k=k, noise=ZeroNoise())
    chunk = np.repeat(calibration.fill[:, None], N, axis=1)
    errors = np.concatenate([noisy.release(chunk) - quiet.release(chunk) for _ in range(DRAWS)])
    spectrum = np.fft.rfft(difference(errors) if mechanism is DCFPA else errors, axis=1)
    parts = [spectrum[:, 0].real]
    for j in range(1, k):
        parts += [spectrum[:, j].real] + ([spectrum[:, j].imag] if 2 * j != N else [])
    scale = math.sqrt(N) * math.sqrt(k) * 2 * float(tables.radius[0]) / SHARE
    return np.stack(parts, axis=1), scale


def fault(mechanism: type[CFPA], k: int, noise: Any | None = None) -> float:
    """Largest departure of any coefficient's mean |noise| from lambda, in its own standard errors."""
    reals, scale = noise_reals(mechanism, k, noise if noise is not None else SeededNoise(k))
    return float(np.abs(np.abs(reals).mean(axis=0) / scale - 1).max() * math.sqrt(len(reals)))


ACCEPTED = 5.0


@pytest.mark.parametrize("mechanism", [CFPA, DCFPA])
@pytest.mark.parametrize("k", [1, 2, 5, 16, 17])
def test_every_coefficient_has_the_derived_scale(mechanism: type[CFPA], k: int) -> None:
    assert fault(mechanism, k) < ACCEPTED


@pytest.mark.parametrize("k", [1, 5])
def test_the_law_is_laplace_and_the_reals_are_independent(k: int) -> None:
    reals, scale = noise_reals(CFPA, k, SeededNoise(k))
    quantiles = np.quantile(np.abs(reals) / scale, [0.1, 0.5, 0.9, 0.99])
    np.testing.assert_allclose(quantiles, -np.log([0.9, 0.5, 0.1, 0.01]), rtol=0.1)
    for values in (reals, np.abs(reals)):
        between = np.atleast_2d(np.corrcoef(values, rowvar=False)) - np.eye(values.shape[1])
        assert np.abs(between).max() < 5 / math.sqrt(len(reals))


def scaled(factor: float) -> Callable[[Patch], None]:
    def wrong(patch: Patch) -> None:
        true = per_feature.ideal_rate
        patch.setattr(per_feature, "ideal_rate", lambda *a: true(*a) / factor)
        patch.setattr(per_feature, "COORDINATE_DEVIATION", -1)  # and nobody sums up what is spent

    return wrong


def without_root_n(patch: Patch) -> None:
    class Small(L2Lattice):
        def __init__(self, radius: Array, *rest: Any) -> None:
            super().__init__(radius / math.sqrt(N), *rest)

    patch.setattr(fourier, "L2Lattice", Small)


def without_root_k(patch: Patch) -> None:
    class Small(L2Lattice):
        def __init__(self, radius: Array, steps: Array, weights: NDArray[np.int64]) -> None:
            super().__init__(radius, steps, weights)
            k = (weights.shape[1] + 1) / 2
            self.l1_diameter = (self.l1_diameter / math.sqrt(k)).astype(np.int64)

    patch.setattr(fourier, "L2Lattice", Small)


def one_sided(patch: Patch) -> None:
    """Zero-pad one side of a full spectrum and take the real part."""

    def signals(self: Any, coordinates: Array) -> Array:
        spectrum = np.zeros((len(coordinates), self.n), dtype=np.complex128)
        spectrum[:, 0] = coordinates[:, 0]
        pairs = coordinates[:, 1:]
        spectrum[:, 1 : self.k] = pairs[:, 0::2][:, : self.k - 1]
        spectrum[:, 1 : 1 + pairs[:, 1::2].shape[1]] += 1j * pairs[:, 1::2]
        return np.asarray(np.fft.ifft(spectrum, axis=1).real)

    patch.setattr(transforms.RealFourier, "signals", signals)


def two_terms(patch: Patch) -> None:
    """Step 3 of DCFPA as it is printed."""

    def integrate(differences: Array) -> Array:
        result = differences.copy()
        result[..., 1:] += differences[..., :-1]
        return result

    patch.setattr(transforms, "integrate", integrate)


@pytest.mark.parametrize(
    ("mechanism", "wrong"),
    [
        (CFPA, scaled(0.7)),
        (CFPA, scaled(1.3)),
        (DCFPA, scaled(0.7)),
        (DCFPA, scaled(1.3)),
        (CFPA, without_root_n),
        (CFPA, without_root_k),
        (CFPA, one_sided),
        (DCFPA, one_sided),
        (DCFPA, two_terms),
    ],
)
def test_wrong_versions_are_seen(
    mechanism: type[CFPA], wrong: Callable[[Patch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fault(mechanism, 5) < ACCEPTED
    wrong(monkeypatch)
    assert fault(mechanism, 5) > 2 * ACCEPTED


class RealPartsAlone(SeededNoise):
    """Leaves the imaginary parts in clear."""

    def draw(self, law: Law) -> NDArray[np.int64]:
        drawn = super().draw(law)
        drawn[:, 2::2] = 0
        return drawn


def test_noise_on_real_parts_alone_is_seen() -> None:
    assert fault(CFPA, 5, RealPartsAlone(5)) > 2 * ACCEPTED


@pytest.mark.parametrize(("factor", "accepted"), [(1.0, True), (0.7, False), (1.3, False)])
def test_lpa_has_its_scale_on_every_row(factor: float, accepted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    scaled(factor)(monkeypatch)
    calibration = repeated(calibrated("lpa", N), 1, COPIES)
    tables = calibration.tables
    assert isinstance(tables, PerFeatureTables)
    chunk = np.repeat(calibration.fill[:, None], N, axis=1)
    quiet = LPA(calibration, SHARE * COPIES, noise=ZeroNoise()).release(chunk)
    noisy = LPA(calibration, SHARE * COPIES, noise=SeededNoise(0))
    errors = np.concatenate([noisy.release(chunk) - quiet for _ in range(DRAWS)])
    scale = 2 * float(tables.radius[0]) / SHARE
    departure = np.abs(np.abs(errors).mean(axis=0) / scale - 1).max() * math.sqrt(len(errors))
    assert (departure < ACCEPTED) == accepted


def features_with_noise(mechanism: Mechanism, quiet: Mechanism, draws: int) -> Array:
    """(F,) root mean square over rows of the noise in released chunks."""
    chunk = np.repeat(mechanism.calibration.fill[:, None], mechanism.n, axis=1)
    base = quiet.release(chunk)
    squares = np.mean([(mechanism.release(chunk) - base) ** 2 for _ in range(draws)], axis=(0, 2))
    return np.asarray(np.sqrt(squares))


@pytest.mark.long
@pytest.mark.parametrize(
    ("mechanism", "options"),
    [(LPA, {}), (LPA, {"shrink": True})]
    + [(m, o) for m in (CFPA, DCFPA) for o in ({}, {"shrink": True}, {"k": 4}, {"k": 17})],
)
def test_the_stated_noise_is_the_measured_one(mechanism: type[Mechanism], options: dict[str, Any]) -> None:
    calibration = calibrated(mechanism.name, N)
    epsilon = 400.0  # k differs between the features here
    noisy = mechanism(calibration, epsilon, noise=SeededNoise(1), **options)
    quiet = mechanism(calibration, epsilon, noise=ZeroNoise(), **options)
    measured = features_with_noise(noisy, quiet, 3000)
    constant = calibration.constant
    assert not noisy.noise_sd[constant].any()
    assert not measured[constant].any()
    np.testing.assert_allclose(measured[~constant], noisy.noise_sd[~constant], rtol=0.12)
    assert (np.abs(measured[~constant] / (1.3 * noisy.noise_sd[~constant]) - 1) > 0.12).all()
