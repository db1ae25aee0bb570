"""Charges cover what is spent, ceilings allow no more than what was written, and k releases fit k times epsilon."""

import dataclasses
import math
import random
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import eyestream
from eyestream.core.charge import DELTA_UNITS, EPSILON_UNITS, Ceilings, Charge, ceiling_units, charge_units, spendable

PACKAGE = Path(eyestream.__file__).parent


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [
        (0.1, 10**11 + 1, 10**11),  # the float is 0.1 + 5.6e-18
        (0.3, 3 * 10**11, 3 * 10**11),  # the float is 0.3 - 1.1e-17
        ("0.1", 10**11, 10**11),
        (Decimal("0.1"), 10**11, 10**11),
        (np.float64(4.8), 48 * 10**11, 48 * 10**11),
        (np.float64(0.1), 10**11 + 1, 10**11),
        ("0.0000000000001", 1, 0),
        (Fraction(1, 3), 333333333334, 333333333333),
        (2, 2 * 10**12, 2 * 10**12),
    ],
)
def test_a_charge_is_the_exact_value_rounded_up_and_a_ceiling_the_written_one_rounded_down(value, up, down):
    assert (charge_units(value), ceiling_units(value)) == (up, down)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.1, "nan", "-1", "much"])
def test_what_is_no_amount_is_refused(value):
    for function in (charge_units, ceiling_units):
        with pytest.raises(ValueError, match="expected a"):
            function(value)


@pytest.mark.parametrize("units", [(0, 0), (-1, 0), (2**64, 0), (1, -1), (1, 10**18 + 1), (10**19 + 1, 0)])
def test_a_release_always_costs_something(units):
    with pytest.raises(ValueError, match="expected a charge"):
        Charge(*units)


@pytest.mark.parametrize("arguments", [(0, 1), (-1,), (2**32, 1), (0, None, None, None, None, 1)])
def test_a_window_has_a_length(arguments):
    with pytest.raises(ValueError, match="window"):
        Ceilings(*arguments)


def test_ceilings_of_plain_numbers():
    wanted = Ceilings(2, 48 * 10**11, 10**12, None, 10**13, session_delta=10**12, lifetime_delta=10**9)
    assert Ceilings.of(2, 4.8, "1", None, 10, session_delta="1e-6", lifetime_delta=1e-9) == wanted
    assert Ceilings.of() == Ceilings()


def test_ceilings_are_within_others_when_nothing_more_is_allowed():
    some = Ceilings(2, 10, 20, 30, 40, 1, 2, 3, 4)
    assert not some.raised_over(some)
    assert not some.raised_over(Ceilings(2))
    assert Ceilings(2).raised_over(some)
    assert some.raised_over(Ceilings(3, 99))
    for index in range(8):
        higher: list[int | None] = [10, 20, 30, 40, 1, 2, 3, 4]
        higher[index] = 1 + (higher[index] or 0)
        assert not some.raised_over(Ceilings(2, *higher))
        assert Ceilings(2, *higher).raised_over(some)
        higher[index] = None
        assert Ceilings(2, *higher).raised_over(some)


def test_what_is_raised_is_named():
    low = Ceilings(2, 10, day=30, wearer=Ceilings(day=5), streams={"gaze": Ceilings(lifetime=7)})
    high = Ceilings(2, 10, day=31, wearer=Ceilings(day=6), streams={"gaze": Ceilings(lifetime=8)})
    assert high.raised_over(low) == ["day", "streams.gaze.lifetime", "wearer.day"]
    assert dataclasses.replace(low, streams={}).raised_over(low) == ["streams.gaze.lifetime"]
    assert dataclasses.replace(low, wearer=None).raised_over(low) == ["wearer.day"]
    assert dataclasses.replace(low, streams={**low.streams, "hand": Ceilings(day=1)}).raised_over(low) == []


def test_nobody_computes_a_charge_in_another_way():
    """What is asked for, booked, refused and said of a release is one figure: `charge_of`, `charges_of`."""
    other_way = re.compile(r"\bCharge\.of\(|\bcharge_units\(")
    found = [path.name for path in PACKAGE.rglob("*.py") if other_way.search(path.read_text(encoding="utf-8"))]
    assert found == ["charge.py"]


def decimals(count: int):
    """Decimals as people and programs write them, up to the 17 digits of a float."""
    random_ = random.Random(9)
    for _ in range(count):
        digits, point = random_.randint(1, 17), random_.randint(-3, 15)
        yield Decimal(random_.randint(1, 10**digits)).scaleb(-point - random_.randint(0, 2))


def wrong(choose, count: int) -> set[str]:
    """What of (a), (b) and (c) in the docstring of `charge` fails when a mechanism spends `choose(written)`."""
    random_, found = random.Random(4), set()
    for decimal in decimals(count):
        written = float(decimal)
        exact, k = Fraction(Decimal(repr(written))), random_.randint(1, 10**6)
        if not 1 <= exact * EPSILON_UNITS <= 10**19:
            continue
        spent = choose(written)
        charge = charge_units(spent)
        if Fraction(spent) > exact:
            found.add("more is spent than what was written")
        if charge > exact * EPSILON_UNITS:
            found.add("it is charged above what was written")
        if Fraction(charge, EPSILON_UNITS) < Fraction(spent):
            found.add("the charge is below what is spent")
        if k * charge > ceiling_units(k * exact):
            found.add("k releases do not fit k times epsilon")
        if exact - Fraction(spent) >= Fraction(1, EPSILON_UNITS) + Fraction(math.ulp(written)):
            found.add("more is given up than a unit and the last place")
    return found


@pytest.mark.long
def test_what_is_spendable_fits_for_a_hundred_thousand_decimals():
    assert wrong(spendable, 100_000) == set()


def test_the_nearest_float_and_the_float_below_would_not():
    assert "more is spent than what was written" in wrong(lambda written: written, 1000)
    assert "k releases do not fit k times epsilon" in wrong(lambda written: math.nextafter(written, 0.0), 1000)


@pytest.mark.parametrize("epsilon", [0.48, 2.4, 4.8, 24.0, 48.0, 0.5, 1e-12, 1e7])
def test_the_epsilons_of_the_papers_are_spendable_as_they_are(epsilon):
    assert spendable(epsilon) == epsilon


def test_less_than_a_unit_is_nothing_to_spend():
    assert spendable(9e-13) == 0.0
    assert spendable(0.1) == math.nextafter(0.1, 0.0)
    assert spendable(np.float64(0.1)) == math.nextafter(0.1, 0.0)


def test_ten_charges_of_what_is_spendable_of_a_tenth_are_one():
    assert 10 * Charge.of(spendable(0.1)).epsilon == Ceilings.of(session=1).session
    assert 10 * Charge.of(0.1).epsilon > (Ceilings.of(session=1).session or 0)
    delta = Charge.of(1, spendable(1e-9, DELTA_UNITS)).delta
    assert 10 * delta == Ceilings.of(session_delta=1e-8).session_delta
