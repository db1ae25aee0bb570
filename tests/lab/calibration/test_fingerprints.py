"""A calibration knows its recordings again, cut or changed, and takes no other for one of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.rim.files import calibrations
from eyestream_lab.calibration.fingerprints import made_from, overlap, recording_hash, row_fingerprints

Array = NDArray[np.float64]


def calibration() -> Calibration:
    return replace(calibrations.load("everyday-cfpa-64"), fingerprints=np.empty(0, dtype=np.uint64))


def test_a_recording_is_known_again(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(10, 2))
    made = replace(calibration(), provenance=replace(calibration().provenance, recordings=(recording_hash(rows),)))
    calibrations.save(made, tmp_path / "a")
    read = calibrations.load(tmp_path / "a")
    assert overlap(read, rows) == 1
    assert overlap(read, rows.copy(order="F")) == 1
    assert overlap(read, rows[:-1]) == 0
    assert overlap(read, rows.T) == 0
    assert overlap(read, rows + 1e-6) == 0
    assert overlap(read, rows.astype(np.float32).astype(np.float64)) == 1


def person(seed: int, rows: int = 400) -> Array:
    return np.asarray(np.random.default_rng(seed).normal(size=(rows, 6)))


def with_fingerprints(*people: Array) -> Calibration:
    base = calibration()
    own = np.unique(np.concatenate([row_fingerprints(rows) for rows in people]))
    return replace(base, fingerprints=own)


@pytest.mark.parametrize(
    ("change", "least"),
    [
        (lambda rows: rows, 1.0),
        (lambda rows: rows[1:], 0.95),
        (lambda rows: rows[137:180], 0.5),
        (lambda rows: np.delete(rows, 200, axis=0), 0.9),
        (lambda rows: np.concatenate([person(9, 50), rows]), 0.8),
        (lambda rows: np.where((np.arange(400) == 7)[:, None], rows + 1, rows), 0.9),
        (lambda rows: rows[::-1].copy(), 0.5),
        (lambda rows: rows.astype(np.float32).astype(np.float64), 1.0),
    ],
)
def test_a_recording_is_known_again_when_some_of_it_is_changed(change: Any, least: float, tmp_path: Path) -> None:
    calibrations.save(with_fingerprints(person(0), person(1)), tmp_path / "a")
    made = calibrations.load(tmp_path / "a")
    changed = change(person(1))
    assert overlap(made, changed) >= least
    assert overlap(made, person(2)) == 0.0


def test_one_changed_cell_was_enough_to_be_taken_for_another_recording() -> None:
    """The control: with the hash of whole recordings alone, as files of version 0.1.0 have it."""
    base = calibration()
    old = replace(base, provenance=replace(base.provenance, recordings=(recording_hash(person(0)),)))
    changed = person(0)
    changed[3, 2] += 1
    assert made_from(old, person(0))
    assert overlap(old, person(0)) == 1.0
    assert not made_from(old, changed)
    assert overlap(old, changed) == 0.0
    assert overlap(with_fingerprints(person(0)), changed) > 0.9


def test_rows_that_many_recordings_share_tell_nothing() -> None:
    empty = np.full((40, 6), np.nan)
    assert len(row_fingerprints(empty)) == len(row_fingerprints(np.zeros((40, 6)))) == 0
    assert len(row_fingerprints(np.empty((0, 6)))) == 0
    made = with_fingerprints(np.concatenate([person(0), empty]))
    assert overlap(made, np.concatenate([person(3), empty])) == 0.0


def test_every_thirty_two_rows_in_sequence_leave_a_fingerprint() -> None:
    whole = set(row_fingerprints(person(4)).tolist())
    for start in range(0, 368):
        assert whole & set(row_fingerprints(person(4)[start : start + 32]).tolist())
    assert len(whole) < 0.1 * 400
