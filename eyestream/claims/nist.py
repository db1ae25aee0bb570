"""The answers of a guarantee to what NIST SP 800-226 asks of a claim of differential privacy.

Near, Darais, Lefkovitz and Howarth, Guidelines for Evaluating Differential Privacy Guarantees, NIST SP 800-226, 2025:
what a claim rests on, from the parameter and the unit of privacy, over algorithms, models of queries and threats, and
implementation, down to security, access and the collection of the data. The points below are those, in our words.
Every answer names the tests of eyestream's repository that show it; where it is about a mechanism of somebody else,
no test of ours shows it, and none is named.
"""

from dataclasses import dataclass

from eyestream.claims.facts import Facts

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


SOURCE = "NIST SP 800-226, Guidelines for Evaluating Differential Privacy Guarantees, March 2025"

Said = tuple[tuple[str, str], ...]
"""Points and their answers."""


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


def answers(made: Facts) -> tuple[Answer, ...]:
    """Answer every point for a guarantee of differential privacy."""
    said = (*_claimed(made), *_algorithm(made), *_implementation(made), *_around(made))
    return tuple(
        Answer(point, answer, (*OF_EVERY.get(point, ()), *made.shown_by.get(OF_ONE.get(point, ""), ())))
        for point, answer in said
    )


def _claimed(made: Facts) -> Said:
    loss = made.loss
    ceilings = ", ".join(f"{scope.unit} {scope.ceiling:g}" for scope in made.scopes if scope.ceiling is not None)
    return (
        (
            "privacy parameter",
            f"{loss.words()} for one {loss.unit}. Ceilings on epsilon: {ceilings or 'none'}. No rule says which "
            "epsilon is right; what attackers find at several ones is in docs/attacks.md",
        ),
        (
            "unit of privacy",
            f"one {loss.unit} of {made.n} row{'s' * (made.n > 1)} ({made.seconds:g} s) of one device. It is not a "
            "person: a person gives all chunks, and their losses add up",
        ),
        (
            "neighbouring relation",
            "replace one: two chunks that differ in any way, missing values included. That there is a chunk is not "
            "protected",
        ),
        (
            "variant of differential privacy",
            "pure" if loss.pure else f"approximate, with delta {float(loss.delta):g} for one {loss.unit}",
        ),
    )


def _algorithm(made: Facts) -> Said:
    protection = made.protection
    return (
        ("algorithm and its correctness", f"{protection.law}. {protection.sampler}"),
        (
            "composition",
            "losses are summed exactly over all that is released, also where earlier releases decide what comes next; "
            "no sharper rule is used. A ledger books each loss on the disk before its release, and refuses what passes "
            "a ceiling; recordings that are released without a ledger are counted by nobody",
        ),
        (
            "correlated data",
            "chunks of one person resemble each other, and what other chunks tell about a chunk comes on top of its "
            "epsilon. The sum always holds; what holds below it for published classes of processes is in "
            "docs/correlations.md",
        ),
        ("post-processing", "what is published is a public function of released values, calibration and clock"),
        (
            "utility",
            "`noise_sd` in `meta` is the error to expect of each feature. What comes through of people outside the "
            "calibration is in docs/figures.md",
        ),
        (
            "bias",
            "releases are drawn toward the people of the calibration, and clipped to their range: who is unlike them "
            "is told with larger errors. The shipped calibrations are of 30 people with one tracker. `eyestream fit` "
            "says which features of a tracker fit. Errors by age, gender or health were not measured",
        ),
    )


def _implementation(made: Facts) -> Said:
    protection = made.protection
    return (
        ("floating point", f"{protection.floating_point}: {protection.exact}"),
        ("randomness", f"{protection.entropy}. It holds against an attacker {protection.attacker}"),
        (
            "timing and other side channels",
            "chunks come at the pace of rows and clock, not of what the rows say, and metrics do not depend on it. "
            + (
                "The time of a release showed no dependence on its chunk."
                if made.shown_by.get("time")
                else "Of this mechanism's own time nothing is known; `eyestream audit` looks at it."
            )
            + " What another process of the same machine sees (caches, power) was not looked at",
        ),
    )


def _around(made: Facts) -> Said:
    return (
        (
            "query model",
            "there are no queries: one stream of releases, the same for everybody. A message that comes again has the "
            "same bytes",
        ),
        (
            "threat model",
            f"local: noise is added {made.standing.where}. The attacker is anybody "
            f"{made.protection.attacker}, who knows code, configuration, calibration and every release. Trusted: "
            f"{'; '.join(made.standing.trusted)}. Not protected: {'; '.join(made.standing.not_protected)}",
        ),
        (
            "security and access control",
            "raw rows are for the sidecar, private chunks for applications: rights and TLS are in config/mosquitto, "
            "and `eyestream check` tries what must not be possible. Whether they are in force here, this claim does "
            "not know",
        ),
        (
            "data collection exposure",
            "a sidecar holds raw rows in its memory until their chunk is over, and writes them nowhere: no file, log, "
            "metric, traceback or core dump has them. The tracker and the way from it are trusted; recordings that are "
            "released file to file lie where their owner keeps them",
        ),
        (
            "data that decide the mechanism",
            "noise, code and range come from a calibration, which must be made from public recordings, never from "
            f"those whom it protects; this one has the hash {made.calibration}",
        ),
    )
