"""Every table of the pages on correlations is computed again."""

from pathlib import Path

import pytest

from tests.lab.correlation import page_figures

ROOT = Path(__file__).parents[3]
PAGES = (ROOT / "docs" / "correlations-figures.md", ROOT / "lab" / "eyestream_lab" / "correlation" / "CHAINS.md")
TEXT = "".join(page.read_text(encoding="utf-8") for page in PAGES)


def printed(title: str) -> list[list[str]]:
    """Cells of the table that follows a marker, without its head."""
    lines = iter(TEXT.splitlines())
    assert any(line == f"<!-- table: {title} -->" for line in lines), f"{title} is on no page"
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows[2:]


LONG = ("an hour",)


@pytest.mark.parametrize("title", [t for t in page_figures.TABLES if t not in LONG])
def test_table(title):
    computed = [[page_figures.cell(value) for value in row] for row in page_figures.TABLES[title]()]
    assert computed == printed(title)


@pytest.mark.long
@pytest.mark.parametrize("title", LONG)
def test_long_table(title):
    test_table(title)


def test_the_pages_have_no_other_tables():
    assert TEXT.count("<!-- table: ") == TEXT.count("|---|\n") == len(page_figures.TABLES)
