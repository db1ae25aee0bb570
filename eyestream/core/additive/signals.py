"""The signals whose balls bound the sensitivity, their linear transforms, and the expected error of a release.

**Transforms** go from an admitted chunk to what is noised, and back. Every transform has three steps. `residual` takes
the chunk into the space in which the ball lies, relative to the ball's centre. `coordinates` takes the projected
residual to the reals that get noise. `chunk` takes noisy coordinates (relative to those of the centre) back to a chunk,
linearly; what the centre contributes is a public constant that the mechanism adds. Arrays that a transform returns are
its own and are overwritten by the next call.

**Error.** For one feature of a chunk of n rows, ball radius r and the feature's share eps_f of epsilon, the expected
sum of squared errors of the released chunk is

    E(k) = T(k) + N(k) (2 r / eps_f)^2

with T(k) the corpus mean of what truncation and projection lose, and N(k) the noise: the squared norm of the synthesis
matrix times the variance 2 lambda^2 of a coordinate at lambda = sqrt(n k) (2 r / eps_f). Toward the corpus mean one can
shrink by a gain g: with S the mean squared distance of the corpus' chunks to their mean m, u the kept part of a chunk
minus that of m, A(k) the corpus mean of <x - m, u> and B(k) that of |u|^2,

    E(k, g) = S - 2 g A + g^2 (B + N (2 r / eps_f)^2),   least at g = A / (B + N (2 r / eps_f)^2):   S - g A.

Derived for this project; checked against the trace of the synthesis matrix and against simulation in the tests.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from eyestream.core.portable import quarter_sine
from eyestream.core.spectrum import RealFourier, Way, coordinate_count, difference, integrate, most_coefficients


def lpa_noise(n: int) -> NDArray[np.float64]:
    """N of LPA, (1,): 2 n, with r the radius of the L1 ball."""
    return np.array([2.0 * n])


def cfpa_noise(n: int) -> NDArray[np.float64]:
    """N(k) of CFPA for k = 1 .. n // 2 + 1: 2 k (4 k - 3), and (n + 2)(2 n - 2) at the Nyquist coefficient."""
    k = np.arange(1.0, most_coefficients(n) + 1)
    noise = 2 * k * (4 * k - 3)
    if n % 2 == 0:
        noise[-1] = (n + 2.0) * (2 * n - 2)
    return noise


def dcfpa_noise(n: int) -> NDArray[np.float64]:
    """N(k) of DCFPA for k = 1 .. n // 2 + 1, n even.

    The cumulative sums of the columns of the synthesis matrix have the squared norms (n + 1)(2 n + 1) / (6 n) for the
    constant, 2 / (n sin^2(pi j / n)) for the cosine and sine of frequency j together, and 1 / (2 n) for the Nyquist
    one.
    """
    if n % 2:
        raise ValueError("DCFPA works on chunks of even length")
    k = np.arange(1.0, most_coefficients(n) + 1)
    j = np.arange(1, n // 2)
    sine = quarter_sine(j / n)
    waves = np.concatenate([[0.0], np.cumsum(1.0 / (sine * sine))])
    waves = np.append(waves, waves[-1])  # the Nyquist coefficient adds 1/2, not a pair of waves
    noise = 2 * k * ((n + 1) * (2 * n + 1) / 6 + 2 * waves)
    noise[-1] += k[-1]
    return noise


Array = NDArray[np.float64]


@dataclass(frozen=True)
class Signals:
    """Signals of chunks, and the ball that holds them.

    With R the width of a feature's range, Delta_1 and Delta_2 of all chunks of n rows inside the range are twice the
    radius `reach(n)` R / 2, around the signal of the middle of the range.

    Attributes
    ----------
    there, back : from chunks (.., n) to signals, and back.
    order : norm of the ball, 1 (taxicab) or 2 (Euclidean).
    truncates : whether the first k Fourier coefficients are kept; if not, every value is, and K is 1.
    noise : N(k) of `eyestream.core.additive.signals`, (K,), for n.
    reach : as above.
    lost : a bound (F,) on what truncation costs inside the range, of n, R (F,) and the radius (F,).
    """

    there: Callable[[Array], Array]
    back: Callable[[Array], Array]
    order: Literal[1, 2]
    truncates: bool
    noise: Callable[[int], Array]
    reach: Callable[[int], float]
    lost: Callable[[int, Array, Array], Array]


def _itself(signals: Array) -> Array:
    return signals


def _lost_of_chunks(n: int, width: Array, radius: Array) -> Array:
    return n * width**2 / 4


def _lost_of_differences(n: int, width: Array, radius: Array) -> Array:
    """The radius squared times the squared norm of the cumulative sum, 1 / (4 sin^2(pi / (4 n + 2)))."""
    lost: Array = radius**2 / (4 * np.sin(np.pi / (4 * n + 2)) ** 2)
    return lost


VALUES = Signals(_itself, _itself, 1, truncates=False, noise=lpa_noise, reach=float, lost=_lost_of_chunks)
"""The chunk itself, every value of it."""

CHUNKS = Signals(
    _itself, _itself, 2, truncates=True, noise=cfpa_noise, reach=lambda n: float(np.sqrt(n)), lost=_lost_of_chunks
)
"""The chunk itself, its first coefficients."""

DIFFERENCES = Signals(
    difference,
    integrate,
    2,
    truncates=True,
    noise=dcfpa_noise,
    reach=lambda n: float(np.sqrt(4 * n - 3)),
    lost=_lost_of_differences,
)
"""The differences from row to row, the first row kept; their first coefficients."""


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
        """Levels of cumulative sums: difference s stands in n - s rows of n, and sum_s s e^(2 pi i j s / n) is
        -n/2 - i n/2 cot(pi j / n). Of the Nyquist coefficient half as much, as there is one of it."""
        n, count = self._fourier.n, self._fourier.count
        frequency = (np.arange(count) + 1) // 2
        sine = quarter_sine(np.maximum(frequency, 1) / n)
        levels = np.where(np.arange(count) % 2 == 1, 1.0, -np.sqrt(np.maximum(1 - sine * sine, 0.0)) / sine) / n
        levels[0] = (n + 1) / (2 * n)
        levels[2 * frequency == n] = 1 / (2 * n)
        return levels
