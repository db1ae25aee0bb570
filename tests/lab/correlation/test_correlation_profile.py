"""epsilon' of a session against the listing of every output, and against the bound that knows epsilon alone."""

import itertools
import math

import numpy as np
import pytest

from eyestream.errors import ConfigError
from eyestream_lab.correlation.chains import MarkovClass
from eyestream_lab.correlation.emissions import Emission, laplace, response
from eyestream_lab.correlation.profile import extreme_rows, profile
from tests.lab.correlation.small_worlds import (
    cao,
    chunk_emission,
    exact_total,
    own_words,
    pairs_of_rows,
    random_chain,
    sides,
    stay_or_move,
    withheld,
)
from tests.rigs.chain_attack import change_of_odds, strongest

TABLE = [  # stay, epsilon; randomised response, CFPA, DCFPA, DCFPA rescaled to its own loss: five chunks, the third
    (0.5, 1, 1.66, 1.32, 0.42, 1.32),
    (0.8, 1, 3.31, 2.66, 0.87, 2.63),
    (0.8, 4, 8.11, 7.72, 3.23, 7.30),
    (0.95, 1, 4.49, 4.15, 1.36, 4.14),
    (0.95, 4, 11.21, 10.89, 5.10, 10.44),
]


@pytest.mark.parametrize("row", TABLE)
def test_five_chunks_of_each_mechanism(row):
    """Every entry by listing all words of outputs; the bound equals it, and so does what an attacker reaches."""
    stay, epsilon, words, cfpa, dcfpa, rescaled = row
    states = MarkovClass.exact(stay_or_move(stay))
    pairs, chunks = pairs_of_rows(stay)
    worlds = [
        (states, own_words(epsilon), words),
        (pairs, chunk_emission(chunks, epsilon, differences=False), cfpa),
        (pairs, chunk_emission(chunks, epsilon, differences=True), dcfpa),
        (pairs, chunk_emission(chunks, epsilon, differences=True, own=True), rescaled),
    ]
    for process, emission, printed in worlds:
        exact = exact_total(process, emission, 5, 2)
        assert exact == pytest.approx(printed, abs=0.0051)
        attack = strongest(process, [emission] * 5, 2)
        assert change_of_odds(process, attack.outputs, 2)[attack.pair] == pytest.approx(exact, abs=1e-9)
    for process, emission, _ in worlds[:2] if stay == 0.8 and epsilon == 1 else worlds[:1]:
        exact, found = exact_total(process, emission, 5, 2), profile(process, [emission] * 5)
        assert exact <= found.total[2] <= exact + 1e-9
        assert found.width < 1e-9
    assert cao(stay_or_move(stay), epsilon, 2) * 2 - epsilon == pytest.approx(words, abs=0.0051)


def test_random_chains_bound_between_the_exact_value_and_the_one_of_epsilon_alone():
    rng = np.random.default_rng(11)
    over, coarse = [], []
    for _ in range(60):
        count = int(rng.integers(2, 5))
        rows, epsilon = random_chain(rng, count), float(rng.choice([0.5, 1.0, 4.0]))
        emission = laplace(rng.random(count), 1 / epsilon) if rng.random() < 0.5 else own_words(epsilon, count)
        process = MarkovClass.exact(rows)
        found = profile(process, [emission] * 5)
        exact = exact_total(process, emission, 5, 2)
        assert exact <= found.total[2]
        back = process.backward(5)[0].lowest
        of_epsilon = cao(rows, emission.loss, 2) + cao(back, emission.loss, 2) - emission.loss
        assert found.total[2] <= of_epsilon + 1e-9
        assert found.total[2] <= found.plain_sum
        furthest = [np.log(r[:, None, :] / r[None, :, :]).max() for r in (rows, back)]
        assert found.total[2] <= emission.loss + sum(furthest) + 1e-9
        assert strongest(process, [emission] * 5, 2).log_odds <= exact + 1e-9
        over.append(found.total[2] / exact)
        coarse.append(of_epsilon / exact)
    assert max(over) < 1.15
    assert max(coarse) > 1.5  # what the law of the outputs is worth


@pytest.mark.parametrize("states", [2, 3])
def test_a_word_of_one_bit_is_hardly_better_than_epsilon_alone(states):
    """When the released past may send any set of states to the same bit, an even chain gains nothing over Cao et al."""
    anything = np.array(list(itertools.product([False, True], repeat=states)))
    even = random_chain(np.random.default_rng(2), 2) if states == 2 else stay_or_move(0.7)
    for epsilon in (0.3, 2.0):
        process = MarkovClass.exact(even)
        found, back = profile(process, [response(epsilon, anything)] * 7), process.backward(7)[0].lowest
        for chunk in (0, 3, 6):
            assert found.forward[chunk].max() + epsilon == pytest.approx(cao(even, epsilon, 6 - chunk), abs=1e-9)
            assert found.backward[chunk].max() + epsilon == pytest.approx(cao(back, epsilon, chunk), abs=1e-9)


