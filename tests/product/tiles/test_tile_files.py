"""Calibrations of tiles as files, stored as all calibrations are."""

from dataclasses import replace

import numpy as np
import pytest

from eyestream.core.mechanisms.tile.tables import tiles_of
from eyestream.errors import CalibrationError
from eyestream.gaze.slots import mark_of
from eyestream.rim.files import calibrations
from eyestream.rim.files.profiles import load_profile
from eyestream_lab.calibration.tiles import tile_calibration
from tests.product.tiles.worlds import calibration


def test_a_file_gives_what_was_saved(tmp_path) -> None:
    made = calibration()
    calibrations.save(tile_calibration(made, 2), tmp_path / "own")
    again = tiles_of(calibrations.load(tmp_path / "own"))
    assert (again.field, again.slot_us, again.prior_slots, again.source) == (
        made.field,
        made.slot_us,
        made.prior_slots,
        made.source,
    )
    for (name, ours), (other, theirs) in zip(made.arrays(), again.arrays(), strict=True):
        assert name == other
        np.testing.assert_array_equal(ours, theirs)


def test_the_shipped_one_is_whole_and_fits_every_tracker_in_degrees() -> None:
    whole = calibrations.load("everyday-tile")
    made = tiles_of(whole)
    assert "Hoppe" in made.source
    assert made.prior.min() > 0
    assert whole.provenance.people == 30
    assert whole.check_front_end(mark_of(made, load_profile("smi-glasses")))
    assert not whole.check_front_end(mark_of(made, load_profile("degrees").at_rate(120.0)))
    with pytest.raises(CalibrationError, match="front end"):
        whole.check_front_end(mark_of(replace(made, slot_us=2_000_000), load_profile("smi-glasses")))


def test_figures_that_are_none_and_rows_are_refused(tmp_path) -> None:
    made = calibration()
    calibrations.save(tile_calibration(made, 0), tmp_path / "own")
    with np.load(tmp_path / "own") as stored:
        arrays = dict(stored)
    for change, words in (
        ({"tables.lost": arrays["tables.lost"][::-1]}, "damaged or changed"),
        ({"tables.figures": arrays["tables.figures"][:2]}, "three figures"),
        ({"tables.prior": arrays["tables.prior"][:-1]}, "expected 25 counts of one slot"),
        ({"tables.shares": -arrays["tables.shares"]}, "calibration of tiles: expected whole numbers from 0"),
    ):
        np.savez(tmp_path / "changed.npz", **arrays | change)
        with pytest.raises(CalibrationError, match=words):
            calibrations.load(tmp_path / "changed.npz")
    del arrays["tables.changes"]
    np.savez(tmp_path / "former.npz", **arrays | {"tables.shares": arrays["tables.shares"][0]})
    with pytest.raises(CalibrationError, match=r"without changes: an earlier version .* Take a shipped calibration"):
        calibrations.load(tmp_path / "former.npz")
    with pytest.raises(CalibrationError, match="expected a calibration of tiles, not one of klt"):
        tiles_of(calibrations.load("everyday-klt-64"))
