"""Transforms of signals: one-sided Fourier coefficients as real coordinates, and differences. Pure.

A real signal of length n has the unnormalised one-sided spectrum F_0 ... F_{n//2}. The first k of them are k complex
numbers, but fewer independent reals: Im F_0 is zero, and so is Im F_{n/2} for even n. The *coordinates* here
are those reals, in the order

    Re F_0, Re F_1, Im F_1, Re F_2, Im F_2, ..., (Re F_{n/2})

which is what noise must be added to: every one of them, and nothing else.

Norm. With the weights w = 1 for Re F_0 and Re F_{n/2} and 2 for the others, Parseval's theorem for real signals reads
sum_i w_i a_i^2 = n ||x||^2 when all coordinates are kept, and <= n ||x||^2 when k are kept.

The difference signal of a chunk: y_1 = x_1, y_t = x_t - x_{t-1}; the inverse is the cumulative sum. Bozkir et al. (PLOS
ONE 2021) print the inverse as the sum of two neighbouring differences, which does not invert anything; the cumulative
sum does.
"""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Literal

import numpy as np
from numpy.typing import NDArray


def difference(signals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Differences along the last axis with the first element kept; same shape, a new array."""
    result = np.empty_like(signals)
    result[..., 0] = signals[..., 0]
    np.subtract(signals[..., 1:], signals[..., :-1], out=result[..., 1:])
    return result


def integrate(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cumulative sum along the last axis, the inverse of `difference`; same shape, a new array."""
    result: NDArray[np.float64] = np.cumsum(differences, axis=-1)
    return result


Array = NDArray[np.float64]

Way = Literal["auto", "fftw", "basis"]
"""How coefficients are computed: by FFTs, by the product with a basis, or by whichever is faster."""


def used(n: int, k: int, way: Way = "auto") -> Literal["basis", "pyFFTW", "numpy"]:
    """How `k` coefficients of `n` rows are computed on this machine.

    By a basis while it is the fastest, as measured with 30 to 60 signals of 16 to 1,024 rows. Two processors compute
    alike, so the bounds lose equally little with AVX2 and with AVX-512 (`benchmarks/CHOICES.md`).
    """
    fftw = find_spec("pyfftw") is not None  # without importing it
    basis_up_to = 12 + 700 // n if fftw else 20 + 1_300 // n
    if way == "basis" or (way == "auto" and k <= basis_up_to):
        return "basis"
    return "pyFFTW" if fftw else "numpy"


def most_coefficients(n: int) -> int:
    """Number of one-sided coefficients of a real signal of length `n`: n // 2 + 1."""
    return n // 2 + 1


def coordinate_count(n: int, k: int) -> int:
    """Number of independent reals in the first `k` one-sided coefficients of a real signal of length `n`.

    >>> [coordinate_count(8, k) for k in range(1, 6)]
    [1, 3, 5, 7, 8]

    Raises
    ------
    ValueError
        unless 1 <= k <= n // 2 + 1.
    """
    if not 1 <= k <= most_coefficients(n):
        raise ValueError(f"k must lie between 1 and {most_coefficients(n)} for signals of length {n}, not {k}")
    return min(2 * k - 1, n)


def coordinate_weights(n: int, k: int) -> NDArray[np.int64]:
    """Parseval weights of the coordinates, (coordinate_count(n, k),): 1 for Re F_0 and Re F_{n/2}, 2 for the others."""
    weights = np.full(coordinate_count(n, k), 2, dtype=np.int64)
    weights[0] = 1
    if n % 2 == 0 and k == most_coefficients(n):
        weights[-1] = 1
    return weights


class RealFourier:
    """Transforms between signals and their first coordinates, both ways, without allocation.

    Parameters
    ----------
    signals
        Number of signals that are transformed together.
    n
        Length of each signal.
    k
        Number of one-sided coefficients kept, 1 <= k <= n // 2 + 1.
    way
        How; the results differ by rounding alone.

    Notes
    -----
    For few coefficients the product with a precomputed basis beats planned FFTs, and FFTW (24 MiB of memory) is not
    even loaded: `benchmarks/crossover.svg` draws where they cross. Where FFTW is not installed, numpy transforms.

    Owns its plans and buffers: one owner each, not to be shared between threads, made again after a fork. What the
    methods return is one of those buffers and is overwritten by the next call.
    """

    def __init__(self, signals: int, n: int, k: int, way: Way = "auto") -> None:
        self.n = n
        self.k = k
        self.count = coordinate_count(n, k)
        by = used(n, k, way)
        self._way: _Basis | _Transformed
        self._way = _Basis(signals, n, k) if by == "basis" else _Transformed(signals, n, k, by)

    def coordinates(self, signals: Array) -> Array:
        """First coordinates of (signals, n) real signals, (signals, count), unnormalised."""
        return self._way.coordinates(signals)

    def signals(self, coordinates: Array) -> Array:
        """Real signals (signals, n) whose first coordinates are given and whose other coordinates are zero."""
        return self._way.signals(coordinates)


class _Basis:
    """By the matrix product with the kept cosines and sines."""

    def __init__(self, signals: int, n: int, k: int) -> None:
        count = coordinate_count(n, k)
        frequency = (np.arange(count) + 1) // 2
        angle = 2 * np.pi / n * (np.arange(n)[:, None] * frequency % n)
        self._analysis = np.where(np.arange(count) % 2 == 0, -np.sin(angle), np.cos(angle))
        self._analysis[:, 0] = 1.0
        self._synthesis = np.ascontiguousarray(coordinate_weights(n, k)[:, None] / n * self._analysis.T)
        self._coordinates = np.zeros((signals, count))
        self._signals = np.zeros((signals, n))

    def coordinates(self, signals: Array) -> Array:
        return np.dot(signals, self._analysis, out=self._coordinates)

    def signals(self, coordinates: Array) -> Array:
        return np.dot(coordinates, self._synthesis, out=self._signals)


class _Transformed:
    """By Fourier transforms: planned FFTs, or numpy's where pyFFTW is not installed."""

    def __init__(self, signals: int, n: int, k: int, by: Literal["pyFFTW", "numpy"]) -> None:
        self._n = n
        self._count = coordinate_count(n, k)
        made = _planned if by == "pyFFTW" else _unplanned
        self._signals, self._spectrum, self._result, self._forward, self._inverse = made(signals, n)
        self._reals = self._spectrum.view(np.float64)  # Re F_0, Im F_0, Re F_1, Im F_1, ...
        self._coordinates = np.zeros((signals, self._count))

    def coordinates(self, signals: Array) -> Array:
        self._signals[:] = signals
        self._forward()
        self._coordinates[:, 0] = self._reals[:, 0]
        self._coordinates[:, 1:] = self._reals[:, 2 : self._count + 1]
        return self._coordinates

    def signals(self, coordinates: Array) -> Array:
        self._reals[:] = 0.0
        self._reals[:, 0] = coordinates[:, 0]
        self._reals[:, 2 : self._count + 1] = coordinates[:, 1:]
        self._inverse()
        self._result /= self._n  # both inverses are unnormalised
        return self._result


_Buffers = tuple[Array, NDArray[np.complex128], Array, Callable[[], object], Callable[[], object]]
"""Signals, spectrum and signals again, and what transforms each of them into the next one."""


def _planned(signals: int, n: int) -> _Buffers:
    import pyfftw  # noqa: PLC0415  not needed for a small k, and costs as much memory as numpy

    rows: Array = pyfftw.zeros_aligned((signals, n), dtype=np.float64)
    spectrum: NDArray[np.complex128] = pyfftw.zeros_aligned((signals, n // 2 + 1), dtype=np.complex128)
    back: Array = pyfftw.zeros_aligned((signals, n), dtype=np.float64)
    forward = pyfftw.FFTW(rows, spectrum, axes=(1,))
    inverse = pyfftw.FFTW(spectrum, back, axes=(1,), direction="FFTW_BACKWARD", flags=("FFTW_MEASURE",))
    return rows, spectrum, back, forward.execute, inverse.execute


def _unplanned(signals: int, n: int) -> _Buffers:
    rows, back = np.zeros((signals, n)), np.zeros((signals, n))
    spectrum = np.zeros((signals, n // 2 + 1), dtype=np.complex128)
    forward = partial(np.fft.rfft, rows, axis=1, out=spectrum)
    return rows, spectrum, back, forward, partial(np.fft.irfft, spectrum, n, axis=1, norm="forward", out=back)
