"""The linear transforms of the mechanisms: from an admitted chunk to what is noised, and back.

Every transform has three steps. `residual` takes the chunk into the space in which the ball lies, relative to the
ball's centre. `coordinates` takes the projected residual to the reals that get noise. `chunk` takes noisy coordinates
(relative to those of the centre) back to a chunk, linearly; what the centre contributes is a public constant that the
mechanism adds. Arrays that a transform returns are its own and are overwritten by the next call.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from eyestream.core.portable import quarter_sine
from eyestream.core.spectrum import RealFourier, Way, coordinate_count, difference, integrate

__all__ = ["DifferenceFourierTransform", "FourierTransform", "TimeTransform", "Transform"]

Array = NDArray[np.float64]


class Transform(Protocol):
    """Face of the transforms; B blocks of coordinates are released together, (F, n) is a chunk."""

    def residual(self, chunk: Array) -> Array:
        """(B, m) the chunk (F, n) in the space of the ball, minus the centre."""
        ...

    def coordinates(self, residual: Array) -> Array:
        """(B, M) coordinates of a residual (B, m)."""
        ...

    def chunk(self, coordinates: Array) -> Array:
        """(F, n) what coordinates (B, M) stand for."""
        ...

    def levels(self) -> Array:
        """(M,) how much each coordinate, where it is 1, moves the mean of its chunk; the same on every processor."""
        ...


class TimeTransform:
    """The chunk as it is (LPA): one block per feature, one coordinate per row."""

    def __init__(self, centre: Array) -> None:
        self._centre = centre
        self._residual = np.empty_like(centre)

    def residual(self, chunk: Array) -> Array:
        """(F, n) minus the centre."""
        return np.subtract(chunk, self._centre, out=self._residual)

    def coordinates(self, residual: Array) -> Array:
        """The residual itself."""
        return residual

    def chunk(self, coordinates: Array) -> Array:
        """The coordinates themselves."""
        return coordinates

    def levels(self) -> Array:
        """Each coordinate is a row."""
        rows = self._centre.shape[1]
        return np.full(rows, 1 / rows)


class FourierTransform:
    """First k one-sided Fourier coefficients of every feature (CFPA, FPA); one block per feature."""

    def __init__(self, centre: Array, k: int, way: Way = "auto") -> None:
        self._centre = centre
        self._residual = np.empty_like(centre)
        self._fourier = RealFourier(centre.shape[0], centre.shape[1], k, way)

    def residual(self, chunk: Array) -> Array:
        """(F, n) minus the centre."""
        return np.subtract(chunk, self._centre, out=self._residual)

    def coordinates(self, residual: Array) -> Array:
        """(F, M) unnormalised coordinates of `eyestream.core.spectrum`."""
        return self._fourier.coordinates(residual)

    def chunk(self, coordinates: Array) -> Array:
        """(F, n) inverse transform, the other coefficients zero."""
        return self._fourier.signals(coordinates)

    def levels(self) -> Array:
        """The first coordinate is the sum; waves have the mean 0."""
        levels = np.zeros(self._fourier.count)
        levels[0] = 1 / self._fourier.n
        return levels


class DifferenceFourierTransform(FourierTransform):
    """The same of the difference signal (DCFPA): differences inside the chunk in, cumulative sum out.

    Inverse transform and cumulative sum are one product with the cumulative sums of the cosines and sines: for all but
    the largest k that costs less than the cumulative sum of a chunk alone.
    """

    def __init__(self, centre: Array, k: int, way: Way = "auto") -> None:
        super().__init__(centre, k, way)
        n, count = centre.shape[1], coordinate_count(centre.shape[1], k)
        self._synthesis = integrate(RealFourier(count, n, k).signals(np.eye(count)))

    def residual(self, chunk: Array) -> Array:
        """(F, n) difference signal minus the centre, which is a difference signal too."""
        return difference(chunk) - self._centre

    def chunk(self, coordinates: Array) -> Array:
        """(F, n) cumulative sum of the inverse transform."""
        return coordinates @ self._synthesis

    def levels(self) -> Array:
        """Of cumulative sums: difference s stands in n - s rows of n, and sum_s s e^(2 pi i j s / n) is
        -n/2 - i n/2 cot(pi j / n). Of the Nyquist coefficient half as much, as there is one of it."""
        n, count = self._fourier.n, self._fourier.count
        frequency = (np.arange(count) + 1) // 2
        sine = quarter_sine(np.maximum(frequency, 1) / n)
        levels = np.where(np.arange(count) % 2 == 1, 1.0, -np.sqrt(np.maximum(1 - sine * sine, 0.0)) / sine) / n
        levels[0] = (n + 1) / (2 * n)
        levels[2 * frequency == n] = 1 / (2 * n)
        return levels
