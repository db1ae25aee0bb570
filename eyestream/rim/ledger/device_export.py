"""A device that moves from one ledger to another brings what it has spent.

**Order.** `Ledger.export_device` first writes, durably, that the device is exported, and to which ledger: from then on
this ledger grants nothing of it. Only then does it give the bytes for the other ledger, as often as it is asked. The
account in them has the same spends each time, as no slot of the device is taken any more. The last day of the ledger
may be a later one, and after `budget --today` more of the spends may count for a day. The bytes name the one ledger
that they are for, and no other takes them. `Ledger.import_device` writes the account, durably, before anything is
granted. So a crash at any step leaves the device in one ledger or in none, never in two.

**Copies.** A copy of a ledger from before a move has the device, or does not have it yet. Moving takes no slot, so such
a copy is as long as the ledger. With a second place, `eyestream budget` begins a life of the ledger (`life`) before the
move, and another one once the move is durable and before any bytes are given. So no copy from before the move goes on.
Without a second place nobody notices such a copy.

**Again.** Each move has a number. A ledger imports a device that it never had, or that it exported in an earlier move
than that of the bytes: what comes back has everything that was spent elsewhere. Bytes of an earlier move are refused.
A ledger that never had the device imports its bytes once: then it has the device. A copy of that ledger could import
them too, as any copy of a ledger spends a second time.

**Bytes.** One line of JSON, the device's line of a snapshot, after the last day of the ledger; then the BLAKE2b of
both, in hexadecimal. They say nothing that the ledger does not: keep them as it is kept.
"""

import hashlib
from pathlib import Path

import msgspec

from eyestream.errors import LedgerError
from eyestream.rim.ledger.file import create_file
from eyestream.rim.ledger.snapshot import DeviceExport

__all__ = ["read_export", "write_export"]

_MOST_BYTES = 1 << 26
_DIGEST_BYTES = 32

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(DeviceExport)


def write_export(path: Path, export: DeviceExport) -> None:
    """Write it into a new file, durably. Raises LedgerError when there is one."""
    text = _ENCODER.encode(export)
    create_file(path, text + b"\n" + _digest(text) + b"\n")


def read_export(path: Path) -> DeviceExport:
    """What `write_export` wrote. Raises LedgerError for anything else."""
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise LedgerError(f"{path}: cannot be read: {error.strerror}") from None
    text, _, rest = data.partition(b"\n")
    if len(data) > _MOST_BYTES or rest != _digest(text) + b"\n":
        raise LedgerError(f"{path}: is no device that `eyestream budget --export` wrote, or is damaged")
    try:
        return _DECODER.decode(text)
    except msgspec.DecodeError:
        if b'"eyestream device 1"' in text:
            raise LedgerError(
                f"{path}: names no ledger that it is for, as versions before 0.3 wrote it. If it was never imported, "
                "export the device again, with --to and the name that `eyestream budget` shows of the other ledger"
            ) from None
        raise LedgerError(f"{path}: is a device of another version of eyestream") from None


def _digest(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest().encode()
