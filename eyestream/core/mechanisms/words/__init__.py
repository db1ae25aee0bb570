"""Task words: which task a public judge takes a chunk for, by randomised response."""

from eyestream.core.mechanisms.entry import Entry, NoOptions
from eyestream.core.mechanisms.words.mechanism import TaskWords
from eyestream.core.mechanisms.words.tables import WordTables
from eyestream.core.purposes import TASKS

__all__ = ["ENTRY", "TaskWords", "WordTables"]

ENTRY = Entry(
    mechanism=TaskWords,
    options=NoOptions,
    tables=WordTables,
    calibrate="eyestream.core.mechanisms.words.calibrate:calibrate",
    takes_off={"history": "eyestream.core.tasks.history:stored"},
    view="eyestream.core.mechanisms.words.view:Words",
    purpose=TASKS,
    labelled="eyestream.core.mechanisms.words.calibrate:labelled",
    shown_by={
        "law": (
            "tests/product/tasks/test_decision.py::test_odds_of_every_word_are_at_most_e_to_the_epsilon_and_nearly_that",
            "tests/product/tasks/test_decision.py::test_control_a_law_with_a_little_more_truth_is_seen",
        ),
        "input": ("tests/product/tasks/test_words.py::test_a_chunk_of_anything_has_one_of_the_words",),
        "after": ("tests/product/tasks/test_live_words.py::test_every_way_through_a_small_world_keeps_to_the_bounds",),
        "useful": ("tests/product/tasks/test_words.py::test_words_tell_tasks_of_other_people",),
        "floats": ("tests/product/tasks/test_decision.py::test_odds_between_two_sessions_given_any_history",),
        "time": ("tests/product/tasks/test_decision.py::test_the_shift_is_all_that_randomness_does",),
    },
    laboratory={"audit": "eyestream_lab.mechanisms.words:AUDIT"},
)
