"""FPA: noise on the first Fourier coefficients of a whole recording. Offline only."""

from eyestream.core.calibration import Calibration
from eyestream.core.mechanism import Mechanism, building
from eyestream.core.noise import Noise
from eyestream_lab.fpa.mechanism import FPA

__all__ = ["FPA", "WHOLE", "build_whole"]

WHOLE = FPA.name
"""Name of the mechanism that releases a recording as one chunk."""


def build_whole(
    calibration: Calibration, epsilon: float, rows: int, *, k: int = 1, noise: Noise | None = None
) -> Mechanism:
    """The mechanism that releases a recording of `rows` rows as one chunk, inside the range of any calibration.

    Raises
    ------
    ConfigError
        when epsilon or k cannot be used.
    MechanismError
        as `eyestream.core.mechanisms.build`.
    """
    with building(FPA.name, epsilon):
        return FPA(calibration, epsilon, rows, k=k, noise=noise)
