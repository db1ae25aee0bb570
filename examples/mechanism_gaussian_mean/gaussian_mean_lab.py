"""What the laboratory knows of `gaussian_mean`: how it is calibrated. Releasing needs no such file."""

from typing import Any

import numpy as np
from gaussian_mean import ENTRY, GaussianMean, Widths

from eyestream_lab.calibration import Corpus
from eyestream_lab.parts import LaboratoryPart, register_part

__all__ = ["ENTRY", "PART", "calibrate"]


def calibrate(corpus: Corpus, *, declared: Any = (), description: str = "recordings", progress: Any = None) -> Any:
    """The range of every feature, from a public corpus."""
    fixed, widths = np.isin(corpus.names, list(declared)), Widths(corpus.hi - corpus.lo)
    return corpus.calibration(GaussianMean.name, widths, description=description, declared=fixed)


PART = register_part(ENTRY.name, LaboratoryPart(calibrate))
