"""The law of the discrete Laplace sampler, exactly: from its stored thresholds, in rational arithmetic."""

import math
from collections.abc import Callable
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.noise.laws import LaplaceLaw, digits_for, ideal_rate
from eyestream_lab.testing.noise import SeededNoise

getcontext().prec = 80

# Rates as mechanisms have them (about 2^-20), slower and faster ones, with integers as large as epsilon makes them.
CASES = [
    (2.0**-20, 2**20),
    (1.37 * 2.0**-21, 2**29),
    (0.93 * 2.0**-20, 1000),
    (2.0**-25, 3),
    (1e-3, 10**6),
    (0.5, 3),
    (3.0, 0),
]


def digit_probabilities(law: LaplaceLaw, row: int = 0) -> list[Fraction]:
    """Exact probability of each binary digit of G to be one: all its words hit."""
    digits = law.digits
    hit = [Fraction(int(t) + 1, 2**32) for t in digits.thresholds[row, 0]]
    return [math.prod((hit[word] for word in words), start=Fraction(1)) for words in digits.words]


def decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def deviation(law: LaplaceLaw, rate: float, row: int = 0) -> float:
    """D: by how much the log-probability of an integer can differ from the law's."""
    total = Decimal(0)
    for i, found in enumerate(digit_probabilities(law, row)):
        p = 1 / (1 + (Decimal(rate) * 2**i).exp())
        q = decimal(found)
        total += max(abs((q / p).ln()), abs(((1 - q) / (1 - p)).ln()))
    return float(total)


def charge(coordinates: int) -> float:
    """Epsilon that `ideal_rate` puts aside for the sampler at epsilon 1."""
    return 1.0 - ideal_rate(1.0, 1.0, coordinates)


CHARGE = (charge(1001) - charge(1)) / 1000  # for one more coordinate


def unbiased_digits(upto: int) -> Callable[[LaplaceLaw], None]:
    def spoil(law: LaplaceLaw) -> None:
        law.digits.thresholds[:, :, :upto] = 2**31 - 1

    return spoil


def off_by_one_word(law: LaplaceLaw) -> None:
    """`word < threshold` in place of `<=` for a digit of small probability whose last word has few bits."""
    law.digits.thresholds[:] = np.maximum(law.digits.thresholds.astype(np.int64) - 16, 0)


@pytest.mark.parametrize(("rate", "largest"), CASES)
def test_the_digits_deviate_by_less_than_is_charged(rate: float, largest: int) -> None:
    law = LaplaceLaw(np.array([rate]), 1, largest)
    assert 2 * deviation(law, rate) < CHARGE


@pytest.mark.parametrize("spoil", [unbiased_digits(1), unbiased_digits(8), off_by_one_word])
def test_the_charge_would_not_cover_other_digits(spoil: Callable[[LaplaceLaw], None]) -> None:
    rate = 2.0**-20
    law = LaplaceLaw(np.array([rate]), 1, 2**20)
    spoil(law)
    assert 2 * deviation(law, rate) > CHARGE


def test_uniform_low_digits_overspend_visibly() -> None:
    """Unbiased digits below the scale cost a good part of a small epsilon, which is why every digit is biased."""
    rate = 2.0**-20
    law = LaplaceLaw(np.array([rate]), 1, 2**20)
    unbiased_digits(18)(law)
    assert deviation(law, rate) > 0.1


@pytest.mark.parametrize("rows", [1, 3])
def test_rates_of_a_batch_do_not_disturb_each_other(rows: int) -> None:
    """Rows whose digits need fewer words than the slowest-falling one pad them with words that always hit."""
    rates = np.array([2.0**-20, 2.0**-14, 1.9 * 2.0**-20])[:rows]
    law = LaplaceLaw(rates, 2, 2**20)
    for row, rate in enumerate(rates):
        assert 2 * deviation(law, float(rate), row) < CHARGE


def test_small_probabilities_take_several_words() -> None:
    law = LaplaceLaw(np.array([0.5]), 1, largest=3)
    probabilities = digit_probabilities(law)
    assert len(probabilities) == 8
    exact = 1 / (1 + Decimal(64).exp())  # about 2^-92.3
    assert probabilities[-1] < Fraction(1, 2**90)
    assert abs((decimal(probabilities[-1]) / exact).ln()) < Decimal(2) ** -31


