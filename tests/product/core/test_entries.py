"""An entry has all that others ask about a mechanism: nobody else asks for its name, and an unknown one is refused."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyestream.claims.correlation.published import PublishedClass, bound_of, session_claim, side
from eyestream.core.calibration import Calibration
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import CFPA, build
from eyestream.core.mechanisms.entry import Entry, NoOptions, referred
from eyestream.core.mechanisms.registry import PRODUCT, entry_of, register
from eyestream.errors import CalibrationError, ConfigError, OperatorError
from eyestream.rim.files import calibrations
from eyestream_lab.audit.trials import Case, synthetic, trial_of
from eyestream_lab.calibration import calibrate, declared_range
from eyestream_lab.correlation.emissions import emission_of
from eyestream_lab.fpa import FPA
from eyestream_lab.parts import part_of
from eyestream_lab.study.ways import study_part
from tests.rigs.distributions import modules
from tests.rigs.small_corpus import calibrated, corpus

OWN = (
    "eyestream.core.mechanisms.",
    *(f"eyestream_lab.{room}." for room in ("calibration", "fpa", "kaleido_live", "mechanisms", "words")),
)
"""Folders of the mechanisms, their entries, their registry and what they are calibrated with."""
SYSTEMS = (
    "eyestream_lab.benchmark.neighbours",
    "eyestream_lab.benchmark.picture",
    "eyestream_lab.corpora.registry",
    "eyestream_lab.corpora.samples",
    "eyestream_lab.releases.plans",
    "eyestream_lab.releases.page",
)
"""They name systems that release corpora. Some are called as the mechanism that they take to a corpus."""
PUBLIC = "eyestream"
"""Names the classes, for `from eyestream import KLT`."""


def references(name: str) -> dict[str, str]:
    """What the entry of a mechanism and its part refer to, by the field."""
    found = {one.name: getattr(of, one.name) for of in (entry_of(name), part_of(name)) for one in fields(of)}
    return {at: place for at, place in found.items() if isinstance(place, str) and re.fullmatch(r"[\w.]+:\w+", place)}


def part_of_a_mechanism(module: str) -> bool:
    """Whether a module lies in a mechanism's folder, or an entry refers to it."""
    parts = {place.partition(":")[0] for name in PRODUCT for place in references(name).values()}
    return f"{module}.".startswith(OWN) or module in SYSTEMS or module in parts


def asks(tree: ast.AST) -> Iterator[str]:
    """What asks for the name of a mechanism, or for its class."""
    called = {*PRODUCT, FPA.name}
    classes = {entry_of(name).mechanism.__name__ for name in PRODUCT} | {FPA.__name__}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in called:
            yield f"{node.lineno}: the name {node.value!r}"
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.lineno}: imports {alias.name}" for alias in node.names if alias.name in classes)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            cores = (one.id for one in ast.walk(node.args[1]) if isinstance(one, ast.Name))
            yield from (f"{node.lineno}: asks for {name}" for name in cores if name in classes or name.endswith("Core"))


def test_nobody_else_asks_for_the_name_or_the_class_of_a_mechanism() -> None:
    files = {name: path for name, path in modules() if name != PUBLIC and not part_of_a_mechanism(name)}
    assert len(files) > 300
    found = {name: list(asks(ast.parse(path.read_text("utf-8")))) for name, path in files.items()}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "line",
    [
        'if calibration.mechanism == "dcfpa": pass',
        'factor = {"lpa": 1.0}.get(name)',
        "isinstance(mechanism, LPA | CFPA)",
        "isinstance(core, JointCore)",
        "from eyestream.core.mechanisms import KLT",
        'label = "fpa" if whole else name',
    ],
)
def test_control_a_line_that_asks_is_found(line: str) -> None:
    assert list(asks(ast.parse(line)))


