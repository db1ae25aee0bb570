"""Rows of one chunk: where they lie in the session, the buffer that they are put in, and what falls due."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ChunkBuffer", "DueChunk", "RowMark", "RowSpan"]


@dataclass(frozen=True, slots=True, order=True)
class RowMark:
    """A row of a tracker's session; older sessions come first."""

    session: int
    last_row: int


@dataclass(frozen=True, slots=True)
class RowSpan:
    """The rows of a chunk, as the ledger knows them.

    Attributes
    ----------
    session
        The tracker's.
    index
        Of the chunk, from 0 where this process saw the session begin, also anew.
    first_row, last_row
        Tracker's row numbers, both included; first_row is a multiple of n, whichever of the rows arrive.
    """

    session: int
    index: int
    first_row: int
    last_row: int


@dataclass(frozen=True, slots=True, eq=False)
class DueChunk:
    """A chunk that is due: it is released or withheld, and no row of it is ever taken again.

    Attributes
    ----------
    session, index, first_row, last_row
        As in `RowSpan`.
    t0
        Seconds on the nominal grid from the first row of the session's chunk 0 to the first row of this one.
    values
        (F, n), read-only; NaN where a value is missing, also where it was infinite.
    ends_session
        Whether it was closed by its session's stop. A session may also stop between chunks; then no chunk says so.
    """

    session: int
    index: int
    first_row: int
    last_row: int
    t0: float
    values: NDArray[np.float64]
    ends_session: bool

    @property
    def span(self) -> RowSpan:
        """Its rows: equal to what `Device.open_chunk` said while it was open."""
        return RowSpan(self.session, self.index, self.first_row, self.last_row)


class ChunkBuffer:
    """Rows of the open chunk; the first arrival of a row wins.

    Parameters
    ----------
    n, features
        Rows of a chunk, and values of a row.
    """

    def __init__(self, n: int, features: int) -> None:
        self._values = np.full((features, n), np.nan)
        self._present = np.zeros(n, dtype=np.bool_)

    def put(self, offset: int, rows: NDArray[np.float32]) -> int:
        """Put (m, F) rows at `offset`; returns how many were there already."""
        here = slice(offset, offset + len(rows))
        present = self._present[here]
        duplicates = int(np.count_nonzero(present))
        with np.errstate(all="ignore"):  # a signalling NaN would be a warning in the log: a word about a raw value
            if duplicates:
                self._values[:, here][:, ~present] = rows[~present].T
            else:
                self._values[:, here] = rows.T
        present[:] = True
        return duplicates

    def values(self) -> NDArray[np.float64]:
        """(F, n), read-only, NaN where a value is missing; nothing can be put any more.

        The rows have been laid out as they came: this is on the way of the release.
        """
        np.copyto(self._values, np.nan, where=np.isinf(self._values))
        self._values.flags.writeable = False
        return self._values
