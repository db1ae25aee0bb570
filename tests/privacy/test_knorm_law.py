"""The discrete Euclidean K-norm law: its shape, its price and its reach."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from noise import SeededNoise
from numpy.typing import NDArray

from eyestream.privacy import laws
from eyestream.privacy.bits import Bits
from eyestream.privacy.laws import KNormLaw, digits_for

Array = NDArray[np.float64]


def draws(law: KNormLaw, count: int, seed: int) -> NDArray[np.int64]:
    noise = SeededNoise(seed)
    return np.array([noise.draw(law)[0] for _ in range(count)])


def lattice(d: int, reach: int) -> NDArray[np.int64]:
    axis = np.arange(-reach, reach)
    return np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)


def chi_square(sample: NDArray[np.int64], log_p: Array, grid: NDArray[np.int64]) -> float:
    """Chi-square statistic in units of its standard deviation above its mean, cells expected below 5 joined."""
    p = np.exp(log_p - log_p.max())
    expected = p / p.sum() * len(sample)
    counted = {tuple(z): i for i, z in enumerate(grid.tolist())}
    observed = np.zeros(len(grid) + 1)
    for z in sample.tolist():
        observed[counted.get(tuple(z), len(grid))] += 1
    often = expected >= 5
    observed = np.append(observed[:-1][often], len(sample) - observed[:-1][often].sum())
    expected = np.append(expected[often], expected[~often].sum())
    freedom = len(expected) - 1
    return float((((observed - expected) ** 2 / expected).sum() - freedom) / math.sqrt(2 * freedom))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_draws_have_the_euclidean_law_and_no_other(d: int) -> None:
    rate = 0.8
    sample = draws(KNormLaw(rate, d, largest=2), 6000, seed=d)
    grid = lattice(d, 60 if d < 3 else 14)
    h = grid + 0.5
    euclidean, taxicab = np.linalg.norm(h, axis=1), np.abs(h).sum(axis=1)
    assert chi_square(sample, -rate * euclidean, grid) < 4
    for wrong in (0.7, 1.3):
        assert chi_square(sample, -wrong * rate * euclidean, grid) > 10
    if d > 1:
        assert chi_square(sample, -rate / math.sqrt(d) * taxicab, grid) > 10  # the proposals, none rejected
        same_energy = math.sqrt(2 / ((d + 1) / rate**2))
        assert chi_square(sample, -same_energy * taxicab, grid) > 5  # a product of Laplace laws of the same variance


@pytest.mark.parametrize("d", [1, 2, 3, 8])
def test_mean_square_and_stated_standard_deviation(d: int) -> None:
    law = KNormLaw(0.01, d, largest=2)
    sample = draws(law, 1500, seed=d) + 0.5
    energy = (sample**2).sum(axis=1)
    error = energy.std() / math.sqrt(len(sample))
    assert abs(energy.mean() - d * (d + 1) / 0.01**2) < 4 * error
    assert float(law.sd[0]) == pytest.approx(math.sqrt(d + 1) / 0.01)
    assert abs(energy.mean() - 2 * d / 0.01**2) > 4 * error or d == 1  # what independent Laplace noise would have


def test_acceptance_is_the_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    shares: list[float] = []
    true = laws._bernoulli

    def count(p: Array, bits: Bits) -> NDArray[np.bool_]:
        accepted = true(p, bits)
        shares.append(float(accepted.mean()))
        return accepted

    monkeypatch.setattr(laws, "_bernoulli", count)
    for d, stated in ((3, 0.60), (8, 0.16), (12, 0.05)):
        assert KNormLaw.acceptance(d) == pytest.approx(stated, abs=0.01)
        law = KNormLaw(0.001, d, largest=2)
        law._trials = 20_000
        law._digits = laws._Digits(np.array([law._beta]), len(law._digits.words), law._trials * d)
        shares.clear()
        SeededNoise(d).draw(law)
        assert shares[0] == pytest.approx(KNormLaw.acceptance(d), rel=0.1)
    assert KNormLaw.acceptance(1) == pytest.approx(1.0)


class Script:
    """Proposals that are given, in place of random ones."""

    def __init__(self, proposals: NDArray[np.int64]) -> None:
        self._proposals = proposals

    def draw(self, bits: Bits) -> NDArray[np.int64]:
        return self._proposals.reshape(1, -1)


def log_law(law: KNormLaw, grid: NDArray[np.int64], monkeypatch: pytest.MonkeyPatch) -> Array:
    """Log-probability, up to a constant, of every point: the proposals' and the shipped acceptance's."""
    seen: list[Array] = []

    def watch(p: Array, bits: Bits) -> NDArray[np.bool_]:
        seen.append(p.copy())
        return np.ones(len(p), dtype=np.bool_)

    law._digits, law._trials = Script(grid), len(grid)  # type: ignore[assignment]
    monkeypatch.setattr(laws, "_bernoulli", watch)
    law.sample(SeededNoise(0))
    monkeypatch.undo()
    with np.errstate(divide="ignore"):
        return np.log(seen[0]) - law._beta * np.abs(grid + 0.5).sum(axis=1)


def steepest(log_p: Array, side: int) -> float:
    """Largest change of a log-law on a square grid over the Euclidean distance, of neighbours along many directions."""
    table = log_p.reshape(side, side)
    worst = 0.0
    for dx, dy in ((1, 0), (0, 1), (1, 1), (1, 2), (2, 1), (3, 1), (5, 2), (7, 7), (20, 1)):
        change = np.abs(table[dx:, dy:] - table[: side - dx, : side - dy]).max()
        change = max(change, np.abs(table[dx:, : side - dy] - table[: side - dx, dy:]).max())
        worst = max(worst, float(change) / math.hypot(dx, dy))
    return worst


@pytest.mark.parametrize("rate", [0.9, 2.0])
def test_the_law_is_lipschitz_in_the_euclidean_norm(rate: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also far out, where acceptance has reached its floor."""
    grid = lattice(2, 180)
    log_p = log_law(KNormLaw(rate, 2, largest=2), grid, monkeypatch)
    assert steepest(log_p, 360) <= rate * (1 + 1e-9)
    monkeypatch.setattr(laws, "_FLOOR", 1e9)
    unbounded = log_law(KNormLaw(rate, 2, largest=2), grid, monkeypatch)
    far = log_p > unbounded + 1
    assert far.any()  # the grid does reach the floor
    cut = np.where(far, unbounded - 1000, log_p)  # a floor that rejects instead is not Lipschitz
    assert steepest(cut, 360) > rate * 1.1


