import numpy as np
import pytest

from eyestream_lab.study import coefficients


def test_kept_error_is_that_of_truncated_spectra():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(3, 16)), rng.normal(size=(3, 16))
    found = coefficients.kept_error(x, y)
    for k in range(1, 10):
        spectrum = np.fft.rfft(y)
        spectrum[:, k:] = 0
        np.testing.assert_allclose(found[:, k - 1], ((x - np.fft.irfft(spectrum, 16)) ** 2).sum(axis=1))


def test_score_of_the_private_choice_moves_no_more_than_the_signal():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(200, 16)), rng.normal(size=(200, 16))
    y[:100] = x[:100] + 1e-3 * y[:100]
    change = np.abs(coefficients.tail(x) - coefficients.tail(y)).max(axis=1)
    assert (change <= np.linalg.norm(x - y, axis=1) + 1e-12).all()
    assert (change > 0.2 * np.linalg.norm(x - y, axis=1)).any()


def test_private_choice_keeps_its_epsilon_and_prefers_the_best():
    rng = np.random.default_rng(4)
    signals = rng.normal(size=(50, 16))
    signals /= np.linalg.norm(signals, axis=1, keepdims=True)  # a ball of radius 1: neighbours differ by 2 at most
    law = coefficients.choice_law(-coefficients.tail(signals), 2.0, 3.0)
    ratios = np.log(law[:, None] / law[None])
    assert np.abs(ratios).max() <= 3.0
    np.testing.assert_allclose(law.sum(axis=1), 1)
    odds = coefficients.choice_law(np.array([[0.0, -2.0]]), 1.0, 2.0)  # epsilon u / (2 sensitivity): e^2 to 1
    assert odds[0, 0] / odds[0, 1] == pytest.approx(np.exp(2.0))
    assert (np.argmax(law, axis=1) == 8).all()


def test_leak_bound_sees_a_difference_and_no_more_than_there_is():
    rng = np.random.default_rng(5)
    p, q = np.array([0.6, 0.3, 0.1]), np.array([0.2, 0.3, 0.5])
    truth = np.abs(np.log(p / q)).max()
    bounds = [coefficients.leak_bound(rng.multinomial(20000, p), rng.multinomial(20000, q)) for _ in range(20)]
    assert max(bounds) <= truth
    assert min(bounds) > 0.7 * truth
    assert coefficients.leak_bound(np.array([50, 50]), np.array([45, 55])) == 0.0


def test_closed_form_of_the_error_agrees_with_releases(world):
    records = coefficients.measure(world, measured="error", mechanism="cfpa", n=32, epsilon=480.0, runs=3)
    assert len(records) == 9
    for record in records:
        assert record["simulated"] == pytest.approx(record["closed_form"], rel=0.05)
    refused = coefficients.measure(world, measured="error", mechanism="cfpa", n=32, epsilon=1e9, runs=1)
    assert refused[0]["simulated"] is None


def test_ways_of_choosing_are_ordered(world):
    for epsilon in (48.0, 1e6):
        record = coefficients.measure(world, measured="choice", mechanism="cfpa", n=32, epsilon=epsilon, runs=4)[0]
        assert record["own_median"] <= min(record["public_median"], record["private_median"])
        if epsilon == 48.0:  # a private choice costs more than it brings, until there is a choice worth making
            assert record["private_median"] > 10 * record["public_median"]
    # at the papers' epsilons the best k is the same for every chunk: nothing to choose, nothing to leak
    assert record["bits"] > 0.1
    record = coefficients.measure(world, measured="choice", mechanism="cfpa", n=32, epsilon=4.8, runs=4)[0]
    assert record["bits"] == record["differs"] == 0.0
