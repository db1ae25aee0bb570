"""Schedules: as much epsilon as the target allows, never more."""

import numpy as np
import pytest

from eyestream.errors import ConfigError
from eyestream.lab.correlation.autoregressive import Autoregressive
from eyestream.lab.correlation.chains import MarkovClass
from eyestream.lab.correlation.profile import profile
from eyestream.lab.correlation.schedules import balanced, constant, markov_bound, spaced
from tests.correlation.small_worlds import own_words, stay_or_move


@pytest.mark.long
@pytest.mark.parametrize(("stay", "expected"), [(0.5, 3.48), (0.8, 1.32), (0.95, 0.31)])
def test_constant_epsilon_for_two_hundred_chunks(stay, expected):
    """Target 4.8; the plain sum would allow 0.024 a chunk."""
    bound = markov_bound(MarkovClass.exact(stay_or_move(stay)), own_words)
    found = constant(4.8, 200, bound, precision=2e-3 if stay > 0.5 else 2e-4)
    assert found[0] == pytest.approx(expected, abs=0.0051)
    assert (found == found[0]).all()
    assert bound(found).max() <= 4.8 < bound(found * 1.01).max()


def test_coupled_schedules_have_their_closed_forms():
    process, target, a = Autoregressive(0.6, 0.0, 1.0), 2.0, 0.6

    def bound(epsilons):
        return process.profile(epsilons)

    found = balanced(target, 30, bound, rounds=200)
    np.testing.assert_allclose(found[[0, -1]], target / (1 + a), rtol=1e-3)
    np.testing.assert_allclose(found[1:-1], target * (1 - a) / (1 + a), rtol=1e-2)
    equal = constant(target, 30, bound)
    np.testing.assert_allclose(equal, target * (1 - a) / (1 + a), rtol=1e-3)
    apart = spaced(target, 31, 3, bound)
    np.testing.assert_allclose(apart[::3], target * (1 - a**3) / (1 + a**3), rtol=1e-3)
    assert apart.sum() == pytest.approx(apart[::3].sum())
    assert (apart**2).sum() > 1.2 * (equal**2).sum()  # what small epsilons are worth: withholding pays
    for epsilons in (found, equal, apart):
        assert bound(epsilons).max() <= target


def test_balanced_markov_schedule_is_at_the_target_everywhere():
    bound = markov_bound(MarkovClass.exact(stay_or_move(0.8)), own_words)
    found, equal = balanced(4.8, 8, bound), constant(4.8, 8, bound)
    totals = bound(found)
    assert totals.max() <= 4.8
    assert totals.min() > 4.75
    assert found.sum() > 1.2 * equal.sum()
    assert found[0] > 2 * found[3]


def test_a_chain_that_never_mixes_leaves_the_plain_sum():
    still = MarkovClass.exact(np.eye(2), np.array([0.5, 0.5]))
    found = constant(3.0, 6, markov_bound(still, lambda e: own_words(e, 2)))
    np.testing.assert_allclose(found, 0.5, rtol=1e-3)
    assert profile(still, [own_words(float(found[0]), 2)] * 6).epsilon <= 3.0


def test_bad_schedules_are_refused():
    with pytest.raises(ConfigError, match="target: must be positive"):
        constant(0.0, 3, np.asarray)
    with pytest.raises(ConfigError, match="length: a session has at least one chunk"):
        balanced(1.0, 0, np.asarray)
    with pytest.raises(ConfigError, match="gap: must be at least 1"):
        spaced(1.0, 3, 0, np.asarray)
