"""LPA: noise on every value of a chunk."""

from eyestream.core.additive.per_feature import SHOWN_BY, PostProcessing
from eyestream.core.calibration import PerFeatureTables
from eyestream.core.mechanisms.entry import Entry
from eyestream.core.mechanisms.lpa.mechanism import LPA

__all__ = ["ENTRY", "LPA"]

ENTRY = Entry(
    mechanism=LPA,
    options=PostProcessing,
    tables=PerFeatureTables,
    shown_by=SHOWN_BY,
    correlation="eyestream.claims.correlation.additive:VALUES",
)
