"""LPA: noise on every value of a chunk."""

from eyestream.privacy.additive.per_feature import SHOWN_BY, PostProcessing
from eyestream.privacy.calibration import PerFeatureTables
from eyestream.privacy.mechanisms.entry import Entry, StudyForm
from eyestream.privacy.mechanisms.lpa.mechanism import LPA

__all__ = ["ENTRY", "LPA"]

ENTRY = Entry(
    mechanism=LPA,
    options=PostProcessing,
    tables=PerFeatureTables,
    calibrate="eyestream.privacy.mechanisms.lpa.calibrate:calibrate",
    calibration_options=("coverage",),
    declare="eyestream.privacy.mechanisms.lpa.calibrate:declare",
    shown_by=SHOWN_BY,
    correlation="eyestream.correlation.additive:VALUES",
    study=(StudyForm("LPA", "#E69F00"),),
    laboratory={
        "audit": "eyestream.lab.mechanisms.lpa:AUDIT",
        "law": "eyestream.lab.mechanisms.additive:emission",
        "study": "eyestream.lab.mechanisms.lpa:STUDY",
    },
)
