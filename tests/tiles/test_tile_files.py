"""Calibrations of tiles as files."""

import numpy as np
import pytest

from eyestream.errors import CalibrationError
from eyestream.rim.files.tiles import load_tiles, save_tiles, shipped_tiles
from tests.tiles.worlds import calibration


def test_a_file_gives_what_was_saved(tmp_path) -> None:
    made = calibration()
    save_tiles(made, tmp_path / "own")
    again = load_tiles(tmp_path / "own")
    assert again.content_hash == made.content_hash
    assert again.header() == made.header()


def test_every_shipped_one_is_whole() -> None:
    assert "everyday-tile" in shipped_tiles()
    for name in shipped_tiles():
        made = load_tiles(name)
        assert "Hoppe" in made.source
        assert made.prior.min() > 0


def test_damaged_changed_and_missing_files_are_refused(tmp_path) -> None:
    made = calibration()
    save_tiles(made, tmp_path / "own")
    with np.load(tmp_path / "own") as stored:
        arrays = dict(stored)
    arrays["lost"] = arrays["lost"][::-1]
    np.savez(tmp_path / "changed.npz", **arrays)
    (tmp_path / "cut").write_bytes((tmp_path / "own").read_bytes()[:100])
    np.savez(tmp_path / "other.npz", numbers=np.arange(3))
    for name, words in (
        ("changed.npz", "damaged or changed"),
        ("cut", "is not a calibration of tiles"),
        ("other.npz", "is not a calibration of tiles"),
        ("none", "no such file"),
    ):
        with pytest.raises(CalibrationError, match=words):
            load_tiles(tmp_path / name)
    with pytest.raises(CalibrationError, match="everyday-tile"):
        load_tiles("everyday-tiles")
