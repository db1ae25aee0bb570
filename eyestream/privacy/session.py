"""The chunks of one session, in order."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from eyestream.privacy import snapshot as stored
from eyestream.privacy.anchor import Baseline

__all__ = ["Releasing", "Session"]

Array = NDArray[np.float64]


class Releasing(Protocol):
    """What a session needs of its mechanism."""

    @property
    def name(self) -> str:
        """What calibrations call it."""
        ...

    @property
    def identity(self) -> bytes:
        """16 bytes that tell mechanisms apart."""
        ...

    def shaped(self, chunk: Array) -> Array:
        """The chunk itself; raises ValueError when it is not (F, n)."""
        ...

    def release_turn(self, chunk: Array, turn: int, state: Array | None) -> tuple[Array, Array | None]:
        """The release of a session's chunk number `turn`, and the state after it."""
        ...


class Session:
    """The chunks of one session, in order: each release may make the next one better.

    What is remembered are functions of released values and public figures alone, so a snapshot is no secret, and
    restoring an old one costs usefulness, never privacy: every release draws fresh noise. For one thread at a time.

    Where the calibration takes a baseline off, the session's first chunks go to `anchor` and are never released, and
    the baseline is raw data: a snapshot then is a secret as the rows are.
    """

    __slots__ = ("_baseline", "_busy", "_mechanism", "_state", "_turn")

    def __init__(self, mechanism: Releasing, turn: int, state: Array | None, baseline: Baseline | None = None) -> None:
        self._mechanism, self._turn, self._state, self._baseline = mechanism, turn, state, baseline
        self._busy = threading.Lock()

    @property
    def awaits_baseline(self) -> bool:
        """Whether the next chunk is for `anchor`, not for `release`; always False without a baseline."""
        return self._baseline is not None and not self._baseline.complete

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
            if self._baseline is None or self._baseline.complete:
                raise RuntimeError("this session awaits no baseline")
            self._baseline.take(self._mechanism.shaped(chunk))

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
            if self._baseline is not None:
                chunk = self._baseline.off(self._mechanism.shaped(chunk))
            released, self._state = self._mechanism.release_turn(chunk, self._turn, self._state)
            self._turn += 1
            return released

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
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
        return Session(mechanism, 0, start, self._baseline)

    def snapshot(self) -> bytes:
        """The session so far, for `Mechanism.session`: what released values tell, and its baseline where it has one."""
        return stored.packed(self._mechanism.identity, self._turn, self._state, self._baseline)

    @property
    def state(self) -> Array | None:
        """What the session knows from released values alone; a copy."""
        return None if self._state is None else self._state.copy()

    def __repr__(self) -> str:
        return f"<Session of {self._mechanism.name}, {self._turn} chunks released>"
