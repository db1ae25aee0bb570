"""The answers of a guarantee to what NIST SP 800-226 asks of a claim of differential privacy.

Near, Darais, Lefkovitz and Howarth, Guidelines for Evaluating Differential Privacy Guarantees, NIST SP 800-226, 2025:
what a claim rests on, from the parameter and the unit of privacy, over algorithms, models of queries and threats, and
implementation, down to security, access and the collection of the data. The points below are those, in our words.
Every answer names the tests of eyestream's repository that show it; where it is about a mechanism of somebody else,
no test of ours shows it, and none is named.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eyestream.privacy.guarantee import Guarantee

__all__ = ["SOURCE", "Answer", "answers"]

SOURCE = "NIST SP 800-226, Guidelines for Evaluating Differential Privacy Guarantees, March 2025"

_ADDITIVE = {
    "law": (
        "tests/privacy/test_mechanisms.py::test_neighbours_never_cost_more_than_epsilon",
        "tests/privacy/test_noise_scale.py::test_every_coefficient_has_the_derived_scale",
        "tests/privacy/test_laws.py::test_the_digits_deviate_by_less_than_is_charged",
    ),
    "input": ("tests/privacy/test_mechanisms.py::test_hostile_values_anywhere_give_finite_chunks",),
    "after": ("tests/privacy/test_mechanisms.py::test_release_is_deterministic_in_everything_but_noise",),
    "useful": ("tests/privacy/test_noise_scale.py::test_the_stated_noise_is_the_measured_one",),
    "floats": (
        "tests/privacy/test_ball.py::test_every_input_ends_in_the_taxicab_ball_of_integers",
        "tests/privacy/test_exact.py::test_the_losses_of_all_coordinates_sum_to_at_most_epsilon",
    ),
    "time": ("tests/audit/test_false_alarms.py::test_a_correct_mechanism_is_not_flagged",),
}

_SHOWN: dict[str, dict[str, tuple[str, ...]]] = {
    "klt": {
        "law": (
            "tests/privacy/test_response.py::test_odds_never_exceed_e_to_the_epsilon",
            "tests/privacy/test_klt.py::test_odds_of_every_output_between_two_extreme_chunks",
        ),
        "input": ("tests/privacy/test_klt.py::test_hostile_chunks_are_released_like_any_other",),
        "after": ("tests/privacy/test_klt.py::test_what_is_released_is_a_function_of_the_released_words_alone",),
        "useful": (
            "tests/privacy/test_klt.py::test_the_stated_error_is_the_measured_one",
            "tests/privacy/test_klt.py::test_utility_on_people_outside_the_calibration",
        ),
        "floats": ("tests/privacy/test_response.py::test_a_vanishing_or_enormous_epsilon_stays_in_range",),
        "time": ("tests/audit/test_false_alarms.py::test_a_correct_mechanism_is_not_flagged",),
    },
    "lpa": _ADDITIVE,
    "cfpa": _ADDITIVE,
    "dcfpa": _ADDITIVE,
}
"""Tests that are about a mechanism: its law, what it takes, what comes after the noise, its error, floats, time."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One point.

    Attributes
    ----------
    point : what is asked, in a few words.
    answer : what is so here, in sentences.
    shown_by : tests that fail where it is not so, as `file::test` of the repository; none where none of ours shows it.
    """

    point: str
    answer: str
    shown_by: tuple[str, ...]

    def claim(self) -> dict[str, object]:
        """Plain values that JSON knows."""
        return {"point": self.point, "answer": self.answer, "shown_by": list(self.shown_by)}


def answers(guarantee: "Guarantee", trusted: Sequence[str], not_protected: Sequence[str]) -> tuple[Answer, ...]:
    """Of a guarantee that claims something, to every point."""
    shown = _SHOWN.get(guarantee.mechanism, dict.fromkeys(_ADDITIVE, ()))
    return (
        *_claimed(guarantee, shown),
        *_algorithm(guarantee, shown),
        *_implementation(guarantee, shown),
        *_around(guarantee, trusted, not_protected),
    )


def _claimed(guarantee: "Guarantee", shown: dict[str, tuple[str, ...]]) -> tuple[Answer, ...]:
    loss = guarantee.loss
    ceilings = ", ".join(f"{scope.unit} {scope.ceiling:g}" for scope in guarantee.scopes if scope.ceiling is not None)
    return (
        Answer(
            "privacy parameter",
            f"{loss.words()} for one {loss.unit}. Ceilings on epsilon: {ceilings or 'none'}. No rule says which "
            "epsilon is right; what attackers find at several ones is in docs/attacks.md",
            ("tests/privacy/test_guarantee.py::test_losses_are_exact", *shown["law"]),
        ),
        Answer(
            "unit of privacy",
            f"one {loss.unit} of {guarantee.n} rows ({guarantee.seconds:g} s) of one device. It is not a person: a "
            "person gives all chunks, and their losses add up",
            (
                "tests/privacy/test_guarantee.py::test_what_is_said_of_a_chunk_is_said_of_a_chunk",
                "tests/privacy/test_guarantee.py::test_scopes_of_a_deployment",
                "tests/errata/test_errata.py::test_a9_one_person_gives_all_the_chunks",
            ),
        ),
        Answer(
            "neighbouring relation",
            "replace one: two chunks that differ in any way, missing values included. That there is a chunk is not "
            "protected",
            shown["input"],
        ),
        Answer(
            "variant of differential privacy",
            "pure" if loss.pure else f"approximate, with delta {float(loss.delta):g} for one {loss.unit}",
            ("tests/privacy/test_guarantee.py::test_losses_are_exact",),
        ),
    )


def _algorithm(guarantee: "Guarantee", shown: dict[str, tuple[str, ...]]) -> tuple[Answer, ...]:
    protection = guarantee.protection
    return (
        Answer("algorithm and its correctness", f"{protection.law}. {protection.sampler}", shown["law"]),
        Answer(
            "composition",
            "losses are summed exactly over all that is released, also where earlier releases decide what comes next; "
            "no sharper rule is used. A ledger books each loss on the disk before its release, and refuses what passes "
            "a ceiling; recordings that are released without a ledger are counted by nobody",
            (
                "tests/privacy/test_accountant.py::test_spending_stops_exactly_at_the_boundary",
                "tests/privacy/test_two_streams.py::test_no_prefix_passes_a_ceiling",
                "tests/release/test_order.py::test_without_a_ledger_nothing_is_released",
            ),
        ),
        Answer(
            "correlated data",
            "chunks of one person resemble each other, and what other chunks tell about a chunk comes on top of its "
            "epsilon. The sum always holds; what holds below it for published classes of processes is in "
            "docs/correlations.md",
            ("tests/errata/test_errata.py::test_a9_correlated_chunks_tell_one_another",),
        ),
        Answer(
            "post-processing",
            "what is published is a public function of released values, calibration and clock",
            shown["after"],
        ),
        Answer(
            "utility",
            "`noise_sd` in `meta` is the error to expect of each feature. What comes through of people outside the "
            "calibration is in the README",
            shown["useful"],
        ),
        Answer(
            "bias",
            "releases are drawn toward the people of the calibration, and clipped to their range: who is unlike them "
            "is told with larger errors. The shipped calibrations are of 30 people with one tracker. `eyestream check "
            "--recording` says which features of a tracker fit. Errors by age, gender or health were not measured",
            ("tests/cli/test_check_recording.py::test_the_own_tracker_fits_and_another_one_is_told",),
        ),
    )


def _implementation(guarantee: "Guarantee", shown: dict[str, tuple[str, ...]]) -> tuple[Answer, ...]:
    protection = guarantee.protection
    return (
        Answer("floating point", f"{protection.floating_point}: {protection.exact}", shown["floats"]),
        Answer(
            "randomness",
            f"{protection.entropy}. It holds against an attacker {protection.attacker}",
            (
                "tests/privacy/test_noise.py::test_a_copy_of_the_process_draws_other_noise",
                "tests/release/test_copies.py::test_two_copies_draw_other_noise",
                "tests/privacy/test_threads.py::test_no_two_releases_share_noise",
            ),
        ),
        Answer(
            "timing and other side channels",
            "chunks come at the pace of rows and clock, not of what the rows say, and metrics do not depend on it. "
            + (
                "The time of a release showed no dependence on its chunk."
                if shown["time"]
                else "Of this mechanism's own time nothing is known; `eyestream audit` looks at it."
            )
            + " What another process of the same machine sees (caches, power) was not looked at",
            (
                *shown["time"],
                "tests/device/test_time.py::test_on_clock_cadence_does_not_follow_the_rows",
                "tests/service/test_operation.py::test_metrics_do_not_depend_on_what_the_eyes_did",
            ),
        ),
    )


def _around(guarantee: "Guarantee", trusted: Sequence[str], not_protected: Sequence[str]) -> tuple[Answer, ...]:
    return (
        Answer(
            "query model",
            "there are no queries: one stream of releases, the same for everybody. A message that comes again has the "
            "same bytes",
            (
                "tests/guarantee/test_averaging.py::test_a_chunk_redelivered_before_it_is_acknowledged_and_over_restarts",
            ),
        ),
        Answer(
            "threat model",
            f"local: noise is added before anything leaves the device's sidecar. The attacker is anybody "
            f"{guarantee.protection.attacker}, who knows code, configuration, calibration and every release. Trusted: "
            f"{'; '.join(trusted)}. Not protected: {'; '.join(not_protected)}",
            ("tests/guarantee/test_canary.py::test_no_canary_in_anything_that_is_written",),
        ),
        Answer(
            "security and access control",
            "raw rows are for the sidecar, private chunks for applications: rights and TLS are in config/mosquitto, "
            "and `eyestream check` tries what must not be possible. Whether they are in force here, this claim does "
            "not know",
            (
                "tests/faults/test_acl.py::test_only_the_allowed_cells_pass",
                "tests/faults/test_acl.py::test_strangers_do_not_get_in",
            ),
        ),
        Answer(
            "data collection exposure",
            "a sidecar holds raw rows in its memory until their chunk is over, and writes them nowhere: no file, log, "
            "metric, traceback or core dump has them. The tracker and the way from it are trusted; recordings that are "
            "released file to file lie where their owner keeps them",
            (
                "tests/guarantee/test_canary.py::test_no_canary_in_anything_that_is_written",
                "tests/service/test_operation.py::test_memory_is_kept_private",
            ),
        ),
        Answer(
            "data that decide the mechanism",
            "noise, code and range come from a calibration, which must be made from public recordings, never from "
            f"those whom it protects; this one has the hash {guarantee.calibration}",
            ("tests/privacy/test_expected_error.py::test_shipped_calibrations_are_of_this_corpus",),
        ),
    )
