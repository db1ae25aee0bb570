"""`status`: how a stream or a sidecar is, in words of fixed lists."""

from typing import Literal, get_args

import msgspec

from eyestream.wire.envelope import Message, open_envelope, refuse

__all__ = ["STATES", "STATUS_REASONS", "State", "Status", "StatusReason", "decode_status", "encode_status"]

State = Literal["online", "exhausted", "degraded", "offline"]
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
]
STATES: frozenset[str] = frozenset(get_args(State))
STATUS_REASONS: frozenset[str] = frozenset(get_args(StatusReason))


class Status(Message, frozen=True):
    """How a stream or a sidecar is: one word and one reason, both from fixed lists, no numbers."""

    state: State
    reason: StatusReason


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Status)


def encode_status(status: Status) -> bytes:
    """Bytes of a status.

    Raises
    ------
    PayloadError
        ``range``: a word that is not in the lists.
    """
    if status.state not in STATES or status.reason not in STATUS_REASONS:
        raise refuse("range")
    return _encoder.encode(status)


def decode_status(payload: bytes | bytearray | memoryview) -> Status:
    """Status out of a `status` payload.

    Raises
    ------
    PayloadError
        With one of `REASONS`; ``type`` for a word that is not in the lists.
    """
    return open_envelope(payload, _decoder)