def test_the_sign_is_fair_and_g_has_the_geometric_law() -> None:
    law = LaplaceLaw(np.array([0.5]), 1, largest=3)
    assert Fraction(int(law.digits.thresholds[0, 0, law.digits.sign]) + 1, 2**32) == Fraction(1, 2)
    pmf = exact_pmf(law)
    assert sum(pmf.values()) == 1
    for z in range(40):
        assert pmf[z] == pmf[-z - 1]
        assert math.log(pmf[z + 1] / pmf[z]) == pytest.approx(-0.5, abs=1e-7)


def exact_pmf(law: LaplaceLaw) -> dict[int, Fraction]:
    """Probability of every integer that the sampler can give."""
    digits = digit_probabilities(law)
    geometric = [Fraction(1)]
    for p in digits:
        geometric = [g * (1 - p) for g in geometric] + [g * p for g in geometric]
    return {z: g / 2 for k, g in enumerate(geometric) for z in (k, -k - 1)}


def clamped(pmf: dict[int, Fraction], a: int, limit: int) -> dict[int, Fraction]:
    result: dict[int, Fraction] = {}
    for z, p in pmf.items():
        y = min(max(a + z, -limit), limit)
        result[y] = result.get(y, Fraction(0)) + p
    return result


def largest_overspend(law: LaplaceLaw, rate: float, largest: int, limit: int) -> float:
    """Largest log-ratio of the clamped law over all pairs of inputs and all outputs, minus rate times the shift."""
    pmf = exact_pmf(law)
    laws = {a: clamped(pmf, a, limit) for a in range(-largest, largest + 1)}
    worst = 0.0
    for a, ours in laws.items():
        for b, theirs in laws.items():
            if ours.keys() != theirs.keys():
                return math.inf
            if a != b:
                loss = max(math.log(p / theirs[y]) for y, p in ours.items())
                worst = max(worst, loss - rate * abs(a - b))
    return worst


SMALL = LaplaceLaw(np.array([0.5]), 1, largest=3)


def test_the_clamped_law_is_pure_at_its_price() -> None:
    assert largest_overspend(SMALL, 0.5, 3, SMALL.limit) < CHARGE


@pytest.mark.parametrize(("limit", "overspend"), [(256 + 3, math.inf), (256 - 3, 0.1), (256 - 3 - 10, CHARGE)])
def test_a_wider_interval_would_not_be_pure(limit: int, overspend: float) -> None:
    assert limit > SMALL.limit
    assert largest_overspend(SMALL, 0.5, 3, limit) >= overspend


@pytest.mark.parametrize(("rate", "largest"), CASES)
def test_the_interval_is_reached_from_every_input_with_the_margin_of_the_proof(rate: float, largest: int) -> None:
    law = LaplaceLaw(np.array([rate]), 1, largest)
    reach = 2 ** digits_for(rate, largest)  # z lies in [-reach, reach - 1]
    for a in (-largest, 0, largest):
        assert a - reach <= -law.limit
        assert a + reach - 1 >= law.limit
        # beyond the ends lies at least 32 / rate of tail inside the reach, so what is missing is at most e^-32 of it
        assert (a + reach - law.limit) * rate >= 32
        assert (reach - a - law.limit) * rate >= 32
    assert law.limit >= largest + 32 / rate - 1  # and the interval itself holds the noise of every input


def draws(rate: float, count: int, seed: int, largest: int = 100) -> NDArray[np.int64]:
    return SeededNoise(seed).draw(LaplaceLaw(np.array([rate]), count, largest))[0]


def kolmogorov(sample: NDArray[np.int64], rate: float) -> float:
    """Largest distance of the empirical distribution to that of the law at `rate`, times sqrt(N)."""
    z, counts = np.unique(sample, return_counts=True)
    h = z + 1.0  # P(Z <= z): the law is symmetric about -1/2
    cdf = np.where(h <= 0, 0.5 * np.exp(rate * np.minimum(h, 0)), 1 - 0.5 * np.exp(-rate * np.maximum(h, 0)))
    return float(np.abs(np.cumsum(counts) / len(sample) - cdf).max() * math.sqrt(len(sample)))