def test_a_word_of_one_bit_on_an_uneven_chain_tells_less_than_epsilon_alone_allows():
    uneven = random_chain(np.random.default_rng(3), 3)
    anything = np.array(list(itertools.product([False, True], repeat=3)))
    process, emission = MarkovClass.exact(uneven), response(2.0, anything)
    exact = sides(uneven, emission.outputs, 4).max()
    assert exact <= profile(process, [emission] * 5).forward[0].max() < cao(uneven, 2.0, 4) - 2.0


def test_fewer_reachable_cells_tell_less():
    """Cells that are runs, as a quantiser has them, on a chain that is ordered another way."""
    order = np.array([0, 2, 4, 1, 3])
    apart = np.subtract.outer(np.linspace(-0.5, 0.5, 5), 0.8 * np.linspace(-0.5, 0.5, 5)).T
    weights = np.exp(-(apart**2) / (2 * 0.2**2))
    rows = (weights / weights.sum(axis=1, keepdims=True))[np.ix_(order, order)]
    anything = np.array(list(itertools.product([False, True], repeat=5)))
    runs = anything[np.diff(anything, axis=1, prepend=False, append=False).sum(axis=1) == 2][:-1]
    totals = [
        profile(MarkovClass.exact(rows), [response(0.5, cells)] * 5).forward[0].sum()
        for cells in (np.eye(5, dtype=bool), runs, anything)
    ]
    assert totals[0] < totals[1] < totals[2]


def test_a_past_that_chooses_the_cells_stays_below():
    """Words that depend on what was released: all released words, and all rules that pick the next cell, are listed."""
    epsilon, rows = 1.5, random_chain(np.random.default_rng(2), 3)
    cells = np.array([[True, False, False], [True, True, False]])
    process = MarkovClass.exact(rows)
    bound = profile(process, [response(epsilon, np.vstack([cells, ~cells]))] * 3).total[0]

    def likelihood(rule: tuple[int, ...], bits: tuple[int, ...]) -> np.ndarray:
        """P(second and third bit | first state), up to a constant, when the cell after bit b is cells[rule[b]]."""
        second = np.where(cells[rule[bits[0]]] == bits[1], math.exp(epsilon), 1.0)
        third = np.where(cells[rule[bits[1]]] == bits[2], math.exp(epsilon), 1.0)
        return rows @ (second * (rows @ third))

    worst = 0.0
    for rule in itertools.product(range(2), repeat=2):
        for bits in itertools.product(range(2), repeat=3):
            own = np.where(cells[0] == bits[0], epsilon, 0.0)
            logs = own + np.log(likelihood(rule, bits))
            worst = max(worst, float(logs.max() - logs.min()))
    assert 0.9 * bound < worst <= bound


def test_margins_hold_for_every_member_and_cost_something():
    """Chains with other rows at every step, corner by corner, listed with every word."""
    rng = np.random.default_rng(8)
    centre, epsilon = random_chain(rng, 2), 1.0
    lowest, highest = np.maximum(centre - 0.08, 0.0), np.minimum(centre + 0.08, 1.0)
    emission = own_words(epsilon, 2)
    found = profile(MarkovClass.within(lowest, highest), [emission] * 4)
    corners = [np.array(rows) for rows in itertools.product(*map(extreme_rows, lowest, highest))]
    worst = 0.0
    for steps in itertools.product(corners, repeat=3):
        vectors = np.ones((1, 2))
        for rows in steps:
            vectors = (np.exp(emission.outputs)[:, None, :] * vectors[None]).reshape(-1, 2) @ rows.T
        worst = max(worst, float(np.abs(np.log(vectors[:, 0] / vectors[:, 1])).max()))
    assert found.forward[0].max() == pytest.approx(worst, abs=1e-9)  # two states: the bound is the supremum
    assert worst > profile(MarkovClass.exact(centre), [emission] * 4).forward[0].max() + 0.05


@pytest.mark.parametrize("states", [3, 4])
def test_margins_of_random_members_stay_below(states):
    rng = np.random.default_rng(9)
    centre = random_chain(rng, states)
    lowest, highest = np.maximum(centre - 0.05, 0.0), np.minimum(centre + 0.05, 1.0)
    emission = laplace(np.linspace(0, 1, states), 0.5)
    found = profile(MarkovClass.within(lowest, highest), [emission] * 5)
    worst = 0.0
    for _ in range(150):
        corners = [rng.permutation(extreme_rows(*bounds))[0] for bounds in zip(lowest, highest, strict=True)]
        worst = max(worst, exact_total(MarkovClass.exact(np.array(corners)), emission, 5, 2))
    assert 0.6 * found.total[2] < worst <= found.total[2]


