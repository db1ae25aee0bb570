"""Local against central: the aggregator's noise is that of epsilon for each person, and the closed forms hold."""

import numpy as np
import pytest

from eyestream.core.calibration import PerFeatureTables
from eyestream.core.mechanisms import build
from eyestream.core.spectrum import difference
from eyestream_lab.study import central
from eyestream_lab.study.pages import central_page
from eyestream_lab.testing.noise import SeededNoise


@pytest.mark.parametrize("mechanism", ["lpa", "cfpa", "dcfpa"])
def test_one_persons_chunk_moves_the_mean_by_the_ball_over_n_and_no_less(world, mechanism):
    calibration = world.calibrations[mechanism, 32]
    tables, active = calibration.tables, ~calibration.constant
    assert isinstance(tables, PerFeatureTables)
    people, rng = 5, np.random.default_rng(3)
    chunks = rng.normal(0.0, 1e9, (people, int(active.sum()), 32))
    changed = chunks.copy()
    norm, chunks[0], changed[0] = (1 if mechanism == "lpa" else 2), 1e12, -1e12

    def signals(of):
        mean = central.projected(calibration, of).mean(axis=0)
        return difference(mean) if mechanism == "dcfpa" else mean

    moved = np.linalg.norm(signals(chunks) - signals(changed), ord=norm, axis=1)
    limit = 2 * tables.radius[active] / people
    assert (moved <= limit * (1 + 1e-9)).all()
    assert (moved > 0.9 * limit).any()  # an aggregator who counted on less noise would be wrong
    inside = np.linalg.norm(signals(chunks) - tables.centre[active], ord=norm, axis=1)
    assert (inside <= tables.radius[active] * (1 + 1e-9)).all()


@pytest.mark.parametrize("mechanism", ["lpa", "cfpa", "dcfpa"])
def test_the_noise_of_the_mean_is_n_times_smaller_than_that_of_one_person(world, mechanism):
    calibration = world.calibrations[mechanism, 32]
    one, many = (build(calibration, epsilon, noise=SeededNoise(1)) for epsilon in (4.8, 8 * 4.8))
    mean = central.projected(calibration, np.zeros((1, int((~calibration.constant).sum()), 32)))[0]

    def spread(built):
        drawn = np.array([central.release_of_mean(built, mean) for _ in range(60)])
        return drawn.std(axis=0).mean(axis=1)

    ratio = np.median(spread(one) / spread(many))
    assert 7.0 < ratio < 9.0


def test_the_closed_form_is_what_is_measured_where_noise_governs(world):
    records = central.measure(world, mechanism="cfpa", n=32, epsilon=4.8, seed=0)
    measured = [record for record in records if "error" in record]
    assert {record["people"] for record in measured} == {1, 2, 4}
    for record in measured:
        assert 0.7 < record["error_median"] / record["expected_median"] < 1.4
    by_model = {model: [r["error"] for r in measured if r["model"] == model] for model in central.MODELS}
    assert by_model["local"][2] == pytest.approx(by_model["local"][0] / 4, rel=0.4)
    assert by_model["central"][2] == pytest.approx(by_model["central"][0] / 16, rel=0.4)
    text = central_page([record | {"mechanism": "cfpa", "n": 32, "epsilon": 4.8} for record in records])
    assert "| cfpa | 4.8 | local |" in text
    assert "local, 0.1 | central, 0.1" in text


def test_people_needed_is_the_least_number_that_reaches_the_target(world):
    calibration = world.calibrations["cfpa", 32]
    local, middle = (central.people_needed(calibration, 4.8, model, 0.1) for model in central.MODELS)
    assert local > middle > 1
    assert central.people_needed(calibration, 4.8, "central", 1e9) == 1
    # noise alone: N grows as 1 / target locally, as its square root centrally
    assert central.people_needed(calibration, 0.48, "local", 0.1) == pytest.approx(100 * local, rel=0.1)
    assert central.people_needed(calibration, 0.48, "central", 0.1) == pytest.approx(10 * middle, rel=0.1)


@pytest.mark.long
def test_klt_has_no_central_form(world):
    records = central.measure(world, mechanism="klt", n=32, epsilon=4.8, seed=0)
    assert {record["model"] for record in records} == {"local"}
    assert not any("expected" in record or "target" in record for record in records)
