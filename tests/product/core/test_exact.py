"""The sampler's integers against their law in exact arithmetic, when a law is made and by a slow reading."""

import math
import time
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.additive import core as per_feature
from eyestream.core.mechanisms import CFPA, LPA, build
from eyestream.core.noise import digits as digits_module
from eyestream.core.noise import laws
from eyestream.core.noise.digits import digits_within
from eyestream.core.noise.laws import COORDINATE_DEVIATION, DIGIT_DEVIATION, LaplaceLaw, ideal_rate
from eyestream.errors import ConfigError
from eyestream.rim.files import calibrations
from tests.rigs.small_corpus import calibrated

RATES = [2.0**-20, 1.37 * 2.0**-21, 1e-3, 0.5, 3.0, 64.0]


def thresholds_of(law: LaplaceLaw, row: int = 0) -> list[list[int]]:
    own = law.digits.thresholds[row, 0].tolist()
    return [[own[word] for word in words] for words in law.digits.words]


def largest_deviation(rate: float, digits: list[list[int]]) -> Decimal:
    """Of the logarithms of p and 1 - p of any digit, with 200 decimal digits and no shortcut."""
    with localcontext() as context:
        context.prec = 200
        worst = Decimal(0)
        for i, thresholds in enumerate(digits):
            found = Decimal(1)
            for threshold in thresholds:
                found *= Decimal(threshold + 1) / 2**32
            p = 1 / (1 + (Decimal(rate) * 2**i).exp())
            worst = max(worst, abs((found / p).ln()), abs(((1 - found) / (1 - p)).ln()))
        return worst


@pytest.mark.parametrize("rate", RATES)
def test_the_quick_check_is_the_slow_reading_to_a_hair(rate: float) -> None:
    digits = thresholds_of(LaplaceLaw(np.array([rate]), 1, largest=100))
    worst = float(largest_deviation(rate, digits))
    assert worst <= DIGIT_DEVIATION
    assert digits_within(rate, digits, DIGIT_DEVIATION)
    if worst > 1e-15:
        assert digits_within(rate, digits, worst * (1 + 1e-6))
        assert not digits_within(rate, digits, worst * (1 - 1e-6))


@pytest.mark.parametrize("rate", RATES)
def test_a_digit_off_by_a_few_units_is_seen_wherever_it_is(rate: float) -> None:
    right = thresholds_of(LaplaceLaw(np.array([rate]), 1, largest=100))
    for place in range(len(right)):
        for by in (-8, 8):
            wrong = [list(words) for words in right]
            wrong[place][0] += by
            assert not digits_within(rate, wrong, DIGIT_DEVIATION) or right[place][0] + 8 > 2**32


def test_a_rate_that_is_off_by_the_last_bits_is_seen() -> None:
    digits = thresholds_of(LaplaceLaw(np.array([0.5]), 1, largest=100))
    assert not digits_within(0.5 * (1 + 2.0**-20), digits, DIGIT_DEVIATION)


def spoiled(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    right = digits_module.digit_thresholds

    def wrong(odds: Sequence[Decimal]) -> list[NDArray[np.uint32]]:
        first, *others = right(odds)
        return [change(first), *others]

    monkeypatch.setattr(digits_module, "digit_thresholds", wrong)


@pytest.mark.parametrize(
    "change",
    [
        lambda first: first - np.uint32(16),
        lambda first: np.where(np.arange(len(first)) == len(first) - 1, first - np.uint32(16), first),  # one feature
        lambda first: np.full_like(first, 2**31 - 1),
    ],
)
def test_a_mechanism_whose_sampler_is_off_is_not_made(change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert CFPA(calibrated("cfpa"), 4.8).epsilon == 4.8
    spoiled(monkeypatch, change)
    for make in (CFPA, LPA):
        with pytest.raises(ConfigError, match="thresholds are not those of its law"):
            make(calibrated(make.name), 4.8)


@pytest.mark.parametrize("what", ["sign", "repeat", "tail"])
def test_sign_repeats_and_tails_are_verified_too(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make = digits_module.Digits.__init__

    def wrong(self: Any, rates: Any, count: int, repeat: int) -> None:
        make(self, rates, count, repeat)
        if what == "sign":
            self.thresholds[:, :, self.sign] -= 1
        elif what == "repeat":
            self.thresholds[0, -1, 0] -= 1

    monkeypatch.setattr(digits_module.Digits, "__init__", wrong)
    if what == "tail":
        monkeypatch.setattr(laws, "_MARGIN", 62.0)
    with pytest.raises(OverflowError, match="thresholds"):
        LaplaceLaw(np.array([2.0**-20, 2.0**-19]), 3, largest=100)


@pytest.mark.parametrize("name", ["lpa", "cfpa", "dcfpa"])
@pytest.mark.parametrize("epsilon", [0.48, 4.8, 48.0, 4800.0])
def test_the_losses_of_all_coordinates_sum_to_at_most_epsilon(name: str, epsilon: float) -> None:
    """From the integers of the mechanism, in rational arithmetic; and little is given away."""
    private = build(calibrations.load(f"everyday-{name}-32"), epsilon).core.private
    rates = (math.sqrt(2.0) / private.law.sd).tolist()
    spent = sum(
        (Fraction(rate) * int(s) for rate, s in zip(rates, private.lattice.l1_diameter, strict=True)), Fraction(0)
    )
    spent += private.law.shape[0] * private.law.shape[1] * COORDINATE_DEVIATION
    assert spent <= Fraction(epsilon) * (1 + Fraction(1, 2**50))  # sd is a rounded rate
    assert spent > Fraction(epsilon) * Fraction(99, 100)


def test_a_rate_that_spends_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(per_feature, "ideal_rate", lambda *given: ideal_rate(*given) * (1 + 2.0**-20))
    with pytest.raises(ConfigError, match="sum to more than epsilon"):
        CFPA(calibrated("cfpa"), 4.8)


def test_verification_takes_milliseconds() -> None:
    calibration = calibrations.load("everyday-cfpa-64")
    law = build(calibration, 4.8, k=8).core.private.law
    rates = (math.sqrt(2.0) / law.sd).tolist()
    own = [thresholds_of(law, row) for row in range(len(rates))]
    began = time.process_time()
    for rate, digits in zip(rates, own, strict=True):
        digits_within(rate, digits, 2 * DIGIT_DEVIATION)
    assert time.process_time() - began < 0.2  # 5 ms on a quiet machine
