"""Tile: one word a slot says where the eye dwelt, released by randomised response."""

from eyestream.core.mechanisms.entry import Beginning, Entry, NoOptions
from eyestream.core.mechanisms.tile.mechanism import Tile
from eyestream.core.mechanisms.tile.tables import TileTables

__all__ = ["ENTRY", "Tile"]


_STREAM = """\
[[stream]]
name = "gaze"                            # in topics and in the ledger
schema = 1                               # the number that a tracker puts into every message, where one sends slots
front_end = "slots"                      # gaze of a [[source]], counted slot by slot, on the clock
grace_s = 1.0                            # a slot of which nothing comes is released as lost so long after its end

# How its slots are released: for regions of interest, dwell and attention. Not for selecting, not for foveation.
# Half of the released gaze was within 9.6 degrees of the eye (live, 16 people who are not in the calibration).
# Other figures, and what another epsilon gives: docs/coarse-gaze.md.
[stream.privacy]
calibration = "everyday-tile"            # a shipped one by name, or a path with a slash in it ("./mine.npz")
epsilon = 3.3                            # of one slot of 1 s, whatever the gaze in it is

# Ceilings on what one device spends over all its streams. A slot that would pass one is withheld; `status` says so.
# They bound for how long gaze is released: epsilon protects a slot, and a look of some seconds, and no whole session.
[budget]
window_chunks = 4                        # any so many slots in a row ...
window_epsilon = 13.2                    # ... cost at most this; 2 s of live gaze enter up to 4 slots of 1 s
session_epsilon = 47520.0                # 4 hours of slots
day_epsilon = 95040.0                    # 8 hours, in a day in UTC
"""
_EXPECTED = (
    "half of the released gaze within 9.6 degrees of the eye. That is enough for regions of interest, dwell and "
    "attention, and not for selecting things"
)


ENTRY = Entry(
    mechanism=Tile,
    options=NoOptions,
    tables=TileTables,
    beginning=Beginning("everyday-tile", stream=_STREAM, expected=_EXPECTED),
    front_end="eyestream.gaze.slots:slot_rows",
    shown_by={
        "law": (
            "tests/product/tiles/test_tile_guarantee.py::test_a_slot_costs_epsilon_and_uses_nearly_all_of_it",
            "tests/product/core/test_response.py::test_odds_never_exceed_e_to_the_epsilon",
        ),
        "input": ("tests/product/tiles/test_tile_parts.py::test_any_gaze_ends_in_the_field",),
        "after": ("tests/product/tiles/test_tile_parts.py::test_what_is_read_follows_from_the_released_words_alone",),
        "useful": (
            "tests/product/tiles/test_tile_parts.py::test_without_noise_the_gaze_follows_and_errors_are_as_expected",
        ),
        "floats": ("tests/product/core/test_response.py::test_a_vanishing_or_enormous_epsilon_stays_in_range",),
    },
)
