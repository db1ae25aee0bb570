"""Rows of one chunk: where they lie in the session, the buffer that they are put in, what falls due; and their bytes.

What `Device.snapshot` writes holds the raw rows of the open chunk and of those that wait for the clock. Keep it as raw
rows are kept.
"""

from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from eyestream.core.chunking.settings import DeviceSettings

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


class RowSpan(msgspec.Struct, frozen=True):
    """The rows of a chunk, as the ledger knows them.

    Attributes
    ----------
    session
        The tracker's.
    index
        Number of the chunk, from 0 where this process saw the session begin, also when it begins again.
    first_row, last_row
        Tracker's row numbers, both included; first_row is a multiple of n, whichever of the rows arrive.
    wearer
        Who wears the device through the session; 0: not known.
    """

    session: int
    index: int
    first_row: int
    last_row: int
    wearer: int = 0


class DueChunk(msgspec.Struct, frozen=True, eq=False):
    """A chunk that is due: it is released or withheld, and no row of it is ever taken again.

    Attributes
    ----------
    span
        Its rows, equal to what `Device.open_chunk` said while it was open.
    t0
        Seconds on the nominal grid from the first row of the session's chunk 0 to the first row of this one.
    values
        (F, n), read-only; NaN where a value is missing, also where it was infinite.
    ends_session
        Whether it was closed by its session's stop. A session may also stop between chunks; then no chunk says so.
    at
        Seconds of the tracker's clock at its first row: `t0` after the session's first row, whose time is the only one
        that enters. None where the tracker does not tell its time.
    due
        When it was due on the schedule of its session, by the clock of the device.
    """

    span: RowSpan
    t0: float
    values: NDArray[np.float64]
    ends_session: bool
    at: float | None
    due: float


def chunk_state(chunk: DueChunk, at: float = 0.0) -> ChunkState:
    """A due chunk as numbers and bytes, and the time that goes with it."""
    span, empty = chunk.span, not np.isfinite(chunk.values).any()
    return ChunkState(
        at=at,
        session=span.session,
        index=span.index,
        first_row=span.first_row,
        last_row=span.last_row,
        t0=chunk.t0,
        values=None if empty else bytes_of(chunk.values),
        ends_session=chunk.ends_session,
        tracker_time=chunk.at,
        wearer=span.wearer,
        due=chunk.due,
    )


def chunk_of(state: ChunkState, settings: DeviceSettings) -> DueChunk:
    """The due chunk whose state it was; raises ValueError for one of another size."""
    shape = (settings.features, settings.n)
    values = np.full(shape, np.nan) if state.values is None else array_of(state.values, np.float64, shape)
    values.flags.writeable = False
    span = RowSpan(state.session, state.index, state.first_row, state.last_row, state.wearer)
    return DueChunk(span, state.t0, values, state.ends_session, state.tracker_time, state.due)


class ChunkBuffer:
    """Rows of the open chunk; the first arrival of a row wins.

    Parameters
    ----------
    n, features
        Rows of a chunk, and values of a row.
    """

    def __init__(self, n: int, features: int) -> None:
        self._values: NDArray[np.floating] = np.empty((features, n), np.float32)  # what the wire carries
        self._values.fill(np.nan)
        self._present = bytearray(n)

    def state(self) -> BufferState:
        """Contents as bytes."""
        return BufferState(bytes_of(_doubles(self._values)), bytes(self._present))

    @classmethod
    def restore(cls, n: int, features: int, state: BufferState) -> "ChunkBuffer":
        """The buffer whose `state` it was; raises ValueError for one of another size."""
        buffer = cls(n, features)
        buffer._values = array_of(state.values, np.float64, (features, n))
        buffer._present = bytearray(bytes_of(array_of(state.present, np.bool_, (n,))))
        return buffer

    def put(self, offset: int, rows: NDArray[np.floating]) -> int:
        """Put (m, F) rows at `offset`; returns how many were there already."""
        if rows.dtype != self._values.dtype:
            self._values, rows = _doubles(self._values), _doubles(rows)
        stop = offset + len(rows)
        duplicates = self._present.count(1, offset, stop)
        if duplicates:
            new = np.frombuffer(self._present[offset:stop], np.bool_) ^ True
            self._values[:, offset:stop][:, new] = rows[new].T
        else:
            self._values[:, offset:stop] = rows.T
        self._present[offset:stop] = b"\1" * len(rows)
        return duplicates

    def values(self) -> NDArray[np.float64]:
        """(F, n), read-only, NaN where a value is missing; nothing can be put any more.

        The rows have been laid out as they came: this is on the way of the release.
        """
        values = self._values = _doubles(self._values)
        np.copyto(values, np.nan, where=np.isinf(values))
        values.flags.writeable = False
        return values


def _doubles(values: NDArray[np.floating]) -> NDArray[np.float64]:
    """The same numbers, themselves where they are such already."""
    with np.errstate(all="ignore"):  # a signalling NaN would be a warning in the log: a word about a raw value
        return values.astype(np.float64, copy=False)
