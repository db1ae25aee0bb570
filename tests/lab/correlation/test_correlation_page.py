"""Every table of the page on correlations is computed again."""

from pathlib import Path

import pytest

from tests.lab.correlation import page_figures

PAGE = Path(__file__).parents[3] / "docs" / "correlations.md"


def printed(title: str) -> list[list[str]]:
    """Cells of the table that follows a marker, without its head."""
    lines = iter(PAGE.read_text().splitlines())
    assert any(line == f"<!-- table: {title} -->" for line in lines), f"{title} is not on the page"
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


def test_the_page_has_no_other_tables():
    text = PAGE.read_text()
    assert text.count("<!-- table: ") == text.count("|---|\n") == len(page_figures.TABLES)
