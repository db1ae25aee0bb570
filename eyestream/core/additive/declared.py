"""Balls that hold the whole range of every feature: what to calibrate with where there is no corpus."""

from dataclasses import replace

import numpy as np

from eyestream.core.additive.signals import Signals
from eyestream.core.calibration import Calibration, PerFeatureTables
from eyestream.core.spectrum import most_coefficients

__all__ = ["declared_per_feature"]


def declared_per_feature(signals: Signals, calibration: Calibration, n: int) -> Calibration:
    """The same features with balls that hold every chunk of `n` rows inside the range, whatever corpus there was.

    The centre is the signal of the middle of the range; `Signals` has the radius, and the bound on what truncation can
    cost inside the range.
    """
    features = len(calibration.names)
    width = calibration.hi - calibration.lo
    middle = np.repeat(((calibration.hi + calibration.lo) / 2)[:, None], n, axis=1)
    radius = np.where(calibration.declared, 0.0, signals.reach(n) * width / 2)
    count = most_coefficients(n) if signals.truncates else 1
    truncation = np.repeat(signals.lost(n, width, radius)[:, None], count, axis=1)
    truncation[:, -1] = 0.0
    nothing = np.zeros(features)
    tables = PerFeatureTables(
        centre=signals.there(middle).copy(),
        radius=radius,
        mean=middle,
        spread=nothing,
        truncation=truncation,
        overlap=np.zeros((features, count)),
        energy=np.zeros((features, count)),
        stable_variance=nothing,
        transient_variance=nothing,
        detail=nothing,
        diameter=2 * radius,
        between_people=nothing,
    )
    provenance = replace(calibration.provenance, coverage=None, people=0, chunks=0)
    return replace(calibration, n=n, tables=tables, provenance=provenance)
