"""What the laboratory knows of `category_response`: how it is calibrated. Releasing needs no such file."""

from typing import Any

import numpy as np
from category_response import ENTRY, CategoryResponse, Labels

from eyestream.core.calibration import Calibration
from eyestream.errors import ConfigError
from eyestream_lab.calibration import Corpus
from eyestream_lab.parts import LaboratoryPart, register_part

__all__ = ["ENTRY", "PART", "calibrate"]


def calibrate(
    corpus: Corpus, *, categories: int = 0, declared: Any = (), description: str = "declared", progress: Any = None
) -> Calibration:
    """The declared categories. Of the recordings, only names, units and rate are used: nothing is learned of people."""
    if not 2 <= categories <= 4096:
        raise ConfigError(f"--option categories: expected 2 to 4096, not {categories}")
    highest, nothing = np.array([float(categories - 1)]), np.zeros(1)
    return corpus.calibration(
        CategoryResponse.name, Labels(highest), description=description, lo=nothing, hi=highest, fill=nothing
    )


PART = register_part(ENTRY.name, LaboratoryPart(calibrate, calibration_options=("categories",)))
