"""`owner`: which devices a sidecar serves, and under which ledger; retained, for the other sidecars of a broker."""

from typing import Annotated

import msgspec

from eyestream.wire.envelope import MAX_RELEASE_BYTES, Message, open_envelope
from eyestream.wire.topics import NAME

__all__ = ["Owner", "decode_owner", "encode_owner"]

_Name = Annotated[str, msgspec.Meta(pattern=rf"\A{NAME}\Z")]


class Owner(Message, frozen=True):
    """A sidecar's word on itself: a random name of its ledger, and the devices that it serves."""

    ledger: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{32}\Z")]
    devices: Annotated[tuple[_Name, ...], msgspec.Meta(min_length=1)]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Owner)


def encode_owner(owner: Owner) -> bytes:
    """Bytes of an owner's word."""
    return _encoder.encode(owner)


def decode_owner(payload: bytes | bytearray | memoryview) -> Owner:
    """An owner's word out of an `owner` payload. Raises PayloadError with one of `REASONS`."""
    return open_envelope(payload, _decoder, MAX_RELEASE_BYTES)
