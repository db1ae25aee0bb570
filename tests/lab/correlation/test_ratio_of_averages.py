"""The bound of a ratio of averages: never below the maximum, and not above it by more than it says."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from eyestream_lab.correlation import transport
from eyestream_lab.correlation.transport import closure, largest_log_ratio, single_assignment

Array = NDArray[np.float64]


def by_linear_program(p: Array, q: Array, exponents: Array) -> float:
    """The maximum by another solver: maximise g . p where g . q = 1."""
    states = len(p)
    limits = []
    for y in range(states):
        for z in range(states):
            if y != z:
                limit = np.zeros(states)
                limit[y], limit[z] = 1.0, -math.exp(exponents[y, z])
                limits.append(limit)
    found = linprog(-p, A_ub=np.array(limits), b_ub=np.zeros(len(limits)), A_eq=[q], b_eq=[1.0], method="highs")
    assert found.success
    return math.log(-found.fun)


def rows(rng: np.random.Generator, count: int, states: int, zeros: float) -> Array:
    drawn = rng.dirichlet(np.full(states, 0.5), count)
    drawn[rng.random(drawn.shape) < zeros] = 0.0
    drawn[drawn.sum(axis=1) == 0] = 1.0
    return drawn


def logs(values: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(values)


@pytest.mark.parametrize("zeros", [0.0, 0.2])
@pytest.mark.parametrize("states", [2, 3, 5, 8])
def test_it_is_the_optimum_of_the_linear_program(states, zeros):
    rng = np.random.default_rng(states)
    for mean in (0.3, 3.0):
        p, q = rows(rng, 25, states, zeros), rows(rng, 25, states, zeros)
        exponents = closure(rng.exponential(mean, (states, states)))
        upper, lower = largest_log_ratio(logs(p), logs(q), exponents)
        optimum = np.array([by_linear_program(*pair, exponents) for pair in zip(p, q, strict=True)])
        np.testing.assert_allclose(upper, optimum, atol=1e-7)  # the other solver's tolerance
        assert (upper - lower).max() < 1e-10
        assert (lower <= upper).all()
        assert (single_assignment(logs(p), logs(q), exponents) >= lower).all()


def test_no_vector_that_obeys_the_exponents_has_a_larger_ratio():
    rng = np.random.default_rng(1)
    attained = []
    for _ in range(40):
        exponents = closure(rng.exponential(2.0, (4, 4)))
        p, q = rng.dirichlet(np.ones(4), (2, 1))
        upper, _ = largest_log_ratio(np.log(p), np.log(q), exponents)
        start = rng.uniform(-6, 6, (4000, 4))
        vectors = (start[:, None, :] + exponents).min(axis=2)
        assert (vectors[:, :, None] - vectors[:, None, :] <= exponents + 1e-9).all()
        ratios = np.log(np.exp(vectors) @ p[0] / (np.exp(vectors) @ q[0]))
        assert ratios.max() <= upper[0]
        attained.append(ratios.max() / upper[0])
    assert max(attained) > 0.999  # the test would see a bound that is a thousandth too low


@pytest.mark.parametrize("exponent", [1e-6, 1.0, 40.0, 700.0, 3999.0])
def test_two_states_to_forty_digits(exponent):
    p, q = np.array([[0.7, 0.3]]), np.array([[0.2, 0.8]])
    upper, lower = largest_log_ratio(np.log(p), np.log(q), np.array([[0.0, exponent], [exponent, 0.0]]))
    with localcontext() as context:
        context.prec, context.Emax = 40, 10**6
        growth = Decimal(exponent).exp()
        above = Decimal(float(p[0, 0])) * growth + Decimal(float(p[0, 1]))
        below = Decimal(float(q[0, 0])) * growth + Decimal(float(q[0, 1]))
        exact = (above / below).ln()
        assert Decimal(float(lower[0])) <= exact <= Decimal(float(upper[0]))
        assert Decimal(float(upper[0])) - exact < Decimal("3e-12")


def test_a_bad_plan_loosens_the_bound_and_does_not_break_it(monkeypatch):
    rng = np.random.default_rng(2)
    p, q = rows(rng, 50, 4, 0.0), rows(rng, 50, 4, 0.0)
    exponents = closure(rng.exponential(1.0, (4, 4)))
    good, _ = largest_log_ratio(np.log(p), np.log(q), exponents)

    def nonsense(loads: Array, allowed: NDArray[np.bool_], first: NDArray[np.intp]) -> tuple[Array, Array]:
        drawn = rng.dirichlet(np.full(4, 0.1), (len(loads), 4))
        return drawn, rng.dirichlet(np.ones(4), len(loads))

    monkeypatch.setattr(transport, "least_load", nonsense)
    bad, lower = largest_log_ratio(np.log(p), np.log(q), exponents)
    assert (bad >= good - 1e-11).all()
    assert (bad > good + 1e-3).any()
    assert (lower <= good).all()


def test_closure_makes_a_distance_and_keeps_one():
    rng = np.random.default_rng(3)
    exponents = closure(rng.exponential(2.0, (6, 6)))
    assert (exponents[:, None, :] <= exponents[:, :, None] + exponents[None, :, :] + 1e-12).all()
    np.testing.assert_allclose(closure(exponents), exponents, rtol=1e-14)
    assert (np.diag(exponents) == 0).all()


def test_equal_rows_and_free_vectors_have_their_known_values():
    p = np.log(np.array([[0.2, 0.5, 0.3]]))
    apart = 2.0 * ~np.eye(3, dtype=bool)
    assert largest_log_ratio(p, p, apart)[0][0] == pytest.approx(0.0, abs=1e-11)
    far = np.log(np.array([[0.1, 0.1, 0.8]]))
    free = largest_log_ratio(p, far, 500.0 * ~np.eye(3, dtype=bool))[0][0]
    assert free == pytest.approx(math.log(5.0), abs=1e-9)  # the largest ratio of two entries: 0.5 / 0.1
