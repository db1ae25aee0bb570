"""CFPA: noise on the first Fourier coefficients of the chunk."""

from eyestream.privacy.additive.fourier import FILTERED, FourierOptions
from eyestream.privacy.additive.per_feature import SHOWN_BY
from eyestream.privacy.calibration import PerFeatureTables
from eyestream.privacy.mechanisms.cfpa.mechanism import CFPA
from eyestream.privacy.mechanisms.entry import Beginning, Entry, StudyForm

__all__ = ["CFPA", "ENTRY"]

ENTRY = Entry(
    mechanism=CFPA,
    options=FourierOptions,
    tables=PerFeatureTables,
    calibrate="eyestream.privacy.mechanisms.cfpa.calibrate:calibrate",
    calibration_options=("coverage", "k"),
    declare="eyestream.privacy.mechanisms.cfpa.calibrate:declare",
    beginning=Beginning(
        "everyday-cfpa-64", rival="everyday-klt-one-64", switched_on=("clip", "smooth"), session_bound=True
    ),
    shown_by=SHOWN_BY,
    correlation="eyestream.correlation.additive:CHUNKS",
    study=(
        StudyForm("CFPA", "#0072B2"),
        StudyForm("CFPA, shrunk", "#0072B2", options={"shrink": True}, attacked=False),
        StudyForm("CFPA, shrunk, smoothed, clipped", "#0072B2", options=FILTERED, estimate=True, best=True),
    ),
    laboratory={
        "audit": "eyestream.lab.mechanisms.cfpa:AUDIT",
        "law": "eyestream.lab.mechanisms.additive:emission",
        "study": "eyestream.lab.mechanisms.cfpa:STUDY",
    },
)
