"""The tests on other machines: a bare run skips what it lacks and says so, `-m installed` runs that, CI fails it."""

import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import needs

ROOT = Path(__file__).resolve().parents[1]

SAMPLE = """
import pytest

@pytest.fixture
def through(mosquitto): pass

def test_plain(): pass
def test_by_fixture(mosquitto): pass
def test_by_a_fixture_of_a_fixture(through): pass
def test_of_the_machine(shared_data): pass
@pytest.mark.needs("cc")
def test_by_marker(): pass
@pytest.mark.needs("node", "root")
class TestClass:
    def test_of_a_class(self): pass
@pytest.mark.parametrize("one", [1, pytest.param(2, marks=pytest.mark.needs("git"))])
def test_by_parameter(one): pass
"""
INSTALLED = {
    "test_by_fixture",
    "test_by_a_fixture_of_a_fixture",
    "test_by_marker",
    "test_of_a_class",
    "test_by_parameter[2]",
}
REST = {"test_plain", "test_of_the_machine", "test_by_parameter[1]"}


def run(folder: Path, *words: str, ci: bool = False, text: str = SAMPLE) -> tuple[dict[str, str], str]:
    """What becomes of each test of `text` with an empty path, where no recordings are; and what is printed.

    This machine's data, rights and libraries stay as they are.
    """
    (folder / "empty").mkdir(exist_ok=True)
    (folder / "test_sample.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    needs(name)\n    installed\n")
    environment = {name: value for name, value in os.environ.items() if name != "CI"} | {"PATH": str(folder / "empty")}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.conftest",
        "-c",
        str(folder / "pytest.ini"),
        "--strict-markers",
    ]
    done = subprocess.run(
        [*command, f"--junitxml={folder}/out.xml", *words, str(folder)],
        cwd=ROOT,
        env=environment | ({"CI": "true"} if ci else {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode in {0, 1, 4}, done.stderr
    if done.returncode == 4:
        return {}, done.stderr
    cases = ET.parse(folder / "out.xml").iter("testcase")
    return {
        case.attrib["name"]: next((child.tag for child in case if child.tag != "properties"), "passed")
        for case in cases
    }, done.stdout


def test_a_bare_machine_skips_what_it_lacks_and_says_at_the_end_what_to_install(tmp_path: Path) -> None:
    found, said = run(tmp_path, "-n", "1")
    assert {name for name, fate in found.items() if fate == "skipped"} - {"test_of_the_machine"} == INSTALLED
    assert not {"failure", "error"} & set(found.values())
    assert found["test_plain"] == found["test_by_parameter[1]"] == "passed"
    end = re.split(r"=+ skipped, and what to do about it =+\n", said)[1].splitlines()
    assert end[0] == "    2 need mosquitto: apt install mosquitto"
    assert {
        "    1 need cc: apt install gcc libc6-dev",
        "    1 need git: apt install git",
        "    1 need node: apt install nodejs",
    } <= set(end[1:])
    assert end[-1].startswith("=")  # nothing comes after the list but the count


def test_no_test_is_lost_between_the_bare_run_and_that_of_what_is_installed(tmp_path: Path) -> None:
    """What the bare run skips for lack of something that can be installed is what the other run chooses."""
    chosen, _ = run(tmp_path, "-m", "installed")
    rest, _ = run(tmp_path, "-m", "not installed")
    assert (set(chosen), set(rest)) == (INSTALLED, REST)
    assert {name for name, fate in rest.items() if fate != "passed"} <= {"test_of_the_machine"}


def test_in_ci_what_is_not_installed_is_a_failure(tmp_path: Path) -> None:
    found, said = run(tmp_path, ci=True)
    assert {name for name, fate in found.items() if fate == "error"} == INSTALLED
    assert "CI has everything, but not mosquitto (apt install mosquitto)" in said


def test_a_need_that_nobody_knows_is_named(tmp_path: Path) -> None:
    text = 'import pytest\n\n@pytest.mark.needs("nod")\ndef test_a(): pass\n'
    assert "test_a: tests/needs.py knows no need nod" in run(tmp_path, text=text)[1]


def test_nobody_skips_by_another_way() -> None:
    """A skip that is no declared need would be lost: neither run would have it, and no line would name it."""
    ways = re.compile(r"\bskip(?:if|Test)?\(|importorskip|collect_ignore|mark\.skip|\.Skip(?:ped|Test)\b")
    own = {ROOT / "tests" / "needs.py", Path(__file__)}
    found = [str(path) for path in (ROOT / "tests").rglob("*.py") if path not in own and ways.search(path.read_text())]
    assert found == []
    assert ways.search('pytest.skip("no node")')


@pytest.mark.parametrize("name", sorted(needs.NEEDS))
def test_each_need_is_used_and_says_what_to_do(name: str) -> None:
    texts = [path.read_text() for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    declared = re.compile(rf'needs\([^)]*"{name}"')
    assert name in needs.FIXTURES.values() or any(declared.search(text) for text in texts)
    assert needs.NEEDS[name].remedy


@given(st.integers().map(lambda number: time.sleep(0.25) or number))
@settings(max_examples=5)
def test_no_clock_decides_how_a_property_is_tested(number: int) -> None:
    """Hypothesis itself fails where five numbers take more than a second, or one test a fifth of one."""
    time.sleep(0.25)
    assert isinstance(number, int)