def test_wrong_class_raises_the_figure():
    """Misspecification: a claim for stay 0.8 says nothing of stay 0.95, for which only the plain sum holds."""
    claimed = profile(MarkovClass.exact(stay_or_move(0.8)), [own_words(1.0)] * 5)
    attack = strongest(MarkovClass.exact(stay_or_move(0.95)), [own_words(1.0)] * 5, 2)
    assert claimed.epsilon == pytest.approx(3.31, abs=0.005)
    assert 4.48 < attack.log_odds <= claimed.plain_sum


def test_the_plain_sum_is_reached_when_chunks_determine_each_other():
    still = MarkovClass.exact(np.eye(3), np.full(3, 1 / 3))
    found = profile(still, [own_words(0.7)] * 20)
    np.testing.assert_allclose(found.total, 14.0, rtol=1e-9)
    assert (found.total <= found.plain_sum).all()
    assert strongest(still, [own_words(0.7)] * 20, 5).log_odds == pytest.approx(14.0)
    uncorrelated = MarkovClass.exact(np.tile([0.2, 0.3, 0.5], (3, 1)))
    np.testing.assert_allclose(profile(uncorrelated, [own_words(0.7)] * 20).total, 0.7, atol=1e-8)


def test_long_sessions_settle_and_stay_above_short_ones():
    process, emission = MarkovClass.exact(stay_or_move(0.8)), own_words(1.0)
    long, short = profile(process, [emission] * 400), profile(process, [emission] * 40)
    assert long.total[200] >= strongest(process, [emission] * 60, 30).log_odds
    np.testing.assert_allclose(long.total[:15], short.total[:15], atol=1e-5)
    assert long.total[200] == pytest.approx(2 * cao(process.lowest, 1.0, 200) - 1.0, abs=1e-6)
    mixed = [own_words(e) for e in np.linspace(0.5, 1.5, 10)] + [withheld(3)] * 3
    assert (profile(process, mixed).total <= sum(np.linspace(0.5, 1.5, 10)) + 1e-9).all()


def test_epsilons_that_differ_and_chunks_withheld_are_exact_for_two_states():
    rng = np.random.default_rng(10)
    process = MarkovClass.exact(random_chain(rng, 2))
    emissions = [own_words(0.5, 2), withheld(2), own_words(2.0, 2), own_words(1.0, 2)]
    found = profile(process, emissions)
    for chunk in range(4):
        attack = strongest(process, emissions, chunk)
        assert found.total[chunk] == pytest.approx(attack.log_odds, abs=1e-9)
        assert change_of_odds(process, attack.outputs, chunk)[attack.pair] == pytest.approx(attack.log_odds)


def test_a_state_that_cannot_be_the_secret_is_not_compared():
    rows = np.array([[0.5, 0.5, 0.0], [0.3, 0.6, 0.1], [0.1, 0.1, 0.8]])
    first = np.array([0.5, 0.5, 0.0])
    process, emission = MarkovClass.exact(rows, first), laplace(np.array([0.0, 0.1, 1.0]), 0.25)
    found = profile(process, [emission] * 4)
    for chunk in range(4):
        attack = strongest(process, [emission] * 4, chunk)
        assert change_of_odds(process, attack.outputs, chunk)[attack.pair] == pytest.approx(attack.log_odds)
        assert 0.85 * found.total[chunk] <= attack.log_odds <= found.total[chunk]
    assert found.total[0] < 0.4 * 1.5 + found.forward[0].max()


def test_a_looser_law_without_listed_outputs_stays_above():
    process = MarkovClass.exact(stay_or_move(0.8))
    full = laplace(np.array([0.0, 0.5, 1.0]), 1.0)
    pairwise = Emission(full.log_ratio, full.outputs, False)
    assert profile(process, [pairwise] * 5).total[2] >= profile(process, [full] * 5).total[2] - 1e-9


def test_bad_sessions_are_refused():
    process = MarkovClass.exact(stay_or_move(0.8))
    with pytest.raises(ConfigError, match="at least one chunk"):
        profile(process, [])
    with pytest.raises(ConfigError, match="emission: of 2 states, the chains have 3"):
        profile(process, [own_words(1.0, 2)] * 2)
    with pytest.raises(ConfigError, match="an attacker knows one chain"):
        strongest(MarkovClass.within(stay_or_move(0.8) - 0.01, stay_or_move(0.8) + 0.01), [own_words(1.0)], 0)
    with pytest.raises(ConfigError, match="chunk: must lie between 0 and 0"):
        strongest(process, [own_words(1.0)], 1)
