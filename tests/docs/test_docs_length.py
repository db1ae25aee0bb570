"""The pages that people read from top to bottom stay short: README, tutorials, how-to pages and explanations.

Words outside of code and of generated tables are counted. Reference is looked up, and proofs are checked: they may be
long.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INDEX = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")

MOST = 24_000
READ = ("Tutorials: learn by doing", "How-to: reach a goal", "Explanation: understand why")


def words(text: str) -> int:
    """Words of a page: code in fences, generated tables, addresses of links and signs of tables are none."""
    text = re.sub(r"(?s)<!-- ([\w ]+): begin -->.*?<!-- \1: end -->", "", text)
    text = re.sub(r"(?ms)^```.*?^```", "", text)
    return len([word for word in re.sub(r"\]\([^)]*\)", "]", text).split() if re.search(r"\w", word)])


def pages(part: str) -> list[Path]:
    """Pages that the first cells of a part's table name."""
    table = INDEX.split(f"\n## {part}\n")[1].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| [")]
    return [(ROOT / "docs" / link).resolve() for cell in cells for link in re.findall(r"\]\(([^)]+\.md)\)", cell)]


def test_words_are_counted() -> None:
    text = "Two words.\n```sh\nnot these\n```\n| a | [link](to/somewhere.md) |\n|---|---|\n"
    assert words(f"{text}<!-- a b: begin --> not these <!-- a b: end -->") == 4


def test_the_pages_that_people_read_are_short() -> None:
    read = [ROOT / "README.md", *(page for part in READ for page in pages(part))]
    assert len(read) == len(set(read)) > 30
    counted = {page.relative_to(ROOT).as_posix(): words(page.read_text(encoding="utf-8")) for page in read}
    longest = sorted(counted.items(), key=lambda one: -one[1])[:5]
    assert sum(counted.values()) <= MOST, f"{sum(counted.values())} words; the longest: {longest}"


def test_every_page_is_of_one_kind() -> None:
    parts = re.findall(r"(?m)^## (.*)$", INDEX)
    listed = [page for part in parts for page in pages(part)]
    assert len(listed) == len(set(listed))
    unlisted = {page for page in (ROOT / "docs").glob("*.md") if page.resolve() not in set(listed)}
    assert {page.name for page in unlisted} <= {"README.md", "index.md"}


@pytest.mark.parametrize("reader", ["Vendor", "Application developer", "Operator", "Researcher"])
def test_each_reader_has_three_pages(reader: str) -> None:
    (line,) = re.findall(rf"(?m)^- \*\*{reader}\*\*: (.*)$", INDEX)
    assert len(re.findall(r"\]\([\w-]+\.md\)", line)) == 3
