"""Whether numbers lie on a lattice: offset + spacing * integer, both unknown, up to what rounding makes of them."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["spacing", "transforms"]

Array = NDArray[np.float64]

_LEAST, _GAPS, _FINE, _ZERO = 32.0, 256, 1 / 16, 4.0
_CENTRE = (0.1, 0.9)


def spacing(values: Array, resolution: float) -> float | None:
    """Spacing of the lattice that `values` (m,) lie on, which are known to within `resolution`; None if there is none.

    The differences of neighbours in the sorted list go through Euclid's algorithm, smallest first, while their
    remainders exceed what rounding makes of them. Numbers without a lattice end below 32 resolutions, and there no
    lattice could be told from rounding.
    """
    low, high = np.quantile(values, _CENTRE)
    inside = np.unique(values[(values >= low) & (values <= high)])
    gaps = np.diff(inside)
    gaps = gaps[gaps > 4 * resolution]
    if len(gaps) < len(values) / 8:  # most values came several times
        return float(gaps.min()) if len(gaps) else math.inf
    found, error = _common_divisor(np.sort(gaps)[:_GAPS], 2 * resolution)
    if found < _LEAST * max(resolution, error):
        return None
    places = np.concatenate([[0.0], np.cumsum(np.rint(np.diff(inside) / found))])
    places -= np.rint(places.mean())
    slope, offset = np.polyfit(places, inside, 1)
    residual = np.abs(inside - slope * places - offset)
    fits = np.quantile(residual, 0.95) <= max(8 * resolution, _FINE * found)
    return float(slope) if fits else None


def _common_divisor(gaps: Array, error: float) -> tuple[float, float]:
    """The largest number of which all `gaps`, each known to within `error`, are multiples; and its own error."""
    common, uncertain = float(gaps[0]), error
    for gap in gaps[1:].tolist():
        (larger, off), (smaller, doubt) = (gap, error), (common, uncertain)
        while smaller > _ZERO * doubt:
            times = round(larger / smaller)
            rest = abs(larger - times * smaller), off + times * doubt
            if larger is gap and rest[0] <= _ZERO * rest[1]:  # a multiple, which tells the divisor better
                larger, off = min(((smaller, doubt), (gap / times, error / times)), key=lambda item: item[1])
                break
            (larger, off), (smaller, doubt) = (smaller, doubt), rest
        common, uncertain = larger, off
    return common, uncertain


def transforms(n: int) -> dict[str, NDArray[Any]]:
    """(C, n) transforms of a signal in which noise may have been drawn; differences keep the first value."""
    time = np.eye(n)
    wave = np.fft.rfft(time, axis=0, norm="ortho")
    fourier = np.concatenate([wave.real, wave.imag[1 : (n + 1) // 2]])
    steps = time - np.eye(n, k=-1)
    rows = np.arange(n)
    cosine = np.cos(np.pi * (rows[None, :] + 0.5) * rows[:, None] / n) / math.sqrt(n)
    found = {"time": time, "frequency": fourier, "differences": steps, "frequency of differences": fourier @ steps}
    found["cosines"] = cosine
    if n > 1 and n & (n - 1) == 0:
        haar: NDArray[Any] = np.ones((1, 1))
        hadamard: NDArray[Any] = np.ones((1, 1))
        while len(haar) < n:
            size = len(haar)
            haar = np.concatenate([np.kron(haar, [1.0, 1.0]), math.sqrt(size) * np.kron(np.eye(size), [1.0, -1.0])])
            hadamard = np.kron(hadamard, [[1.0, 1.0], [1.0, -1.0]])
        found |= {"Haar": haar / math.sqrt(n), "Hadamard": hadamard / math.sqrt(n)}
    return found
