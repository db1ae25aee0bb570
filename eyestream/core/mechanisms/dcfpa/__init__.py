"""DCFPA: noise on the first Fourier coefficients of a chunk's difference signal."""

from eyestream.core.additive.fourier import FILTERED, FourierOptions
from eyestream.core.additive.per_feature import SHOWN_BY
from eyestream.core.calibration import PerFeatureTables
from eyestream.core.mechanisms.dcfpa.mechanism import DCFPA
from eyestream.core.mechanisms.entry import Beginning, Entry, StudyForm

__all__ = ["DCFPA", "ENTRY"]

ENTRY = Entry(
    mechanism=DCFPA,
    options=FourierOptions,
    tables=PerFeatureTables,
    calibrate="eyestream.core.mechanisms.dcfpa.calibrate:calibrate",
    calibration_options=("coverage", "k"),
    declare="eyestream.core.mechanisms.dcfpa.calibrate:declare",
    beginning=Beginning(
        "everyday-dcfpa-64", rival="everyday-klt-one-64", switched_on=("clip", "smooth"), session_bound=True
    ),
    shown_by=SHOWN_BY,
    correlation="eyestream.claims.correlation.additive:DIFFERENCES",
    study=(
        StudyForm("DCFPA", "#009E73"),
        StudyForm("DCFPA, shrunk", "#009E73", options={"shrink": True}, attacked=False),
        StudyForm("DCFPA, shrunk, smoothed, clipped", "#009E73", options=FILTERED, estimate=True, best=True),
    ),
    laboratory={
        "audit": "eyestream_lab.mechanisms.dcfpa:AUDIT",
        "law": "eyestream_lab.mechanisms.additive:emission",
        "study": "eyestream_lab.mechanisms.dcfpa:STUDY",
    },
)
