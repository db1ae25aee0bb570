"""Chunks of rows that follow a chain: against the chain of whole chunks, and against every sequence of rows."""

import itertools
import math

import numpy as np
import pytest

from eyestream.errors import ConfigError
from eyestream.lab.correlation.autoregressive import Autoregressive
from eyestream.lab.correlation.chains import MarkovClass
from eyestream.lab.correlation.emissions import fourier_scale
from eyestream.lab.correlation.rows import first_coefficient
from tests.correlation.small_worlds import chunk_emission, exact_total, pairs_of_rows, stay_or_move


def published(n: int, epsilon: float, span: float, *, differences: bool) -> float:
    """The mechanism's own scale for rows in a range `span`."""
    return fourier_scale(n, 1, span * math.sqrt(4 * n - 3 if differences else n), epsilon)


@pytest.mark.parametrize("differences", [False, True])
@pytest.mark.parametrize(("stay", "epsilon"), [(0.5, 1.0), (0.8, 4.0), (0.95, 4.0)])
def test_two_rows_a_chunk_agree_with_the_chain_of_whole_chunks(stay, epsilon, differences):
    process, chunks = pairs_of_rows(stay)
    exact = exact_total(process, chunk_emission(chunks, epsilon, differences=differences), 5, 2)
    rows = MarkovClass.exact(stay_or_move(stay))
    found = first_coefficient(
        rows, 2, published(2, epsilon, 2.0, differences=differences), differences=differences, side=2
    )
    assert found.attained == pytest.approx(exact, abs=1e-9)
    assert exact <= found.total <= exact + 1e-8


CIRCLING = np.array([[0.6, 0.35, 0.05], [0.05, 0.6, 0.35], [0.35, 0.05, 0.6]])  # another chain when run backward


@pytest.mark.parametrize("differences", [False, True])
@pytest.mark.parametrize(("transitions", "n"), [(np.array([[0.9, 0.1], [0.3, 0.7]]), 3), (CIRCLING, 2)])
def test_uneven_chains_by_every_sequence_of_rows(transitions, n, differences):
    """Three chunks: all sequences of rows, all outputs, all pairs of middle chunks."""
    rows, epsilon, states = MarkovClass.exact(transitions), 2.0, len(transitions)
    scale = published(n, epsilon, 1.0, differences=differences)
    sequences = np.array(list(itertools.product(range(states), repeat=3 * n)))
    chance = rows.first_lowest[sequences[:, 0]] * rows.lowest[sequences[:, :-1], sequences[:, 1:]].prod(axis=1)
    chunks = sequences.reshape(-1, 3, n)
    heard = chunks[:, :, -1] if differences else chunks.sum(axis=2)
    middle = chunks[:, 1] @ states ** np.arange(n)
    worst = 0.0
    for outputs in itertools.product(range(int(heard.max()) + 1), repeat=3):
        likelihood = chance * np.exp(-np.abs(np.array(outputs) - heard) / scale).prod(axis=1)
        given = np.log(np.bincount(middle, likelihood) / np.bincount(middle, chance))
        worst = max(worst, float(given.max() - given.min()))
    found = first_coefficient(rows, n, scale, differences=differences, side=1)
    assert found.total == pytest.approx(worst, abs=1e-9)
    assert found.total >= worst
    assert found.attained == pytest.approx(worst, abs=1e-9)


@pytest.mark.parametrize("differences", [False, True])
def test_thirty_two_rows_are_reached_within_half(differences):
    rows = Autoregressive(0.98, 0.0, 1.0).grid(5, 0.08)
    found = first_coefficient(
        rows, 32, published(32, 4.8, 4.0, differences=differences), differences=differences, side=5
    )
    assert 0.5 * found.total <= found.attained <= found.total
    expected = 4.8 / math.sqrt(32 * 125) if differences else 4.8
    assert found.own == pytest.approx(expected)


def test_classes_are_refused():
    rows = stay_or_move(0.8)
    with pytest.raises(ConfigError, match="one chain of rows"):
        first_coefficient(MarkovClass.within(rows - 0.01, rows + 0.01), 4, 1.0, differences=False, side=1)
    with pytest.raises(ConfigError, match="from its stationary law"):
        first_coefficient(MarkovClass.exact(rows, np.array([1.0, 0, 0])), 4, 1.0, differences=False, side=1)
    with pytest.raises(ConfigError, match="n >= 2 are needed, n is 1"):
        first_coefficient(MarkovClass.exact(rows), 1, 1.0, differences=False, side=1)
    with pytest.raises(ConfigError, match="scale: a Laplace scale must be positive and finite, not 0"):
        first_coefficient(MarkovClass.exact(rows), 2, 0.0, differences=False, side=1)
