"""Tile: one word a slot says where the eye dwelt, released by randomised response."""

from typing import NoReturn

from eyestream.errors import CalibrationError
from eyestream.privacy.calibration import Corpus
from eyestream.privacy.mechanisms.entry import Beginning, Entry, NoOptions
from eyestream.privacy.mechanisms.tile.mechanism import Tile
from eyestream.privacy.mechanisms.tile.tables import TileTables

__all__ = ["ENTRY", "Tile"]


_STREAM = """\
[[stream]]
name = "gaze"                            # in topics and in the ledger
schema = 1                               # the number that a tracker puts into every message, where one sends slots
front_end = "slots"                      # gaze of a [[source]], counted slot by slot, on the clock
grace_s = 1.0                            # a slot of which nothing comes is released as lost so long after its end

# How its slots are released: for regions of interest, dwell and attention. Not for selecting, not for foveation.
[stream.privacy]
calibration = "everyday-tile"            # a shipped one by name, or a path with a slash in it ("./mine.npz")
epsilon = 3.3                            # of one slot of 1 s, whatever the gaze in it is

"""


def calibrate(corpus: Corpus, **options: object) -> NoReturn:
    """Rows tell nothing of where the eye dwelt."""
    raise CalibrationError("tile is calibrated from slots of gaze, not from rows: take everyday-tile")


ENTRY = Entry(
    mechanism=Tile,
    options=NoOptions,
    tables=TileTables,
    calibrate=calibrate,
    beginning=Beginning("everyday-tile", stream=_STREAM),
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
