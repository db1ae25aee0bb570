"""KLT: one code word for a chunk of all features, released by randomised response."""

from eyestream.core.calibration import JointTables
from eyestream.core.mechanisms.entry import Beginning, Entry
from eyestream.core.mechanisms.klt.mechanism import KLT, JointOptions

__all__ = ["ENTRY", "KLT"]

ENTRY = Entry(
    mechanism=KLT,
    options=JointOptions,
    tables=JointTables,
    beginning=Beginning("everyday-klt-anchored-64", rival="everyday-cfpa-64"),
    shown_by={
        "law": (
            "tests/product/core/test_response.py::test_odds_never_exceed_e_to_the_epsilon",
            "tests/product/core/test_klt.py::test_odds_of_every_output_between_two_extreme_chunks",
        ),
        "input": ("tests/product/core/test_klt.py::test_hostile_chunks_are_released_like_any_other",),
        "after": ("tests/product/core/test_klt.py::test_what_is_released_is_a_function_of_the_released_words_alone",),
        "useful": (
            "tests/product/core/test_klt.py::test_the_stated_error_is_the_measured_one",
            "tests/product/core/test_klt.py::test_utility_on_people_outside_the_calibration",
        ),
        "floats": ("tests/product/core/test_response.py::test_a_vanishing_or_enormous_epsilon_stays_in_range",),
        "time": ("tests/lab/audit/test_false_alarms.py::test_a_correct_mechanism_is_not_flagged",),
    },
    correlation="eyestream.claims.correlation.scores:SCORES",
)
