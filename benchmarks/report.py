"""Tables for the terminal and for RESULTS.md, and records for JSON."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Result", "Table", "amount", "write_section"]


@dataclass(frozen=True)
class Table:
    """Rows of words under a title."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self) -> str:
        """For the terminal."""
        widths = [max(map(len, column)) for column in zip(self.columns, *self.rows, strict=True)]
        lines = [self.title, *(self._line(row, widths) for row in (self.columns, *self.rows))]
        return "\n".join([*lines[:2], "-" * len(lines[1]), *lines[2:]])

    @staticmethod
    def _line(row: Sequence[str], widths: Sequence[int]) -> str:
        padded = [word.rjust(width) for word, width in zip(row, widths, strict=True)]
        return "  ".join([row[0].ljust(widths[0]), *padded[1:]])

    def markdown(self) -> str:
        """For RESULTS.md."""
        rule = ["---", *["---:"] * (len(self.columns) - 1)]
        return "\n".join(
            [f"**{self.title}**", "", *("| " + " | ".join(r) + " |" for r in (self.columns, rule, *self.rows))]
        )


@dataclass
class Result:
    """What one benchmark found.

    Attributes
    ----------
    tables : to be read.
    records : to be computed with; each has `benchmark`, `mechanism`, `n`, `F`, `median_us` and `p99_us` at least.
    notes : what was left out and why, and how to read it.
    """

    name: str
    tables: list[Table] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def text(self) -> str:
        """For the terminal."""
        return "\n\n".join([*(table.text() for table in self.tables), *(f"note: {note}" for note in self.notes)])

    def markdown(self) -> str:
        """For RESULTS.md, without its heading."""
        return "\n\n".join(
            [*(table.markdown() for table in self.tables), "\n".join(f"- {note}" for note in self.notes)]
        )


def amount(value: float) -> str:
    """Three digits that count."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def write_section(path: Path, head: str, name: str, body: str) -> None:
    """Replace the section `name` of the file, or append it; `head` opens a file that is new."""
    text = path.read_text(encoding="utf-8") if path.exists() else head
    section = f"## {name}\n\n{body.strip()}\n"
    pattern = re.compile(rf"^## {re.escape(name)}\n.*?(?=^## |\Z)", re.S | re.M)
    text, found = pattern.subn(lambda _: section + "\n", text)
    if not found:
        text = f"{text.rstrip()}\n\n{section}"
    path.write_text(text.rstrip() + "\n", encoding="utf-8")
