"""What a page is made of."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from matplotlib.figure import Figure

from eyestream_lab.study.cells import Record

__all__ = ["Section", "Table"]


@dataclass(frozen=True)
class Table:
    """Some columns of some records; a column is (name, heading). Tables that belong together share a name.

    The first `keys` columns say which row it is.
    """

    name: str
    caption: str
    columns: tuple[tuple[str, str], ...]
    records: Sequence[Record]
    keys: int = 1


@dataclass(frozen=True)
class Section:
    """A part of the report."""

    title: str
    text: tuple[str, ...]
    figures: dict[str, tuple[str, Figure]] = field(default_factory=dict)
    """For each file name the caption and the figure."""
    tables: tuple[Table, ...] = ()
