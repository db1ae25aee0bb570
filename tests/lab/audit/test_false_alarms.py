"""Correct mechanisms are not flagged: each once here, 200 audits in the slow form."""

import concurrent.futures
import itertools
from dataclasses import replace

import pytest

from eyestream_lab.audit.run import PARTS, AuditPlan, audit
from tests.lab.audit.subjects import CORRECT, OURS, SMALL, correct_subject

RUNS = 200
RUNS_AT_ONCE = 2
FEW = replace(SMALL, screening=100, most=2_000, surface=3_000, reuse=1_000, state=1_000, timing=60)
WIDE = replace(FEW, screening=50, most=500, surface=1_000, reuse=500, state=500)
"""For chunks of 52 x 32 values, which cost more."""
WIDEST = replace(WIDE, screening=20, most=200, surface=200, reuse=150, state=150, timing=20)
"""For noise on each value, which costs four times as much again; the 200 audits have `WIDE`."""

EACH = (*CORRECT, *OURS)
ALIKE = ("exact_odd_step", "exact_single_precision", "exact_integer_python", "lpa", "dcfpa")
"""In the slow form alone: others are like them."""


def _plan(name: str) -> AuditPlan:
    return WIDE if name in OURS else FEW


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("searched")
@pytest.mark.parametrize(
    "name",
    [
        "exact",
        *(pytest.param(n, marks=pytest.mark.slow if n in ALIKE else pytest.mark.long) for n in EACH if n != "exact"),
    ],
)
def test_a_correct_mechanism_is_not_flagged(name: str) -> None:
    report = audit(correct_subject(name), WIDEST if name == "lpa" else _plan(name))
    assert report.findings == [], report.found
    assert report.not_tested == []
    assert report.tested == ["form", *PARTS]
    assert report.epsilon_lower_bound is not None
    assert report.epsilon_lower_bound <= report.epsilon


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.usefixtures("searched")
def test_false_alarms_in_200_audits() -> None:
    names = list(itertools.islice(itertools.cycle(EACH), RUNS))
    with concurrent.futures.ThreadPoolExecutor(RUNS_AT_ONCE) as pool:
        reports = list(pool.map(lambda name: audit(correct_subject(name), _plan(name)), names))
    flagged = [(name, report.found) for name, report in zip(names, reports, strict=True) if report.findings]
    print(f"{len(flagged)} of {RUNS} audits of correct mechanisms gave a finding: {flagged}")
    assert flagged == []
