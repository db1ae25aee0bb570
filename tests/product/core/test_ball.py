"""Balls of integers: every input ends inside, and the sensitivities are true and not loose.

The checks are done in Python's integers, apart from the arithmetic that they check.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from eyestream.core.additive.ball import L1Lattice, L2Lattice, l1_factor, l2_factor, steps_for
from eyestream.core.spectrum import coordinate_count, coordinate_weights

Array = NDArray[np.float64]


def weights_of(kept: list[int], n: int) -> NDArray[np.int64]:
    """Weights of features that keep different numbers of coefficients, as the mechanisms stack them."""
    weights = np.zeros((len(kept), coordinate_count(n, max(kept))), dtype=np.int64)
    for row, k in enumerate(kept):
        weights[row, : coordinate_count(n, k)] = coordinate_weights(n, k)
    return weights


def squared(a: NDArray[np.int64], weights: NDArray[np.int64]) -> list[int]:
    return [sum(int(w) * int(x) ** 2 for w, x in zip(ws, xs, strict=True)) for ws, xs in zip(weights, a, strict=True)]


def squared_radius(lattice: L2Lattice) -> list[int]:
    return [int(s) for s in lattice._squares]


coordinates = st.one_of(
    st.floats(-1e6, 1e6), st.floats(allow_nan=False, allow_infinity=False, min_value=-1e17, max_value=1e17)
)


def factors(rows: int) -> st.SearchStrategy[Array]:
    """Factors (rows, 1) as projections give them."""
    return st.lists(st.floats(0, 1), min_size=rows, max_size=rows).map(lambda own: np.array(own)[:, None])


WHOLE = np.ones((1, 1))


@settings(max_examples=100)
@given(st.data())
def test_every_input_ends_in_the_euclidean_ball_of_integers(data: st.DataObject) -> None:
    n = data.draw(st.sampled_from([2, 4, 8, 32]))
    kept = data.draw(st.lists(st.integers(1, n // 2 + 1), min_size=1, max_size=3))
    weights = weights_of(kept, n)
    radius = np.array(data.draw(st.lists(st.floats(1e-3, 1e3), min_size=len(kept), max_size=len(kept))))
    steps = 2.0 ** np.array(data.draw(st.lists(st.integers(-15, 8), min_size=len(kept), max_size=len(kept))))
    lattice = L2Lattice(radius, steps, weights)
    flat = data.draw(st.lists(coordinates, min_size=weights.size, max_size=weights.size))
    a = lattice.snap(np.array(flat).reshape(weights.shape), data.draw(factors(len(kept))))
    assert a.dtype == np.int64
    for inside, limit in zip(squared(a, weights), squared_radius(lattice), strict=True):
        assert inside <= limit
    assert not a[weights == 0].any()
    assert np.abs(a).max() <= lattice.largest


@settings(max_examples=100)
@given(st.data())
def test_every_input_ends_in_the_taxicab_ball_of_integers(data: st.DataObject) -> None:
    rows, count = data.draw(st.integers(1, 3)), data.draw(st.sampled_from([1, 2, 4, 32]))
    radius = np.array(data.draw(st.lists(st.floats(1e-3, 1e3), min_size=rows, max_size=rows)))
    steps = 2.0 ** np.array(data.draw(st.lists(st.integers(-25, 8), min_size=rows, max_size=rows)))
    lattice = L1Lattice(radius, steps, count)
    flat = data.draw(st.lists(coordinates, min_size=rows * count, max_size=rows * count))
    a = lattice.snap(np.array(flat).reshape(rows, count), data.draw(factors(rows)))
    for row, sensitivity in zip(a, lattice.l1_diameter, strict=True):
        assert 2 * sum(abs(int(x)) for x in row) <= int(sensitivity)
    assert np.abs(a).max() <= lattice.largest


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e308])
def test_even_what_projection_never_lets_through_ends_inside(value: float) -> None:
    weights = weights_of([3], 8)
    lattice = L2Lattice(np.array([1.0]), np.array([2.0**-10]), weights)
    a = lattice.snap(np.full(weights.shape, value), WHOLE)
    assert squared(a, weights)[0] <= squared_radius(lattice)[0]
    taxicab = L1Lattice(np.array([1.0]), np.array([2.0**-10]), 4)
    assert 2 * int(np.abs(taxicab.snap(np.full((1, 4), value), WHOLE)).sum()) <= int(taxicab.l1_diameter[0])


def lattice_for(n: int, k: int, steps_per_radius: float = 2.0**12) -> L2Lattice:
    radius = math.sqrt(n)
    return L2Lattice(np.array([radius]), np.array([radius / steps_per_radius]), weights_of([k], n))


@pytest.mark.parametrize("n", [8, 32, 63])
def test_the_taxicab_sensitivity_holds_and_is_attained(n: int) -> None:
    """Opposite sign-vector neighbours come within one per mille of it, random ones never exceed it."""
    rng = np.random.default_rng(n)
    for k in range(1, n // 2 + 2):
        lattice, weights = lattice_for(n, k), weights_of([k], n)
        signs = rng.choice([-1.0, 1.0], size=weights.shape)
        extreme = math.sqrt(n) * signs / weights / math.sqrt((1.0 / weights).sum())  # on the sphere of radius sqrt(n)
        a, b = lattice.snap(extreme, WHOLE), lattice.snap(-extreme, WHOLE)
        distance = int(np.abs(a - b).sum())
        limit = int(lattice.l1_diameter[0])
        assert 0.999 * limit - 2 * weights.size <= distance <= limit
        for _ in range(5):
            a, b = (lattice.snap(rng.normal(size=weights.shape), WHOLE) for _ in range(2))
            assert int(np.abs(a - b).sum()) <= limit


def test_both_ends_of_the_taxicab_ball_are_reached() -> None:
    lattice = L1Lattice(np.array([1.0]), np.array([2.0**-12]), 8)
    corner = np.zeros((1, 8))
    corner[0, 3] = 50.0
    onto = l1_factor(corner, np.array([1.0]))
    assert int(np.abs(lattice.snap(corner, onto) - lattice.snap(-corner, onto)).sum()) > 0.999 * int(
        lattice.l1_diameter[0]
    )


def true_rounding(radius: float, step: float, m: int) -> float:
    return radius / step + math.sqrt(m / 4)


def one_step_in_all(radius: float, step: float, m: int) -> float:
    """The wrong derivation: rounding costs one step, however many coordinates there are."""
    return radius / step + 1.0


def forgotten(radius: float, step: float, m: int) -> float:
    return radius / step


def rounding_is_covered(bound: Callable[[float, float, int], float]) -> bool:
    """Whether snapping a point of the real ball without holding it stays inside rho = `bound`."""
    m, step = 64, 1.0
    a = np.full(m, 10.5 + 1e-9)  # every coordinate rounds up by half a step
    radius = float(np.linalg.norm(a))
    return bool(np.linalg.norm(np.rint(a / step)) <= bound(radius, step, m))


def test_rounding_counts_once_for_every_coordinate() -> None:
    assert rounding_is_covered(true_rounding)
    assert not rounding_is_covered(one_step_in_all)
    assert not rounding_is_covered(forgotten)
    lattice = L2Lattice(np.array([10.0]), np.array([1.0]), np.ones((1, 64), dtype=np.int64))
    assert squared_radius(lattice)[0] == math.floor(true_rounding(10.0, 1.0, 64) ** 2)
    taxicab = L1Lattice(np.array([10.0]), np.array([1.0]), 64)
    assert int(taxicab.l1_diameter[0]) == 2 * (10 + 32)


@pytest.mark.parametrize("n", [8, 32])
def test_what_lies_in_the_real_ball_is_rounded_and_not_moved(n: int) -> None:
    rng = np.random.default_rng(n)
    for k in range(1, n // 2 + 2):
        weights = weights_of([k], n)
        radius, step = math.sqrt(n), math.sqrt(n) / 2**10
        lattice = L2Lattice(np.array([radius]), np.array([step]), weights)
        a = rng.normal(size=weights.shape)
        a *= radius / np.sqrt((weights * a**2).sum())  # on the sphere
        np.testing.assert_array_equal(lattice.snap(a, WHOLE), np.rint(a / step).astype(np.int64))


def test_integers_that_do_not_fit_are_refused() -> None:
    one = np.array([1.0])
    with pytest.raises(OverflowError):
        L2Lattice(one, np.array([2.0**-31]), np.ones((1, 4), dtype=np.int64))
    with pytest.raises(OverflowError):
        L1Lattice(one, np.array([2.0**-61]), 4)
    with pytest.raises(OverflowError), np.errstate(divide="ignore"):
        L2Lattice(one, np.array([0.0]), np.ones((1, 4), dtype=np.int64))
    with pytest.raises(OverflowError), np.errstate(invalid="ignore"):
        L2Lattice(np.array([1.0, math.inf]), np.array([1.0, math.inf]), np.ones((2, 4), dtype=np.int64))
    with pytest.raises(OverflowError), np.errstate(invalid="ignore"):
        L1Lattice(np.array([1.0, math.inf]), np.array([1.0, math.inf]), 4)
    largest = L2Lattice(one, np.array([2.0**-29]), np.ones((1, 4), dtype=np.int64))
    far = np.full((1, 4), 1e9)
    extreme = largest.snap(far, l2_factor(far, one))
    assert 0.99 * squared_radius(largest)[0] < squared(extreme, np.ones((1, 4), dtype=np.int64))[0]
    assert squared(extreme, np.ones((1, 4), dtype=np.int64))[0] <= squared_radius(largest)[0]


@pytest.mark.parametrize("scale", [1e-30, 0.3, 1.0, 7.0, 1e20])
def test_steps_are_relative_to_the_scale(scale: float) -> None:
    step = float(steps_for(np.array([scale]), np.array([scale]))[0])
    assert math.frexp(step)[0] == 0.5  # a power of two
    assert scale / 2**21 < step <= scale / 2**20


@pytest.mark.parametrize("ratio", [2.0**11, 2.0**15, 2.0**20])
def test_steps_grow_only_so_that_the_integers_fit(ratio: float) -> None:
    """A large epsilon: the ball is `ratio` times wider than the noise."""
    scale = np.array([1.0])
    step = steps_for(scale, ratio * scale)
    assert math.frexp(float(step[0]))[0] == 0.5
    assert step[0] <= 2.0**-10
    lattice = L2Lattice(ratio * scale / 2.0, step, np.full((1, 2), 2, dtype=np.int64))  # sqrt(sum w) = 2
    assert lattice.largest * step[0] >= 0.49 * ratio
    with pytest.raises(OverflowError):
        L2Lattice(ratio * scale / 2.0, step / 4, np.full((1, 2), 2, dtype=np.int64))


def test_a_ball_too_wide_for_its_noise_is_refused() -> None:
    with pytest.raises(OverflowError):
        steps_for(np.array([1.0]), np.array([2.0**21]))


def test_weights_that_would_round_the_sensitivity_down_are_refused() -> None:
    with pytest.raises(ValueError, match="0, 1 or 2"):
        L2Lattice(np.array([1.0]), np.array([0.01]), np.full((1, 2), 3, dtype=np.int64))


@pytest.mark.parametrize(("factor", "order"), [(l2_factor, 2), (l1_factor, 1)])
def test_projection(factor: Callable[[Array, Array], Array], order: int) -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(50, 6)) * 10.0 ** rng.integers(-3, 4, size=(50, 1))
    radius = np.full(50, 2.5)
    before = np.linalg.norm(points, ord=order, axis=1)
    found = factor(points, radius)
    assert found.shape == (50, 1)
    assert (found[before <= 2.5] == 1).all()  # inside: untouched
    assert 0 < (before > 2.5).sum() < 50
    np.testing.assert_allclose(found[:, 0] * before, np.minimum(before, 2.5), rtol=1e-12)


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_a_row_whose_squares_overflow_becomes_the_centre() -> None:
    rows = np.array([[1e200, -1e200], [3.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(l2_factor(rows, np.ones(3)), [[0.0], [0.2], [1.0]])


def test_the_integers_hold_what_projection_misses() -> None:
    """A projection that is too lax by a per mille: what is outside becomes the centre, nothing else moves."""
    lattice, weights = lattice_for(8, 3), weights_of([3], 8)
    inside = math.sqrt(8) * np.ones((1, 5)) / math.sqrt(weights.sum())
    assert lattice.snap(inside, WHOLE).all()
    assert not lattice.snap(inside, 1.001 * WHOLE).any()
    taxicab = L1Lattice(np.array([1.0]), np.array([2.0**-12]), 8)
    even = np.full((1, 8), 1 / 8)
    assert taxicab.snap(even, WHOLE).all()
    assert not taxicab.snap(even, 1.002 * WHOLE).any()
