"""How far a release is from the signal, and what is needed to say how sure a figure is."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
"""97.5 % points of Student's t, 1 to 15 degrees of freedom."""


def nmse(signal: Array, released: Array) -> Array:
    """Normalised mean squared error along the last axis, as published (Bozkir et al. 2021, equation 4).

    (1/n) sum (x - x~)^2 / (mean(x) mean(x~)): the denominator holds the *noisy* mean. It may be negative or next to
    nothing, so the values scatter over many orders of magnitude; NaN where a mean is zero.
    """
    below = signal.mean(axis=-1) * released.mean(axis=-1)
    error = ((signal - released) ** 2).mean(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below == 0, np.nan, error / below)


def utility(value: float) -> float:
    """1 / |NMSE| (equation 6 of the same)."""
    return 1 / abs(value) if value else math.inf


def nmse_summary(values: Array) -> dict[str, float]:
    """Summary of NMSE values (runs, signals).

    `nmse` is averaged as published, over the runs and then over the signals, with its sign; `nmse_abs` with the
    modulus taken first; `nmse_median` is the median modulus. `undefined` is the share that has no denominator.
    """
    defined = np.isfinite(values)
    if not defined.any():
        return {"nmse": math.nan, "nmse_abs": math.nan, "nmse_median": math.nan, "undefined": 1.0}
    signals = defined.any(axis=0)
    over_runs = np.nanmean(values[:, signals], axis=0)
    return {
        "nmse": float(over_runs.mean()),
        "nmse_abs": float(np.nanmean(np.abs(values[:, signals]), axis=0).mean()),
        "nmse_median": float(np.median(np.abs(values[defined]))),
        "undefined": float(1 - defined.mean()),
    }


def explained_variance(squared_error: Array, spread: Array) -> dict[str, float]:
    """1 - (mean squared error (F,) / mean squared distance to the calibration mean (F,)): mean and median feature.

    1 is the signal itself, 0 no better than the calibration's mean, and below 0 worse than telling nothing.
    """
    explained = 1 - squared_error / spread
    return {"explained_variance": float(explained.mean()), "explained_variance_median": float(np.median(explained))}


def mean_of_known(figures: Sequence[Sequence[float] | Array]) -> Array:
    """(F,) means over the rows of (N, F), of what is not NaN; NaN where nothing is known."""
    every = np.asarray(figures, np.float64)
    there = np.isfinite(every)
    mean: Array = np.where(there, every, 0.0).sum(axis=0) / np.where(there.any(axis=0), there.sum(axis=0), np.nan)
    return mean


def tame(rows: Array, share: float = 0.01) -> Array:
    """Lower and upper `share`-quantiles (2, F) of rows (m, F).

    A variance of variances has events that outweigh all other rows together; moments that are to hold for other people
    are taken of values clipped to these.
    """
    return np.quantile(rows, (share, 1 - share), axis=0)


def mean_and_error(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean, its standard error, and half the width of its 95 % confidence interval (Student's t).

    Examples
    --------
    >>> [round(figure, 3) for figure in mean_and_error([0.5, 0.6, 0.7])]
    [0.6, 0.058, 0.248]
    """
    array = np.asarray(values, dtype=np.float64)
    if len(array) < 2:
        return float(array.mean()), math.nan, math.nan
    error = 0.0 if np.ptp(array) == 0 else float(array.std(ddof=1) / math.sqrt(len(array)))
    freedom = len(array) - 1
    return float(array.mean()), error, error * (_T95[freedom - 1] if freedom <= len(_T95) else 1.96 + 2.4 / freedom)
