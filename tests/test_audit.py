"""The audit's arithmetic against known figures, and the quick audit itself."""

import importlib
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyestream_lab.audit.estimate import (
    chained_bound,
    incomplete_beta,
    lower_bound,
    lower_epsilon,
    lower_share,
    safe_bound,
)
from eyestream_lab.audit.trials import Case, audited, bounded, count, trial_of
from eyestream_lab.testing.noise import ScaledNoise, SeededNoise
from tests.rigs.seams import original

ROOT = Path(__file__).resolve().parents[1]

FAULTS_OF_ORDER_AND_LEDGER = [
    "spend after publish",
    "nothing made durable",
    "noise drawn before the reservation, and kept",
    "a withheld chunk is released all the same",
    "what is due at the end is released unreserved",
    "what waits when the ledger fails is released",
    "fresh noise on a retry",
    "a chunk released twice",
    "a change of chunk length that re-releases rows",
    "a special value told in a warning of numpy",
    "a damaged record charges one device alone",
    "a damaged record charges no wearer",
    "charges taken from the shortest decimal",
    "a rewritten ledger has lost a spend",
    "a rewritten ledger has lost who wore the device",
    "a ledger that everybody can write",
    "a clock that jumps opens as many days as it calls",
    "two-term integration",
]
FAULTS_BESIDE = [
    "a noiseless field in a claim",
    "a claim that is withheld by what is in the rows",
    "`at` that carries latency",
    "a moment on the clock that carries latency",
]
FAULTS = [
    *FAULTS_OF_ORDER_AND_LEDGER,
    *FAULTS_BESIDE,
    "missing sqrt(n)",
    "missing sqrt(k)",
    "noise on real parts only",
    "noise before projection",
    "radius not enforced",
    "sensitivity of the raw signal for differences",
    "float Laplace",
    "seeded generator",
    "thresholds that nobody verifies",
    "uniform low bits in the sampler",
    "a copy of the process goes on with the words of the original",
    "noise drawn ahead outlives a copy of the process",
    "noise drawn once is used for every chunk",
    "two threads in one mechanism at once",
    "hold-last across a chunk border",
    "NaN that skips the projection",
    "rounding counted once instead of per coordinate",
    "window summed over the wrong span",
    "window restarting with a session",
    "a second stream with a budget of its own",
    "ceilings of a wearer are not looked at",
    "a switch mints budget",
    "a wearer's history under another one",
    "a restored state keeps its grants",
    "memory of the clock map",
    "memory of the rate guard",
    "moments of rows that follow latencies",
    "a status that sees the eye",
    "a session that ends when the eye is lost",
    "a second baseline of gaze that was released before",
    "options ignored silently",
    "a guarantee of klt that speaks of a grid",
    "a guarantee against any computing power",
    "odds of a chunk claimed for a session",
    "noise of Kaleido for movements of r, charged as if for any",
    "noise of Kaleido's tests that is not scaled by r",
    "half of the whole budget for every publication of Kaleido",
]
"""Faults that must be among those planted: nobody loses one when the code under them is rewritten."""


def upper_share(hits: int, draws: int, alpha: float) -> float:
    return 1 - lower_share(draws - hits, draws, alpha)


def test_incomplete_beta_in_closed_form():
    assert incomplete_beta(1, 1, 0.3) == pytest.approx(0.3, rel=1e-12)
    assert incomplete_beta(2, 3, 0.5) == pytest.approx(0.6875, rel=1e-12)
    assert incomplete_beta(3, 1, 0.9) == pytest.approx(0.729, rel=1e-12)
    assert incomplete_beta(0.5, 0.5, 0.25) == pytest.approx(1 / 3, rel=1e-12)  # 2/pi asin(sqrt(x))
    assert (incomplete_beta(2, 3, 0), incomplete_beta(2, 3, 1)) == (0, 1)


@pytest.mark.parametrize(
    ("hits", "draws", "low", "high"),
    [(0, 10, 0.0, 0.308497), (1, 10, 0.002529, 0.445016), (5, 10, 0.187086, 0.812914), (81, 263, 0.2527, 0.3676)],
)
def test_clopper_pearson_in_tables(hits: int, draws: int, low: float, high: float):
    """95 % intervals; the last is example 1 of Newcombe, Statistics in Medicine 17, 1998, to its four digits."""
    tolerance = 6e-5 if draws == 263 else 1e-6
    assert lower_share(hits, draws, 0.025) == pytest.approx(low, abs=tolerance)
    assert upper_share(hits, draws, 0.025) == pytest.approx(high, abs=tolerance)


