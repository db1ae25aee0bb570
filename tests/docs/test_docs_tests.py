"""Every test that a page names is there: from a claim to its proof to its test, without a search."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "SECURITY.md", "CONTRIBUTING.md", "eyestream/**/*.md", "lab/**/*.md", "docs/**/*.md")
NAMED = re.compile(r"`(?:(?P<file>[\w/]*test_\w+\.py)(?:::(?P<of>test_\w+))?|(?P<alone>test_\w+))`")
PROVEN = {
    "eyestream/core/KLT.md": 8,
    "lab/eyestream_lab/words/TASKS.md": 15,
    "lab/eyestream_lab/correlation/CHAINS.md": 7,
    "docs/correlations-figures.md": 10,
    "docs/errata.md": 24,
    "docs/central-figures.md": 5,
    "docs/attacks-findings.md": 6,
}
"""Pages with proofs, and how many tests each of them names at least."""


def functions(path: Path) -> set[str]:
    return set(re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE))


EVERY = {path: functions(path) for path in ROOT.glob("tests/**/test_*.py")}


def missing(text: str) -> list[str]:
    """What is named in `text` and is not there."""
    wrong = []
    for found in NAMED.finditer(text):
        file, of, alone = found["file"], found["of"], found["alone"]
        if alone:
            there = any(alone in names for names in EVERY.values())
        else:
            files = [path for path in EVERY if f"/{path.relative_to(ROOT)}".endswith(f"/{file}")]
            there = bool(files) and (of is None or any(of in EVERY[path] for path in files))
        if not there:
            wrong.append(found[0])
    return wrong


@pytest.mark.parametrize("page", sorted({p for pattern in PAGES for p in ROOT.glob(pattern)}), ids=lambda p: p.name)
def test_what_a_page_names_is_there(page):
    assert missing(page.read_text()) == []


def test_a_name_that_is_not_there_is_found():
    text = "`tests/docs/test_docs_tests.py::test_none`, `test_none.py`, `test_nobody_wrote_this`, `test_docs_tests.py`"
    assert missing(text) == ["`tests/docs/test_docs_tests.py::test_none`", "`test_none.py`", "`test_nobody_wrote_this`"]


@pytest.mark.parametrize(("page", "least"), PROVEN.items())
def test_pages_with_proofs_name_their_tests(page, least):
    assert len({found[0] for found in NAMED.finditer((ROOT / page).read_text())}) >= least


def test_every_erratum_names_a_test_of_its_own():
    text = (ROOT / "docs/errata.md").read_text()
    entries = re.split(r"^### (?=[AB]\d+\.)", text, flags=re.MULTILINE)[1:]
    assert len(entries) >= 24
    for entry in entries:
        number = entry.partition(".")[0].lower()
        assert f"`test_{number}_" in entry, entry.splitlines()[0]
