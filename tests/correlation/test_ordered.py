"""Ordered states: the all-extreme output is the worst one, and the value is exact."""

import numpy as np
import pytest

from eyestream.errors import ConfigError
from eyestream.lab.correlation.attack import change_of_odds, strongest
from eyestream.lab.correlation.autoregressive import Autoregressive
from eyestream.lab.correlation.chains import MarkovClass
from eyestream.lab.correlation.emissions import laplace
from eyestream.lab.correlation.ordered import is_totally_positive, ordered_profile
from eyestream.lab.correlation.profile import profile
from tests.correlation.small_worlds import cao, exact_total, own_words, stay_or_move


@pytest.mark.parametrize(
    ("a", "sd", "epsilon"),
    [(0.3, 0.3, 1), (0.8, 0.2, 1), (0.8, 0.2, 4), (0.95, 0.1, 1), (0.95, 0.1, 4), (0.95, 0.3, 8)],
)
def test_seven_states_by_listing_every_word(a, sd, epsilon):
    process = Autoregressive(a, 0.0, 1.0).grid(7, sd)
    emission = laplace(np.linspace(0, 1, 7), 1 / epsilon)
    found = ordered_profile(process, [emission] * 5)
    exact = exact_total(process, emission, 5, 2)
    assert exact - 1e-12 <= found.total[2] <= exact + 1e-9
    assert profile(process, [emission] * 3).total[1] == pytest.approx(
        ordered_profile(process, [emission] * 3).total[1], abs=1e-9
    )
    coupled = Autoregressive(a, 0.0, 1.0).profile([epsilon] * 5)[2]
    assert coupled >= found.total[2] * 0.99


def test_long_sessions_are_attained_by_the_filter():
    process, emission = Autoregressive(0.95, 0.0, 1.0).grid(7, 0.1), laplace(np.linspace(0, 1, 7), 0.25)
    found = ordered_profile(process, [emission] * 101)
    top = np.tile(emission.outputs[-1], (50, 1))
    outputs = np.vstack([top, emission.outputs[[-1]], top])
    assert change_of_odds(process, outputs, 50)[6, 0] == pytest.approx(found.total[50], abs=1e-8)
    assert found.total[50] == pytest.approx(found.epsilon)
    assert found.width * 101 < 1e-9
    assert Autoregressive(0.95, 0.0, 1.0).profile([4.0] * 101)[50] > 3 * found.total[50]  # where coupling is loose


def test_withheld_and_uneven_chunks_and_a_first_law():
    rows = Autoregressive(0.8, 0.0, 1.0).grid(4, 0.2).lowest
    process = MarkovClass.exact(rows, np.array([0.7, 0.1, 0.1, 0.1]))
    emissions = [laplace(np.linspace(0, 1, 4), scale) for scale in (1.0, 0.5, 2.0, 1.0)]
    found = ordered_profile(process, emissions)
    for chunk in range(4):
        assert found.total[chunk] == pytest.approx(strongest(process, emissions, chunk).log_odds, abs=1e-9)


def test_what_is_not_ordered_is_refused():
    emission = laplace(np.linspace(0, 1, 3), 1.0)
    assert not is_totally_positive(stay_or_move(0.8))
    assert is_totally_positive(stay_or_move(0.8, 2))
    with pytest.raises(ConfigError, match="not totally positive"):
        ordered_profile(MarkovClass.exact(stay_or_move(0.8)), [emission] * 3)
    ordered = Autoregressive(0.5, 0.0, 1.0).grid(3, 0.3)
    with pytest.raises(ConfigError, match="no one output speaks for high states"):
        ordered_profile(ordered, [own_words(1.0)] * 3)
    with pytest.raises(ConfigError, match="not all listed"):
        ordered_profile(ordered, [laplace(np.linspace(0, 1, 3), 1.0, snapping=1e-6)] * 3)
    with pytest.raises(ConfigError, match="of one chain"):
        ordered_profile(MarkovClass.within(ordered.lowest * 0.9, np.minimum(ordered.lowest * 1.1, 1)), [emission])


def test_without_the_order_the_extreme_outputs_are_not_the_worst():
    """The condition is needed: on a chain that is not TP2 the all-highest outputs miss a third of the exact value."""
    rows = np.array([[0.1, 0.1, 0.8], [0.1, 0.8, 0.1], [0.8, 0.1, 0.1]])  # the ends swap
    process, emission = MarkovClass.exact(rows), laplace(np.linspace(0, 1, 3), 0.5)
    exact = exact_total(process, emission, 5, 2)
    ends = [np.tile(emission.outputs[i], (5, 1)) for i in (0, -1)]
    reached = max(float(np.abs(change_of_odds(process, outputs, 2)).max()) for outputs in ends)
    assert reached < 0.7 * exact
    assert exact < 2 * cao(rows, 2.0, 2) - 2.0
