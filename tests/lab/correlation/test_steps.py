"""One step with interval rows: leaving out pairs of extreme rows loses nothing, the wider class only loosens."""

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream_lab.correlation import profile as steps
from eyestream_lab.correlation.chains import MarkovClass, TransitionRows
from eyestream_lab.correlation.emissions import laplace
from eyestream_lab.correlation.profile import extreme_rows, interval_step
from eyestream_lab.correlation.transport import closure, largest_log_ratio
from tests.lab.correlation.small_worlds import own_words, random_chain

Array = NDArray[np.float64]


def world(seed: int, states: int) -> tuple[TransitionRows, Array]:
    rng = np.random.default_rng(seed)
    centre = random_chain(rng, states)
    width = rng.uniform(0, 0.15, (states, states)) * (rng.random((states, states)) < 0.8)
    lowest, highest = np.maximum(centre - width, 0.0), np.minimum(centre + width, 1.0)
    return MarkovClass.within(lowest, highest).forward(), closure(rng.exponential(1.0, (states, states)))


@pytest.mark.parametrize("seed", range(6))
def test_every_pair_of_extreme_rows_was_considered(seed):
    states = 3 + seed % 2
    rows, beyond = world(seed, states)
    emission = laplace(np.linspace(0, 1, states), 0.5)
    found, width = interval_step(rows, emission).apply(beyond)
    assert width < 1e-10
    corners = [extreme_rows(*bounds) for bounds in zip(rows.lowest, rows.highest, strict=True)]
    for x, z in itertools.permutations(range(states), 2):
        pairs = itertools.product(corners[x], corners[z], np.exp(emission.outputs))
        above, below = zip(*[(p * likelihood, q * likelihood) for p, q, likelihood in pairs], strict=True)
        with np.errstate(divide="ignore"):
            upper, lower = largest_log_ratio(np.log(above), np.log(below), beyond)
        assert lower.max() <= found[x, z] <= upper.max() + 1e-10


@pytest.mark.parametrize("seed", range(4))
def test_the_wider_class_only_loosens(seed, monkeypatch):
    rows, beyond = world(seed, 3)
    emission = own_words(1.0)
    fine, _ = interval_step(rows, emission).apply(beyond)
    for limit in ("_MOST_PAIRS", "_MOST_PRODUCT", "_MOST_FREE"):
        with monkeypatch.context() as patched:
            patched.setattr(steps, limit, 0)
            wide, _ = interval_step(rows, emission).apply(beyond)
        assert (wide >= fine - 1e-11).all()
        assert (wide <= beyond.max() + emission.loss + 1e-9).all()


def test_the_wider_class_is_the_class_without_upper_bounds(monkeypatch):
    lowest = 0.8 * random_chain(np.random.default_rng(5), 3)
    rows, beyond = TransitionRows(lowest, np.ones((3, 3)), np.ones(3, dtype=bool), 0.0), world(6, 3)[1]
    fine, _ = interval_step(rows, own_words(1.0)).apply(beyond)
    monkeypatch.setattr(steps, "_MOST_FREE", 0)
    wide, _ = interval_step(rows, own_words(1.0)).apply(beyond)
    np.testing.assert_allclose(wide, fine, atol=1e-10)


def test_more_known_beyond_is_never_less_known_here():
    rows, beyond = world(3, 3)
    step = interval_step(rows, own_words(1.0))
    less, more = step.apply(beyond)[0], step.apply(beyond + 0.3 * ~np.eye(3, dtype=bool))[0]
    assert (less <= more + 1e-12).all()
    assert (more <= less + 0.3 + 1e-9).all()
