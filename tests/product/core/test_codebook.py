"""Quantisers against published tables, and the choice of bits against brute force."""

import itertools
import math

import numpy as np
import pytest

from eyestream.core.mechanisms.klt.codebook import MOST_BITS, Codes, quantiser
from eyestream.core.noise.response import ResponseLaw, keep_probability

# Distortion of the Lloyd-Max quantiser of a standard normal variable: Max, IRE Trans. Inf. Theory 6(1), 1960, table I.
MAX_1960 = {1: 0.3634, 2: 0.1175, 3: 0.03454, 4: 0.009497, 5: 0.002499}


@pytest.mark.parametrize(("bits", "distortion"), MAX_1960.items())
def test_distortion_is_that_of_the_table(bits: int, distortion: float) -> None:
    assert quantiser(bits).power == pytest.approx(1 - distortion, abs=2e-4)


@pytest.mark.parametrize("bits", range(1, MOST_BITS + 1))
def test_points_are_the_means_of_their_cells(bits: int) -> None:
    q = quantiser(bits)
    y = np.random.default_rng(bits).standard_normal(400_000)
    cell = np.searchsorted(q.borders, y)
    assert len(q.points) == 2**bits
    np.testing.assert_allclose(q.points, -q.points[::-1], atol=1e-9)
    counts = np.bincount(cell, minlength=2**bits)
    means = np.bincount(cell, weights=y, minlength=2**bits) / np.maximum(counts, 1)
    busy = counts > 2000
    np.testing.assert_allclose(q.points[busy], means[busy], atol=0.03)
    assert float((q.points[cell] * y).mean()) == pytest.approx(q.power, abs=0.01)  # E zy = E z^2 at the fixed point


def removed(worth: np.ndarray, bits: tuple[int, ...], epsilon: float) -> float:
    theta = keep_probability(epsilon, sum(bits))
    total = 0.0
    for w, b in zip(worth, bits, strict=True):
        if b:
            q = quantiser(b)
            slope = theta * q.power
            total += w * slope**2 / (slope + (1 - theta) * q.spread)
    return total


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.4, 4.8, 9.6])
def test_the_greedy_code_is_near_the_best_of_all_codes(epsilon: float) -> None:
    worth = np.array([5.0, 2.0, 0.7])
    code = Codes(epsilon).best(worth)
    bits = [0, 0, 0]
    for score, b in zip(code.scores, code.bits, strict=True):
        bits[score] = b
    best = max(removed(worth, other, epsilon) for other in itertools.product(range(MOST_BITS + 1), repeat=3))
    assert removed(worth, tuple(bits), epsilon) >= 0.97 * best
    assert removed(worth, (MOST_BITS,) * 3, epsilon) < 0.9 * best or epsilon > 9  # more bits are not better


def test_what_a_word_is_read_as_is_the_best_linear_estimate() -> None:
    """What the estimate leaves is uncorrelated with the point, and its covariance is `known`."""
    rng = np.random.default_rng(3)
    code = Codes(3.0).best(np.array([4.0, 1.0]))
    theta = keep_probability(3.0, sum(code.bits))
    y = rng.standard_normal((300_000, len(code.bits)))
    kept = rng.random(len(y)) < theta
    for j, bits in enumerate(code.bits):
        q = quantiser(bits)
        word = np.where(kept, np.searchsorted(q.borders, y[:, j]), rng.integers(0, 2**bits, len(y)))
        z = q.points[word]
        estimate = code.read[j, j] * z
        assert ((y[:, j] - estimate) * z).mean() == pytest.approx(0, abs=0.01)
        assert abs(((y[:, j] - 1.1 * estimate) * z).mean()) > 0.05  # another factor would be seen
        assert (estimate**2).mean() == pytest.approx(code.known[j, j], rel=0.02)


def test_keep_probability_is_the_complement_of_replacing() -> None:
    assert keep_probability(1.0, 2) == pytest.approx((math.e - 1) / (math.e + 3))
    assert keep_probability(800.0, 3) == 1.0
    for epsilon, bits in ((1e-9, 6), (0.48, 1), (9.6, 9), (48.0, 59)):
        replaced = ResponseLaw([2 ** (bits // 2), 2 ** (bits - bits // 2)], epsilon).replace
        assert keep_probability(epsilon, bits) + replaced == pytest.approx(1, abs=2e-16)
        exact = math.expm1(epsilon) / (math.expm1(epsilon) + 2**bits)
        assert keep_probability(epsilon, bits) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("bits", range(1, MOST_BITS + 1))
def test_the_points_that_are_written_down_are_those_of_lloyd_and_max(bits: int) -> None:
    """Each is the mean of its cell under the normal law, which a point that is off by 1e-9 is not."""

    def means(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        borders = (points[1:] + points[:-1]) / 2
        mass = np.diff([0.0, *(0.5 * math.erfc(-b / math.sqrt(2)) for b in borders), 1.0])
        density = np.array([0.0, *(math.exp(-b * b / 2) / math.sqrt(2 * math.pi) for b in borders), 0.0])
        return -np.diff(density) / mass, mass

    points = quantiser(bits).points
    found, mass = means(points)
    np.testing.assert_allclose(found, points, rtol=0, atol=1e-11)
    assert float((mass * points**2).sum()) == pytest.approx(quantiser(bits).power, abs=1e-11)
    moved = points.copy()
    moved[-1] += 1e-9
    assert abs(means(moved)[0][-1] - moved[-1]) > 1e-10
