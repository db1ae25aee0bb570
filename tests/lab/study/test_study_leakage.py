import itertools
import math

import numpy as np
import pytest

from eyestream_lab.study import correlation, leakage

SLOW = np.array([[0.8, 0.2], [0.1, 0.9]])


def by_enumeration(transitions, alpha):
    """L(P, alpha) over every pair of rows and every set of columns: what the greedy algorithm must reach."""
    best = 0.0
    columns = range(transitions.shape[1])
    for q, d in itertools.product(transitions, repeat=2):
        for size in range(1, len(q)):
            for chosen in itertools.combinations(columns, size):
                share_q, share_d = q[list(chosen)].sum(), d[list(chosen)].sum()
                ratio = (share_q * math.expm1(alpha) + 1) / (share_d * math.expm1(alpha) + 1)
                best = max(best, math.log(ratio))
    return best


@pytest.mark.parametrize("alpha", [0.05, 1.0, 8.0])
def test_greedy_set_is_the_best_of_all_sets(alpha):
    rng = np.random.default_rng(3)
    for _ in range(20):
        transitions = rng.dirichlet(np.full(5, 0.4), 5)
        assert leakage.increment(transitions, alpha)[0] == pytest.approx(by_enumeration(transitions, alpha), abs=1e-9)


def test_uncorrelated_chunks_leak_epsilon():
    equal = np.tile([0.3, 0.5, 0.2], (3, 1))
    np.testing.assert_allclose(leakage.total_leakage(equal, equal, 0.7, 20), 0.7)
    assert leakage.supremum(equal, 0.7) == pytest.approx(0.7)


def test_fully_correlated_chunks_leak_all_of_them():
    same = np.eye(4)
    np.testing.assert_allclose(leakage.total_leakage(same, same, 0.7, 20), 20 * 0.7)
    assert leakage.supremum(same, 0.7) == math.inf


def test_two_states_by_hand():
    epsilon = 0.5
    growth = math.expm1(epsilon)
    second = math.log((0.9 * growth + 1) / (0.2 * growth + 1))  # the largest of the two rows' two columns
    other = math.log((0.8 * growth + 1) / (0.1 * growth + 1))
    np.testing.assert_allclose(leakage.backward_leakage(SLOW, epsilon, 2), [epsilon, epsilon + max(second, other)])


@pytest.mark.parametrize("epsilon", [0.01, 0.48, 4.8, 48.0])
def test_supremum_is_where_the_series_ends(epsilon):
    rng = np.random.default_rng(5)
    for transitions in (SLOW, rng.dirichlet(np.ones(4), 4)):
        series = leakage.backward_leakage(transitions, epsilon, 1000)
        assert leakage.supremum(transitions, epsilon) == pytest.approx(series[-1], rel=1e-6)
        assert series[1] <= leakage.supremum(transitions, epsilon)


def test_supremum_where_a_transition_is_impossible():
    # d = 0, q = 0.8: finite below log(1 / q), without end from there on (Theorem 5)
    transitions = np.array([[0.8, 0.2], [0.0, 1.0]])
    below = 0.9 * math.log(1 / 0.8)
    assert leakage.supremum(transitions, below) == pytest.approx(
        math.log((1 - 0.8) * math.exp(below) / (1 - 0.8 * math.exp(below)))
    )
    assert leakage.supremum(transitions, 1.1 * math.log(1 / 0.8)) == math.inf


def test_fit_counts_both_directions():
    forward, backward = leakage.fit([np.array([0, 0, 1, 0]), np.array([1, 1])], 2)
    np.testing.assert_allclose(forward, [[1.5 / 3, 1.5 / 3], [1.5 / 3, 1.5 / 3]])  # 00 01 10 11, each once
    np.testing.assert_allclose(backward, forward)
    forward, backward = leakage.fit([np.array([0, 1, 1, 1])], 2)
    np.testing.assert_allclose(forward, [[0.5 / 2, 1.5 / 2], [0.5 / 3, 2.5 / 3]])
    np.testing.assert_allclose(backward, [[0.5 / 1, 0.5 / 1], [1.5 / 4, 2.5 / 4]])


def test_states_split_the_corpus_evenly(world):
    states = np.concatenate(correlation.states_of(world, 32, 4))
    counts = np.bincount(states, minlength=4)
    assert counts.max() - counts.min() <= 2


def test_autocorrelation_of_a_known_process():
    rng = np.random.default_rng(1)
    series = np.zeros((20000, 1))
    for t in range(1, len(series)):
        series[t] = 0.9 * series[t - 1] + rng.normal()
    for lag in (1, 5):
        assert correlation.autocorrelation(series, lag)[0] == pytest.approx(0.9**lag, abs=0.03)
        x, y = series[:-lag, 0], series[lag:, 0]
        assert correlation.autocorrelation(series, lag)[0] == pytest.approx(np.corrcoef(x, y)[0, 1])


def test_correlation_with_the_fifth_row_is_over_recordings():
    """Made by hand: levels that differ between recordings stay, and a feature that is noise does not."""
    rng = np.random.default_rng(5)
    levels = rng.normal(size=(40, 1, 1))
    series = np.concatenate([levels + 0.01 * rng.normal(size=(40, 9, 1)), rng.normal(size=(40, 9, 1))], axis=2)
    found = correlation.with_fifth(series)
    assert found[:, 0].min() > 0.99
    assert found[4] == pytest.approx([1.0, 1.0])
    assert np.abs(np.delete(found[:, 1], 4)).max() < 0.5
    assert found[7, 1] == pytest.approx(np.corrcoef(series[:, 4, 1], series[:, 7, 1])[0, 1])
    assert np.isnan(correlation.with_fifth(np.ones((3, 6, 1)))).all()


def test_the_fifth_row_of_simulated_people(world):
    records = [r for r in correlation.measure(world, measured="fifth") if r["signal"] == "raw"]
    assert [r["row"] for r in records] == list(range(1, 257))
    assert records[4]["median"] == pytest.approx(1.0)
    assert records[5]["median"] > records[200]["median"]
