"""The chunks of one session, in order, and what is subtracted from its rows before a mechanism sees them."""

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from eyestream.core.protection import Fact
    from eyestream.core.scopes import Reach

Array = NDArray[np.float64]


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
    def reach(self) -> "Reach":
        """How far what it holds is carried."""
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
        from eyestream.core.session_bytes import packed  # noqa: PLC0415  for who keeps sessions

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
