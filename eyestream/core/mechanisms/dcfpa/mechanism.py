"""DCFPA: the difference- and chunk-based Fourier perturbation algorithm: CFPA of the chunk's difference signal.

Bozkir et al., PLOS ONE 16(8), 2021. The ball holds difference signals (first element kept), so the noise is scaled to
*their* sensitivity. The paper prints the way back as a sum of two terms; only the cumulative sum inverts the
differences, and it is post-processing. Differences restart in every chunk.
"""

from eyestream.core.additive.fourier import FourierOptions, Space, fourier_core
from eyestream.core.additive.per_feature import given
from eyestream.core.additive.signals import DIFFERENCES
from eyestream.core.additive.transforms import DifferenceFourierTransform
from eyestream.core.calibration import Calibration
from eyestream.core.frame import Frame
from eyestream.core.mechanism import Mechanism
from eyestream.core.noise import Noise
from eyestream.core.protection import additive_protection
from eyestream.core.spectrum import Way

__all__ = ["DCFPA", "SPACE"]

SPACE = Space(DIFFERENCES, DifferenceFourierTransform)
"""The signal is the chunk's differences; the transform integrates on the way back."""


class DCFPA(Mechanism):
    """CFPA of the chunk's difference signal, then the cumulative sum; see `additive.fourier`.

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

    name = "dcfpa"
    protection = additive_protection(
        "noise on the real and imaginary parts of the first k Fourier coefficients of the difference signal of every "
        "released feature"
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