@pytest.mark.parametrize("rate", [0.5, 0.01, 2.0**-20])
def test_draws_have_the_rate_and_not_another(rate: float) -> None:
    sample = draws(rate, 20_000, seed=1)
    assert kolmogorov(sample, rate) < 2.0
    for wrong in (0.7, 1.3):
        assert kolmogorov(sample, wrong * rate) > 5.0


def test_small_integers_are_as_frequent_as_they_should_be() -> None:
    sample = draws(0.5, 50_000, seed=2)
    z = np.arange(-8, 8)
    for rate, accept in ((0.5, True), (0.35, False), (0.65, False)):
        p = (1 - math.exp(-rate)) / 2 * np.exp(-rate * (np.abs(z + 0.5) - 0.5))
        expected = p * len(sample)
        chi = float((((sample[:, None] == z).sum(axis=0) - expected) ** 2 / expected).sum())
        assert (chi < 45) == accept  # 99.99 % of chi-square with 16 degrees of freedom lies below 45


def test_columns_are_independent_and_the_sign_is_fair() -> None:
    law = LaplaceLaw(np.array([0.01, 0.02]), 6, largest=10)
    noise = SeededNoise(3)
    sample = np.array([noise.draw(law).reshape(-1) for _ in range(4000)])  # (4000, 12)
    for column in (sample >= 0, np.abs(sample + 0.5), sample & 1, sample):
        correlation = np.corrcoef(np.asarray(column, dtype=float), rowvar=False)
        assert np.abs(correlation - np.eye(12)).max() < 5 / math.sqrt(4000)
    assert abs((sample >= 0).mean() - 0.5) < 4 / (2 * math.sqrt(sample.size))
    assert np.abs(np.corrcoef((sample[:, 0] >= 0), np.abs(sample[:, 0] + 0.5))[0, 1]) < 5 / math.sqrt(4000)


def test_the_stated_standard_deviation_is_the_measured_one() -> None:
    law = LaplaceLaw(np.array([1e-3, 1e-4]), 30_000, largest=10)
    measured = SeededNoise(4).draw(law).std(axis=1)
    np.testing.assert_allclose(measured, law.sd, rtol=0.03)
    assert (np.abs(measured / (1.3 * law.sd) - 1) > 0.2).all()


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 100.0, 1000.0])
@pytest.mark.parametrize("sensitivity", [3.0, 2.0**21 + 5, 2.0**31 - 1])
def test_rate_times_sensitivity_and_deviation_stay_below_epsilon(epsilon: float, sensitivity: float) -> None:
    for coordinates in (1, 64, 128):
        rate = ideal_rate(epsilon, sensitivity, coordinates)
        # 34 digits at 2^-31, twice; the two ends at (1 + 2 e^-32), two neighbours: what the module derives.
        deviation = coordinates * (68 * Fraction(1, 2**31) + 4 * Fraction(math.exp(-32)))
        assert Fraction(rate) * Fraction(sensitivity) + deviation <= Fraction(epsilon)
        assert rate * sensitivity > 0.99 * epsilon  # and little is given away


def test_an_epsilon_below_the_samplers_precision_is_refused() -> None:
    with pytest.raises(OverflowError, match="too small"):
        ideal_rate(1e-5, 1.0, 64)
    assert ideal_rate(1e-3, 1.0, 1) > 0


@pytest.mark.parametrize(("rate", "largest"), [(2.0**-32, 3), (2.0**-20, 2**34)])
def test_noise_that_does_not_fit_is_refused(rate: float, largest: int) -> None:
    with pytest.raises(OverflowError, match="does not fit"):
        LaplaceLaw(np.array([rate]), 1, largest)


