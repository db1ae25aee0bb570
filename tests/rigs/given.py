"""A mechanism that notes what it is given, with a baseline or without: what a change of some rows reaches."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eyestream.core.anchor import Anchor, Baseline
from eyestream.core.release_type import OutputSchema

__all__ = ["Given", "Stretch", "reached"]

Array = NDArray[np.float64]

_WHOLE = np.zeros(1, dtype=np.int64)


class Stretch:
    """One session of the mechanism, for chunks (1, n) of whole numbers.

    Attributes
    ----------
    anchored, released : what its baseline is made of, and what is to be released after that, as bytes.
    """

    state = None

    def __init__(self, chunks: int) -> None:
        self._baseline = Baseline(Anchor(chunks, _WHOLE, _WHOLE)) if chunks else None
        self.anchored: list[bytes] = []
        self.released: list[bytes] = []

    @property
    def awaits_baseline(self) -> bool:
        """Whether the next chunk is for `anchor`."""
        return self._baseline is not None and not self._baseline.complete

    def anchor(self, chunk: Array, /) -> None:
        """Note a chunk, and take it into the baseline."""
        assert self._baseline is not None
        self.anchored.append(chunk.tobytes())
        self._baseline.take(chunk)

    def release(self, chunk: Array, /) -> Array:
        """Note a chunk less the baseline; what comes out has nothing of it."""
        self.released.append((chunk if self._baseline is None else self._baseline.off(chunk)).tobytes())
        return np.zeros_like(chunk)

    def erase(self) -> None:
        """There is no history."""

    def snapshot(self) -> bytes:
        """Nobody asks for it."""
        raise AssertionError("this mechanism has no snapshots")


class Given:
    """The mechanism: chunks of `n` rows, of each session so many for its baseline.

    Attributes
    ----------
    stretches : its sessions, in the order in which they began.
    """

    epsilon, delta = 0.5, 0.0
    sessions = 0
    schema = OutputSchema(("x",), ("1",), (1, 1), 1.0)

    def __init__(self, n: int, baseline_chunks: int) -> None:
        self.n, self.baseline_chunks = n, baseline_chunks
        self.stretches: list[Stretch] = []

    def session(self, snapshot: bytes | None = None) -> Stretch:
        """Another one."""
        self.stretches.append(Stretch(self.baseline_chunks))
        return self.stretches[-1]

    def session_after(self, before: Stretch | None, /) -> Stretch:
        """There is no history."""
        return self.session()

    def faded(self, level: int) -> "Given":
        """The same on every level."""
        return self

    def continue_session(self, session: Stretch, /) -> Stretch:
        """As it was."""
        return session


def reached(plain: Sequence[Stretch], other: Sequence[Stretch]) -> list[tuple[int, int]]:
    """Of each session of two lives: how many chunks of its baseline differ, and how many that are released."""

    def differing(a: Sequence[bytes], b: Sequence[bytes]) -> int:
        return sum(one != another for one, another in zip(a, b, strict=True))

    return [
        (differing(a.anchored, b.anchored), differing(a.released, b.released))
        for a, b in zip(plain, other, strict=True)
    ]
