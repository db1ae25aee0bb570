"""A small corpus that belongs to nobody, and calibrations made from it, for the tests of the mechanisms."""

from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration, PerFeatureTables
from eyestream.rim.files.recordings import Recording
from eyestream_lab.calibration import calibrate
from eyestream_lab.calibration.corpus import Corpus

Array = NDArray[np.float64]
NAMES = ("level", "slow", "rare", "wb1_min", "fast")
PEOPLE, ROWS = 12, 400


def person(seed: int) -> Array:
    """(ROWS, 5): a level per person with slow change, a random walk, a rare burst, zeros, white noise."""
    rng = np.random.default_rng(seed)
    level = 10 * rng.normal() + np.convolve(rng.normal(size=ROWS + 30), np.ones(31) / 31, "valid")
    walk = np.cumsum(rng.normal(size=ROWS)) / 20
    rare = np.where(rng.random(ROWS) < 0.05, rng.exponential(3, size=ROWS), 0.0)
    return np.stack([level, walk, rare, np.zeros(ROWS), 1e-3 * rng.normal(size=ROWS)], axis=1)


def recordings() -> list[Recording]:
    t = np.arange(ROWS) / 2.0
    return [Recording(t, person(seed), NAMES, f"person {seed}") for seed in range(PEOPLE)]


@cache
def corpus(n: int = 32) -> Corpus:
    return Corpus.of(recordings(), n)


@cache
def calibrated(mechanism: str, n: int = 32, coverage: float = 0.95) -> Calibration:
    return calibrate(mechanism, corpus(n), coverage=coverage)


def repeated(calibration: Calibration, feature: int, copies: int) -> Calibration:
    """One feature many times over: one release is then `copies` releases of it, each with its share of epsilon."""
    tables = calibration.tables
    assert isinstance(tables, PerFeatureTables)
    rows = np.full(copies, feature)
    return replace(
        calibration,
        names=tuple(f"copy_{i}" for i in range(copies)),
        units=("1",) * copies,
        declared=calibration.declared[rows],
        lo=calibration.lo[rows],
        hi=calibration.hi[rows],
        fill=calibration.fill[rows],
        tables=PerFeatureTables(**{name: array[rows] for name, array in vars(tables).items()}),
    )
