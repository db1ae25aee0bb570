"""The bytes of an outbox: what a shard remembers beside its ledger. Pure.

A file of frames: length of the body (u32, little-endian), a BLAKE2b of 16 bytes, and the body, a msgpack value. The
checksum of each frame is keyed with that of the frame before, so that none can be left out, put in or moved. The first
frame is `Contents`; each further one is a `Step`, appended at once.
"""

import hashlib
import struct
from collections.abc import Collection
from typing import TypeVar

import msgspec

from eyestream.errors import ShardError

_HEAD = struct.Struct("<I16s")
_FIRST = b"eyestream shard 1"

Body = TypeVar("Body", bound=msgspec.Struct)


class ReleasedChunk(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A chunk whose bytes are durable and may not be in the log yet.

    Attributes
    ----------
    id
        Of the message: the same whenever these bytes are sent, and of no other bytes.
    device, stream
        Whose chunk it is.
    session, last_row
        The tracker's, where the chunk ends.
    payload
        What is published.
    """

    id: str
    device: str
    stream: str
    session: int
    last_row: int
    payload: bytes


class Border(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Where a stream goes on after a crash: `StreamRelease.border`, for chunks of `n` rows; None: by the ledger."""

    n: int
    state: bytes | None


class Contents(msgspec.Struct, forbid_unknown_fields=True, rename={"waiting": "parcels"}):
    """All of an outbox.

    Attributes
    ----------
    ledger
        Name of the ledger beside it.
    partition, partitions
        Which part of the log it reads, of how many: the same for the life of the ledger.
    frames
        How many steps were ever appended; never falls.
    epoch, offset
        From where on the log must be read again: a name of the log's life, and the first offset.
    newest
        Offset of the newest message that was read, and when the log took it; -1: not known.
    borders
        By ``device/stream``.
    given_up
        By ``device/stream``, session and last row: what was reserved up to there without bytes in the outbox may have
        left, as a frame could not be read, and is never computed again.
    waiting
        What the log has not acknowledged, in the order of release.
    """

    ledger: str
    partition: int
    partitions: int
    frames: int = 0
    epoch: str = ""
    offset: int = 0
    borders: dict[str, Border] = {}
    given_up: dict[str, tuple[int, int]] = {}
    waiting: list[ReleasedChunk] = []
    newest: tuple[int, float] = (-1, 0.0)

    def forget(self, acknowledged: Collection[str]) -> None:
        """Let go of chunks that the log has, by their ids."""
        if acknowledged:
            known = set(acknowledged)
            self.waiting = [chunk for chunk in self.waiting if chunk.id not in known]


class Step(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Effects of some messages of the log, and the ids of chunks that were acknowledged meanwhile."""

    epoch: str
    offset: int
    borders: dict[str, Border]
    released: list[ReleasedChunk]
    acknowledged: list[str]
    newest: tuple[int, float] = (-1, 0.0)

    def apply(self, contents: Contents) -> None:
        """Let `contents` have it."""
        contents.epoch, contents.offset, contents.newest = self.epoch, self.offset, self.newest
        contents.borders |= self.borders
        contents.forget(self.acknowledged)
        contents.waiting += self.released
        contents.frames += 1


_encoder = msgspec.msgpack.Encoder()


def pack(body: msgspec.Struct, before: bytes = _FIRST) -> tuple[bytes, bytes]:
    """A frame, and its checksum; `before` is the checksum of the frame before."""
    data = _encoder.encode(body)
    digest = _digest(data, before)
    return _HEAD.pack(len(data), digest) + data, digest


def unpack(data: bytes) -> tuple[Contents, bytes, int]:
    """The sum of the frames, the checksum of the last one, and how many bytes at the end belong to none.

    Raises
    ------
    ShardError
        The first frame is not that of an outbox, or cannot be read; the message begins after the file's name.
    """
    first = _frame(data, 0, _FIRST, Contents)
    if first is None:
        raise ShardError("is not the outbox of a shard, or its beginning is damaged")
    contents, digest, at = first
    while (frame := _frame(data, at, digest, Step)) is not None:
        step, digest, at = frame
        step.apply(contents)
    return contents, digest, len(data) - at


def _frame(data: bytes, at: int, before: bytes, kind: type[Body]) -> tuple[Body, bytes, int] | None:
    """The frame at `at`, its checksum and its end; None: there is none, or it is damaged."""
    if len(data) < at + _HEAD.size:
        return None
    length, digest = _HEAD.unpack_from(data, at)
    start = at + _HEAD.size
    body = data[start : start + length]
    if len(body) != length or _digest(body, before) != digest:
        return None
    try:
        return msgspec.msgpack.decode(body, type=kind), digest, start + length
    except (msgspec.DecodeError, msgspec.ValidationError):
        raise ShardError("is the outbox of another version of eyestream") from None


def _digest(body: bytes, before: bytes) -> bytes:
    return hashlib.blake2b(body, key=before, digest_size=16).digest()
