"""Play one case of the tape on the code of today."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanisms import build
from eyestream.core.whole import release_rows
from eyestream.rim.files import calibrations
from eyestream_lab.fpa import FPA
from eyestream_lab.testing.noise import WordNoise
from tests.product.tape.cases import CALIBRATIONS, CHUNKS, Case, Tape, inputs

__all__ = ["played"]


def played(case: Case) -> NDArray[np.float64]:
    """(CHUNKS, F, n) what a session releases; (F, rows) for a whole recording."""
    calibration = calibrations.load(str(CALIBRATIONS / f"{case.calibration}.npz"))
    options: dict[str, Any] = dict(case.options)
    options["noise"] = WordNoise(Tape(options.pop("noise_label", case.name)))
    chunks = inputs(calibration.lo, calibration.hi, calibration.n)
    rows = options.pop("whole", None)
    if rows is not None:
        recording = np.concatenate([*chunks, *chunks], axis=1)[:, :rows].T
        return release_rows(FPA(calibration, case.epsilon, rows, **options), recording).T
    session = build(calibration, case.epsilon, **options).session()
    assert len(chunks) == CHUNKS
    return np.stack([session.release(chunk) for chunk in chunks])
