"""The randomised response: its probability against exact arithmetic, its draws against its probability."""

import math
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from eyestream.core.noise.response import ResponseLaw
from eyestream_lab.testing.noise import SeededNoise

CASES = [(0.01, 1), (0.48, 1), (2.4, 2), (4.8, 3), (4.8, 40), (48.0, 59), (80.0, 90), (0.1, 0)]


def law_of(epsilon: float, bits: int) -> ResponseLaw:
    """A law over words of `bits` bits, spread over coordinates."""
    return ResponseLaw([2 ** min(6, bits - start) for start in range(0, bits, 6)], epsilon)


def worst_odds(law: ResponseLaw, total_bits: int) -> Fraction:
    """Largest ratio of an output's probabilities under two inputs, exactly."""
    rho, words = Fraction(law._threshold, 2**128), 2**total_bits
    return ((1 - rho) + rho / words) / (rho / words)


def exponential(epsilon: float) -> Fraction:
    """e^epsilon to 90 digits, rounded up in the last."""
    with localcontext() as context:
        context.prec = 100
        return Fraction(Decimal(epsilon).exp()) * (1 + Fraction(1, 10**90))


@pytest.mark.parametrize(("epsilon", "bits"), CASES)
def test_odds_never_exceed_e_to_the_epsilon(epsilon: float, bits: int) -> None:
    assert worst_odds(law_of(epsilon, bits), bits) <= exponential(epsilon)


@pytest.mark.parametrize(("epsilon", "bits"), [case for case in CASES if case[1] > 0])
def test_the_response_replaces_no_more_than_it_must(epsilon: float, bits: int) -> None:
    law = law_of(epsilon, bits)
    law._threshold -= max(2, law._threshold >> 60)
    assert worst_odds(law, bits) > exponential(epsilon)


@pytest.mark.parametrize("cells", [[6], [3, 3], [2, 2, 3], [31], [7, 11], [2**31 - 1], [1]])
@pytest.mark.parametrize("epsilon", [1e-4, 0.48, 4.8, 48.0])
def test_odds_of_the_word_that_is_drawn_least_often_are_kept(cells: list[int], epsilon: float) -> None:
    """A 32-bit integer modulo c has the cells of c unlike often: the rarest decides, and one word less would not do."""
    law = ResponseLaw(cells, epsilon)
    rarest = math.prod(Fraction(2**32 // own, 2**32) for own in cells)

    def odds(threshold: int) -> Fraction:
        rho = Fraction(threshold, 2**128)
        return (1 - rho + rho * rarest) / (rho * rarest)

    assert odds(law._threshold) <= exponential(epsilon)
    if cells != [1]:
        assert odds(law._threshold - max(2, law._threshold >> 60)) > exponential(epsilon)
    assert law.gain <= exponential(epsilon)


def test_control_odds_of_even_words_would_be_too_large_where_they_are_not() -> None:
    """2^32 is no multiple of 2^31 - 1: one word of it is drawn three times of 2^32, and the others twice."""
    law = ResponseLaw([2**31 - 1], 1e-4)
    rho, even = Fraction(law._threshold, 2**128), Fraction(1, 2**31 - 1)
    assert (1 - rho + rho * even) / (rho * even) <= exponential(1e-4)
    words = Decimal(2**31 - 1)
    with localcontext() as context:
        context.prec = 100
        wrong = Fraction(words / (Decimal("1e-4").exp() + words - 1))
    rarest = Fraction(2, 2**32)
    assert (1 - wrong + wrong * rarest) / (wrong * rarest) > exponential(1e-4)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda e, k: 1 / (math.exp(e) + k - 1),  # forgets that a replaced index may be the true one
        lambda e, k: 1 - math.exp(e) / (math.exp(e) + k - 1),
        lambda e, k: 2 / (math.exp(e) + 1),  # that of two words, for any number
        lambda e, k: k / (math.exp(2 * e) + k - 1),
    ],
)
def test_wrong_probabilities_are_seen(wrong) -> None:
    law = ResponseLaw([16], 1.0)
    law._threshold = int(wrong(1.0, 16) * 2**128)
    assert worst_odds(law, 4) > exponential(1.0)


def test_the_law_is_the_same_integers_whatever_the_program_has_set_for_decimals() -> None:
    """And they are the least multiples of 2^-128 that keep to epsilon, but for the margin of 10^-100."""
    for epsilon, bits in [*CASES, (0.1 + 0.2, 9), (37.8 / 128, 4)]:
        threshold = law_of(epsilon, bits)._threshold
        with localcontext() as context:
            context.prec, context.rounding = 4, ROUND_FLOOR
            assert law_of(epsilon, bits)._threshold == threshold
        with localcontext() as context:
            context.prec = 400
            power = Decimal(epsilon).exp()
            rho = Decimal(2**bits) / (power + 2**bits - 1) * 2**128
            assert 0 <= threshold - rho <= 1 + rho * Decimal(10) ** -99


def test_so_many_of_all_draws_replace_a_word() -> None:
    """A draw replaces when its 128 bits are below the threshold; at the threshold itself one too many would."""

    class Told:
        def __init__(self, uniform: int) -> None:
            self._uniform = uniform

        def words(self, count: int, out: object = None) -> np.ndarray:
            return np.frombuffer(self._uniform.to_bytes(16, "little") + bytes(4 * (count - 4)), np.uint32)

    law = ResponseLaw([8], 1.0)
    assert [law.sample(Told(law._threshold + more))[0] for more in (-1, 0, 1)] == [1, 0, 0]


def test_a_vanishing_or_enormous_epsilon_stays_in_range() -> None:
    assert 0.999 < ResponseLaw([64], 1e-9).replace <= 1
    assert 0 < ResponseLaw([64], 1e6).replace < 1e-37


def test_draws_replace_as_often_as_they_should_and_uniformly() -> None:
    law, noise = ResponseLaw([2, 8, 1], 1.5), SeededNoise(5)
    draws = np.array([noise.draw(law) for _ in range(40_000)])
    assert law.shape == (4,)
    rho = law.replace
    error = 4 * math.sqrt(rho * (1 - rho) / len(draws))
    assert abs(draws[:, 0].mean() - rho) < error
    for wrong in (0.9 * rho, 1.1 * rho):
        assert abs(draws[:, 0].mean() - wrong) > error
    assert set(draws[:, 3]) == {0}
    joint = np.bincount(draws[:, 1] * 8 + draws[:, 2], minlength=16)
    chi_square = ((joint - len(draws) / 16) ** 2 / (len(draws) / 16)).sum()
    assert chi_square < 45  # 15 degrees of freedom: 1 in 10,000
    replaced = draws[draws[:, 0] == 1]
    assert abs(replaced[:, 1].mean() - 0.5) < 4 * 0.5 / math.sqrt(len(replaced))


def test_cells_that_are_no_power_of_two_are_drawn_as_often() -> None:
    law, noise = ResponseLaw([3, 2, 5], 1.5), SeededNoise(5)
    draws = np.array([noise.draw(law) for _ in range(40_000)])
    joint = np.bincount(draws[:, 1:] @ [10, 5, 1], minlength=30)
    assert len(joint) == 30
    assert ((joint - len(draws) / 30) ** 2 / (len(draws) / 30)).sum() < 63  # 29 degrees of freedom: 1 in 4,000
