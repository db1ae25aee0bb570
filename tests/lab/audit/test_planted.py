"""Every planted mechanism gives its finding, and no other."""

import importlib
from dataclasses import replace
from pathlib import Path

import pytest

from eyestream_lab.audit.report import FINDINGS
from eyestream_lab.audit.run import audit
from tests.lab.audit.subjects import BESIDES, EPSILON, FORM, REUSE, REUSE_AND_EPSILON, SMALL, WRONG, planted_subject

planted = importlib.import_module("tests.lab.audit.planted")


_SOON = replace(SMALL, screening=100, most=800)
"""For mechanisms of our own, which draw exactly and slowly, and are told apart by few draws."""

_FIRST = {finding: name for name, (_, finding) in reversed(WRONG.items())}.values()


def _named(name: str) -> object:
    """One of each finding is ordinary, those of `asked` are long. Others are slow: the quick audit plants such ones."""
    mark = pytest.mark.long if name.startswith("asked") else pytest.mark.slow
    return name if name in _FIRST else pytest.param(name, marks=mark)


@pytest.mark.usefixtures("searched")
@pytest.mark.parametrize("name", [_named(name) for name in WRONG])
def test_a_planted_mechanism_is_found(name: str) -> None:
    part, finding = WRONG[name]
    parts = {FORM: (), REUSE_AND_EPSILON: (REUSE, EPSILON)}.get(part, (part,))
    subject = planted_subject(name, 1.0 if finding == "hang" else 20.0)
    report = audit(subject, _SOON if name.startswith("asked") else SMALL, parts=parts)
    assert set(report.findings) == {finding} | BESIDES.get(name, set()), report.found


def test_every_planted_mechanism_is_in_a_table() -> None:
    source = Path(planted.__file__).read_text(encoding="utf-8")
    missing = [name for name in WRONG if not callable(getattr(planted, name))]
    assert missing == []
    assert {finding for _, finding in WRONG.values()} == set(FINDINGS)
    for name in vars(planted):
        if name.startswith(("float_", "fourier_", "own_", "reused_", "state_", "time_", "size_")) and name in source:
            assert name in WRONG or name == "float_clipped", name


@pytest.mark.usefixtures("searched")
@pytest.mark.parametrize(("name", "seen"), [("few_seeds", True), ("exact", False)])
def test_outputs_that_had_been_there_before_are_counted(name: str, seen: bool) -> None:
    report = audit(planted_subject(name), SMALL, parts=(REUSE,))
    assert report.outputs_compared >= 300
    assert (report.outputs_repeated > 20) == seen
    assert (report.outputs_repeated == 0) != seen


@pytest.mark.long
@pytest.mark.usefixtures("searched")
def test_floating_point_noise_is_found_behind_a_clip_with_more_draws() -> None:
    report = audit(planted_subject("float_clipped"), replace(SMALL, surface=40_000), parts=("float surface",))
    assert report.findings == ["float-surface"]
