"""CFPA: the chunked Fourier perturbation algorithm, noise on the first k Fourier coefficients of each feature's chunk.

Bozkir, Guenlue, Fuhl, Schaefer, Kasneci: Differential privacy for eye tracking with temporal correlations, PLOS ONE
16(8), 2021. What differs from the paper, and why: the sensitivity is enforced by projection onto a calibrated ball
instead of being read from the data; noise goes to the real and the imaginary part of each kept one-sided coefficient; k
minimises a closed form of public figures instead of the error on the data.
"""

from eyestream.core.additive.fourier import FourierOptions, Space, fourier_core
from eyestream.core.additive.per_feature import given
from eyestream.core.additive.signals import CHUNKS
from eyestream.core.additive.transforms import FourierTransform
from eyestream.core.calibration import Calibration
from eyestream.core.frame import Frame
from eyestream.core.mechanism import Mechanism
from eyestream.core.noise import Noise
from eyestream.core.protection import additive_protection
from eyestream.core.spectrum import Way

__all__ = ["CFPA", "SPACE"]

SPACE = Space(CHUNKS, FourierTransform)
"""The signal is the chunk itself."""


class CFPA(Mechanism):
    """Noise on the first k one-sided Fourier coefficients of the chunk, zero the rest; see `additive.fourier`.

    Parameters
    ----------
    calibration, epsilon, noise
        As for every mechanism.
    k, fill_band, shrink, clip, smooth, transform
        See `FourierOptions`.

    Raises
    ------
    ConfigError
        when epsilon or an option cannot be used.
    CalibrationError
        when the calibration was made for another mechanism.
    """

    name = "cfpa"
    protection = additive_protection(
        "noise on the real and imaginary parts of the first k Fourier coefficients of every released feature"
    )

    def __init__(
        self,
        calibration: Calibration,
        epsilon: float,
        *,
        k: int | None = None,
        noise: Noise | None = None,
        shrink: bool | None = None,
        clip: bool | None = None,
        smooth: bool | None = None,
        fill_band: bool | None = None,
        transform: Way | None = None,
    ) -> None:
        options = FourierOptions(k=k, shrink=shrink, clip=clip, smooth=smooth, fill_band=fill_band, transform=transform)
        frame = Frame.of(self.name, calibration, epsilon)
        super().__init__(frame, fourier_core(frame, SPACE, options), noise, given(options))
