"""Rounded Gaussian noise: its calibration, its table and its draws, each against another way to compute it."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.stats import norm

from eyestream.errors import ConfigError
from eyestream_lab.corpora.rounded_gaussian import (
    SIGMA,
    RoundedGaussian,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_sigma,
    table,
)
from tests.lab.corpora.worlds import seeded

CASES = [(0.1, 1e-6), (0.5, 1e-5), (1.0, 1e-6), (4.0, 1e-4), (10.0, 1e-8), (20.0, 1e-6)]


def hockey_stick(epsilon: float, sigma: float) -> float:
    """Delta of N(0, sigma^2) against N(1, sigma^2), by integration on a fine grid."""
    x = np.linspace(-40 * sigma - 1, 40 * sigma + 1, 400_001)
    excess = np.maximum(norm.pdf(x, 1, sigma) - np.exp(epsilon + norm.logpdf(x, 0, sigma)), 0.0)
    return float(np.trapezoid(excess, x))


def test_delta_is_the_mass_above_e_to_the_epsilon() -> None:
    for epsilon in (0.1, 1.0, 5.0):
        for ratio in (0.3, 1.0, 3.0):
            assert gaussian_delta(epsilon, ratio) == pytest.approx(hockey_stick(epsilon, ratio), rel=1e-5, abs=1e-13)


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_sigma_is_enough_and_hardly_more(epsilon: float, delta: float) -> None:
    sigma = gaussian_sigma(epsilon, delta, 1.0, 100)
    assert gaussian_delta(epsilon, sigma) <= delta
    assert gaussian_delta(epsilon, 0.999 * sigma) > delta
    assert gaussian_sigma(epsilon, delta, 3.0, 100) == pytest.approx(3.0 * sigma)
    assert gaussian_epsilon(delta, sigma) == pytest.approx(epsilon, rel=1e-3)


def textbook(epsilon: float, delta: float) -> float:
    return math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon


def test_the_textbook_constant_is_too_small_for_a_large_epsilon() -> None:
    """The planted fault: its proof ends at epsilon 1, and at 10 its noise does not keep delta."""
    assert gaussian_delta(0.5, textbook(0.5, 1e-5)) <= 1e-5
    assert gaussian_delta(10.0, textbook(10.0, 1e-5)) > 1e-5
    assert gaussian_delta(10.0, gaussian_sigma(10.0, 1e-5, 1.0, 100)) <= 1e-5


def test_the_table_is_the_rounded_normal_law() -> None:
    weights = table()
    assert sum(weights) == 2**128
    assert weights == weights[::-1]
    middle = len(weights) // 2
    with localcontext() as context:
        context.prec = 70
        for z in (0, 1, 17, 4096, 20_000, 40_000, 51_200):
            wanted = simpson(z) * 2**128
            assert abs(weights[middle + z] - wanted) < 1 + wanted * Decimal("1e-17") + (z == 0) * len(weights)
        assert abs(weights[middle + 4096] / (simpson(4097) * 2**128) - 1) > Decimal("1e-4")  # a table one off


def simpson(z: int) -> Decimal:
    """The normal law between z - 1/2 and z + 1/2, in units of sigma / 4096."""
    points = [(Decimal(z) - Decimal("0.5") + Decimal(i) / 20) / SIGMA for i in range(21)]
    root = (2 * Decimal("3.14159265358979323846264338327950288419716939937510582097494")).sqrt()
    values = [(-x * x / 2).exp() / root for x in points]
    weights = [1, *[4 if i % 2 else 2 for i in range(1, 20)], 1]
    return sum((w * v for w, v in zip(weights, values, strict=True)), Decimal(0)) / 60 / SIGMA


def test_the_table_is_near_enough_in_total_variation() -> None:
    """2^-110 is what the docstring takes off delta: rounding of 102,401 weights and the tail beyond them."""
    tail = 2 * norm.sf(51_200.5 / SIGMA)
    assert 2 * 102_401 * 2.0**-128 + tail < 2.0**-110


def spread(values: np.ndarray, sigma: float) -> float:
    """Largest distance of the distribution function of `values` from that of the rounded normal law."""
    z = np.arange(-6 * SIGMA, 6 * SIGMA)
    share = np.searchsorted(np.sort(values), z, side="right") / len(values)
    return float(np.abs(share - norm.cdf((z + 0.5) / sigma)).max())


def test_draws_have_the_law_and_other_scales_do_not() -> None:
    """Limit of Kolmogorov's statistic that a right sampler passes for all seeds but one in a million."""
    count = 20_000
    values = RoundedGaussian(count).sample(seeded(11).bits)
    limit = math.sqrt(-math.log(0.5e-6) / 2 / count)
    assert spread(values, SIGMA) < limit
    for wrong in (0.85 * SIGMA, 1.15 * SIGMA):
        assert spread(values, wrong) > limit


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 1e-6), (51.0, 1e-6), (math.nan, 1e-6), (1.0, 0.0), (1.0, 1.0), (1.0, 1e-13)]
)
def test_numbers_that_cannot_be_used(epsilon: float, delta: float) -> None:
    with pytest.raises(ConfigError, match="epsilon must lie in"):
        gaussian_sigma(epsilon, delta, 1.0, 10)


def test_more_numbers_than_the_sampler_is_fine_for_are_refused() -> None:
    with pytest.raises(ConfigError, match="too many for the sampler"):
        gaussian_sigma(50.0, 1e-12, 1.0, 10_000)