@pytest.mark.parametrize(("hits", "draws", "alpha"), [(3, 40, 1e-4), (20, 60, 0.01), (59, 60, 1e-6)])
def test_clopper_pearson_against_the_exact_tail(hits: int, draws: int, alpha: float):
    p = Fraction(lower_share(hits, draws, alpha))
    tail = sum(math.comb(draws, i) * p**i * (1 - p) ** (draws - i) for i in range(hits, draws + 1))
    assert float(tail) == pytest.approx(alpha, rel=1e-9)


def test_clopper_pearson_with_many_draws():
    draws = 5_000_000
    for hits in (4, 1000, 2_500_000, 4_999_990):
        low, high = lower_share(hits, draws, 1e-4), upper_share(hits, draws, 1e-4)
        assert low < hits / draws < high
        assert incomplete_beta(hits, draws - hits + 1, low) == pytest.approx(1e-4, rel=1e-6)
    deviation = (0.5 - lower_share(2_500_000, draws, 1e-4)) / math.sqrt(0.25 / draws)
    assert deviation == pytest.approx(3.719, abs=0.01)  # the normal quantile


def test_a_bound_has_no_more_than_its_chance_to_be_wrong():
    """With a chance of a tenth it is wrong about as often, and near the truth; with the audit's never."""
    rng = np.random.default_rng(1)
    p, q = 0.3, 0.3 / math.e
    hits = [(int(rng.binomial(20_000, p)), int(rng.binomial(20_000, q))) for _ in range(400)]
    loose = [lower_epsilon(pair, (20_000, 20_000), 0.1) for pair in hits]
    assert sum(bound > 1 for bound in loose) <= 40
    assert np.median(loose) > 0.95
    assert max(lower_epsilon(pair, (20_000, 20_000), 1e-4) for pair in hits) <= 1
    assert lower_epsilon((0, 5), (100, 100), 0.1) == -math.inf


def test_events_are_chosen_on_the_other_half():
    """Cells that only look telling in the first half say nothing in the second."""
    rng = np.random.default_rng(2)
    halves = [{"cells": rng.multinomial(20_000, np.full(1000, 1e-3), size=2)} for _ in (0, 1)]
    assert lower_bound(halves[0], halves[0]).epsilon > 0.2
    assert lower_bound(*halves).epsilon < 0.01


def test_the_safe_bound_is_what_nearly_every_bound_exceeds():
    rng = np.random.default_rng(3)
    p, q = np.array([0.2, 0.8]), np.array([0.2 / math.e, 0.8])
    safe = safe_bound(p[:1], q[:1], 50_000)
    found = []
    for _ in range(100):
        halves = [{"two": np.stack([rng.multinomial(50_000, [s, 1 - s]) for s in (p[0], q[0])])} for _ in (0, 1)]
        found.append(lower_bound(*halves).epsilon)
    assert 0.8 < safe < min(found) < max(found) < 1


def test_bounds_of_steps_add_to_that_of_the_release():
    """Three steps of e^1 each, with a chance of a tenth to be wrong: 100 bounds are rarely above 3, and near it."""
    rng, found = np.random.default_rng(5), []
    for _ in range(100):
        halves = [
            {
                str(step): np.stack([rng.multinomial(20_000, [1 - s, s]) for s in (0.3, 0.3 / math.e)])
                for step in range(3)
            }
            for _ in (0, 1)
        ]
        found.append(chained_bound(halves[0], halves[1], confidence=0.9).epsilon)
    assert sum(bound > 3 for bound in found) <= 10
    assert np.median(found) > 2.85


@pytest.mark.parametrize("mechanism", ["lpa", "cfpa", "dcfpa"])
def test_estimates_accept_the_stated_scale_and_reject_half_of_it(mechanism: str):
    case = Case(mechanism, 2, None if mechanism == "lpa" else 1, 1.0, 100_000)
    right = trial_of(case)
    assert 0.9 < lower_bound(*count(right, case.draws)).epsilon <= 1
    wrong = trial_of(case, noise=ScaledNoise(0.5, seed=4))
    assert lower_bound(*count(wrong, case.draws)).epsilon > 1.7


