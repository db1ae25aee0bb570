"""CFPA: noise on the first Fourier coefficients of the chunk."""

from eyestream.core.additive.fourier import FILTERED, FourierOptions
from eyestream.core.additive.per_feature import SHOWN_BY
from eyestream.core.calibration import PerFeatureTables
from eyestream.core.mechanisms.cfpa.mechanism import CFPA
from eyestream.core.mechanisms.entry import Beginning, Entry, StudyForm

__all__ = ["CFPA", "ENTRY"]

ENTRY = Entry(
    mechanism=CFPA,
    options=FourierOptions,
    tables=PerFeatureTables,
    calibrate="eyestream.core.mechanisms.cfpa.calibrate:calibrate",
    calibration_options=("coverage", "k"),
    declare="eyestream.core.mechanisms.cfpa.calibrate:declare",
    beginning=Beginning(
        "everyday-cfpa-64", rival="everyday-klt-one-64", switched_on=("clip", "smooth"), session_bound=True
    ),
    shown_by=SHOWN_BY,
    correlation="eyestream.claims.correlation.additive:CHUNKS",
    study=(
        StudyForm("CFPA", "#0072B2"),
        StudyForm("CFPA, shrunk", "#0072B2", options={"shrink": True}, attacked=False),
        StudyForm("CFPA, shrunk, smoothed, clipped", "#0072B2", options=FILTERED, estimate=True, best=True),
    ),
    laboratory={
        "audit": "eyestream_lab.mechanisms.cfpa:AUDIT",
        "law": "eyestream_lab.mechanisms.additive:emission",
        "study": "eyestream_lab.mechanisms.cfpa:STUDY",
    },
)
