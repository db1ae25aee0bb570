"""Small calibrations: a few features of a shipped one, and others made by hand."""

from dataclasses import replace
from functools import cache

import numpy as np

from eyestream.core.calibration import Calibration, PerFeatureTables
from eyestream.rim.files import calibrations
from eyestream_lab.audit.trials import synthetic
from eyestream_lab.calibration import declared_range
from eyestream_lab.mechanisms.klt import synthetic_joint

__all__ = ["few_features", "synthetic", "synthetic_joint"]


@cache
def few_features(n: int = 4, features: int = 3) -> Calibration:
    """The first `features` of "everyday-cfpa-32" that are no constants, at most 26, for chunks of `n` rows."""
    known = calibrations.load("everyday-cfpa-32")
    tables = known.tables
    assert isinstance(tables, PerFeatureTables)
    few = np.flatnonzero(~known.constant)[:features]
    narrow = replace(
        known,
        names=tuple("abcdefghijklmnopqrstuvwxyz"[:features]),
        units=tuple(known.units[i] for i in few),
        declared=known.declared[few],
        lo=known.lo[few],
        hi=known.hi[few],
        fill=known.fill[few],
        tables=PerFeatureTables(**{name: array[few] for name, array in vars(tables).items()}),
    )
    return declared_range(narrow, n)
