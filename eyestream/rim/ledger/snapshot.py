"""The snapshot after a ledger's header: lines of JSON, and a digest. Pure; LEDGER.md has the format (section 2)."""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from eyestream.core.accountant import AccountState
from eyestream.core.days import Days
from eyestream.core.meter import OtherDays
from eyestream.errors import LedgerError

_DIGEST_BYTES = 64


class Unsettled(NamedTuple):
    """A span that is reserved and of which nobody said that its bytes lie in the outbox."""

    session: int
    first_row: int
    last_row: int
    chunk: int
    epsilon: int
    delta: int
    wearer: int


class StreamFacts(NamedTuple):
    """Facts on a stream beside its sums: its unsettled spans, after three places that the format reserves."""

    reserved_1: str = ""
    reserved_2: str = ""
    reserved_3: int = 0
    unsettled: tuple[Unsettled, ...] = ()


class DeviceLine(NamedTuple):
    """One device; `facts` by stream.

    It has been moved between ledgers `moves` times, out of those named `former_ledgers`. `exported`: out of this one,
    to the ledger of that name, or True, by a version that named none.
    """

    device: str
    account: AccountState
    facts: dict[str, StreamFacts]
    moves: int = 0
    exported: str | bool = False
    former_ledgers: tuple[str, ...] = ()


OtherDaysOf = dict[str, OtherDays]
"""Sums of one device on days that may come again (`Account.other_days`)."""


class OpenDays(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Days that are open ahead of the last one, and what was spent on days that may come again, by device."""

    ahead: tuple[int, ...] = ()
    spent: dict[str, OtherDaysOf] = {}


class DeviceExport(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="format", tag="eyestream device 2"
):
    """A device on its way to the ledger named `to`: the last day of the one it comes from, and what is known of it."""

    to: str
    day: int
    line: DeviceLine
    other_days: OtherDaysOf = {}


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(DeviceLine)
_DAYS = msgspec.json.Decoder(OpenDays)


def write_snapshot(days: Days, spent: dict[str, OtherDaysOf], lines: Iterable[DeviceLine], file_key: bytes) -> bytes:
    """The snapshot's bytes; `spent` as in `OpenDays`."""
    first = b"%d" % days.last
    if days.ahead or spent:
        first += b" " + _ENCODER.encode(OpenDays(days.ahead, spent))
    text = b"\n".join([first, *map(_ENCODER.encode, lines)]) + b"\n"
    text += b"\n" * (-len(text) % _DIGEST_BYTES)
    return text + _digest(text, file_key)


def read_snapshot(data: bytes, length: int, file_key: bytes) -> tuple[Days, dict[str, OtherDaysOf], list[DeviceLine]]:
    """The days, what was spent on those that may come again, and the devices.

    Raises
    ------
    LedgerError
        The bytes are not the `length` that were written; the message begins after the file's name.
    """
    text, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if len(data) != length or _digest(text, file_key) != digest:
        raise LedgerError("has a damaged snapshot")
    first, *lines = text.split(b"\n")
    last, _, more = first.partition(b" ")
    known = _DAYS.decode(more) if more else OpenDays()
    return Days(int(last), known.ahead), known.spent, [_DECODER.decode(line) for line in lines if line]


def _digest(text: bytes, file_key: bytes) -> bytes:
    return hashlib.blake2b(text, key=file_key, digest_size=_DIGEST_BYTES).digest()
