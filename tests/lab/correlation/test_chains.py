"""A class of chains: what is refused, and its chains run backward."""

import numpy as np
import pytest

from eyestream.errors import ConfigError
from eyestream_lab.correlation.chains import MarkovClass
from eyestream_lab.correlation.profile import extreme_rows
from tests.lab.correlation.small_worlds import random_chain, stay_or_move

GOOD = np.array([[0.9, 0.1], [0.4, 0.6]])


@pytest.mark.parametrize(
    ("transitions", "said"),
    [
        ([[0.9, 0.2], [0.4, 0.6]], "transitions: not stochastic, row 0 sums to 1.1"),
        ([[0.9, 0.1], [1.4, -0.4]], "transitions: negative probability -0.4 in row 1"),
        ([[0.9, 0.1, 0.0], [0.4, 0.6, 0.0]], r"transitions: shape \(2, 3\), needs \(S, S\)"),
        ([[1.0]], r"transitions: shape \(1, 1\)"),
        ([0.5, 0.5], r"transitions: shape \(2,\)"),
        ([[np.nan, 1.0], [0.5, 0.5]], "transitions: not finite"),
    ],
)
def test_what_is_no_chain_is_refused_by_name(transitions, said):
    with pytest.raises(ConfigError, match=said):
        MarkovClass.exact(np.array(transitions))


def test_a_wrong_first_law_is_refused_by_name():
    with pytest.raises(ConfigError, match=r"first: shape \(3,\), needs \(2,\)"):
        MarkovClass.exact(GOOD, np.array([0.2, 0.3, 0.5]))
    with pytest.raises(ConfigError, match="first: not stochastic"):
        MarkovClass.exact(GOOD, np.array([0.2, 0.3]))
    with pytest.raises(ConfigError, match="state 1 cannot be left"):
        MarkovClass.exact(np.eye(2))
    assert MarkovClass.exact(np.eye(2), np.array([0.5, 0.5])).states == 2


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (GOOD + 0.1, GOOD + 0.2, "margins of row 0 hold no row of probabilities: their sums are 1.2"),
        (GOOD - 0.1, GOOD - 0.05, "margins of row 0 hold no row of probabilities: their sums are 0.8 and 0.9"),
        (GOOD, GOOD - 0.05, "in row 0 a lowest bound is above the highest"),
        (GOOD - 0.2, GOOD + 0.2, "lowest transitions: negative probability"),
        (GOOD, np.ones((3, 3)), "lowest has shape"),
    ],
)
def test_margins_without_a_chain_are_refused_by_name(low, high, said):
    with pytest.raises(ConfigError, match=said):
        MarkovClass.within(low, high)
    with pytest.raises(ConfigError, match="both bounds are needed"):
        MarkovClass.within(GOOD, GOOD, np.array([0.5, 0.5]))


def test_stationary_law_of_a_chain_that_hardly_mixes():
    rates = np.array([[1 - 1e-12, 1e-12], [3e-12, 1 - 3e-12]])
    np.testing.assert_allclose(MarkovClass.exact(rates).first_lowest, [0.75, 0.25], rtol=1e-3)
    rng = np.random.default_rng(0)
    for _ in range(20):
        rows = random_chain(rng, 5)
        law = MarkovClass.exact(rows).first_lowest
        np.testing.assert_allclose(law @ rows, law, rtol=1e-13)


def test_backward_rows_are_bayes_of_the_joint_law():
    rows, first = random_chain(np.random.default_rng(4), 3), np.array([0.7, 0.3, 0.0])
    law = first
    for backward in MarkovClass.exact(rows, first).backward(6):
        joint = law[:, None] * rows
        np.testing.assert_allclose(backward.lowest, (joint / joint.sum(axis=0)).T, rtol=1e-13)
        law = joint.sum(axis=0)


def members(rng, lowest, highest, count):
    """Random chains of a class: convex mixtures of extreme rows."""
    for _ in range(count):
        yield np.array([rng.dirichlet(np.full(len(e), 0.2)) @ e for e in map(extreme_rows, lowest, highest)])


def test_enclosed_backward_rows_hold_every_member():
    rng = np.random.default_rng(5)
    centre = random_chain(rng, 3)
    lowest, highest = np.maximum(centre - 0.05, 0), np.minimum(centre + 0.05, 1)
    first_low, first_high = np.array([0.2, 0.2, 0.2]), np.array([0.5, 0.5, 0.6])
    process = MarkovClass.within(lowest, highest, first_low, first_high)
    enclosed = process.backward(4)
    touched = np.zeros((3, 3))
    for rows in members(rng, lowest, highest, 500):
        law = rng.dirichlet(np.full(6, 0.2)) @ np.resize(extreme_rows(first_low, first_high), (6, 3))
        for t, bounds in enumerate(enclosed):
            joint = law[:, None] * rows
            backward = (joint / joint.sum(axis=0)).T
            assert (backward >= bounds.lowest - 1e-12).all()
            assert (backward <= bounds.highest + 1e-12).all()
            if t == 0:
                touched = np.maximum(touched, (backward - bounds.lowest) / (bounds.highest - bounds.lowest))
            law = joint.sum(axis=0)
    assert touched.max() > 0.8  # an enclosure a quarter narrower would be left


def test_kept_laws_hold_the_stationary_law_of_every_member():
    rng = np.random.default_rng(6)
    centre = stay_or_move(0.6)
    process = MarkovClass.within(centre - 0.05, centre + 0.05)
    for rows in members(rng, centre - 0.05, centre + 0.05, 300):
        law = MarkovClass.exact(rows).first_lowest
        assert (law >= process.first_lowest).all()
        assert (law <= process.first_highest).all()
    assert process.first_lowest.min() > 0.15  # and they say something
    assert len({id(rows) for rows in process.backward(9)}) == 1


def test_extreme_rows_are_the_corners():
    low, high = np.array([0.1, 0.2, 0.1, 0.3]), np.array([0.5, 0.4, 0.2, 0.3])
    corners = extreme_rows(low, high)
    np.testing.assert_allclose(corners.sum(axis=1), 1.0)
    rng = np.random.default_rng(7)
    for _ in range(200):
        g = rng.exponential(1.0, 4)
        order, left, row = np.argsort(-g), 1 - low.sum(), low.copy()
        for state in order:
            row[state] += min(left, high[state] - low[state])
            left = 1 - row.sum()
        assert (corners @ g).max() == pytest.approx(row @ g)
    np.testing.assert_array_equal(extreme_rows(GOOD[0], GOOD[0]), GOOD[:1])