def test_proposals_that_fall_faster_are_not_lipschitz(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: with beta = alpha the acceptance is cut at one, and the law falls too fast."""
    law = KNormLaw(0.5, 2, largest=2)
    law._beta = 0.5
    assert steepest(log_law(law, lattice(2, 100), monkeypatch), 200) > 0.5 * 1.2


def missing_tail(d: int, spread: float, beta: float) -> float:
    """Log of the share of an end's probability that lies beyond the reach, largest over inputs and other coordinates.

    `spread` is the bound on the integers in units of 1 / beta. The other coordinates have Euclidean norm R and taxicab
    norm S.
    """
    largest = int(spread / beta)
    alpha = beta * math.sqrt(d)
    limit = KNormLaw(alpha, d, largest).limit
    reach = 2 ** digits_for(beta / 2, largest)
    h = np.arange(limit - largest, reach + int(300 / beta), max(1, int(0.2 / beta))) + 0.5
    worst = -math.inf
    norms = np.append(0.0, np.geomspace(1 / beta, reach * math.sqrt(max(d - 1, 1)), 40))
    for R in norms:
        for S in np.linspace(R, R * math.sqrt(max(d - 1, 1)), 4 if d > 2 else 1):
            log_p = np.maximum(-alpha * np.hypot(R, h), -laws._FLOOR - beta * (S + h))
            beyond = float(np.logaddexp.reduce(log_p[h >= reach]))
            for a in (-largest, 0, largest):
                worst = max(worst, beyond - float(np.logaddexp.reduce(log_p[(h > limit - a) & (h < reach)])))
    return worst


@pytest.mark.parametrize("d", [1, 2, 8, 48])
@pytest.mark.parametrize("spread", [0.5, 3, 37, 100, 1000])
def test_what_lies_beyond_the_reach_is_covered_by_the_charge(d: int, spread: float) -> None:
    assert missing_tail(d, spread, beta=0.02) < -32


def test_the_tail_check_sees_an_interval_that_is_too_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laws, "_MARGIN", 5.0)  # of the limit and of the reach
    assert missing_tail(8, 3, beta=0.02) > -32


@pytest.mark.parametrize(("d", "largest"), [(1, 0), (2, 3), (12, 2**20)])
def test_the_interval_is_reached_from_every_input(d: int, largest: int) -> None:
    rate = 2.0**-10
    law = KNormLaw(rate, d, largest)
    reach = 2 ** digits_for(rate / math.sqrt(d) / 2, largest)
    assert largest < law.limit <= reach - largest - 1


def top_words(p: float) -> list[int]:
    """The 128 bits of p, most significant word first."""
    scaled = int(p * 2**64) << 64 if p >= 2**-10 else int(p * 2.0**120) << 8
    return [(scaled >> shift) & 0xFFFFFFFF for shift in (96, 64, 32, 0)]


class Words:
    def __init__(self, words: list[int]) -> None:
        self._words = np.array(words, dtype=np.uint32)

    def words(self, count: int) -> NDArray[np.uint32]:
        assert count == len(self._words)
        return self._words


@settings(max_examples=200, deadline=None)
@given(st.floats(0.0, 42.0), st.lists(st.sampled_from([-1, 0, 1, None]), min_size=4, max_size=4), st.data())
def test_the_coin_is_exact_to_128_bits(exponent: float, near: list[int | None], data: st.DataObject) -> None:
    p = math.exp(-exponent)
    bits = top_words(min(p, 1 - 2.0**-53))
    words = [
        data.draw(st.integers(0, 2**32 - 1)) if shift is None else min(max(word + shift, 0), 2**32 - 1)
        for word, shift in zip(bits, near, strict=True)
    ]
    uniform = sum(word << (32 * (3 - i)) for i, word in enumerate(words))
    numerator, denominator = p.as_integer_ratio()
    expected = uniform * denominator < numerator * 2**128
    if p == 1.0:
        expected = uniform < 2**128 - 1  # one in 2^128 is lost
    assert bool(laws._bernoulli(np.array([p]), Words(words))[0]) == expected
