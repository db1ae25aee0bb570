"""Labelled simulated people: the labels move what they say, and nobody else's rows."""

import csv

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.errors import ConfigError
from eyestream.rim.files import recordings
from eyestream_lab.simulation.labelled import AGES, DOCUMENTS, GENDERS, LEAD_S, simulate_labelled
from eyestream_lab.simulation.people import NAMES, TRAITS, load_statistics
from eyestream_lab.study.population import read_labels


def test_labels_move_the_features_that_they_name_and_people_stay_the_same_in_any_number():
    made = list(simulate_labelled(load_statistics(), 24, 200.0, 5))
    fewer = list(simulate_labelled(load_statistics(), 2, 200.0, 5))
    for one, same in zip(fewer, made, strict=False):
        assert one.labels == same.labels
        np.testing.assert_array_equal(one.rows, same.rows)
    amplitude, pupil = NAMES.index("mean_saccade_amplitude"), NAMES.index("mean_mean_diameter")

    def median(column: int, **wanted: str) -> float:
        rows = [m.rows[int(2 * LEAD_S) :, column] for m in made if wanted.items() <= m.labels.items()]
        return float(np.nanmedian(np.concatenate(rows)))

    assert median(amplitude, document="comic") > median(amplitude, document="newspaper")
    assert median(amplitude, document="newspaper") > median(amplitude, document="textbook")
    assert median(pupil, age="younger") > median(pupil, age="older")
    lead = [m.rows[: int(2 * LEAD_S), amplitude] for m in made if m.labels["document"] == "comic"]
    assert np.nanmedian(np.concatenate(lead)) < median(amplitude, document="comic")
    other = NAMES.index("var_saccade_amplitude")
    spread = np.nanstd(np.concatenate([m.rows[:, other] for m in made]))
    assert abs(median(other, document="comic") - median(other, document="textbook")) < 0.3 * spread


def test_effects_leave_the_population_where_the_corpus_has_it():
    for effects in (DOCUMENTS, GENDERS, AGES):
        assert {name for effect in effects.values() for name in effect} <= set(TRAITS)
        for trait in TRAITS:
            assert abs(sum(effect.get(trait, 0.0) for effect in effects.values())) < 1e-12


def test_the_command_writes_recordings_and_labels_that_the_study_reads(tmp_path):
    words = ["simulate", "--people", "2", "--seconds", "20", "--seed", "1", "--labels", str(tmp_path / "labels.csv")]
    main([*words, "--out", str(tmp_path / "people")])
    labels = read_labels(tmp_path / "labels.csv")
    files = sorted((tmp_path / "people").iterdir())
    assert sorted(labels) == [path.stem for path in files]
    assert len(files) == 2 * len(DOCUMENTS)
    assert recordings.load(files[0]).simulated
    with (tmp_path / "labels.csv").open() as file:
        assert next(csv.reader(file)) == ["recording", "person", "document", "gender", "age"]


def test_numbers_out_of_range_are_refused():
    with pytest.raises(ConfigError, match="1 person or more"):
        list(simulate_labelled(load_statistics(), 0, 10.0, 1))
