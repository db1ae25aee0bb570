"""What a power cut would leave of a ledger."""

import os
from pathlib import Path

from eyestream.rim.ledger.book import Book

__all__ = ["Disk"]


class Disk:
    """Sees every fdatasync: what of the ledger at `path` a power cut would leave."""

    def __init__(self, path: Path, charge: int) -> None:
        self._path, self._charge, self._sync = path, charge, os.fdatasync
        self._durable = path.stat().st_size

    def __call__(self, fd: int) -> None:
        """In the place of os.fdatasync."""
        self._sync(fd)
        self._durable = self._path.stat().st_size

    def charges(self) -> int:
        """Charges in the durable bytes."""
        book = Book([self._path.read_bytes()[: self._durable]])
        return sum(known.account.odometer().epsilon for known in book.streams.values()) // self._charge
