"""LPA: noise on every value of a chunk."""

from eyestream.core.additive.per_feature import SHOWN_BY, PostProcessing
from eyestream.core.calibration import PerFeatureTables
from eyestream.core.mechanisms.entry import Entry, StudyForm
from eyestream.core.mechanisms.lpa.mechanism import LPA

__all__ = ["ENTRY", "LPA"]

ENTRY = Entry(
    mechanism=LPA,
    options=PostProcessing,
    tables=PerFeatureTables,
    calibrate="eyestream.core.mechanisms.lpa.calibrate:calibrate",
    calibration_options=("coverage",),
    declare="eyestream.core.mechanisms.lpa.calibrate:declare",
    shown_by=SHOWN_BY,
    correlation="eyestream.claims.correlation.additive:VALUES",
    study=(StudyForm("LPA", "#E69F00"),),
    laboratory={
        "audit": "eyestream_lab.mechanisms.lpa:AUDIT",
        "law": "eyestream_lab.mechanisms.additive:emission",
        "study": "eyestream_lab.mechanisms.lpa:STUDY",
    },
)
