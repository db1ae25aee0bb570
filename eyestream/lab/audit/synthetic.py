"""Calibrations made by hand for the audit: of equal features, so that one release is many independent ones."""

from dataclasses import replace

import numpy as np

from eyestream.privacy.calibration import Calibration, JointTables, PerFeatureTables, Provenance
from eyestream.spectrum.fourier import most_coefficients

__all__ = ["synthetic", "synthetic_joint"]


def synthetic(mechanism: str, n: int, features: int, width: float = 1e9) -> Calibration:
    """A calibration made by hand: equal features, the ball of radius 1 around 0, and a range that does not bind."""
    count = 1 if mechanism == "lpa" else most_coefficients(n)
    table, column, row = np.zeros((features, n)), np.zeros(features), np.zeros((features, count))
    tables = PerFeatureTables(
        centre=table,
        radius=np.ones(features),
        mean=table,
        spread=column,
        truncation=row,
        overlap=row,
        energy=row,
        diameter=np.full(features, 2.0),
        stable_variance=column,
        transient_variance=column,
        detail=column,
        between_people=column,
    )
    return Calibration(
        mechanism=mechanism,
        names=tuple(f"feature{i}" for i in range(features)),
        units=("1",) * features,
        rate_hz=2.0,
        n=n,
        k=None,
        declared=np.zeros(features, dtype=np.bool_),
        lo=np.full(features, -width),
        hi=np.full(features, width),
        fill=column,
        tables=tables,
        provenance=Provenance("none: made for an audit", 0, 0, None, (), "audit"),
    )


def synthetic_joint(n: int) -> Calibration:
    """A calibration for KLT made by hand: three independent features, the mean of each a score."""
    size = 3
    tables = JointTables(
        mean=np.zeros(size),
        sd=np.ones(size),
        modes=np.full((1, n), n**-0.5),
        basis=np.eye(size),
        expand=np.eye(size),
        poles=np.array([1.0, 0.5]),
        covariances=np.stack([n * np.eye(size) / 2] * 2),
        weights=np.ones(2),
        residual=np.full(size, 0.5),
    )
    return replace(synthetic("cfpa", n, size), mechanism="klt", tables=tables)
