"""Imputation and clamp: total, from the same chunk alone, equal to a naive loop."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from eyestream.core.frame import Domain

Array = NDArray[np.float64]
HOSTILE = [math.nan, math.inf, -math.inf, 1e308, -1e308, -0.0, 5e-324, -5e-324, 2.0**60, 1.7976931348623157e308]


def naive(chunk: Array, lo: Array, hi: Array, fill: Array) -> Array:
    """Hold the last present value of the same chunk, fill before the first, clamp; one value at a time."""
    result = np.empty_like(chunk)
    for f, row in enumerate(chunk):
        held = fill[f]
        for t, value in enumerate(row):
            if math.isfinite(value):
                held = value
            result[f, t] = min(max(held, lo[f]), hi[f])
    return result


values = st.one_of(st.sampled_from(HOSTILE), st.floats(-20, 20), st.floats())


@settings(max_examples=150)
@given(st.integers(1, 4), st.sampled_from([2, 4, 8, 16]), st.data())
def test_admit_is_the_naive_loop(features: int, n: int, data: st.DataObject) -> None:
    lo = np.array(data.draw(st.lists(st.floats(-10, 0), min_size=features, max_size=features)))
    hi = lo + np.array(data.draw(st.lists(st.floats(0.5, 20), min_size=features, max_size=features)))
    fill = np.array(data.draw(st.lists(st.floats(-30, 30), min_size=features, max_size=features)))
    domain = Domain(lo, hi, fill, n)
    for _ in range(2):  # the second chunk must not see the first
        flat = data.draw(st.lists(values, min_size=features * n, max_size=features * n))
        chunk = np.array(flat).reshape(features, n)
        admitted = domain.admit(chunk)
        np.testing.assert_array_equal(admitted, naive(chunk, lo, hi, fill))
        assert np.isfinite(admitted).all()


def test_each_hostile_value_by_itself() -> None:
    domain = Domain(np.array([-1.0]), np.array([2.0]), np.array([0.5]), 4)
    expected = {math.nan: 0.5, math.inf: 0.5, -math.inf: 0.5, 1e308: 2.0, -1e308: -1.0, 5e-324: 5e-324, -0.0: 0.0}
    for value, result in expected.items():
        assert domain.admit(np.full((1, 4), value)).tolist() == [[result] * 4]


def test_holds_the_last_of_the_same_feature_and_fills_before_the_first() -> None:
    domain = Domain(np.zeros(2), np.full(2, 10.0), np.array([3.0, 4.0]), 4)
    nan = math.nan
    admitted = domain.admit(np.array([[nan, 1.0, nan, 2.0], [nan, nan, nan, nan]]))
    assert admitted.tolist() == [[3.0, 1.0, 1.0, 2.0], [4.0, 4.0, 4.0, 4.0]]
    admitted = domain.admit(np.array([[5.0, nan, nan, nan], [nan, nan, 6.0, nan]]))
    assert admitted.tolist() == [[5.0, 5.0, 5.0, 5.0], [4.0, 4.0, 6.0, 6.0]]


def test_what_is_held_is_not_carried_into_the_next_chunk() -> None:
    rng = np.random.default_rng(0)
    chunk = rng.normal(size=(3, 8))
    chunk[:, :3] = math.nan
    results = []
    for before in (np.zeros((3, 8)), np.full((3, 8), 1e308), np.full((3, 8), math.nan), rng.normal(size=(3, 8))):
        domain = Domain(np.full(3, -5.0), np.full(3, 5.0), np.array([0.1, 9.0, -9.0]), 8)
        domain.admit(before)
        results.append(domain.admit(chunk).copy())
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
    np.testing.assert_array_equal(results[0][:, 0], [0.1, 5.0, -5.0])  # fill, itself clamped to the range


def test_the_chunk_is_not_changed() -> None:
    chunk = np.array([[math.nan, 1e308, 1.0, 2.0]])
    Domain(np.zeros(1), np.ones(1), np.zeros(1), 4).admit(chunk)
    np.testing.assert_array_equal(chunk, [[math.nan, 1e308, 1.0, 2.0]])


@pytest.mark.parametrize(
    ("lo", "hi", "fill"),
    [(0.0, math.inf, 0.0), (math.nan, 1.0, 0.0), (0.0, 1.0, math.nan), (1.0, 1.0, 1.0), (2.0, 1.0, 1.0)],
)
def test_a_domain_that_is_none_is_refused(lo: float, hi: float, fill: float) -> None:
    with pytest.raises(ValueError, match=r"finite|below"):
        Domain(np.array([lo]), np.array([hi]), np.array([fill]), 4)
