"""What is said of privacy is said of a chunk: no sentence promises a session or a person the epsilon of a chunk."""

import re
from pathlib import Path

import pytest

from eyestream.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "SECURITY.md", "CONTRIBUTING.md", "eyestream/core/**/*.md", "docs/*.md")

LONGER = re.compile(r"\b(sessions?|recordings?|persons?|people|signals?|hours?|days?|streams?|wearers?)\b", re.I)
CLAIM = re.compile(
    r"differential(ly)? priva|-DP\b|e\^|the odds|epsilon of a chunk|guarantee[sd]? |private up to|costs? epsilon|"
    r"the loss about",
    re.I,
)
SAVED = re.compile(
    r"\bsums?\b|\badds?\b|add up|multipl|\bclass\b|epsilon'|nobody|never|cannot|each chunk|of one chunk|for one chunk|"
    r"\b(is|are|was|were|do|does|did|be|has|have|and|of|but|rows|sidecar) not\b|"
    r"\bno (such|sum|bound|useful|guarantee|longer|single|sensitivity|sentence|session|more of|difference|epsilon)|"
    r"(?<!epsilon of )a chunk|eyestream guarantee|`guarantee",
    re.I,
)
"""What makes it true: the sum, a stated class, or that it is denied or said of a chunk."""

PLANTED = (
    "With epsilon 4.8 the whole session is differentially private.",
    "An attacker changes the odds about a person by at most e^4.8.",
    "A recording of an hour is 4.8-DP, by parallel composition.",
    "With 4.8 of epsilon of a chunk the whole session is differentially private.",
    "Epsilon of a chunk bounds what a session tells.",
    "A session is e^4.8 private, and no less.",
    "The guarantee is 4.8-DP for the person, not more.",
    "A session costs epsilon 4.8.",
    "The loss about a whole session is at most 4.8.",
)


def sentences(text: str) -> list[str]:
    """Of prose and lists; rows of tables are figures, and fenced code is none."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    prose = "\n".join(line for line in prose.splitlines() if not line.lstrip().startswith("|"))
    return [" ".join(part.split()) for part in re.split(r"(?<=[.:?;])\s+|\n\s*\n|\n- ", prose)]


def overclaims(text: str) -> list[str]:
    """Sentences that claim something of more than a chunk, without what makes it true."""
    return [s for s in sentences(text) if LONGER.search(s) and CLAIM.search(s) and not SAVED.search(s)]


def test_a_planted_overclaim_is_found():
    for sentence in PLANTED:
        assert overclaims(f"True words. {sentence} More of them.") == [sentence]


@pytest.mark.parametrize("page", sorted(path for pattern in PAGES for path in ROOT.glob(pattern)), ids=lambda p: p.name)
def test_no_page_promises_a_session_the_epsilon_of_a_chunk(page):
    assert overclaims(page.read_text()) == []


@pytest.mark.parametrize("mechanism", ["klt", "cfpa", "dcfpa"])
def test_no_guarantee_does(tmp_path, capsys, mechanism):
    main(["init", "--mechanism", mechanism, str(tmp_path)])
    capsys.readouterr()
    main(["guarantee", "--config", str(tmp_path / "sidecar.toml")])
    text = capsys.readouterr().out
    assert "only the sum over its chunks is a bound" in " ".join(text.split())
    assert overclaims(text) == []
