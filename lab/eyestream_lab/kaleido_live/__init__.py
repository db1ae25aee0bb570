"""Kaleido: (epsilon, w, r) for movements of at most r degrees, charged at the pure worst case over the field."""

from eyestream.core.mechanisms.entry import Beginning, Entry, NoOptions
from eyestream_lab.kaleido_live.mechanism import LiveKaleido
from eyestream_lab.kaleido_live.tables import KaleidoTables

__all__ = ["ENTRY", "LiveKaleido"]

_STREAM = """\
[[stream]]
name = "gaze"                            # in topics and in the ledger
schema = 1                               # the number that a tracker puts into every message, where one sends slots
front_end = "places"                     # gaze of a [[source]], 100 samples a second by the clock, 50 a slot
grace_s = 1.0                            # a slot of which nothing comes is released as lost so long after its end

# How its slots are released: by Kaleido. Small movements, of at most 2 degrees each, are within epsilon 10 in any 50
# samples. The ledger is charged what any movement inside the field costs: 36.05 times as much, for each slot.
# Half of the released gaze was within 7.8 degrees of the eye (16 people, 300 s each). The mechanism tile is within 6.5
# at a hundredth of the charge a second: this one is here to compare with published work.
[stream.privacy]
calibration = "kaleido-r2"               # a shipped one by name, or a path with a slash in it ("./mine.npz")
epsilon = 360.5                          # of one slot of 0.5 s, whatever the gaze in it is

# Ceilings on what one device spends over all its streams. A slot that would pass one is withheld; `status` says so.
[budget]
window_chunks = 6                        # any so many slots in a row ...
window_epsilon = 2163.0                  # ... cost at most this; 2 s of live gaze enter up to 6 slots of 0.5 s
session_epsilon = 2595600.0              # an hour of slots
day_epsilon = 5191200.0                  # 2 hours, in a day in UTC
"""
_EXPECTED = (
    "half of the released gaze within 7.8 degrees of the eye, for a charge of 721 a second. The mechanism tile is "
    "within 7.0 for 6.7 a second"
)


ENTRY = Entry(
    mechanism=LiveKaleido,
    options=NoOptions,
    tables=KaleidoTables,
    beginning=Beginning("kaleido-r2", stream=_STREAM, expected=_EXPECTED),
    front_end="eyestream_lab.kaleido_live.places:place_rows",
    shown_by={
        "law": (
            "tests/lab/kaleido/test_kaleido.py::test_no_window_of_w_samples_ever_spends_more_than_epsilon",
            "tests/lab/kaleido/test_kaleido.py::test_the_charge_of_live_use_is_the_fields_diagonal_over_r",
        ),
        "input": (
            "tests/lab/kaleido/test_kaleido.py::test_how_samples_arrive_does_not_matter_and_any_gaze_stays_in_the_field",
        ),
        "after": ("tests/lab/kaleido/test_kaleido_live.py::test_slots_of_a_session_are_the_samples_of_one",),
        "useful": (
            "tests/lab/kaleido/test_kaleido.py::test_first_publications_have_the_radius_of_their_quarter_of_epsilon",
        ),
        "floats": ("tests/lab/kaleido/test_kaleido.py::test_sensitivities_cover_what_rounding_adds",),
    },
)
