"""Figures of windows of gaze: where it lies, how far it spreads, how it steps, its spectrum, and what is lost.

A window lasts 12 s, and another begins every 3 s. A shorter recording is one window. All times are in seconds, so that
a release at another rate has the same figures.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

WINDOW_S, HOP_S = 12.0, 3.0
GROUPS = ("place", "spread", "steps", "spectrum", "lost")
_LAGS_S = (0.0, 0.034, 0.067, 0.134, 0.267, 0.534)
"""Time from one sample to another; 0 is from each sample to the next."""
_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.97)
_BANDS_HZ = (0.08, 0.17, 0.33, 0.67, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 11.0, 15.0)
_LEAST = 1e-3
"""Degrees beside each size, so that an eye that stands still has a logarithm."""
_DIRECTIONS = 8
_FAR = 1e4


def windows_of(xy: Array, rate_hz: float) -> dict[str, Array]:
    """Figures (W, f) of each of `GROUPS` for the windows of gaze (n, 2) in degrees, NaN where lost."""
    length, hop = max(1, round(WINDOW_S * rate_hz)), max(1, round(HOP_S * rate_hz))
    starts = range(0, max(len(xy) - length, 0) + 1, hop)
    held = _held(np.clip(xy, -_FAR, _FAR))
    lost = np.asarray(~np.isfinite(xy).all(axis=1))
    found = [dict(_figures(held[s : s + length], lost[s : s + length], rate_hz)) for s in starts]
    return {group: np.array([one[group] for one in found]) for group in GROUPS}


def _held(xy: Array) -> Array:
    """Gaze whose losses are drawn straight across; zeros where everything is lost."""
    there = np.isfinite(xy).all(axis=1)
    if not there.any():
        return np.zeros_like(xy)
    at = np.arange(len(xy))
    return np.column_stack([np.interp(at, at[there], xy[there, axis]) for axis in (0, 1)])


def _figures(xy: Array, lost: NDArray[np.bool_], rate_hz: float) -> Iterator[tuple[str, Array]]:
    seen = xy[~lost] if (~lost).any() else xy
    middle = np.median(seen, axis=0)
    yield "place", np.concatenate([seen.mean(axis=0), *np.quantile(seen, (0.05, 0.25, 0.5, 0.75, 0.95), axis=0)])
    apart = seen - middle
    wide = np.log(np.quantile(np.abs(apart), (0.25, 0.5, 0.75, 0.95), axis=0) + _LEAST).ravel()
    sd = seen.std(axis=0)
    tilt = (apart - apart.mean(axis=0)).prod(axis=1).mean() / max(float(sd.prod()), _LEAST)
    yield "spread", np.concatenate([np.log(sd + _LEAST), wide, [tilt]])
    yield "steps", np.concatenate([_steps(xy, lost, max(1, round(lag * rate_hz))) for lag in _LAGS_S])
    yield "spectrum", _spectrum(xy, rate_hz)
    begins = np.diff(lost.astype(int), prepend=0) == 1
    runs = int(begins.sum())
    yield "lost", np.array([lost.mean(), runs / (len(xy) / rate_hz), np.log1p(lost.sum() / max(runs, 1))])


def _steps(xy: Array, lost: NDArray[np.bool_], lag: int) -> Array:
    """(19,) sizes, directions and standstills of steps over `lag` samples."""
    step = xy[lag:] - xy[:-lag]
    step = step[~(lost[lag:] | lost[:-lag])]
    if len(step) == 0:
        return np.zeros(len(_QUANTILES) + _DIRECTIONS + 5)
    size = np.hypot(*step.T)
    along = np.abs(step).mean(axis=0) + _LEAST
    turned = np.floor((np.arctan2(step[:, 1], step[:, 0]) / (2 * np.pi)) * _DIRECTIONS + 0.5).astype(int)
    ways = np.bincount(turned % _DIRECTIONS, weights=np.sqrt(size), minlength=_DIRECTIONS)
    tail = np.log(size.mean() + _LEAST)
    skew = step.mean(axis=0) / along
    return np.concatenate(
        [
            np.log(np.quantile(size, _QUANTILES) + _LEAST),
            ways / max(float(ways.sum()), _LEAST),
            [np.log(along[0] / along[1]), tail, (size < _LEAST).mean()],
            skew,
        ]
    )


def _spectrum(xy: Array, rate_hz: float) -> Array:
    """(2 b,) logarithms of the power of either axis in each of b bands."""
    tapered = (xy - xy.mean(axis=0)) * np.hanning(len(xy))[:, None]
    power = np.abs(np.fft.rfft(tapered, axis=0)) ** 2 / len(xy)
    band = np.digitize(np.fft.rfftfreq(len(xy), 1 / rate_hz), _BANDS_HZ)
    return np.concatenate(
        [
            np.log([power[band == one, axis].mean() + _LEAST**2 if (band == one).any() else _LEAST**2])
            for axis in (0, 1)
            for one in range(1, len(_BANDS_HZ))
        ]
    )
