"""Task words: which task a public judge takes a chunk for, by randomised response."""

from eyestream.core.mechanisms.entry import Entry, NoOptions
from eyestream_lab.words.mechanism import TaskWords
from eyestream_lab.words.tables import WordTables

__all__ = ["ENTRY", "TaskWords", "WordTables"]

ENTRY = Entry(
    mechanism=TaskWords,
    options=NoOptions,
    tables=WordTables,
    takes_off={"history": "eyestream_lab.words.history:stored"},
    view="eyestream_lab.words.view:Words",
    shown_by={
        "law": (
            "tests/lab/words/test_decision.py::test_odds_of_every_word_are_at_most_e_to_the_epsilon_and_nearly_that",
            "tests/lab/words/test_decision.py::test_control_a_law_with_a_little_more_truth_is_seen",
        ),
        "input": ("tests/lab/words/test_words.py::test_a_chunk_of_anything_has_one_of_the_words",),
        "after": ("tests/lab/words/test_live_words.py::test_every_way_through_a_small_world_keeps_to_the_bounds",),
        "useful": ("tests/lab/words/test_words.py::test_words_tell_tasks_of_other_people",),
        "floats": ("tests/lab/words/test_decision.py::test_odds_between_two_sessions_given_any_history",),
        "time": ("tests/lab/words/test_decision.py::test_the_shift_is_all_that_randomness_does",),
    },
)
