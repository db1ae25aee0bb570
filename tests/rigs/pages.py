"""The blocks of code on the pages, and how the tests run them."""

import re
import textwrap
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["ROOT", "Block", "blocks", "body_of", "code_of", "pages"]

ROOT = Path(__file__).resolve().parents[2]


class Block(NamedTuple):
    """Of one page, with the number of its first line."""

    line: int
    language: str
    text: str


def pages() -> list[str]:
    """Every page that has a block, but for the changes of the past."""
    places = ("*.md", "docs/**/*.md", "examples/**/*.md", "eyestream/**/*.md")
    names = sorted({str(path.relative_to(ROOT)) for place in places for path in ROOT.glob(place)} - {"CHANGELOG.md"})
    return [name for name in names if blocks((ROOT / name).read_text(encoding="utf-8"))]


def blocks(page: str) -> list[Block]:
    """The blocks of a page's text; of a language that is not named, the language is empty."""
    found = re.finditer(r"^( *)```(\S*)\n(.*?)^\1```$", page, re.S | re.M)
    return [Block(page[: one.start()].count("\n") + 2, one[2], textwrap.dedent(one[3])) for one in found]


def code_of(page: str, language: str = "python") -> str:
    """The one block that a page has in a language."""
    (found,) = (one for one in blocks((ROOT / page).read_text(encoding="utf-8")) if one.language == language)
    return found.text


def body_of(code: str, names: dict[str, Any]) -> Coroutine[Any, Any, None]:
    """Code as the body of a coroutine that knows `names`."""
    space = dict(names)
    exec(f"async def body():\n{textwrap.indent(code, '    ')}", space)
    return space["body"]()  # type: ignore[no-any-return]
