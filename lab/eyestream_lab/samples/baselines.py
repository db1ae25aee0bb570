"""Treatments of gaze samples of today. **None has a guarantee of privacy**: they are what we compare with.

For recordings alone. The sidecar refuses them, because it has nothing that passes gaze through. Each is a function of
(n, 2) gaze in degrees (azimuth to the right, elevation up) and gives (m, 2); a sample that was lost is a row of NaN,
and comes out as one. Formulas are those of David-John, Hosfelt, Butler, Jain (TVCG 2021), of Wilson et al. (2024) for
weighted smoothing, and of Raju and Komogortsev (2025, arXiv 2511.09846) for the use of a Kalman filter.

Kaleido as its pseudocode is printed (David-John, Butler, Jain, TVCG 2023, supplement). **No guarantee of privacy.**

Three things are as in the text, and wrong (`eyestream_lab.kaleido` corrects them): line 24 sums what was spent over
the whole recording, so that the budget never comes back. The noise of a test is not scaled by r, so that tests cost r
times what they are charged. The skip is by the tracker's clock. Gaze is clamped to the field, which the text
does not say.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.kaleido import Settings

Array = NDArray[np.float64]

CLAIM = "none"
"""The guarantee of every output of this module."""

_PANORAMA_ROWS, _PANORAMA_COLUMNS = 2160, 3840

_LEAST = 1e-300


def noisy(gaze: Array, sd_deg: float, rng: np.random.Generator) -> Array:
    """Independent normal noise on both axes; `sd_deg` from 1 to 10 was published."""
    _positive(sd_deg, "sd_deg")
    moved: Array = gaze + rng.normal(0.0, sd_deg, gaze.shape)
    return moved


def every(gaze: Array, k: int) -> Array:
    """Temporal downsampling: samples 0, k, 2 k, ... alone."""
    _positive(k, "k")
    return gaze[::k].copy()


def held(gaze: Array, k: int) -> Array:
    """Temporal downsampling at the same rate: each kept sample stands k times (Wilson et al.)."""
    _positive(k, "k")
    return gaze[np.arange(len(gaze)) // k * k]


def coarse(gaze: Array, level: int) -> Array:
    """Spatial downsampling: the corner of the cell of a panorama of 360 x 180 degrees with 3840/L columns and 2160/L
    rows.

    Cells are 360 L / 3840 degrees wide and 180 L / 2160 degrees high, also where L does not divide: 6 x 5.33 at L = 64.
    The corner is the left and upper one, for published elevations grow downward.
    """
    _positive(level, "level")
    width, height = float(Fraction(360 * level, _PANORAMA_COLUMNS)), float(Fraction(180 * level, _PANORAMA_ROWS))
    across, down = gaze[:, 0] + 180.0, 90.0 - gaze[:, 1]
    return np.stack((np.floor(across / width) * width - 180.0, 90.0 - np.floor(down / height) * height), axis=1)


def weighted(gaze: Array, b: int) -> Array:
    """Mean of the last b samples, the newest weighing b and the oldest 1; it lags by (b - 1)/3 samples.

    Lost samples weigh nothing. So do those before the first one: buffers that begin with zeros, as in published code,
    draw the first b outputs toward straight ahead.
    """
    _positive(b, "b")
    seen = np.isfinite(gaze[:, 0]) & np.isfinite(gaze[:, 1])
    values = np.where(seen[:, None], gaze, 0.0)
    weights = np.arange(b, 0, -1, dtype=np.float64)
    if len(gaze) == 0:
        return gaze.copy()
    below = np.convolve(seen.astype(np.float64), weights)[: len(gaze)]
    out = np.full_like(gaze, np.nan)
    for axis in (0, 1):
        above = np.convolve(values[:, axis], weights)[: len(gaze)]
        out[seen, axis] = above[seen] / below[seen]
    return out


def weighted_twice(gaze: Array, first: int, second: int) -> Array:
    """Two in a row, as Wilson et al. cascade 10 and 50."""
    return weighted(weighted(gaze, first), second)


def kalman(gaze: Array, period_s: float, measured_sd_deg: float, pushed_deg_per_s2: float) -> Array:
    """Constant velocity, forward in time; the axes apart.

    State (position, velocity), pushed from sample to sample by a constant acceleration with standard deviation
    `pushed_deg_per_s2` (Q = q^2 [[T^4/4, T^3/2], [T^3/2, T^2]]); positions are measured with `measured_sd_deg`. A lost
    sample is predicted over.

    Parameters
    ----------
    period_s
        T, from sample to sample.
    """
    for name, value in (("period_s", period_s), ("measured_sd_deg", measured_sd_deg), ("pushed", pushed_deg_per_s2)):
        _positive(value, name)
    step = np.array([[1.0, period_s], [0.0, 1.0]])
    push = pushed_deg_per_s2 * np.array([period_s**2 / 2, period_s])
    moved, noise = np.outer(push, push), measured_sd_deg**2
    out = np.full_like(gaze, np.nan)
    state: Array | None = None
    covariance = np.zeros((2, 2))
    for i, point in enumerate(gaze):
        seen = bool(np.isfinite(point).all())
        if state is None:
            if seen:
                state, covariance = np.array([point, [0.0, 0.0]]), np.diag([noise, (measured_sd_deg / period_s) ** 2])
                out[i] = point
            continue
        state, covariance = step @ state, step @ covariance @ step.T + moved
        if seen:
            gain = covariance[:, 0] / (covariance[0, 0] + noise)
            state = state + gain[:, None] * (point - state[0])
            covariance = covariance - np.outer(gain, covariance[0])
            out[i] = state[0]
    return out


def _positive(value: float, name: str) -> None:
    if not 0 < value < np.inf:
        raise ValueError(f"{name}: expected a number above 0, not {value}")


def published_kaleido(
    moments: Array, gaze: Array, epsilon: float, settings: Settings, rng: np.random.Generator
) -> Array:
    """(n, 2) outputs for gaze (n, 2) in degrees; a lost sample is NaN, and repeats the last output.

    Parameters
    ----------
    moments
        (n,) of the tracker's clock, in nominal samples.
    """
    half = np.array([settings.width_deg, settings.height_deg]) / 2
    test_epsilon = epsilon / (settings.h * settings.tests)
    spent, tested, published = 0.0, -math.inf, False
    output, outputs = np.zeros(2), np.empty_like(gaze)
    for i, (now, place) in enumerate(zip(moments.tolist(), gaze, strict=True)):
        outputs[i] = output
        if now - tested < settings.skip or not np.isfinite(place).all():
            continue
        tested = now
        apart = float(np.hypot(*(place - output)))
        if published and apart <= settings.threshold_deg + rng.laplace(0.0, 1.0 / test_epsilon):
            continue
        own = max((epsilon - epsilon / settings.h - spent) / 2, _LEAST)
        spent += own
        angle, radius = rng.uniform(0.0, 2.0 * math.pi), rng.gamma(2.0, settings.r_deg / own)
        noise = radius * np.array([math.cos(angle), math.sin(angle)])
        output, published = np.clip(place + noise, -half, half), True
        outputs[i] = output
    return outputs
