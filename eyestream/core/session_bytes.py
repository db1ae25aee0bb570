"""A session as bytes: what released values have told so far.

Layout, little-endian: 4 bytes `eyes`, u8 version, 3 zero bytes, 16 bytes identity of the mechanism, u64 chunks
released, u32 numbers of state, the state as float64, 8 bytes of BLAKE2b over everything before. Where something is
subtracted from each session's rows, as a baseline is, its numbers stand after the state and are counted with it: then
these bytes hold raw data.
"""

import hashlib
import struct
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import SnapshotError

if TYPE_CHECKING:
    from eyestream.core.session import OffsetSpec, SessionOffset

Array = NDArray[np.float64]

VERSION = 1
_HEAD = struct.Struct("<4sB3x16sQI")
_OTHER = "the snapshot does not hold the state of a session of this mechanism"
_MAGIC, _CHECK_BYTES, _MOST_TURNS = b"eyes", 8, 2**64 - 1


def packed(identity: bytes, turn: int, state: Array | None, taken_off: "SessionOffset | None" = None) -> bytes:
    """Bytes of a session of the mechanism `identity` (16 bytes) after `turn` chunks.

    >>> unpacked(packed(bytes(16), 3, np.array([1.5])), bytes(16), np.zeros(1))
    (3, array([1.5]), None)
    """
    numbers = np.empty(0) if state is None else state.reshape(-1)
    if taken_off is not None:
        numbers = np.concatenate([numbers, taken_off.numbers()])
    body = _HEAD.pack(_MAGIC, VERSION, identity, min(turn, _MOST_TURNS), len(numbers)) + numbers.astype("<f8").tobytes()
    return body + _check(body)


def unpacked(
    data: bytes, identity: bytes, start: Array | None, taking: "OffsetSpec | None" = None
) -> "tuple[int, Array | None, SessionOffset | None]":
    """Chunks released, state (shaped as `start`) and what is taken off, out of what `packed` made.

    Raises
    ------
    SnapshotError
        saying what is wrong.
    """
    turn, numbers = _numbers(data, identity)
    size = 0 if start is None else start.size
    if len(numbers) < size or (taking is None and len(numbers) > size):
        raise SnapshotError(_OTHER)
    try:
        taken_off = None if taking is None else taking.restored(numbers[size:])
    except ValueError:
        raise SnapshotError(_OTHER) from None
    return turn, None if start is None else numbers[:size].reshape(start.shape), taken_off


def _numbers(data: bytes, identity: bytes) -> tuple[int, Array]:
    """Chunks released, and all numbers, finite."""
    if len(data) < _HEAD.size + _CHECK_BYTES or data[:4] != _MAGIC:
        raise SnapshotError("these bytes are no snapshot of a session")
    _, version, owner, turn, count = _HEAD.unpack_from(data)
    if version != VERSION:
        raise SnapshotError(f"the snapshot has version {version}, {VERSION} is wanted")
    body, check = data[:-_CHECK_BYTES], data[-_CHECK_BYTES:]
    if len(body) != _HEAD.size + 8 * count or check != _check(body):
        raise SnapshotError("the snapshot is damaged: it does not agree with its check sum")
    if owner != identity:
        raise SnapshotError("the snapshot was made with another mechanism, calibration, epsilon or option")
    numbers = np.frombuffer(body, "<f8", count, _HEAD.size).astype(np.float64)
    if not np.isfinite(numbers).all():
        raise SnapshotError(_OTHER)
    return int(turn), numbers


def _check(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_CHECK_BYTES).digest()
