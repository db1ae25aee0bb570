"""Making an empty ledger, and reading one without a lock, also while a sidecar is at work."""

import secrets
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from eyestream.core.days import Days
from eyestream.core.meter import Odometer
from eyestream.rim.ledger.book import read_book
from eyestream.rim.ledger.file import create_file, read_pieces
from eyestream.rim.ledger.records import RECORD_BYTES, Header, write_header
from eyestream.rim.ledger.seal import Seal, unsealed
from eyestream.rim.ledger.snapshot import StreamFacts
from eyestream.streams import StreamKey

_ATTEMPTS = 3


class LedgerReading(NamedTuple):
    """Header, odometers by device, and what the ledger knows of streams beside their sums."""

    header: Header
    odometers: Mapping[str, Odometer]
    streams: Mapping[StreamKey, StreamFacts]
    exported: frozenset[str] = frozenset()
    """Devices that were moved to another ledger."""
    former_ledgers: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """By device: names of the ledgers that it was exported from before it came here."""
    days: Days = Days()
    """Those that it has opened."""


def create_ledger(path: Path, *, created: int, seal: Seal | None = None) -> None:
    """Make an empty ledger; `created` is in seconds since 1970, 0: not known.

    Raises
    ------
    LedgerError
        There is something at `path` already, or it cannot be written.
    """
    data = write_header(Header(secrets.token_bytes(16), created))
    sealed = None if seal is None else seal.new_file()
    create_file(path, data if sealed is None else sealed.head + sealed.seal(data, RECORD_BYTES))


def read_ledger(path: Path, seal: Seal | None = None) -> LedgerReading:
    """Contents of a ledger; nothing is locked or changed.

    An append that is under way may look torn; then it is read again.

    Raises
    ------
    LedgerError
        Missing or unreadable.
    """
    for _ in range(_ATTEMPTS):
        book = read_book(path, unsealed(path, read_pieces(path), seal))
        if not book.tail.damaged:
            break
    odometers = {device: account.odometer() for device, account in book.accounts.items()}
    facts = {key: known.facts() for key, known in book.streams.items()}
    return LedgerReading(book.header, odometers, facts, frozenset(book.exported), book.former_ledgers, book.days)
