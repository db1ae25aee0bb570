"""DCFPA: noise on the first Fourier coefficients of a chunk's difference signal."""

from eyestream.privacy.additive.fourier import FILTERED, FourierOptions
from eyestream.privacy.additive.per_feature import SHOWN_BY
from eyestream.privacy.calibration import PerFeatureTables
from eyestream.privacy.mechanisms.dcfpa.mechanism import DCFPA
from eyestream.privacy.mechanisms.entry import Beginning, Entry, StudyForm

__all__ = ["DCFPA", "ENTRY"]

ENTRY = Entry(
    mechanism=DCFPA,
    options=FourierOptions,
    tables=PerFeatureTables,
    calibrate="eyestream.privacy.mechanisms.dcfpa.calibrate:calibrate",
    calibration_options=("coverage", "k"),
    declare="eyestream.privacy.mechanisms.dcfpa.calibrate:declare",
    beginning=Beginning(
        "everyday-dcfpa-64", rival="everyday-klt-one-64", switched_on=("clip", "smooth"), session_bound=True
    ),
    shown_by=SHOWN_BY,
    correlation="eyestream.correlation.additive:DIFFERENCES",
    study=(
        StudyForm("DCFPA", "#009E73"),
        StudyForm("DCFPA, shrunk", "#009E73", options={"shrink": True}, attacked=False),
        StudyForm("DCFPA, shrunk, smoothed, clipped", "#009E73", options=FILTERED, estimate=True, best=True),
    ),
    laboratory={
        "audit": "eyestream.lab.mechanisms.dcfpa:AUDIT",
        "law": "eyestream.lab.mechanisms.additive:emission",
        "study": "eyestream.lab.mechanisms.dcfpa:STUDY",
    },
)
