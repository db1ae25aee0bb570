"""Linear algebra in a written order: right, finite where there is nothing to divide by, and blind to memory layouts.

That it is the same under other kernels is in `tests/product/tape/test_processors.py`.
"""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.portable import eliminated, is_positive, principal, product, quarter_sine, solved, total

Array = NDArray[np.float64]


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def positive(d: int, rank: int | None = None, seed: int = 0) -> Array:
    root = numbers(d, rank or 2 * d, seed=seed)
    return root @ root.T / root.shape[1]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 24, 1024])
def test_total_is_the_sum_of_halves(count: int) -> None:
    terms = numbers(2, count, 3)
    before = terms.copy()
    np.testing.assert_allclose(total(terms), terms.sum(axis=-2), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(terms, before)
    if count == 7:  # ((1 + 4) + 7 + (2 + 5)) + ... as it is written
        a = terms[0, :, 0]
        first = a[0] + a[3] + a[6]
        assert total(terms)[0, 0] == (first + (a[1] + a[4])) + (a[2] + a[5])


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 2), (24, 24, 48)])
def test_product(shape: tuple[int, int, int]) -> None:
    n, m, k = shape
    left, right = numbers(n, m), numbers(m, k, seed=1)
    np.testing.assert_allclose(product(left, right), left @ right, rtol=1e-12, atol=1e-12)
    several = product(np.stack([left, 2 * left]), right)
    np.testing.assert_array_equal(several, np.stack([product(left, right), product(2 * left, right)]))


def test_the_layout_in_memory_does_not_matter() -> None:
    """BLAS takes other ways for transposed matrices; here the same bits come out."""
    left, right = numbers(17, 23), numbers(23, 9, seed=1)
    same = product(left, right)
    np.testing.assert_array_equal(product(np.asfortranarray(left), right[:, ::-1])[:, ::-1], same)
    np.testing.assert_array_equal(total(np.asfortranarray(left)), total(left))
    matrix = positive(12)
    for one, other in zip(
        eliminated(matrix, right[:12]), eliminated(matrix.T, np.asfortranarray(right[:12])), strict=True
    ):
        np.testing.assert_array_equal(np.triu(one) if one.shape == matrix.shape else one, other)


@pytest.mark.parametrize("d", [1, 2, 5, 24])
def test_elimination(d: int) -> None:
    matrix, beside = positive(d), numbers(d, 3)
    upper, white = eliminated(matrix, np.eye(d))
    np.testing.assert_allclose(upper.T @ upper, matrix, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(white @ matrix @ white.T, np.eye(d), atol=1e-9)
    np.testing.assert_allclose(matrix @ solved(matrix, beside), beside, atol=1e-9)


def test_a_direction_of_no_variance_stays_finite() -> None:
    matrix = positive(12, rank=8)
    right = matrix @ numbers(12, 2)
    found = solved(matrix, right)
    np.testing.assert_allclose(matrix @ found, right, atol=1e-4)
    assert np.isfinite(eliminated(np.zeros((3, 3)), np.eye(3))[1]).all()
    assert np.isfinite(solved(np.zeros((3, 3)), np.zeros((3, 1)))).all()


@pytest.mark.parametrize("d", [1, 2, 3, 8, 24])
def test_principal_columns_are_eigenvectors(d: int) -> None:
    columns = numbers(d + 2, d) * np.arange(1.0, d + 1) ** -1.5
    values, rotation = principal(columns, np.eye(d))
    wanted = np.linalg.eigvalsh(columns.T @ columns)[::-1]
    np.testing.assert_allclose(values, wanted, rtol=1e-4)
    assert (np.diff(values) <= 0).all()
    np.testing.assert_allclose(rotation.T @ rotation, np.eye(d), atol=1e-13)
    turned = columns @ rotation
    lengths = np.sqrt((turned**2).sum(axis=0))
    cosines = (turned / lengths).T @ (turned / lengths) - np.eye(d)
    assert np.abs(cosines).max() < 2.0**-10
    assert d == 1 or np.abs((columns / np.linalg.norm(columns, axis=0)).T @ columns).max() > 2.0**-5


def test_what_is_principal_already_stays_as_it_is() -> None:
    """Nothing is left open, no sign and no order of equals: columns that are orthogonal are not touched."""
    for columns in (np.diag([3.0, 2.0, 2.0, -1.0]), np.diag([1.0, 0.0]), np.zeros((2, 3))):
        rotation = principal(columns, np.eye(columns.shape[1]))[1]
        np.testing.assert_array_equal(rotation, np.eye(columns.shape[1]))
    rotation = principal(np.diag([1.0, 2.0]), np.eye(2))[1]
    np.testing.assert_array_equal(rotation, [[0.0, 1.0], [1.0, 0.0]])


def test_positive() -> None:
    assert is_positive(positive(6))
    for wrong in (-np.eye(2), np.diag([1.0, 0.0]), np.array([[1.0, 2.0], [2.0, 1.0]]), np.full((2, 2), np.nan)):
        assert not is_positive(wrong)


def test_sine() -> None:
    share = np.linspace(0, 0.5, 1001)
    np.testing.assert_allclose(quarter_sine(share), [math.sin(math.pi * one) for one in share], rtol=1e-15, atol=1e-16)
