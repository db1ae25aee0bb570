"""The log that a shard needs, played again after a crash: a port, and the values that cross it.

Nothing that privacy needs lives in the log. It may lose, repeat, reorder or invent messages: each chunk is released
once all the same, and charged. What it loses, or forgets too early, is missing in the chunks.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from eyestream.streams import StreamKey


class Bounds(msgspec.Struct, frozen=True):
    """Which messages of the partition the log has.

    Attributes
    ----------
    epoch
        A name for the life of the log: another one where offsets began again.
    first, end
        Offset of the oldest message, and the one after the newest.
    """

    epoch: str
    first: int
    end: int


class Entry(msgspec.Struct, frozen=True, eq=False):
    """A raw message.

    Attributes
    ----------
    offset
        Its place in the partition; offsets grow, and may leave some out.
    key
        Whose rows they are; None: the log's address of it is none of ours.
    payload
        As the tracker sent it.
    at
        When the log took it, in seconds since 1970 by the log's clock: the same whenever it is read.
    """

    offset: int
    key: StreamKey | None
    payload: bytes
    at: float


class Publication(msgspec.Struct, frozen=True):
    """Bytes to publish.

    Attributes
    ----------
    id
        The same whenever these bytes are sent: the log may leave a repetition out.
    key
        Of the stream.
    payload
        The bytes.
    """

    id: str
    key: StreamKey
    payload: bytes


class Log(Protocol):
    """One partition to read from, and a place to publish to."""

    async def bounds(self) -> Bounds:
        """Bounds of the log now. Raises LinkError."""
        ...

    async def seek(self, offset: int) -> None:
        """Let `fetch` begin with the first message at `offset` or after it. Raises LinkError."""
        ...

    async def fetch(self, most: int, wait_s: float) -> list[Entry]:
        """The next messages, at most so many; none when nothing came for `wait_s` seconds. Raises LinkError."""
        ...

    async def secret(self) -> bytes | None:
        """32 random bytes that live in its memory alone, and as long as that; None: it has no such place.

        Raises LinkError."""
        ...

    async def publish(self, publications: Sequence[Publication]) -> None:
        """Publish in order; returns when all are acknowledged. Raises LinkError: some may be published, or all."""
        ...


def partition_of(device: str, partitions: int) -> int:
    """The partition of a device: FNV-1a (32 bits) of its name modulo `partitions`, as NATS partitions by a token.

    Source: http://www.isthe.com/chongo/tech/comp/fnv/, and ``partition`` in the subject mappings of NATS.
    """
    value = 0x811C9DC5
    for byte in device.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value % partitions
