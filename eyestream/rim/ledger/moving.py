"""A device that moves from one ledger to another brings what it has spent.

**Order.** `Ledger.give_away` first writes, durably, that the device is gone: from then on nothing of it is granted
there, for ever. Only then does it give the bytes for the other ledger; the same ones again, as often as they are asked
for, as nothing of the device changes any more. `Ledger.take_over` writes the account, durably, before anything is
granted. So a crash at any step leaves the device in one ledger or in none, never in two.

**Again.** Each move has a number. A ledger takes a device over when it has never had it, or when it has given it away
in a move before that of the bytes: what comes back has everything that was spent elsewhere, and bytes that were left
over from an earlier move are refused. That one file is taken over by two ledgers that never had the device, neither can
see; on one broker the two sidecars refuse each other (`eyestream.rim.sidecar.ownership`). So a file is removed when it
has been taken over.

**Bytes.** One line of JSON, the device's line of a snapshot, after the last day of the ledger; then the BLAKE2b of
both, in hexadecimal. They say nothing that the ledger does not: keep them as it is kept.
"""

import hashlib
from pathlib import Path

import msgspec

from eyestream.errors import LedgerError
from eyestream.rim.ledger.file import create_file
from eyestream.rim.ledger.snapshot import DeviceLine

__all__ = ["Parcel", "client_id", "ledger_name", "read_parcel", "write_parcel"]

_MOST_BYTES = 1 << 26
_DIGEST_BYTES = 32


def ledger_name(ledger_id: bytes) -> str:
    """A name for the ledger with this id, which says nothing of the id: checksums are keyed with it."""
    return hashlib.blake2b(ledger_id, digest_size=16, person=b"owner").hexdigest()


def client_id(ledger_id: bytes, link: str) -> str:
    """What a broker knows a link of the ledger's sidecar by: the same after a restart, and known to nobody else.

    Who connects with the id of another takes its place. A restart does so with the link of the life before, which the
    broker may hold for alive; an application must not be able to, whatever it reads. So the id is keyed with that of
    the ledger. Of 22 characters, as MQTT 3.1.1 (3.1.3.1) lets a broker refuse more than 23.
    """
    return hashlib.blake2b(link.encode(), key=ledger_id, digest_size=11, person=b"client id").hexdigest()


class Parcel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="format", tag="eyestream device 1"):
    """A device on its way: the last day of the ledger that it comes from, and all that is known of it."""

    day: int
    line: DeviceLine


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Parcel)


def write_parcel(path: Path, parcel: Parcel) -> None:
    """Write it into a new file, durably. Raises LedgerError when there is one."""
    text = _ENCODER.encode(parcel)
    create_file(path, text + b"\n" + _digest(text) + b"\n")


def read_parcel(path: Path) -> Parcel:
    """What `write_parcel` wrote. Raises LedgerError for anything else."""
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
        raise LedgerError(f"{path}: is a device of another version of eyestream") from None


def _digest(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest().encode()
