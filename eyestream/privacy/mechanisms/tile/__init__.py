"""Tile: one word a slot says where the eye dwelt, released by randomised response."""

from typing import NoReturn

from eyestream.errors import CalibrationError
from eyestream.privacy.calibration import Corpus
from eyestream.privacy.mechanisms.entry import Entry, NoOptions
from eyestream.privacy.mechanisms.tile.mechanism import Tile
from eyestream.privacy.mechanisms.tile.tables import TileTables

__all__ = ["ENTRY", "Tile"]


def calibrate(corpus: Corpus, **options: object) -> NoReturn:
    """Rows tell nothing of where the eye dwelt."""
    raise CalibrationError("tile is calibrated from slots of gaze, not from rows: take everyday-tile")


ENTRY = Entry(
    mechanism=Tile,
    options=NoOptions,
    tables=TileTables,
    calibrate=calibrate,
    front_end="eyestream.gaze.slots:slot_rows",
    shown_by={
        "law": (
            "tests/tiles/test_tile_guarantee.py::test_a_slot_costs_epsilon_and_uses_nearly_all_of_it",
            "tests/privacy/test_response.py::test_odds_never_exceed_e_to_the_epsilon",
        ),
        "input": ("tests/tiles/test_tile_parts.py::test_any_gaze_ends_in_the_field",),
        "after": ("tests/tiles/test_tile_parts.py::test_what_is_read_follows_from_the_released_words_alone",),
        "useful": ("tests/tiles/test_tile_parts.py::test_without_noise_the_gaze_follows_and_errors_are_as_expected",),
        "floats": ("tests/privacy/test_response.py::test_a_vanishing_or_enormous_epsilon_stays_in_range",),
    },
    laboratory={"audit": "eyestream.lab.mechanisms.tile:AUDIT"},
)
