import json

import numpy as np
import pytest

from eyestream.errors import ConfigError, RecordingError
from eyestream.rim.files.recordings import Recording
from eyestream_lab.study import sources
from eyestream_lab.study.cells import Cell, compute, key_of
from eyestream_lab.study.population import Population, finite_rows, read_labels
from eyestream_lab.study.sources import SOURCES


class Counting:
    def __init__(self, fail_at=None):
        self.calls = []
        self.fail_at = fail_at

    def __call__(self, world, number, mechanism="cfpa", n=32):
        if number == self.fail_at:
            raise KeyboardInterrupt
        self.calls.append(number)
        return [{"square": number**2}]


def run(world, folder, measure, numbers):
    cells = [Cell("part", {"number": number, "mechanism": "cfpa", "n": 32}) for number in numbers]
    return compute(
        world, cells, measures={"part": measure}, folder=folder, jobs=1, progress=lambda done, total, left: None
    )


def test_an_interrupted_study_goes_on_where_it_stopped(world, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(world, tmp_path, Counting(fail_at=2), [0, 1, 2, 3])
    again = Counting()
    records = run(world, tmp_path, again, [0, 1, 2, 3])
    assert 0 not in again.calls
    assert set(again.calls) >= {2, 3}
    assert [(r["number"], r["square"]) for r in records["part"]] == [(0, 0), (1, 1), (2, 4), (3, 9)]
    assert all(json.loads(path.read_text()) for path in tmp_path.glob("*.json"))


def test_key_changes_with_settings_people_and_calibration(world):
    cell = Cell("part", {"mechanism": "cfpa", "n": 32, "epsilon": 1.0})
    keys = {key_of(world, Cell("part", cell.settings | change)) for change in ({}, {"epsilon": 2.0}, {"n": 64})}
    keys |= {key_of(world, Cell("part", cell.settings | {"mechanism": "dcfpa"})), key_of(world, Cell("other", {}))}
    assert len(keys) == 5


def test_a_study_that_goes_on_has_the_very_same_calibrations(world, tmp_path, monkeypatch):
    first = sources.prepare(world.population, (32,), lambda text: None, tmp_path)
    monkeypatch.setattr(sources, "CALIBRATORS", dict.fromkeys(sources.CALIBRATORS))  # none can be made any more
    second = sources.prepare(world.population, (32,), lambda text: None, tmp_path)
    assert {key: c.content_hash for key, c in first.calibrations.items()} == {
        key: c.content_hash for key, c in second.calibrations.items()
    }


def recording(name, rows=64, value=0.0):
    return Recording(np.arange(rows) / 2, np.full((rows, 3), value), ("a", "b", "c"), f"/x/{name}.npz")


def test_people_are_sorted_and_every_second_one_is_released():
    names = ("d", "b", "a", "c", "e")
    labels = {name: {"person": name if name != "e" else "a", "mood": name.upper()} for name in names}
    population = Population.of([recording(name, value=float(i)) for i, name in enumerate(names)], labels)
    assert population.people == ("a", "a", "b", "c", "d")
    assert population.calibrating == (0, 1, 3)  # two recordings of one person stay together
    assert population.released == (2, 4)
    assert population.labels == {"mood": ("A", "E", "B", "C", "D")}
    assert population.recording(2)[0, 0] == 1.0


def test_recordings_that_make_no_study_are_refused():
    with pytest.raises(RecordingError, match="same name"):
        Population.of([recording("a"), recording("a")])
    with pytest.raises(ConfigError, match="four people"):
        Population.of([recording(name) for name in "abc"])
    with pytest.raises(ConfigError, match="recording d"):
        Population.of([recording(name) for name in "abcd"], {name: {"person": name} for name in "abc"})


def test_labels_are_read_strictly(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("recording,person,task\nP00.npz,x,read\nP01,y,walk\n")
    assert read_labels(path) == {"P00": {"person": "x", "task": "read"}, "P01": {"person": "y", "task": "walk"}}
    for text in ("recording,task\nP00,read\n", "recording,person\nP00,x\nP00,y\n", "recording,person\nP00\n"):
        path.write_text(text)
        with pytest.raises(ConfigError, match="labels"):
            read_labels(path)


def test_missing_values_are_held_and_begin_with_the_median():
    nan = np.nan
    rows = np.array([[nan, 1.0, nan], [3.0, nan, nan], [nan, np.inf, nan], [5.0, 7.0, nan], [5.0, 2.0, nan]])
    expected = np.array([[5.0, 1.0, 4.0], [3.0, 1.0, 4.0], [3.0, 1.0, 4.0], [5.0, 7.0, 4.0], [5.0, 2.0, 4.0]])
    np.testing.assert_array_equal(finite_rows(rows, np.array([9.0, 9.0, 4.0])), expected)


def test_what_a_recording_lacks_is_not_zero_and_calibrations_see_that_it_lacks():
    t, names = np.arange(40) / 2, ("a", "b")
    rows = [np.stack([np.full(40, float(i)), np.arange(40.0)], axis=1) for i in range(4)]
    rows[0][:, 0] = np.nan
    rows[1][:5] = np.nan
    population = Population.of([Recording(t, r, names, f"P{i}.npz") for i, r in enumerate(rows)])
    assert np.isfinite(population.rows).all()
    assert (population.recording(0)[:, 0] == 2.0).all()
    for i, recorded in enumerate(rows):
        np.testing.assert_array_equal(population.as_recorded(i), recorded)


def test_every_source_releases_whole_chunks(world):
    for source in SOURCES:
        release = world.releases(source.label, 32, 0.48)
        first, second = release(1), release(1)
        assert first.shape == (600 // 32 * 32, 52)
        assert not np.array_equal(first, second)
        assert not np.array_equal(first[:, world.active], world.rows(1, 32)[:, world.active])
