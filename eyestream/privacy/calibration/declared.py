"""Balls that hold the whole range of every feature: what to calibrate with where there is no corpus."""

from dataclasses import replace

import numpy as np

from eyestream.privacy.calibration.calibration import Calibration
from eyestream.privacy.calibration.tables import PerFeatureTables
from eyestream.spectrum.fourier import most_coefficients

__all__ = ["declared_range"]


def declared_range(calibration: Calibration, n: int) -> Calibration:
    """The same features with balls that hold every chunk of `n` rows inside the range, whatever corpus there was.

    The centre is the middle of the range; with R = hi - lo the radius is n R / 2 in L1 (LPA), sqrt(n) R / 2 in L2
    (CFPA, FPA), sqrt(4 n - 3) R / 2 for the difference signal (DCFPA), half of Delta_1 and Delta_2 of the range. T(k)
    is a bound on what truncation can cost inside the range: n R^2 / 4, and for DCFPA the radius squared times the
    squared norm of the cumulative sum, 1 / (4 sin^2(pi / (4 n + 2))).
    """
    features = len(calibration.names)
    width = calibration.hi - calibration.lo
    middle = np.repeat(((calibration.hi + calibration.lo) / 2)[:, None], n, axis=1)
    factor = {"lpa": float(n), "dcfpa": float(np.sqrt(4 * n - 3))}.get(calibration.mechanism, float(np.sqrt(n)))
    centre = middle.copy()
    if calibration.mechanism == "dcfpa":
        centre[:, 1:] = 0.0
    radius = np.where(calibration.declared, 0.0, factor * width / 2)
    count = 1 if calibration.mechanism == "lpa" else most_coefficients(n)
    loss = radius**2 / (4 * np.sin(np.pi / (4 * n + 2)) ** 2) if calibration.mechanism == "dcfpa" else n * width**2 / 4
    truncation = np.repeat(loss[:, None], count, axis=1)
    truncation[:, -1] = 0.0
    nothing = np.zeros(features)
    tables = PerFeatureTables(
        centre=centre,
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
