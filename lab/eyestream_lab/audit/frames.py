"""Chunks on a pipe: u32 F, u32 n, then F * n float64, features by rows; everything little-endian."""

import struct
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["FrameError", "Readable", "pack", "unpack"]


class Readable(Protocol):
    """Bytes that come in pieces."""

    def read(self, size: int, /) -> bytes | None:
        """At most so many bytes, none at the end."""
        ...


_HEAD = struct.Struct("<II")
_MOST_BYTES = 1 << 27


class FrameError(Exception):
    """The bytes that came are not the frame that was expected."""


def pack(chunk: NDArray[np.float64]) -> bytes:
    """The frame of a chunk (F, n)."""
    return _HEAD.pack(*chunk.shape) + np.ascontiguousarray(chunk, dtype="<f8").tobytes()


def unpack(stream: Readable) -> NDArray[np.float64] | None:
    """The next chunk (F, n) of `stream`; None where it ends between two frames.

    Raises
    ------
    FrameError
        The stream ends inside a frame, or the frame is too large to be meant.
    """
    head = _exactly(stream, _HEAD.size)
    if not head:
        return None
    if len(head) < _HEAD.size:
        raise FrameError(f"{len(head)} bytes where the {_HEAD.size} of a head were expected")
    features, n = _HEAD.unpack(head)
    size = 8 * features * n
    if size > _MOST_BYTES:
        raise FrameError(f"a head that announces {features} x {n} values")
    body = _exactly(stream, size)
    if len(body) < size:
        raise FrameError(f"{len(body)} bytes where {size} of a {features} x {n} chunk were expected")
    return np.frombuffer(body, dtype="<f8").reshape(features, n).astype(np.float64)


def _exactly(stream: Readable, size: int) -> bytes:
    """The next `size` bytes, fewer only at the end."""
    parts, missing = [], size
    while missing:
        part = stream.read(missing)
        if not part:
            break
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)
