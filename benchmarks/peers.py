"""What one would write instead of eyestream's CFPA: the same arithmetic, with floating-point noise that is not safe.

Imputation, clamp, projection, k coefficients, noise on their independent reals, inverse. About one output in four of
such noise proves which of two neighbours it came from: these are here to be compared with, not to be used.
"""

from collections.abc import Callable
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import PerFeatureTables
from eyestream.core.mechanism import Mechanism

__all__ = ["array_peer", "loop_peer"]

Array = NDArray[np.float64]


def array_peer(mechanism: Mechanism, k: int, fft: ModuleType) -> Callable[[Array], Array]:
    """CFPA on whole arrays with `fft` (numpy.fft or scipy.fft) and numpy's Laplace."""
    calibration, n = mechanism.calibration, mechanism.n
    tables = calibration.tables
    assert isinstance(tables, PerFeatureTables)
    active = np.flatnonzero(~calibration.constant)
    lo, hi, fill = (x[active][:, None] for x in (calibration.lo, calibration.hi, calibration.fill))
    centre, radius = tables.centre[active], tables.radius[active][:, None]
    scale = np.sqrt(n * k) * 2 * radius * len(active) / mechanism.epsilon
    column = np.arange(1, n + 1)
    row = np.arange(len(active))[:, None]
    rng = np.random.default_rng()

    def release(chunk: Array) -> Array:
        x = chunk[active]
        last = np.maximum.accumulate(np.where(np.isfinite(x), column, 0), axis=1)
        x = np.clip(np.concatenate([fill, x], axis=1)[row, last], lo, hi) - centre
        x *= radius / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), radius)
        spectrum = fft.rfft(x, axis=1)
        noise = rng.laplace(0.0, scale, (len(active), 2 * k - 1))
        spectrum[:, k:] = 0
        spectrum[:, 0] += noise[:, 0]
        spectrum[:, 1:k] += noise[:, 1:k] + 1j * noise[:, k:]
        released = np.repeat(calibration.fill[:, None], n, axis=1)
        released[active] = fft.irfft(spectrum, n, axis=1) + centre
        return released

    return release


def loop_peer(mechanism: Mechanism, k: int) -> Callable[[Array], Array]:
    """The same with numpy.fft, one feature after the other."""
    calibration, n = mechanism.calibration, mechanism.n
    tables = calibration.tables
    assert isinstance(tables, PerFeatureTables)
    active = np.flatnonzero(~calibration.constant).tolist()
    rng = np.random.default_rng()

    def release(chunk: Array) -> Array:
        released = np.repeat(calibration.fill[:, None], n, axis=1)
        for f in active:
            x, held = chunk[f].copy(), calibration.fill[f]
            for t in range(n):
                if np.isfinite(x[t]):
                    held = x[t]
                else:
                    x[t] = held
            x = np.clip(x, calibration.lo[f], calibration.hi[f]) - tables.centre[f]
            x *= tables.radius[f] / max(np.linalg.norm(x), tables.radius[f])
            spectrum = np.fft.rfft(x)
            scale = np.sqrt(n * k) * 2 * tables.radius[f] * len(active) / mechanism.epsilon
            spectrum[k:] = 0
            spectrum[0] += rng.laplace(0.0, scale)
            spectrum[1:k] += rng.laplace(0.0, scale, k - 1) + 1j * rng.laplace(0.0, scale, k - 1)
            released[f] = np.fft.irfft(spectrum, n) + tables.centre[f]
        return released

    return release
