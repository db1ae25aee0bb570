"""Decision words: pure epsilon for any rows, counted, and a judge that is a function of it."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.noise import SystemBits
from eyestream.errors import CalibrationError, ConfigError
from eyestream_lab.testing.noise import FixedNoise, SeededNoise
from eyestream_lab.words.decision import DecisionLaw, Judge, SpanMean, decide

Array = NDArray[np.float64]
WORST = (np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0)


def probabilities(law: DecisionLaw) -> dict[int, Fraction]:
    """Of each shift, exact: a shift that is not 0 has an interval of the 2^128 numbers, found by its ends."""

    def first(holds: Callable[[int], bool]) -> int:
        low, high = 0, 2**128
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) else (middle + 1, high)
        return low

    ends = [0]
    for shift in range(1, law.words):
        ends.append(first(lambda u, shift=shift: law.shift(u) != shift and u >= ends[shift - 1]))
    shares = {shift: Fraction(ends[shift] - ends[shift - 1], 2**128) for shift in range(1, law.words)}
    return shares | {0: 1 - sum(shares.values(), Fraction(0))}


def odds(given: dict[int, Fraction]) -> Fraction:
    return max(given.values()) / min(given.values())


@pytest.mark.parametrize("words", [2, 3, 5, 6, 64])
@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 4.0, 9.6, 30.0])
def test_odds_of_every_word_are_at_most_e_to_the_epsilon_and_nearly_that(words: int, epsilon: float) -> None:
    law = DecisionLaw(words, epsilon)
    found = probabilities(law)
    assert len({found[shift] for shift in range(1, words)}) == 1
    exact = Fraction(math.exp(epsilon))
    assert odds(found) <= exact * (1 + Fraction(1, 10**12))  # the float exponential is that exact
    assert odds(found) >= exact * (1 - Fraction(1, 10**12))
    assert (law.keep, law.gain) == (found[0], words * found[0])


def test_control_a_law_with_a_little_more_truth_is_seen() -> None:
    found = probabilities(DecisionLaw(4, 4.0 + 1e-9))
    assert odds(found) > Fraction(math.exp(4.0)) * (1 + Fraction(1, 10**12))


def test_odds_between_two_sessions_given_any_history() -> None:
    """Every pair of words, every output: the released word of one over that of the other."""
    law = DecisionLaw(5, 4.0)
    shares = probabilities(law)
    for one in range(5):
        for other in range(5):
            for out in range(5):
                ratio = shares[(out - one) % 5] / shares[(out - other) % 5]
                assert ratio <= Fraction(math.exp(4.0)) * (1 + Fraction(1, 10**12))


def test_drawn_shifts_have_the_law() -> None:
    """20,000 seeded draws: each count within 5 standard deviations, beyond which one in 300,000 seeds lies."""
    law, noise, count = DecisionLaw(4, 1.0), SeededNoise(3), 20_000
    found = np.bincount([int(noise.draw(law)[0]) for _ in range(count)], minlength=4)
    expected = np.array([float(probabilities(law)[shift]) for shift in range(4)])
    limit = 5 * np.sqrt(count * expected * (1 - expected))
    assert (np.abs(found - count * expected) < limit).all()
    assert (np.abs(found - count / 4) > limit).any()  # a uniform law is seen


def test_the_law_draws_from_the_system() -> None:
    assert law_sample(DecisionLaw(6, 4.0)) <= set(range(6))


def law_sample(law: DecisionLaw) -> set[int]:
    bits = SystemBits()
    return {int(law.sample(bits)[0]) for _ in range(50)}


@pytest.mark.parametrize(("words", "epsilon"), [(1, 4.0), (65, 4.0), (4, 0.0), (4, -1.0), (4, math.nan), (4, math.inf)])
def test_numbers_out_of_range_are_refused(words: int, epsilon: float) -> None:
    with pytest.raises(ConfigError, match="decision"):
        DecisionLaw(words, epsilon)


@pytest.fixture(scope="module")
def judge() -> Judge:
    rng = np.random.default_rng(1)
    centres = 3 * rng.standard_normal((4, 6))
    tasks = np.repeat(np.array(["a", "b", "c", "d"]), 40)
    return Judge.learned(np.repeat(centres, 40, axis=0) + rng.standard_normal((160, 6)), tasks)


def test_a_judge_knows_tasks_of_others(judge: Judge) -> None:
    rng = np.random.default_rng(1)
    centres = 3 * rng.standard_normal((4, 6))
    others = np.random.default_rng(2)
    right = [judge.word(centres[k] + others.standard_normal(6)) == k for k in range(4) for _ in range(50)]
    assert np.mean(right) > 0.9


@pytest.mark.parametrize("value", WORST)
def test_a_session_of_anything_has_one_of_the_words(judge: Judge, value: float) -> None:
    law = DecisionLaw(4, 4.0)
    mean = SpanMean(6)
    mean.take(np.full((6, 8), value))
    mean.take(np.where(np.eye(6, 8) > 0, value, 1.0))
    assert decide(judge, law, mean.level, SeededNoise(0)) in range(4)
    assert judge.word(np.full(6, value)) in range(4)


def test_a_session_without_rows_has_the_word_of_the_public_mean(judge: Judge) -> None:
    assert judge.word(SpanMean(6).level) == judge.word(judge.mean)


def test_how_a_session_is_cut_does_not_matter() -> None:
    rows = np.random.default_rng(3).integers(-9, 9, (6, 24)).astype(np.float64)
    whole, pieces = SpanMean(6), SpanMean(6)
    whole.take(rows)
    for piece in np.split(rows, [1, 1, 7, 20], axis=1):
        pieces.take(piece)
    np.testing.assert_array_equal(whole.level, pieces.level)


def test_the_shift_is_all_that_randomness_does(judge: Judge) -> None:
    law, level = DecisionLaw(4, 4.0), judge.mean + 1.0
    said = judge.word(level)
    assert [decide(judge, law, level, FixedNoise(shift)) for shift in range(4)] == [(said + s) % 4 for s in range(4)]


def test_a_law_for_other_words_and_a_judge_that_does_not_fit_are_refused(judge: Judge) -> None:
    with pytest.raises(ConfigError, match="5 words, the judge has 4"):
        decide(judge, DecisionLaw(5, 4.0), judge.mean, SeededNoise(0))
    with pytest.raises(CalibrationError, match="at least two tasks"):
        Judge.learned(np.ones((3, 2)), np.array(["a", "a", "a"]))
    with pytest.raises(CalibrationError, match="tasks and features"):
        Judge(("a", "b"), np.zeros(2), np.ones(2), np.zeros((3, 2)), np.zeros(2))
    with pytest.raises(CalibrationError, match="no spread"):
        Judge(("a", "b"), np.zeros(2), np.zeros(2), np.zeros((2, 2)), np.zeros(2))
    with pytest.raises(CalibrationError, match="finite"):
        Judge(("a", "b"), np.full(2, np.nan), np.ones(2), np.zeros((2, 2)), np.zeros(2))
