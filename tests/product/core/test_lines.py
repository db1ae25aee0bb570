"""The quick evaluation of maps against a search through all knots."""

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.mechanisms.klt.maps import Lines, Nodes, Room

Array = NDArray[np.float64]
A, Q, N = 6, 65, 40


def knots() -> tuple[Array, Array]:
    """(A, Q) knots and what they map to: even ones, clusters of all sizes, neighbours, and all nearly one number."""
    rng = np.random.default_rng(3)
    at = np.sort(rng.random((A, Q)), axis=1)
    at[1, 1:-1] = 0.5 + 1e-7 * at[1, 1:-1]
    at[2, :-1] *= 1e-3
    at[3] = 1e6 + np.arange(Q) / 7
    at[4, 30] = np.nextafter(at[4, 29], 1.0)
    at[5] = 1e6 + np.arange(Q) * 10 * np.spacing(1e6)
    return at, np.cumsum(0.1 + rng.random((A, Q)), axis=1)


def values(at: Array) -> Array:
    """(A, N): at knots, between them, beside them."""
    rng = np.random.default_rng(4)
    inside = at[:, :1] + (at[:, -1:] - at[:, :1]) * rng.random((A, N))
    inside[:, :20] = at[:, rng.integers(0, Q, 20)]
    inside[:, 20:30] = at[:, 20:30] + 1e-9 * (at[:, 21:31] - at[:, 20:30])
    first, last = at[:, 0], at[:, -1]
    inside[:, 30:34] = np.stack([2 * first - last, 2 * last - first, first, last], axis=1)
    return inside


def searched(at: Array, to: Array, x: Array) -> Array:
    return np.array([np.interp(*one) for one in zip(x, at, to, strict=True)])


def made(at: Array, to: Array) -> Lines:
    """For a range that goes further than the knots on both sides, as `values` do."""
    width = at[:, -1] - at[:, 0]
    return Lines(at, to, at[:, 0] - width, at[:, -1] + width)


def worked(lines: Lines, x: Array) -> Array:
    """Its values in the order of the features."""
    out = np.empty((A, N))
    lines.worker(Room(A, N))(x, out)
    return out[np.argsort(lines.order)]


def test_lines_are_what_a_search_through_all_knots_finds() -> None:
    at, to = knots()
    x = values(at)
    lines = made(at, to)
    out = worked(lines, x)
    rise = np.diff(to, axis=1).max(axis=1)[:, None]  # rounding of a place moves a value inside a steep segment alone
    usual = [0, 2, 3]
    np.testing.assert_allclose(out[usual], searched(at, to, x)[usual], rtol=1e-6, atol=1e-6)
    assert (np.abs(out - searched(at, to, x)) <= 1.001 * rise).all()
    np.testing.assert_array_equal(worked(lines, x[:, ::-1].copy())[:, ::-1], out)


@pytest.mark.parametrize("step", [2, 4, 8])
def test_lines_without_one_of_the_steps_are_wrong(step: int) -> None:
    """The control: each halving step is needed."""
    at, to = knots()
    x, lines = values(at), made(at, to)
    lines._steps = [(half, rows) for half, rows in lines._steps if half != step]
    assert np.abs(worked(lines, x) - searched(at, to, x)).max() > 1.0


def test_lines_without_the_comparison_behind_the_steps_are_wrong() -> None:
    """The control for a bend that is alone in its cell."""
    at, to = knots()
    x, lines = values(at), made(at, to)
    assert worked(lines, x)[0] == pytest.approx(searched(at, to, x)[0])
    lines._bends[:] = np.inf
    assert np.abs(worked(lines, x)[0] - searched(at, to, x)[0]).max() > 0.01


def test_nodes_are_near_where_knots_lie_spread() -> None:
    at, to = np.sort(np.random.default_rng(5).random((A, Q)), axis=1) + np.arange(Q) / 20, knots()[1]
    x, out = values(at), np.empty((A, N))
    Nodes(at, to).worker(Room(A, N))(x, out)
    steepest = (np.diff(to, axis=1) / np.diff(at, axis=1)).max(axis=1)[:, None]
    off = np.abs(out - searched(at, to, x))
    assert (off <= steepest * (at[:, -1:] - at[:, :1]) / 256).all()
    assert (off[:, 30:34] < 1e-9).all()
    Nodes(at, to).worker(Room(A, N))(x, x)
    np.testing.assert_array_equal(x, out)
