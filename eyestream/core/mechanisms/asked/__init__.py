"""Asked features: one to three features that an application names, with the whole epsilon of a chunk."""

from eyestream.core.mechanisms.asked.mechanism import Asked, AskedOptions
from eyestream.core.mechanisms.asked.tables import AskedTables
from eyestream.core.mechanisms.entry import Entry

__all__ = ["ENTRY", "Asked"]

ENTRY = Entry(
    mechanism=Asked,
    options=AskedOptions,
    tables=AskedTables,
    shown_by={
        "law": (
            "tests/product/core/test_response.py::test_odds_never_exceed_e_to_the_epsilon",
            "tests/product/core/test_asked.py::test_exact_odds_between_extreme_chunks_never_exceed_e_to_the_epsilon",
        ),
        "input": ("tests/product/core/test_asked.py::test_any_rows_draw_once_a_chunk_and_give_finite_values",),
        "after": ("tests/product/core/test_asked.py::test_what_is_released_is_a_function_of_released_words_alone",),
        "useful": (
            "tests/product/core/test_asked.py::test_the_stated_error_is_the_measured_one",
            "tests/product/core/test_asked.py::test_utility_on_people_outside_the_calibration",
        ),
        "floats": ("tests/product/core/test_response.py::test_a_vanishing_or_enormous_epsilon_stays_in_range",),
    },
)
