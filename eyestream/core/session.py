"""The chunks of one session, in order, and the session as bytes.

The bytes are what released values have told so far. Layout, little-endian: 4 bytes `eyes`, u8 version, 3 zero bytes, 16
bytes identity of the mechanism, u64 chunks released, u32 numbers of state, the state as float64, 8 bytes of BLAKE2b
over everything before. Where something is taken off each session's rows, as a baseline is, its numbers stand after the
state and are counted with it: then these bytes hold raw data.
"""

import contextlib
import hashlib
import struct
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import SnapshotError

if TYPE_CHECKING:
    from eyestream.core.protection import Fact
    from eyestream.core.scopes import Pair, Scope

__all__ = ["VERSION", "OffsetSpec", "Releasing", "Session", "SessionOffset", "packed", "unpacked"]

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


class Releasing(Protocol):
    """A mechanism, as a session needs it."""

    @property
    def name(self) -> str:
        """Name of the mechanism in calibrations."""
        ...

    @property
    def identity(self) -> bytes:
        """16 bytes that tell mechanisms apart."""
        ...

    def checked_chunk(self, chunk: Array) -> Array:
        """The chunk itself; raises ValueError when it is not (F, n)."""
        ...

    def release_turn(self, chunk: Array, turn: int, state: Array | None) -> tuple[Array, Array | None]:
        """The release of a session's chunk number `turn`, and the state after it."""
        ...


class SessionOffset(Protocol):
    """Raw data that is subtracted from a session: the baseline of its first chunks, or the history of earlier ones."""

    @property
    def complete(self) -> bool:
        """Whether chunks may be released now."""
        ...

    def take(self, chunk: Array, /) -> None:
        """A chunk (F, n) of which nothing is released."""
        ...

    def off(self, chunk: Array, /) -> Array:
        """The chunk with the offset subtracted: this is released."""
        ...

    def erase(self) -> None:
        """Overwrite it, with whatever is never released."""
        ...

    def numbers(self) -> Array:
        """Numbers for `OffsetSpec.restored`, finite; raises RuntimeError where they are not kept. Raw data."""
        ...


class OffsetSpec(Protocol):
    """The public part of a `SessionOffset`, which is subtracted before a mechanism sees rows; a frozen dataclass.

    A calibration has one at most (`Calibration.takes_off`). Its entry says how a file has it (`Entry.takes_off`).
    """

    @property
    def chunks(self) -> int:
        """At the beginning of each session, of which nothing is released."""
        ...

    @property
    def sessions(self) -> int:
        """Sessions of a pseudonym; nothing is released of the first. 0: sessions have no part in one another."""
        ...

    @property
    def given(self) -> str:
        """The chunk that a loss is stated of, in words: ``one chunk, given ...,``."""
        ...

    def check(self, features: int, n: int) -> None:
        """Raise CalibrationError when it is not for so many features and rows."""
        ...

    def header(self) -> dict[str, object]:
        """The key in the header of a calibration, and all but the arrays."""
        ...

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """The arrays with their names in a calibration, in a fixed order."""
        ...

    def session(self, before: Any = None) -> SessionOffset:
        """The offset of one session, after `before` of the same pseudonym; None: the first one."""
        ...

    def restored(self, numbers: Array) -> SessionOffset:
        """The offset with such `SessionOffset.numbers`; raises ValueError where there is none."""
        ...

    def fact(self, n: int, seconds: float) -> "Fact":
        """A guarantee's fact on it, with chunks of `n` rows in so many seconds."""
        ...

    def carried(self, scope: "Scope", session: "Pair") -> "tuple[Scope, ...]":
        """Bounds of a unit that it carries on, given the ceilings of a session; and the unit's own cost."""
        ...

    def scopes(self, session: "Pair") -> "tuple[Scope, ...]":
        """Units that are there because of it, with what they cost at most."""
        ...


class Session:
    """The chunks of one session, in order: each release may make the next one better.

    What is remembered are functions of released values and public figures alone, so a snapshot is no secret, and
    restoring an old one costs usefulness, never privacy: every release draws fresh noise. For one thread at a time.

    Where the calibration takes something off, chunks go to `anchor` and are never released until that is complete: the
    first ones where it is a baseline, all of a pseudonym's first session where it is a history. What is taken off is
    raw data: a snapshot then is a secret as the rows are, if there is one.
    """

    __slots__ = ("_busy", "_mechanism", "_state", "_taken_off", "_turn")

    def __init__(
        self, mechanism: Releasing, turn: int, state: Array | None, taken_off: SessionOffset | None = None
    ) -> None:
        self._mechanism, self._turn, self._state, self._taken_off = mechanism, turn, state, taken_off
        self._busy = threading.Lock()

    @property
    def awaits_baseline(self) -> bool:
        """Whether the next chunk is for `anchor`, not for `release`; always False without a baseline."""
        return self._taken_off is not None and not self._taken_off.complete

    def anchor(self, chunk: Array) -> None:
        """Take one of the session's first chunks (F, n) into its baseline; nothing is released of it.

        Raises
        ------
        ValueError
            when the shape is another.
        RuntimeError
            when the session awaits no baseline, or another thread is at work on it.
        """
        with self._alone():
            if self._taken_off is None or self._taken_off.complete:
                raise RuntimeError("this session awaits no baseline")
            self._taken_off.take(self._mechanism.checked_chunk(chunk))

    def release(self, chunk: Array) -> Array:
        """One private release of the session's next chunk (F, n); see `Mechanism.release`.

        Raises
        ------
        ValueError
            when the shape is another.
        RuntimeError
            when another thread is in the middle of a release of this session, or its baseline is not complete.
        """
        with self._alone():
            if self.awaits_baseline:
                raise RuntimeError("this session awaits its baseline: the chunk is for anchor")
            if self._taken_off is not None:
                chunk = self._taken_off.off(self._mechanism.checked_chunk(chunk))
            # A release that raises leaves state and turn as they were; its noise is gone, and the next draw is fresh.
            released, self._state = self._mechanism.release_turn(chunk, self._turn, self._state)
            self._turn += 1
            return released

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        # Refused, not waited for: with two threads chance would decide the order of the chunks.
        if not self._busy.acquire(blocking=False):
            raise RuntimeError("a session releases for one thread at a time")
        try:
            yield
        finally:
            self._busy.release()

    def continued(self, mechanism: Releasing, start: Array | None) -> "Session":
        """This session under another mechanism of the same calibration, as on another level of a lifetime that fades.

        Its baseline stays. What released values have told so far does not go along: the schedule of the other
        mechanism begins with `start`, its state before a session's first chunk, as it is derived for that alone.
        """
        return Session(mechanism, 0, start, self._taken_off)

    def snapshot(self) -> bytes:
        """The session so far, for `Mechanism.session`: what released values tell, and what is taken off.

        Raises
        ------
        RuntimeError
            Where that is not kept, as a history (`docs/decisions/0015-histories-are-not-kept.md`).
        """
        return packed(self._mechanism.identity, self._turn, self._state, self._taken_off)

    def erase(self) -> None:
        """Overwrite what is taken off its rows: nothing may be released of it any more."""
        if self._taken_off is not None:
            self._taken_off.erase()

    @property
    def taken_off(self) -> SessionOffset | None:
        """The offset that is subtracted from its rows. Raw data."""
        return self._taken_off

    @property
    def state(self) -> Array | None:
        """State that follows from released values alone; a copy."""
        return None if self._state is None else self._state.copy()

    def __repr__(self) -> str:
        return f"<Session of {self._mechanism.name}, {self._turn} chunks released>"
