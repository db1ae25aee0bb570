"""The cumulative sum inverts the difference; the printed two-term sum does not."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.spectrum import difference, integrate

Array = NDArray[np.float64]


def two_terms(differences: Array) -> Array:
    """Step 3 as both papers print it."""
    result = differences.copy()
    result[..., 1:] += differences[..., :-1]
    return result


def without_the_first(differences: Array) -> Array:
    return np.asarray(np.cumsum(differences, axis=-1)) - differences[..., :1]


def inversion_error(inverse: Callable[[Array], Array], n: int) -> float:
    x = np.random.default_rng(n).normal(size=(3, 4, n)) + 2
    return float(np.abs(inverse(difference(x)) - x).max())


@pytest.mark.parametrize("n", [2, 4, 32, 63, 128])
def test_integration_inverts_difference(n: int) -> None:
    assert inversion_error(integrate, n) < 1e-12
    assert inversion_error(without_the_first, n) > 0.1
    if n > 2:
        assert inversion_error(two_terms, n) > 0.1


def test_the_first_element_is_kept_and_the_argument_is_not_touched() -> None:
    x = np.array([[5.0, 7.0, 4.0]])
    np.testing.assert_array_equal(difference(x), [[5.0, 2.0, -3.0]])
    np.testing.assert_array_equal(integrate(difference(x)), [[5.0, 7.0, 4.0]])
    np.testing.assert_array_equal(x, [[5.0, 7.0, 4.0]])
    assert difference(np.array([[3.0]])).tolist() == [[3.0]]


def test_sensitivity_of_the_difference_signal_to_a_range() -> None:
    """sqrt(4 n - 3) R is attained by an alternating neighbour, and is the largest."""
    n = 32
    alternating = np.where(np.arange(n) % 2, -1.0, 1.0)
    assert np.linalg.norm(difference(alternating)) == pytest.approx(np.sqrt(4 * n - 3))
    others = np.random.default_rng(0).choice([-1.0, 1.0], size=(1000, n))
    assert np.linalg.norm(difference(others), axis=1).max() <= np.sqrt(4 * n - 3) + 1e-12