def test_a_mechanism_is_imported_when_it_is_named() -> None:
    program = (
        "import sys; from eyestream.core.mechanisms.registry import entry_of, names; assert len(names()) == 8;"
        "had = lambda: {m.split('.')[3] for m in sys.modules if m.startswith('eyestream.core.mechanisms.')};"
        "assert had() == {'entry', 'registry'}, had(); entry_of('klt'); assert had() == {'entry', 'registry', 'klt'};"
        "assert not [m for m in sys.modules if m.startswith('eyestream_lab') or m.endswith('.calibrate')]"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", [*PRODUCT, "kaleido", "task-words"])
def test_every_reference_of_an_entry_and_a_part_is_there(name: str) -> None:
    found, part = references(name), part_of(name)
    if entry_of(name).front_end is not None:
        assert {"front_end", "audit"} <= set(found)
    elif part.labelled:
        assert {"labelled", "view", "audit"} <= set(found)
    else:
        own = {"correlation", "law", "study"} if entry_of(name).mechanism.domain.keeps else set()
        assert {"calibrate", "audit"} | own <= set(found)
    assert (part.calibrate is None) == bool(part.uncalibrated)
    for place in found.values():
        assert referred(place) is not None


def test_a_declared_range_is_for_those_that_have_one() -> None:
    with pytest.raises(CalibrationError, match="klt needs a corpus: it cannot be calibrated from a declared range"):
        declared_range(calibrations.load("everyday-klt-32"), 8)


class Nobody(CFPA):
    """Built by hand, and registered nowhere."""

    name = "nobody"


def nobody() -> Calibration:
    return replace(calibrated("cfpa"), mechanism="nobody")


def made() -> Mechanism:
    return Nobody(nobody(), 4.8)


CLASS = PublishedClass("c", 10.0, 10.0, 3.0, "made by hand")


@pytest.mark.parametrize(
    "ask",
    [
        lambda: build(nobody(), 4.8),
        lambda: entry_of("nobody"),
        lambda: calibrate("nobody", corpus()),
        lambda: declared_range(nobody(), 8),
        lambda: bound_of(made()),
        lambda: side(made(), CLASS, 16.0, 3),
        lambda: session_claim(made(), CLASS, 16.0, chunks=3, touched=1),
        lambda: emission_of(made(), np.zeros((2, 5, 32))),
        lambda: trial_of(Case("nobody", 2, 1, 1.0, 10)),
        lambda: synthetic("nobody", 4, 3),
        lambda: study_part("nobody"),
    ],
)
def test_an_unknown_mechanism_is_refused(ask: Callable[[], Any]) -> None:
    with pytest.raises(CalibrationError, match="there is no mechanism 'nobody'; there are lpa, cfpa, dcfpa, klt"):
        ask()


def test_a_calibration_file_of_an_unknown_mechanism_is_refused(tmp_path: Path) -> None:
    calibrations.save(nobody(), tmp_path / "a.npz")
    with pytest.raises(CalibrationError, match="there is no mechanism 'nobody'"):
        calibrations.load(tmp_path / "a.npz")


def test_who_has_no_part_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mechanism of somebody else may have a calibration alone."""
    monkeypatch.setattr("eyestream.core.mechanisms.registry._ENTRIES", {})
    tables = type(calibrated("cfpa").tables)
    register(Entry(Nobody, NoOptions, tables))
    refused: list[tuple[Callable[[], Any], str]] = [
        (lambda: declared_range(nobody(), 8), "nobody needs a corpus"),
        (lambda: session_claim(made(), CLASS, 16.0, chunks=3, touched=1), "no class of processes bounds what releases"),
        (lambda: emission_of(made(), np.zeros((2, 5, 32))), "no output law is known of nobody"),
        (lambda: trial_of(Case("nobody", 2, 1, 1.0, 10)), "the audit has no trial of nobody"),
    ]
    for ask, complaint in refused:
        with pytest.raises((ConfigError, OperatorError), match=complaint):
            ask()
    assert study_part("nobody").ways == {}
