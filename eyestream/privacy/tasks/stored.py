"""Histories as bytes, for whoever seals them: they hold raw data.

Layout, little-endian: 4 bytes `eyeh`, u8 version, 3 zero bytes, 16 bytes that name what is public of the history, u32
sessions that have passed, u32 features, then first, offset, square and error of each feature as float64, and 8 bytes of
BLAKE2b over everything before. The check sum finds damage. It does not find forgery, which the seal has to.
"""

import hashlib
import struct

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import SnapshotError
from eyestream.privacy.tasks.history import History, Remembering

__all__ = ["VERSION", "packed", "unpacked"]

Array = NDArray[np.float64]

VERSION = 1
_HEAD = struct.Struct("<4sB3x16sII")
_MAGIC, _CHECK_BYTES = b"eyeh", 8


def packed(history: History) -> bytes:
    """All that the next sessions' residual rows depend on. Raw data: store it sealed, or not at all."""
    count = len(history.first)
    arrays = np.stack([history.first, history.offset, history.square, history.error]).astype("<f8")
    body = _HEAD.pack(_MAGIC, VERSION, _identity(history.remembering), history.sessions, count) + arrays.tobytes()
    return body + _check(body)


def unpacked(data: bytes, remembering: Remembering) -> History:
    """The history out of what `packed` made.

    Raises
    ------
    SnapshotError
        saying what is wrong; no value of the history is in it.
    """
    if len(data) < _HEAD.size + _CHECK_BYTES or data[:4] != _MAGIC:
        raise SnapshotError("these bytes are no history")
    _, version, owner, sessions, count = _HEAD.unpack_from(data)
    if version != VERSION:
        raise SnapshotError(f"the history has version {version}, {VERSION} is wanted")
    body = data[:-_CHECK_BYTES]
    if len(body) != _HEAD.size + 32 * count or data[-_CHECK_BYTES:] != _check(body):
        raise SnapshotError("the history is damaged: it does not agree with its check sum")
    if owner != _identity(remembering) or count != len(remembering.shift):
        raise SnapshotError("the history was made with another calibration")
    arrays = np.frombuffer(body, "<f8", 4 * count, _HEAD.size).astype(np.float64).reshape(4, count)
    first, offset, square, error = (one.copy() for one in arrays)
    whole = np.isnan(first) | (np.isfinite(first) & (first == np.floor(first)))
    rest = np.isfinite(arrays[1:]).all() and (square >= 0).all() and (error >= 0).all()
    if not (whole.all() and rest and sessions < remembering.sessions):
        raise SnapshotError("these bytes do not hold a history of this calibration")
    return History(remembering, sessions, first, offset, square, error)


def _identity(remembering: Remembering) -> bytes:
    public = struct.pack("<Idd", remembering.sessions, remembering.drift, remembering.trust)
    public += remembering.shift.astype("<i8").tobytes() + remembering.spread.astype("<f8").tobytes()
    return hashlib.blake2b(public, digest_size=16).digest()


def _check(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_CHECK_BYTES).digest()
