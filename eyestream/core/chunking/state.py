"""The state of a device as bytes: what `Device.snapshot` writes and `Device.restore` reads.

The bytes hold the raw rows of the open chunk and of those that wait for the clock. Keep them as raw rows are kept.
"""

from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

__all__ = [
    "VERSION",
    "BufferState",
    "ChunkState",
    "DeviceState",
    "SessionState",
    "array_of",
    "bytes_of",
    "decode",
    "encode",
]

VERSION = 2

State = TypeVar("State", bound=msgspec.Struct)


class BufferState(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A `ChunkBuffer`: its values, and which of its rows are there."""

    values: bytes
    present: bytes


class SessionState(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A `SessionChunker`."""

    number: int
    last_arrival: float
    first: int
    current: int
    newest: int
    scheduled: float
    due: float
    origin: float | None
    buffer: BufferState | None
    wearer: int = 0


class ChunkState(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A closed chunk and the time at which the clock lets it out; `values` None: not a row of it came."""

    at: float
    session: int
    index: int
    first_row: int
    last_row: int
    t0: float
    values: bytes | None
    ends_session: bool
    tracker_time: float | None
    wearer: int = 0
    due: float = 0.0


class DeviceState(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A `Device`."""

    version: int
    time: float
    offset: float | None
    session: SessionState | None
    closed: list[ChunkState]
    ended: int
    refused: tuple[int, int]
    counters: list[int]


_encoder = msgspec.msgpack.Encoder()


def encode(state: msgspec.Struct) -> bytes:
    """The bytes of a state."""
    return _encoder.encode(state)


def decode(data: bytes, kind: type[State]) -> State:
    """The state in `data`.

    Raises
    ------
    ValueError
        It is none of this version.
    """
    try:
        state = msgspec.msgpack.decode(data, type=kind)
    except (msgspec.DecodeError, msgspec.ValidationError):
        raise ValueError("expected a snapshot of this version") from None
    if getattr(state, "version", VERSION) != VERSION:
        raise ValueError(f"expected a snapshot of version {VERSION}")
    return state


def bytes_of(values: NDArray[Any]) -> bytes:
    """Every bit of an array."""
    return np.ascontiguousarray(values).tobytes()


def array_of(data: bytes, dtype: type[np.generic], shape: tuple[int, ...]) -> NDArray[Any]:
    """The array (a copy) that `bytes_of` wrote.

    Raises
    ------
    ValueError
        It was of another shape: the snapshot belongs to other settings.
    """
    values = np.frombuffer(data, dtype)
    if values.size != int(np.prod(shape)):
        raise ValueError("expected a snapshot of a stream with as many features and rows a chunk")
    return values.reshape(shape).copy()
