"""The durable list of grants, beside the ledger: a line of JSON for each, oldest first.

A grant is written before it is in force, and a revocation after: a crash may leave a grant that is not in force, never
one that is not written.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from eyestream.errors import LedgerError
from eyestream.rim.ledger.file import put


class GrantEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One change: when, in seconds since 1970, what, to which application, and what the stream released then."""

    at: int
    word: Literal["granted", "revoked"]
    application: str
    stream: str
    features: tuple[str, ...] = ()


def record_beside(ledger: Path) -> Path:
    """The list of the ledger's sidecar."""
    return ledger.with_name(f"{ledger.name}.grants")


def read_record(ledger: Path) -> list[GrantEntry]:
    """All entries, oldest first. Raises LedgerError where the file is there and cannot be read."""
    path = record_beside(ledger)
    try:
        return [msgspec.json.decode(line, type=GrantEntry) for line in path.read_bytes().splitlines()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise LedgerError(f"{path}: cannot be read: {error.strerror}") from None
    except msgspec.MsgspecError:
        raise LedgerError(f"{path}: damaged: a line is no grant; move it away, and grant again") from None


def append(ledger: Path, *entries: GrantEntry) -> None:
    """Add entries, durably; the file belongs to the ledger's owner. Raises LedgerError."""
    path = record_beside(ledger)
    put(path, b"".join(msgspec.json.encode(entry) + b"\n" for entry in [*read_record(ledger), *entries]))
    if hasattr(os, "geteuid") and os.geteuid() == 0 and ledger.exists():
        owner = ledger.stat()
        os.chown(path, owner.st_uid, owner.st_gid)


def last_grant(record: Sequence[GrantEntry], application: str, stream: str) -> GrantEntry | None:
    """The grant that holds: the last entry of an application and a stream, if it is one."""
    found = [one for one in record if (one.application, one.stream) == (application, stream)]
    return found[-1] if found and found[-1].word == "granted" else None