@pytest.mark.parametrize("digits", [33, 34])
def test_more_than_32_digits_are_packed_right(digits: int) -> None:
    """The widest laws use 64-bit packing; their high digits must arrive where they belong."""
    law = LaplaceLaw(np.array([2.0**-20]), 4, largest=2 ** (digits - 1) - 2**27)
    assert len(law.digits.words) == digits
    law.digits.thresholds[:] = 2**32 - 1  # every word hits: all digits one, and the sign
    assert (SeededNoise(0).draw(law) == -(2**digits)).all()


class Remembered(SeededNoise):
    """Keeps the words that were drawn."""

    def words(self, count: int) -> NDArray[np.uint32]:
        self.last = super().words(count)
        return self.last


@pytest.mark.parametrize(("rate", "largest"), CASES)
@pytest.mark.parametrize("scale", [1.0, 1.9])
def test_words_become_integers_as_the_slow_reading_says(rate: float, largest: int, scale: float) -> None:
    """The sampler's packed bits against one comparison after the other, also where rare digits hit."""
    law = LaplaceLaw(np.array([rate, scale * rate]), 5, largest)
    digits, noise = law.digits, Remembered(1)
    true = digits.thresholds.copy()
    for everywhere_likely in (False, True):
        # With every threshold at three quarters, digits of several words come out as one every few draws.
        digits.thresholds[:] = np.uint32(3 * 2**30) if everywhere_likely else true
        for _ in range(20):
            drawn = noise.draw(law)
            hits = noise.last.reshape(digits.thresholds.shape) <= digits.thresholds
            for row in range(2):
                for column in range(5):
                    hit = hits[row, column]
                    g = sum(2**i for i, words in enumerate(digits.words) if hit[words].all())
                    assert drawn[row, column] == (-g - 1 if hit[digits.sign] else g)


class Given:
    """Words that all hit, but one."""

    def __init__(self, missing: int) -> None:
        self._missing = missing

    def words(self, count: int) -> NDArray[np.uint32]:
        words = np.zeros(count, dtype=np.uint32)
        words[self._missing] = 2**32 - 1
        return words


@pytest.mark.parametrize(
    ("rate", "largest", "bit"),
    [(40.0, 10, 62), (64.0, 10, 62), (20.0, 100, 63), (48.0, 10, 64), (16.0, 100, 64), (8.0, 100, 65)],
)
def test_each_of_many_words_decides_its_digit_alone(rate: float, largest: int, bit: int) -> None:
    """Also where the highest digit's word is one of those at which 64 bits end: `bit`, counted from 0."""
    law = LaplaceLaw(np.array([rate]), 2, largest)
    digits = law.digits
    assert bit in digits.words[-1]
    digits.thresholds[:] = 2**31
    reach, own = 2 ** len(digits.words), digits.thresholds.shape[2]
    for digit, words in enumerate(digits.words):
        for word in words:
            assert law.sample(Given(own + word)).tolist() == [[-reach, -reach + 2**digit]]
    assert law.sample(Given(own + digits.sign)).tolist() == [[-reach, reach - 1]]


def test_every_digit_has_its_own_words() -> None:
    """Digits, sign and variables are independent because no word decides two of them."""
    law = LaplaceLaw(np.array([0.5]), 1, largest=3)
    used = [word for words in law.digits.words for word in words] + [law.digits.sign]
    assert len(set(used)) == len(used)
    assert max(used) < law.digits.thresholds.shape[2]


class Told:
    """These words."""

    def __init__(self, words: NDArray[np.uint32]) -> None:
        self._words = words

    def words(self, count: int) -> NDArray[np.uint32]:
        assert count == self._words.size
        return self._words.reshape(-1)


@pytest.mark.parametrize(("rate", "largest"), [(0.5, 3), (1e-3, 100), (20.0, 100)])
def test_a_word_hits_at_its_threshold_and_not_above(rate: float, largest: int) -> None:
    """What is charged for the sampler counts threshold + 1 words out of 2^32 (`digits_within`)."""
    law = LaplaceLaw(np.array([rate]), 2, largest)
    thresholds, reach = law.digits.thresholds, 2 ** len(law.digits.words)
    assert thresholds.max() < 2**32 - 1
    assert law.sample(Told(thresholds)).tolist() == [[-reach, -reach]]
    assert law.sample(Told(thresholds + np.uint32(1))).tolist() == [[0, 0]]
