"""A sidecar's messages about itself and its streams, besides chunks: `status`, `budget`, `odometer`, `owner`, retained.

`status`: how a stream or a sidecar is, in words of fixed lists. `owner`: which devices a sidecar serves, and under
which ledger, for the other sidecars of a broker. `Presence` stands in its place where one sidecar answers another.

`budget`: how many more chunks of a stream the budget lets through, for applications and operators.

A message of its own and not keys of `status`: readers of version 1 may refuse keys that they do not know, as those of
0.1.0 do, and would lose the status with them. To a topic that they do not know nobody is subscribed.

It has the ceiling that is reached first and no other: how much a device was used on other days is nobody's business.

`odometer`: what a stream has spent, from a secret number on, so that whoever listens can tell that a ledger went back.
"""

from typing import Annotated, Literal, get_args

import msgspec

from eyestream.wire.envelope import MAX_RELEASE_BYTES, MAX_U64, Envelope, open_envelope, refuse
from eyestream.wire.topics import NAME

State = Literal["online", "exhausted", "degraded", "offline", "paused"]
StatusReason = Literal[
    "ready",  # online: chunks that fall due are released
    "window",  # exhausted: a ceiling of the budget, by its name
    "session",
    "day",
    "lifetime",
    "ledger",  # degraded: the ledger cannot be read or written; nothing is released
    "calibration",  # degraded: made for another stream; nothing is released
    "raw_link",  # degraded: no connection to the tracker's broker, or a tracker that does not answer
    "owner",  # degraded: another sidecar states the device; nothing is released
    "internal",  # degraded: a fault of the sidecar; nothing is released
    "stopped",  # offline: ended in order
    "lost",  # offline: said by the broker, as the last will
    "paused",  # paused: the wearer said no. There is no reason: the key has the same word
]
STATES: frozenset[str] = frozenset(get_args(State))
STATUS_REASONS: frozenset[str] = frozenset(get_args(StatusReason))


class Status(Envelope, frozen=True):
    """How a stream or a sidecar is: one word and one reason, both from fixed lists, no numbers."""

    state: State
    reason: StatusReason


_status_encoder = msgspec.msgpack.Encoder()
_status_decoder = msgspec.msgpack.Decoder(Status)


def encode_status(status: Status) -> bytes:
    """Bytes of a status.

    Raises
    ------
    PayloadError
        ``range``: a word that is not in the lists.
    """
    if status.state not in STATES or status.reason not in STATUS_REASONS:
        raise refuse("range")
    return _status_encoder.encode(status)


def decode_status(payload: bytes | bytearray | memoryview) -> Status:
    """Status out of a `status` payload.

    Raises
    ------
    PayloadError
        With one of `REASONS`; ``type`` for a word that is not in the lists.
    """
    return open_envelope(payload, _status_decoder)


CeilingName = Literal["session", "day", "lifetime"]
CEILINGS: frozenset[str] = frozenset(get_args(CeilingName))


class Budget(Envelope, frozen=True):
    """The rest of the ceiling that is reached first.

    `chunks` of this stream, as long as no other stream of the device spends; `resumes_at` in seconds since 1970, where
    the clock alone brings more: then there is more from that moment on, whatever `chunks` says.
    """

    chunks: Annotated[int, msgspec.Meta(ge=0)]
    ceiling: CeilingName
    resumes_at: Annotated[int, msgspec.Meta(ge=0)] | msgspec.UnsetType = msgspec.UNSET


_budget_encoder = msgspec.msgpack.Encoder()
_budget_decoder = msgspec.msgpack.Decoder(Budget)


def encode_budget(budget: Budget) -> bytes:
    """Bytes of a budget.

    Raises
    ------
    PayloadError
        ``range``: a number that is negative or above 2^64 - 1, or a ceiling that is none.
    """
    numbers = (budget.chunks, 0 if budget.resumes_at is msgspec.UNSET else budget.resumes_at)
    if budget.ceiling not in CEILINGS or not all(0 <= number <= MAX_U64 for number in numbers):
        raise refuse("range")
    return _budget_encoder.encode(budget)


def decode_budget(payload: bytes | bytearray | memoryview) -> Budget:
    """A budget out of a `budget` payload. Raises PayloadError with one of `REASONS`."""
    return open_envelope(payload, _budget_decoder)


_Name = Annotated[str, msgspec.Meta(pattern=rf"\A{NAME}\Z")]
_Digits = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{32}\Z")]


class Owner(Envelope, frozen=True):
    """A sidecar's word on itself: a random name of its ledger, and the devices that it serves."""

    ledger: _Digits
    devices: Annotated[tuple[_Name, ...], msgspec.Meta(min_length=1)]


_owner_encoder = msgspec.msgpack.Encoder()
_owner_decoder = msgspec.msgpack.Decoder(Owner)


def encode_owner(owner: Owner) -> bytes:
    """Bytes of an owner's word."""
    return _owner_encoder.encode(owner)


def decode_owner(payload: bytes | bytearray | memoryview) -> Owner:
    """An owner's word out of an `owner` payload. Raises PayloadError with one of `REASONS`."""
    return open_envelope(payload, _owner_decoder, MAX_RELEASE_BYTES)


_Count = Annotated[int, msgspec.Meta(ge=0)]


class Reading(Envelope, frozen=True):
    """Reading of a stream's odometer, in millionths of epsilon, counted from a number that only the ledger knows.

    `ledger` names the ledger at this stream alone, `former` the one from which the device was moved to it. `life` is
    random, another one on each link, and `began` is what the odometer read as that life began. The lives of one ledger
    follow each other: where two of them overlap, it went back (LEDGER.md, section 5).
    """

    ledger: _Digits
    life: _Count
    began: _Count
    reads: _Count
    former: _Digits | msgspec.UnsetType = msgspec.UNSET


_reading_encoder = msgspec.msgpack.Encoder()
_reading_decoder = msgspec.msgpack.Decoder(Reading)


def encode_reading(reading: Reading) -> bytes:
    """Bytes of a reading. Raises PayloadError, ``range``, for a number that is negative or above 2^64 - 1."""
    if not all(0 <= number <= MAX_U64 for number in (reading.life, reading.began, reading.reads)):
        raise refuse("range")
    return _reading_encoder.encode(reading)


def decode_reading(payload: bytes | bytearray | memoryview) -> Reading:
    """A reading out of an `odometer` payload. Raises PayloadError with one of `REASONS`."""
    return open_envelope(payload, _reading_decoder)


class Presence(Envelope, frozen=True):
    """A sidecar's answer to a question: its name, and a proof that it has the ledger that was asked for."""

    sidecar: _Name
    proof: _Digits


_presence_encoder = msgspec.msgpack.Encoder()
_presence_decoder = msgspec.msgpack.Decoder(Presence)


def encode_presence(presence: Presence) -> bytes:
    """Bytes of a presence."""
    return _presence_encoder.encode(presence)


def decode_presence(payload: bytes | bytearray | memoryview) -> Presence:
    """A presence out of its payload. Raises PayloadError with one of `REASONS`."""
    return open_envelope(payload, _presence_decoder)