@pytest.mark.long
def test_the_estimate_of_kaleido_is_near_what_is_charged():
    """0.7 of it from few draws, give or take 0.02; one sample in one of eight cells showed less than half."""
    case = Case("kaleido", 1, None, 5.0, 10_000)
    assert 0.6 < bounded(case, trial_of(case, SeededNoise(6))) / case.epsilon <= 1


@pytest.fixture
def judge() -> Any:
    """The tool as a module."""
    return importlib.import_module("tools.verification.audit")


def test_each_fault_is_planted_at_seams_that_are_there_and_goes_again(judge: Any) -> None:
    assert len({fault.name for fault in judge.FAULTS}) == len(judge.FAULTS) > 80
    for fault in judge.FAULTS:
        assert set(fault.checks) <= set(judge.CHECKS)
        assert fault.checks
        seams = [name for name, _ in fault.patches()]
        before = [original(name) for name in seams]
        with judge.planted(fault):
            assert all(original(name) != was for name, was in zip(seams, before, strict=True)), fault.name
        assert [original(name) for name in seams] == before


def test_a_fault_that_no_check_sees_fails_the_audit(judge: Any) -> None:
    harmless = judge.Fault("the clamp twice", lambda: [("LaplaceLaw.clamp", original("LaplaceLaw.clamp"))], ("alone",))
    row = judge.caught(harmless, harmless.checks)
    assert not row.fine
    assert row.cells == ("the clamp twice", "NOTHING", "it survives")


def test_a_check_that_stops_has_caught_nothing(judge: Any) -> None:
    def stops(self: Any, *given: Any, **named: Any) -> None:
        raise ValueError("no ledger")

    row = judge.caught(judge.Fault("broken", lambda: [("Ledger.__init__", stops)], ("torn",)), ["torn"])
    assert not row.fine
    assert row.cells[1:] == ("NOTHING", "torn stopped with ValueError")


def test_a_fault_that_only_a_stranger_catches_is_not_caught_by_name(judge: Any) -> None:
    forgetful = [("book counts the damaged", lambda self, damaged: 0)]
    assert judge.caught(judge.Fault("forgetful", lambda: forgetful, ("torn",)), ["exact", "torn"]).fine
    row = judge.caught(judge.Fault("forgetful", lambda: forgetful, ("exact",)), ["exact", "torn"])
    assert not row.fine
    assert row.cells[1] == "torn"


def test_a_check_that_no_fault_makes_fail_fails_the_audit(judge: Any) -> None:
    names = list(judge.CHECKS)
    rows = [judge.Row(True, ("fault", name, "")) for name in names]
    assert judge.blind(rows).fine
    row = judge.blind(rows[1:])
    assert not row.fine
    assert row.cells[1] == names[0]


def test_faults_of_order_and_ledger_and_beside_a_release_are_caught():
    """The checks that take a moment, however busy the machine is; the whole of it runs alone."""
    checks = ["alone", "border", "closed", "durable", "exact", "inverse", "once", "order"]
    checks += ["rewritten", "torn", "published", "moments"]
    done = audit("--only", *checks)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert f" {len(checks)} of {len(checks)} checks, " in done.stdout
    for fault in [*FAULTS_OF_ORDER_AND_LEDGER, *FAULTS_BESIDE]:
        [line] = [line for line in done.stdout.splitlines() if line.startswith(f"{fault}  ")]
        assert "NOTHING" not in line


def audit(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.verification.audit", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.alone
@pytest.mark.timeout(900)
def test_the_quick_audit_holds():
    done = audit("--quick")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    lines = done.stdout.strip().splitlines()
    assert lines[-1].startswith("audit holds: ")
    for fault in FAULTS:
        [line] = [line for line in lines if line.startswith(fault + "  ")]
        assert "NOTHING" not in line
    for mechanism in audited():
        assert {"0.1", "1", "5"} <= {line.split()[3] for line in lines if line.startswith(mechanism + " ")}
