import math

import numpy as np
import pytest

from eyestream.core.mechanisms import build
from eyestream.errors import ConfigError
from eyestream_lab.study import utility
from eyestream_lab.study.measures import explained_variance, mean_and_error, nmse, nmse_summary, tame
from eyestream_lab.study.measures import utility as utility_of


def test_nmse_by_hand():
    # (1 + 1) / 2 over 2 * 3; with the clean mean twice it would be 1 / 4, with the noisy one twice 1 / 9
    assert nmse(np.array([1.0, 3.0]), np.array([2.0, 4.0])) == pytest.approx(1 / 6)
    # a negative noisy mean gives a negative value; utility takes its modulus
    value = float(nmse(np.array([1.0, 3.0]), np.array([-1.0, -3.0])))
    assert value == pytest.approx((4 + 36) / 2 / (2 * -2))
    assert utility_of(value) == pytest.approx(0.2)


def test_nmse_without_a_mean_is_undefined():
    values = nmse(np.array([[1.0, -1.0], [1.0, 1.0]]), np.array([[1.0, 1.0], [2.0, 2.0]]))
    assert np.isnan(values[0])
    assert values[1] == pytest.approx(1 / 2)


def test_summary_averages_runs_first_and_keeps_the_sign():
    values = np.array([[1.0, 10.0, np.nan], [-3.0, 30.0, np.nan]])  # (runs, signals)
    summary = nmse_summary(values)
    assert summary["nmse"] == pytest.approx((-1 + 20) / 2)
    assert summary["nmse_abs"] == pytest.approx((2 + 20) / 2)
    assert summary["nmse_median"] == pytest.approx(6.5)
    assert summary["undefined"] == pytest.approx(1 / 3)


def test_explained_variance_of_mean_and_median_feature():
    found = explained_variance(np.array([0.0, 1.0, 6.0]), np.array([1.0, 2.0, 2.0]))
    assert found["explained_variance"] == pytest.approx((1 + 0.5 - 2) / 3)
    assert found["explained_variance_median"] == pytest.approx(0.5)


def test_interval_by_students_t():
    mean, error, half = mean_and_error([1.0, 2.0, 3.0])
    assert (mean, error) == (2.0, pytest.approx(1 / math.sqrt(3)))
    assert half == pytest.approx(4.303 / math.sqrt(3))
    assert mean_and_error([float(i) for i in range(21)])[2] == pytest.approx(2.086 * math.sqrt(38.5 / 21), rel=5e-3)


def test_tame_cuts_one_percent_at_each_end():
    rows = np.arange(1001.0)[:, None]
    assert tame(rows).tolist() == [[10.0], [990.0]]


def test_utility_of_a_mechanism_agrees_with_its_own_noise(world):
    # LPA adds noise of a stated s.d.; for all but features with a few extreme events the squared error is its square
    calibration = world.calibrations["lpa", 32]
    record = utility.measure(world, source="LPA", mechanism="lpa", n=32, epsilon=48.0, runs=3)[0]
    variance = world.corpus_rows()[:, world.active].var(axis=0)
    stated = np.median(build(calibration, 48.0).noise_sd[world.active] ** 2 / variance)
    assert record["error_over_variance_median"] == pytest.approx(stated, rel=0.1)
    assert record["explained_variance"] < -100


def test_published_values_are_read_with_total_epsilon(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("dataset,mechanism,chunk,epsilon,NMSE_R1,NMSE_R2\nA,CFPA,32,0.1,5,6\nA,LPA,,1,7,8\n")
    values = utility.published_values(path)
    assert [(v["source"], v["n"], v["epsilon"], v["nmse"]) for v in values[1:3]] == [
        ("CFPA", 32, 4.8, 6.0),
        ("LPA", None, 48.0, 7.0),
    ]
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ConfigError, match="published"):
        utility.published_values(path)
