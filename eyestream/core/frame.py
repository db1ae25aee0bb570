"""Which features of a chunk a mechanism releases, and at what price; checked once, before anything is built on it.

`Domain` goes from whatever a tracker sends to a point of the declared domain. It is total: NaN, infinities, 1e308 and
subnormal numbers end inside the domain, and nothing but the chunk itself and public figures has a say. The order is
fixed: impute, clamp, and then (in the mechanism) project.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.charge import EPSILON_UNITS, MOST_UNITS, spendable
from eyestream.errors import CalibrationError, ConfigError

Work = TypeVar("Work")


_LINE = 64
"""Bytes of a cache line."""


def aligned_empty(shape: tuple[int, ...], kind: type[np.generic] = np.float64) -> NDArray[Any]:
    """Allocate an uninitialised array at the beginning of a cache line.

    An ordinary array begins 16 bytes after one. Two arrays of whole pages then lie 16 bytes apart, modulo the page. A
    processor that reads one and writes the other mistakes each number for one that it has just written, and waits:
    such a pass takes up to 1.7 times as long.
    """
    size = prod(shape) * np.dtype(kind).itemsize
    block = np.empty(size + _LINE, dtype=np.uint8)
    first = -block.__array_interface__["data"][0] % _LINE
    return block[first : first + size].view(kind).reshape(shape)


def repeat_column(column: NDArray[Any], n: int) -> NDArray[Any]:
    """Repeat a column (A, 1) to (A, n); numpy broadcasting is twice as slow."""
    whole = aligned_empty((len(column), n), column.dtype.type)
    whole[:] = column
    return whole


class Workspaces(Generic[Work]):
    """Lends what `make` makes, so that nobody has what somebody else has; made again when all are lent.

    There is no lock: `deque.pop` and `deque.append` are atomic in CPython. So threads do not wait for one another, and
    a copy of the process that was made in the middle of a release - a native fork - cannot wait for a thread that it
    does not have. One is made at once: a release allocates none in the steady state.
    """

    def __init__(self, make: Callable[[], Work]) -> None:
        self._make = make
        self._free = deque([make()])

    def take(self) -> Work:
        """One that nobody has; to be given back."""
        try:
            return self._free.pop()
        except IndexError:
            return self._make()

    def give(self, work: Work) -> None:
        """Back, in whatever state."""
        self._free.append(work)


class Domain:
    """Imputation of missing values and the clamp to the calibrated range.

    Parameters
    ----------
    lo, hi
        (F,) finite bounds of each feature, lo < hi.
    fill
        (F,) the public value that stands for a feature of which nothing has been seen in the chunk yet.
    n
        Chunk length.
    """

    def __init__(self, lo: NDArray[np.float64], hi: NDArray[np.float64], fill: NDArray[np.float64], n: int) -> None:
        features = len(lo)
        if not (np.isfinite(lo).all() and np.isfinite(hi).all() and np.isfinite(fill).all()):
            raise ValueError("the range and the fill of every feature must be finite")
        if not (lo < hi).all():
            raise ValueError("lo must be below hi for every feature")
        self.shape = (features, n)
        self._lo, self._hi = repeat_column(lo[:, None], n), repeat_column(hi[:, None], n)
        # Column 0 of the padded chunk is the fill; values stand at columns 1 .. n.
        self._padded = aligned_empty((features, n + 1))
        self._padded[:, 0] = np.clip(fill, lo, hi)
        self._flat = self._padded.reshape(-1)
        self._admitted = aligned_empty((features, n))
        size = self._flat.size
        self._finite = np.empty(size, dtype=np.bool_)
        self._position = np.arange(size, dtype=np.int16 if size < 2**15 else np.int32)
        # Two arrays that the scan goes to and fro between, each after zeros as long as its longest step.
        shifts = [2**i for i in range(n.bit_length())]
        ping, pong = np.zeros((2, shifts[-1] + size), dtype=self._position.dtype)
        self._present = ping[shifts[-1] :]
        self._scan = []
        for shift in shifts:
            self._scan.append((ping[shifts[-1] :], ping[shifts[-1] - shift : -shift], pong[shifts[-1] :]))
            ping, pong = pong, ping
        self._source = ping[shifts[-1] :].reshape(features, n + 1)[:, 1:]

    def admit(self, chunk: NDArray[np.float64]) -> NDArray[np.float64]:
        """Chunk (F, n) with every value finite and in range; an internal array, overwritten by the next call.

        A non-finite value is missing and takes the feature's last present value *of this chunk*, or `fill` before the
        first one. Nothing outside the chunk is ever read: a row of another chunk cannot change the result. The same
        work is done whether or not something is missing.
        """
        self._padded[:, 1:] = chunk
        np.isfinite(self._flat, out=self._finite)
        np.multiply(self._finite, self._position, out=self._present)
        for here, before, larger in self._scan:  # running maximum by doubling: the last present position
            np.maximum(here, before, out=larger)
        self._flat.take(self._source, out=self._admitted, mode="wrap")  # none is outside: the quickest way
        np.maximum(self._admitted, self._lo, out=self._admitted)
        np.minimum(self._admitted, self._hi, out=self._admitted)
        return self._admitted


Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Frame:
    """A calibration, the epsilon of one chunk, and the features that are released.

    Attributes
    ----------
    calibration
        Made for the mechanism.
    epsilon
        Of one chunk, all features together.
    active
        (A,) indices of the features that are released; the others are constants.
    """

    calibration: Calibration
    epsilon: float
    active: NDArray[np.intp]

    @classmethod
    def of(cls, name: str, calibration: Calibration, epsilon: float) -> "Frame":
        """The frame of the mechanism `name`.

        Raises
        ------
        ConfigError
            when epsilon is out of range.
        CalibrationError
            when the calibration was made for another mechanism, or every feature is a constant.
        """
        if calibration.mechanism != name:
            raise CalibrationError(f"the calibration was made for {calibration.mechanism}, not for {name}")
        if not (math.isfinite(epsilon) and epsilon > 0):
            raise ConfigError(f"epsilon must be a positive, finite number, not {epsilon}")
        if not 1 <= epsilon * EPSILON_UNITS <= MOST_UNITS:
            low, high = 1 / EPSILON_UNITS, MOST_UNITS / EPSILON_UNITS
            raise ConfigError(f"epsilon must lie between {low:g} and {high:g}, as a ledger counts it, not {epsilon}")
        active = np.flatnonzero(~calibration.constant)
        if len(active) == 0:
            raise CalibrationError("every feature of the calibration is a constant: there is nothing to release")
        return cls(calibration, spendable(float(epsilon)), active)

    @property
    def n(self) -> int:
        """Rows of a chunk."""
        return self.calibration.n

    @property
    def features(self) -> int:
        """F, constants included."""
        return len(self.calibration.names)

    @property
    def share(self) -> float:
        """Epsilon of one released feature, where each is coded by itself."""
        return self.epsilon / len(self.active)

    @property
    def range(self) -> tuple[Array, Array]:
        """(A, 1) lo and hi of the released features."""
        return self.calibration.lo[self.active][:, None], self.calibration.hi[self.active][:, None]

    def whole(self, values: Array) -> Array:
        """(F,) `values` (A,) in their places, 0 for constants."""
        every = np.zeros(self.features)
        every[self.active] = values
        return every


class Page:
    """The arrays in which one chunk is taken in and put together; of one release at a time.

    Parameters
    ----------
    frame
        What is taken in.
    shape
        Of what is released, where it has features and rows of its own; None: those of the frame.

    Attributes
    ----------
    released : (A, n), or of `shape`, where the release is written to.
    """

    def __init__(self, frame: Frame, shape: tuple[int, int] | None = None) -> None:
        calibration, active = frame.calibration, frame.active
        self._active = active
        self._domain = Domain(calibration.lo[active], calibration.hi[active], calibration.fill[active], frame.n)
        if shape is not None:
            self._order, self._rows = np.arange(shape[0]), aligned_empty(shape)
            self.released = self._rows
            return
        constants = np.flatnonzero(calibration.constant)
        self._order = np.argsort(np.concatenate([active, constants]))
        self._rows = repeat_column(calibration.fill[np.concatenate([active, constants])][:, None], frame.n)
        self.released = self._rows[: len(active)]

    def admit(self, chunk: Array) -> Array:
        """(A, n) the features of a chunk (F, n) that are released, imputed and clamped; overwritten by the next."""
        return self._domain.admit(chunk.take(self._active, axis=0))

    def complete(self) -> Array:
        """A new array of `released`, with the constants in their places."""
        return self._rows.take(self._order, axis=0)
