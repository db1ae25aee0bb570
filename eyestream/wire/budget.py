"""`budget`: how many more chunks of a stream the budget lets through; retained, for applications and operators.

A message of its own and not keys of `status`: readers of version 1 may refuse keys that they do not know, as those of
0.1.0 do, and would lose the status with them. To a topic that they do not know nobody is subscribed.

It has the ceiling that is reached first and no other: how much a device was used on other days is nobody's business.
"""

from typing import Annotated, Literal, get_args

import msgspec

from eyestream.wire.envelope import MAX_U64, Message, open_envelope, refuse

__all__ = ["CEILINGS", "Budget", "CeilingName", "decode_budget", "encode_budget"]

CeilingName = Literal["session", "day", "lifetime"]
CEILINGS: frozenset[str] = frozenset(get_args(CeilingName))


class Budget(Message, frozen=True):
    """What is left of the ceiling that is reached first.

    `chunks` of this stream, as long as no other stream of the device spends; `resumes_at` in seconds since 1970, where
    the clock alone brings more: then there is more from that moment on, whatever `chunks` says.
    """

    chunks: Annotated[int, msgspec.Meta(ge=0)]
    ceiling: CeilingName
    resumes_at: Annotated[int, msgspec.Meta(ge=0)] | msgspec.UnsetType = msgspec.UNSET


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Budget)


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
    return _encoder.encode(budget)


def decode_budget(payload: bytes | bytearray | memoryview) -> Budget:
    """A budget out of a `budget` payload. Raises PayloadError with one of `REASONS`."""
    return open_envelope(payload, _decoder)
