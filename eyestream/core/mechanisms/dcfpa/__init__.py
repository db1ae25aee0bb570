"""DCFPA: noise on the first Fourier coefficients of a chunk's difference signal."""

from eyestream.core.additive.fourier import FourierOptions
from eyestream.core.additive.per_feature import SHOWN_BY
from eyestream.core.calibration import PerFeatureTables
from eyestream.core.mechanisms.dcfpa.mechanism import DCFPA
from eyestream.core.mechanisms.entry import Beginning, Entry

__all__ = ["DCFPA", "ENTRY"]

ENTRY = Entry(
    mechanism=DCFPA,
    options=FourierOptions,
    tables=PerFeatureTables,
    beginning=Beginning(
        "everyday-dcfpa-64", rival="everyday-klt-one-64", switched_on=("clip", "smooth"), session_bound=True
    ),
    shown_by=SHOWN_BY,
    correlation="eyestream.claims.correlation.additive:DIFFERENCES",
)
