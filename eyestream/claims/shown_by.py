"""Data: which tests of this repository show what an answer says. `tests/product/core/test_evaluation.py` finds them.

What is about one mechanism stands in its entry (`Entry.shown_by`), by topic.
"""

__all__ = ["OF_EVERY", "OF_ONE"]

OF_EVERY: dict[str, tuple[str, ...]] = {
    "privacy parameter": ("tests/product/core/test_guarantee.py::test_losses_are_exact",),
    "unit of privacy": (
        "tests/product/core/test_guarantee.py::test_what_is_said_of_a_chunk_is_said_of_a_chunk",
        "tests/product/core/test_guarantee.py::test_scopes_of_a_deployment",
        "tests/lab/errata/test_errata.py::test_a9_one_person_gives_all_the_chunks",
    ),
    "variant of differential privacy": ("tests/product/core/test_guarantee.py::test_losses_are_exact",),
    "composition": (
        "tests/product/core/test_accountant.py::test_spending_stops_exactly_at_the_boundary",
        "tests/product/core/test_two_streams.py::test_no_prefix_passes_a_ceiling",
        "tests/product/release/test_order.py::test_without_a_ledger_nothing_is_released",
    ),
    "correlated data": ("tests/lab/errata/test_errata.py::test_a9_correlated_chunks_tell_one_another",),
    "bias": ("tests/lab/cli/test_fit.py::test_the_own_tracker_fits_and_another_one_is_told",),
    "randomness": (
        "tests/product/core/test_noise.py::test_a_copy_of_the_process_draws_other_noise",
        "tests/product/release/test_copies.py::test_two_copies_draw_other_noise",
        "tests/product/core/test_threads.py::test_no_two_releases_share_noise",
    ),
    "timing and other side channels": (
        "tests/product/device/test_time.py::test_on_clock_cadence_does_not_follow_the_rows",
        "tests/product/service/test_operation.py::test_metrics_do_not_depend_on_what_the_eyes_did",
    ),
    "query model": (
        "tests/product/guarantee/test_averaging.py::test_a_chunk_redelivered_before_it_is_acknowledged_and_over_restarts",
    ),
    "threat model": ("tests/product/guarantee/test_canary.py::test_no_canary_in_anything_that_is_written",),
    "security and access control": (
        "tests/product/faults/test_acl.py::test_only_the_allowed_cells_pass",
        "tests/product/faults/test_acl.py::test_strangers_do_not_get_in",
    ),
    "data collection exposure": (
        "tests/product/guarantee/test_canary.py::test_no_canary_in_anything_that_is_written",
        "tests/product/service/test_operation.py::test_memory_is_kept_private",
    ),
    "data that decide the mechanism": (
        "tests/product/core/test_expected_error.py::test_shipped_calibrations_are_of_this_corpus",
    ),
}
"""By point: tests that are about every mechanism."""

OF_ONE: dict[str, str] = {
    "privacy parameter": "law",
    "neighbouring relation": "input",
    "algorithm and its correctness": "law",
    "post-processing": "after",
    "utility": "useful",
    "floating point": "floats",
    "timing and other side channels": "time",
}
"""By point: the topic of the tests that are about one mechanism."""
