"""CFPA: noise on the first Fourier coefficients of the chunk."""

from eyestream.core.additive.fourier import FourierOptions
from eyestream.core.additive.per_feature import SHOWN_BY
from eyestream.core.calibration import PerFeatureTables
from eyestream.core.mechanisms.cfpa.mechanism import CFPA
from eyestream.core.mechanisms.entry import Beginning, Entry

__all__ = ["CFPA", "ENTRY"]

ENTRY = Entry(
    mechanism=CFPA,
    options=FourierOptions,
    tables=PerFeatureTables,
    beginning=Beginning(
        "everyday-cfpa-64", rival="everyday-klt-one-64", switched_on=("clip", "smooth"), session_bound=True
    ),
    shown_by=SHOWN_BY,
    correlation="eyestream.claims.correlation.additive:CHUNKS",
)
