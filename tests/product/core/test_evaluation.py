"""The answers to NIST SP 800-226: every one names tests that are there, and says what is so of this mechanism."""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from eyestream.claims.guarantee import NOT_PROTECTED, TRUSTED, Guarantee, guarantee_of, guarantee_of_recording
from eyestream.claims.nist import SOURCE, Answer, answers
from eyestream.core.charge import Ceilings
from eyestream.core.kinds import DifferentialPrivacy, Loss
from eyestream.core.mechanisms import build
from eyestream.core.scopes import Deployment
from eyestream.rim.files import calibrations
from eyestream.streams import StreamSpec

ROOT = Path(__file__).resolve().parents[3]
NAMES = ("everyday-lpa-32", "everyday-cfpa-32", "everyday-dcfpa-32", "everyday-klt-32")
POINTS = (
    "privacy parameter",
    "unit of privacy",
    "neighbouring relation",
    "variant of differential privacy",
    "algorithm and its correctness",
    "composition",
    "correlated data",
    "post-processing",
    "utility",
    "bias",
    "floating point",
    "randomness",
    "timing and other side channels",
    "query model",
    "threat model",
    "security and access control",
    "data collection exposure",
    "data that decide the mechanism",
)


def guarantee(name: str = "everyday-klt-32") -> Guarantee:
    stream = StreamSpec("features", 1, ("a",), ("1",), 2.0, 30.0)
    return guarantee_of(build(calibrations.load(name), 4.8), Deployment(stream, Ceilings.of(3, 14.4, 1152.0)))


def told(made: Guarantee) -> dict[str, Answer]:
    return {one.point: one for one in answers(made)}


def missing(answered: dict[str, Answer]) -> Iterator[str]:
    """Tests that are named and not there."""
    for where in {place for one in answered.values() for place in one.shown_by}:
        file, _, name = where.partition("::")
        path = ROOT / file
        tree = ast.parse(path.read_text(encoding="utf-8")) if path.is_file() else ast.Module([], [])
        if name not in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}:
            yield where


@pytest.mark.parametrize("name", NAMES)
def test_every_point_has_an_answer_and_tests_that_are_there(name: str) -> None:
    made = guarantee(name)
    answered = told(made)
    assert tuple(answered) == POINTS
    assert all(one.shown_by and len(one.answer.split()) >= 1 for one in answered.values())
    assert list(missing(answered)) == []
    claimed = made.claim()["evaluation"]
    assert claimed == {"of": SOURCE, "points": [one.claim() for one in answered.values()]}


def test_a_test_that_is_gone_would_be_seen() -> None:
    here = "tests/product/core/test_evaluation.py"
    gone = {"a": Answer("a", "b", (f"{here}::test_that_never_was", "tests/none.py::test", f"{here}::{POINTS[0]}"))}
    assert set(missing(gone)) == set(gone["a"].shown_by)


def test_the_answers_are_of_this_guarantee() -> None:
    klt, lpa = told(guarantee()), told(guarantee("everyday-lpa-32"))
    assert "randomised response" in klt["algorithm and its correctness"].answer
    assert "Laplace" in lpa["algorithm and its correctness"].answer
    shown = [set(one["algorithm and its correctness"].shown_by) for one in (klt, lpa)]
    assert shown[0].isdisjoint(shown[1])
    assert all("cannot break the system's generator" in one["randomness"].answer for one in (klt, lpa))
    assert "4.8-differential privacy (pure)" in klt["privacy parameter"].answer
    assert "window 14.4, session 1152" in klt["privacy parameter"].answer
    assert all(sentence in klt["threat model"].answer for sentence in (*TRUSTED, *NOT_PROTECTED))
    assert guarantee().calibration in klt["data that decide the mechanism"].answer
    approximate = told(
        replace(guarantee(), promise=DifferentialPrivacy(Loss("chunk", Fraction(2), Fraction(1e-6)), "one chunk"))
    )
    assert approximate["variant of differential privacy"].answer == "approximate, with delta 1e-06 for one chunk"
    assert klt["variant of differential privacy"].answer == "pure"


def test_of_a_mechanism_of_somebody_else_no_test_of_ours_is_named() -> None:
    ours, theirs = told(guarantee()), told(replace(guarantee(), mechanism="gaussian-mean", shown_by={}))
    own = re.compile("test_(response|klt|mechanisms|noise_scale|laws|ball|exact|false_alarms)")
    for point in ("privacy parameter", "algorithm and its correctness", "utility", "floating point"):
        assert any(own.search(place) for place in ours[point].shown_by)
        assert not any(own.search(place) for place in theirs[point].shown_by)
    time = theirs["timing and other side channels"]
    assert not any(own.search(place) for place in time.shown_by)
    assert "nothing is known" in time.answer
    assert "nothing is known" not in ours["timing and other side channels"].answer


def test_a_recording_has_no_ceilings() -> None:
    calibration = calibrations.load("everyday-klt-32")
    made = guarantee_of_recording(build(calibration, 4.8), calibration)
    claim = made.claim()
    assert claim["scopes"] == []
    assert claim["unit"] == {"rows": 32, "seconds": 16.0, "features": 52}
    assert "Ceilings on epsilon: none" in told(made)["privacy parameter"].answer
