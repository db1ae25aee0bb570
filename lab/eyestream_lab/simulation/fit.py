"""How well recordings of a tracker fit a calibration: what share of each feature's values is clipped, in words.

Epsilon holds for every tracker; usefulness does not. This looks at raw values, so it is for public or consented
recordings alone, and offline: nothing of the kind runs on live data, because whatever it said there would tell about
the wearer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.core.anchor import BASELINE_S
from eyestream.core.calibration import Calibration, JointTables, PerFeatureTables
from eyestream.errors import CalibrationError

FITS, PARTLY = 0.05, 0.25
"""Largest shares clipped of what fits, and of what fits in part."""

LOST = 0.8
"""A single feature with more clipped is in another unit, or another thing: the calibration is not for this tracker."""

MOST_UNFIT = 1 / 8
"""Share of features that do not fit, stand still or have no data, up to which a calibration fits all in all. Of 30
people simulated after the corpus, ten minutes each, 27 stay below it on `anchored` and 26 on `mapped`."""

STILL = 0.1
"""A feature that moves less than this share of how much it moved in the corpus says next to nothing."""


@dataclass(frozen=True, slots=True)
class FeatureFit:
    """Fit of one feature that the calibration releases.

    Attributes
    ----------
    name
        Of the feature.
    missing
        Share of the rows that lack it.
    below, above
        Shares of its values that are clipped to the ends of the calibration's range.
    movement
        Standard deviation of the clipped values over that of the corpus; NaN where a mechanism does not tell it.
    """

    name: str
    missing: float
    below: float
    above: float
    movement: float

    @property
    def clipped(self) -> float:
        """Share of the values that are clipped."""
        return self.below + self.above

    @property
    def verdict(self) -> str:
        """In words."""
        if self.missing == 1.0:
            return "no data"
        if self.clipped > PARTLY:
            return "does not fit"
        if self.movement < STILL:
            return "stands still"
        return "fits in part" if self.clipped > FITS else "fits"


def feature_fits(calibration: Calibration, recordings: Sequence[NDArray[np.float64]]) -> list[FeatureFit]:
    """Fit of all recordings (m_i, F) together, for each feature that is not released as a constant.

    Where the calibration takes a baseline off each session, each recording is one, and its rest is judged.

    Raises
    ------
    CalibrationError
        No recording has a row behind its baseline.
    """
    rows = np.concatenate([_behind_baseline(calibration, rows) for rows in recordings])
    if len(rows) == 0:
        raise CalibrationError(
            f"no recording holds a row behind the {BASELINE_S:g} s of its baseline, which is taken off the rest"
        )
    spread = _spread(calibration)
    fits = []
    for index in np.flatnonzero(~calibration.constant):
        values = rows[np.isfinite(rows[:, index]), index]
        name, lo, hi = calibration.names[index], calibration.lo[index], calibration.hi[index]
        if len(values) == 0:
            fits.append(FeatureFit(name, 1.0, 0.0, 0.0, 0.0))
            continue
        moved = float(np.std(np.clip(values, lo, hi)) / spread[index]) if spread[index] > 0 else float("nan")
        below, above = float(np.mean(values < lo)), float(np.mean(values > hi))
        fits.append(FeatureFit(name, 1.0 - len(values) / len(rows), below, above, moved))
    return fits


def unfit(fits: Sequence[FeatureFit]) -> list[FeatureFit]:
    """Those of which a release says next to nothing: that do not fit, stand still or have no data."""
    return [fit for fit in fits if fit.verdict not in ("fits", "fits in part")]


def all_in_all(fits: Sequence[FeatureFit]) -> bool:
    """Whether the calibration is for this tracker: people differ, so some features of a few of them never fit."""
    return len(unfit(fits)) <= MOST_UNFIT * len(fits) and all(fit.clipped <= LOST for fit in fits)


def _behind_baseline(calibration: Calibration, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """(m', F): the rows (m, F) of one session as the mechanism gets them, without those of its baseline."""
    taking = calibration.takes_off
    if taking is None:
        return rows
    if taking.sessions:
        raise CalibrationError(
            "the calibration takes a history off: its ranges are of what is left of several sessions, not of one "
            "recording. eyestream calibrate --labels says how often its words are right"
        )
    taken_off, first = taking.session(), taking.chunks * calibration.n
    for i in range(0, first, calibration.n):
        taken_off.take(rows[i : i + calibration.n].T)
    return taken_off.off(rows[first:].T).T


def _spread(calibration: Calibration) -> NDArray[np.float64]:
    """(F,) standard deviation of the features in the corpus; NaN where the tables do not have it."""
    tables = calibration.tables
    if isinstance(tables, JointTables):
        # Knots are evenly spaced quantiles of the corpus: their spread is nearly that of its values.
        return tables.sd if tables.knots is None else np.where(tables.sd > 0, tables.knots.std(axis=1), 0.0)
    if isinstance(tables, PerFeatureTables):
        return np.asarray(np.sqrt(tables.spread / calibration.n))
    return np.full(len(calibration.names), np.nan)
