"""The test of plausible deniability, by brute force over small worlds."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.errors import ConfigError
from eyestream_lab.corpora.deniability import check_deniability, classes, people_alike, records_alike

Array = NDArray[np.float64]
Passes = Callable[[Array, int, int, float], bool]


def right(p: Array, seed: int, k: int, gamma: float) -> bool:
    """Whether y passes, where record d makes it with probability p[d]."""
    with np.errstate(divide="ignore"):
        logs = np.log(p)
    return records_alike(float(logs[seed]), np.delete(logs, seed), gamma) >= k


def worlds() -> list[tuple[Array, int, float]]:
    """Probabilities of one y under 4 records, with k and gamma: every multiset of a grid with zeros and borders."""
    grid = [0.0, 0.1, 1 / 8, 0.2, 1 / 4, 0.3, 1 / 2, 1.0]
    return [
        (np.array(p), k, gamma)
        for p in itertools.combinations_with_replacement(grid, 4)
        for k in (2, 3, 4)
        for gamma in (1.2, 2.0)
    ]


def check(passes: Passes) -> None:
    """What the definition asks of every world, every seed and every y that passes.

    At least k - 1 other records make y within a factor of gamma, and whether y passes is the same for each of these k:
    that it passed tells nothing about which of them was the seed.
    """
    passed = 0
    for p, k, gamma in worlds():
        for seed in range(len(p)):
            if not passes(p, seed, k, gamma):
                continue
            passed += 1
            assert p[seed] > 0
            alike = [
                d
                for d in range(len(p))
                if p[d] > 0 and 1 / gamma * (1 - 1e-12) <= p[seed] / p[d] <= gamma * (1 + 1e-12)
            ]
            assert len(alike) >= k
            assert sum(passes(p, d, k, gamma) for d in alike) >= k
    assert passed > 1000


def test_every_small_world() -> None:
    check(right)


def by_ratio(p: Array, seed: int, k: int, gamma: float) -> bool:
    """Ratios, not classes: the records within a factor of the seed's differ from record to record."""
    with np.errstate(all="ignore"):
        ratio = p[seed] / p
    return bool(p[seed] > 0 and ((ratio <= gamma) & (ratio >= 1 / gamma)).sum() >= k)


def zeros_alike(p: Array, seed: int, k: int, gamma: float) -> bool:
    """Zero has a class of its own: records that cannot make y pass for one another."""
    if p[seed] == 0:
        return bool((p == 0).sum() >= k)
    return right(p, seed, k, gamma)


def seed_twice(p: Array, seed: int, k: int, gamma: float) -> bool:
    """The seed is among the others too."""
    with np.errstate(divide="ignore"):
        logs = np.log(p)
    return records_alike(float(logs[seed]), logs, gamma) >= k


def wrong_base(p: Array, seed: int, k: int, gamma: float) -> bool:
    """Classes of the natural logarithm: e in the place of gamma."""
    return right(p, seed, k, math.e)


@pytest.mark.parametrize("fault", [by_ratio, zeros_alike, seed_twice, wrong_base])
def test_plausible_faults_are_seen(fault: Passes) -> None:
    with pytest.raises(AssertionError):
        check(fault)


def test_classes_are_those_of_the_definition() -> None:
    for gamma in (1.5, 2.0, 3.0):
        for p in np.exp(-np.linspace(0.013, 9.0, 777)):
            i = int(classes(np.log(p), gamma))
            assert gamma ** -(i + 1) < p <= gamma**-i
    assert np.isnan(classes([-np.inf, np.nan, np.inf], 2.0)).all()


def test_long_fixations_do_not_pass_as_zero() -> None:
    """Published products of 85 box probabilities are 0.0, and zeros are equal: here they stay apart."""
    logs = np.array([-800.0, -1600.0])
    assert (np.exp(logs) == 0).all()
    assert records_alike(logs[0], logs[1:], 2.0) == 1
    assert people_alike(logs[0], logs[1:], np.array([7]), 2.0) == 1


def test_people_count_once() -> None:
    others, person = np.log([0.3, 0.3, 0.3, 0.05]), np.array([1, 1, 1, 2])
    assert people_alike(math.log(0.3), others, person, 2.0) == 2
    assert records_alike(math.log(0.3), others, 2.0) == 4
    assert people_alike(-math.inf, others, person, 2.0) == 0


@pytest.mark.parametrize("gamma", [1.0, 0.9, 0.0, -2.0, math.inf, math.nan])
def test_gamma_must_be_above_one(gamma: float) -> None:
    with pytest.raises(ConfigError, match="gamma must be more than 1"):
        check_deniability(2, gamma, "x")
    with pytest.raises(ConfigError, match="k must be 2 or more"):
        check_deniability(1, 2.0, "x")
