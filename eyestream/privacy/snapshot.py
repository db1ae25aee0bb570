"""Sessions as bytes: what released values have told so far.

Layout, little-endian: 4 bytes `eyes`, u8 version, 3 zero bytes, 16 bytes identity of the mechanism, u64 chunks
released, u32 numbers of state, the state as float64, 8 bytes of BLAKE2b over everything before. Where the mechanism
takes a baseline off each session, its whole numbers stand behind the state and are counted with it: then these bytes
hold raw data.
"""

import hashlib
import struct

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import SnapshotError
from eyestream.privacy.anchor import Anchor, Baseline

__all__ = ["VERSION", "packed", "unpacked", "unpacked_anchored"]

Array = NDArray[np.float64]

VERSION = 1
_HEAD = struct.Struct("<4sB3x16sQI")
_OTHER = "the snapshot does not hold the state of a session of this mechanism"
_MAGIC, _CHECK_BYTES, _MOST_TURNS = b"eyes", 8, 2**64 - 1


def packed(identity: bytes, turn: int, state: Array | None, baseline: Baseline | None = None) -> bytes:
    """Bytes of a session of the mechanism `identity` (16 bytes) after `turn` chunks."""
    numbers = np.empty(0) if state is None else state.reshape(-1)
    if baseline is not None:
        numbers = np.concatenate([numbers, baseline.numbers()])
    body = _HEAD.pack(_MAGIC, VERSION, identity, min(turn, _MOST_TURNS), len(numbers)) + numbers.astype("<f8").tobytes()
    return body + _check(body)


def unpacked(data: bytes, identity: bytes, start: Array | None) -> tuple[int, Array | None]:
    """Chunks released and state (shaped as `start`) out of what `packed` made.

    Raises
    ------
    SnapshotError
        saying what is wrong.
    """
    turn, numbers = _numbers(data, identity)
    if len(numbers) != (0 if start is None else start.size):
        raise SnapshotError(_OTHER)
    return turn, None if start is None else numbers.reshape(start.shape)


def unpacked_anchored(
    data: bytes, identity: bytes, start: Array | None, anchor: Anchor
) -> tuple[int, Array | None, Baseline]:
    """The same of a mechanism that takes a baseline off, and the baseline."""
    turn, numbers = _numbers(data, identity)
    size = 0 if start is None else start.size
    try:
        baseline = Baseline.restored(anchor, numbers[size:])
    except ValueError:
        raise SnapshotError(_OTHER) from None
    return turn, None if start is None else numbers[:size].reshape(start.shape), baseline


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
