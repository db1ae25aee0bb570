"""The limit of utility: what a channel can carry at epsilon, and what that can say of normal scores."""

import itertools
import math

import numpy as np
import pytest

from eyestream.core.calibration import JointTables
from eyestream.core.mechanisms.klt.schedule import Schedule
from eyestream_lab.study.limit import Target, causal_limit, most_information, water_filling


def response_information(words: int, epsilon: float) -> float:
    """Nats of the k-ary response on equally likely words."""
    right = math.exp(epsilon) / (math.exp(epsilon) + words - 1)
    wrong = (1 - right) / (words - 1)
    return math.log(words) + right * math.log(right) + (words - 1) * wrong * math.log(wrong)


@pytest.mark.parametrize("epsilon", [0.1, 0.48, 2.4, 4.8, 9.6])
def test_no_response_tells_more_and_one_tells_nearly_as_much(epsilon: float) -> None:
    told = [response_information(words, epsilon) for words in range(2, 3000)]
    most = most_information(epsilon)
    assert max(told) <= most * (1 + 1e-9)
    assert max(told) > 0.85 * most  # words are whole, and at small epsilon two are many
    assert most <= epsilon  # information is a mean of log-ratios, and epsilon bounds every one of them


def test_no_channel_with_this_epsilon_tells_more() -> None:
    """Channels from three inputs to three outputs whose ratios take the ends alone, under many laws of the input."""
    epsilon = 1.5
    rng = np.random.default_rng(1)
    for shape in itertools.product((1.0, math.exp(epsilon)), repeat=9):
        likelihood = np.array(shape).reshape(3, 3)
        if np.ptp(likelihood.sum(axis=1)) < 1e-9:
            channel = likelihood / likelihood.sum(axis=1, keepdims=True)
            for law in rng.dirichlet(np.ones(3), 4):
                out = law @ channel
                assert law @ (channel * np.log(channel / out)).sum(axis=1) <= most_information(epsilon) + 1e-12


def test_epsilon_4_8_is_3_26_bits() -> None:
    assert most_information(4.8) / math.log(2) == pytest.approx(3.265, abs=1e-3)


def test_water_filling_beats_every_other_way_of_spending_the_same() -> None:
    worth, nats = np.array([4.0, 1.0, 0.3, 0.0]), 1.1
    left = water_filling(worth, nats)
    assert -0.5 * np.log(left).sum() == pytest.approx(nats)
    assert left[3] == 1.0
    rng = np.random.default_rng(2)
    shares = rng.dirichlet(np.ones(4), 2000)
    others = np.exp(-2 * nats * shares) @ worth
    assert worth @ left <= others.min() + 1e-12
    assert others.min() < 1.05 * (worth @ left)
    np.testing.assert_array_equal(water_filling(worth, 0.0), 1.0)


def tables(stable: float, transient: float, pole: float = 0.5) -> JointTables:
    """One feature, two rows a chunk, one score: the chunk's mean."""
    one = np.ones((1, 1))
    return JointTables(
        mean=np.zeros(1),
        sd=np.ones(1),
        modes=np.full((1, 2), math.sqrt(0.5)),
        basis=one,
        expand=one,
        poles=np.array([1.0, pole]),
        covariances=np.array([[[stable]], [[transient]]]),
        weights=np.ones(2),
        residual=np.zeros(1),
    )


def test_one_chunk_of_one_score_has_the_closed_form_of_shannon() -> None:
    target = Target(np.ones(1), 2, np.array([0.1]))
    found = causal_limit(tables(0.8, 1.0), target, 4.8, 1)
    error = 1.8 / 2 * math.exp(-2 * most_information(4.8))
    assert found == pytest.approx(1 - error - 0.1)


def test_what_stays_is_learned_over_the_session_and_more_epsilon_says_more() -> None:
    target = Target(np.ones(1), 2, np.zeros(1))
    stays = [causal_limit(tables(2.0, 1e-9), target, 0.5, chunks) for chunks in (1, 5, 50)]
    assert stays == sorted(stays)
    assert stays[2] > stays[0] + 0.3
    by_epsilon = [causal_limit(tables(1.0, 1.0), target, epsilon, 10) for epsilon in (0.1, 1.0, 5.0, 20.0)]
    assert by_epsilon == sorted(by_epsilon)
    assert by_epsilon[-1] < 1


@pytest.mark.parametrize("epsilon", [0.5, 2.4, 4.8, 12.0])
def test_klt_stays_below_the_limit_of_its_own_model(epsilon: float) -> None:
    rng = np.random.default_rng(3)
    d, features, n = 6, 3, 8
    basis = np.linalg.qr(rng.normal(size=(features * 4, d)))[0]
    sizes = np.diag(np.linspace(4, 0.5, d))
    own = JointTables(
        mean=np.zeros(features),
        sd=np.ones(features),
        modes=np.linalg.qr(rng.normal(size=(n, 4)))[0].T,
        basis=basis,
        expand=basis.T.copy(),
        poles=np.array([1.0, 0.6]),
        covariances=np.stack([0.4 * sizes, 0.6 * sizes]),
        weights=np.ones(2),
        residual=np.zeros(features),
    )
    chunks = 64
    schedule = Schedule(own, epsilon)
    lost = np.mean(
        [np.trace(np.tile(np.eye(d), 2) @ after @ np.tile(np.eye(d), 2).T) for _, _, after in schedule.turns()]
    )
    klt = 1 - lost / n / features
    limit = causal_limit(own, Target(np.full(features, 1 / features), n, np.zeros(features)), epsilon, chunks)
    assert klt < limit
    assert klt > limit - 0.35
