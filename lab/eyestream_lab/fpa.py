"""FPA: the Fourier perturbation algorithm over a whole recording: CFPA with one chunk as long as the recording.

Offline only, and with the declared range as its domain. (Rastogi, Nath: Differentially private aggregation of
distributed time-series with transformation and encryption, SIGMOD 2010; used on eye-movement features by Bozkir et al.,
PLOS ONE 16(8), 2021.)
"""

from dataclasses import replace

from eyestream.core.calibration import Calibration
from eyestream.core.frame import Frame
from eyestream.core.mechanism import Mechanism, building
from eyestream.core.mechanisms.fourier import SPACE, FourierOptions, fourier_core
from eyestream.core.noise import Noise
from eyestream.core.protection import additive_protection
from eyestream.core.release_type import Rows
from eyestream_lab.calibration.per_feature import declared_per_feature


class FPA(Mechanism):
    """CFPA with one chunk as long as the recording.

    Parameters
    ----------
    calibration
        Any calibration of these features; its range [lo, hi] is what counts, Delta_2 = sqrt(n) (hi - lo).
    epsilon
        Of the whole recording.
    rows
        Length of the recording. It is public.
    k
        By default 1, the best choice for eps_f below 8.4: a second coefficient adds 18 n (R / eps_f)^2 of noise, and
        cannot gain more than n R^2 / 4.
    noise
        As for every mechanism.

    Raises
    ------
    ConfigError
        when epsilon or k cannot be used.
    """

    name = "fpa"
    domain = Rows(powers_of_two=False)
    protection = additive_protection(
        "noise on the real and imaginary parts of the first k Fourier coefficients of every released feature, over the "
        "whole recording"
    )

    def __init__(
        self, calibration: Calibration, epsilon: float, rows: int, *, k: int = 1, noise: Noise | None = None
    ) -> None:
        whole = declared_per_feature(SPACE.signals, replace(calibration, mechanism=self.name, k=None), rows)
        frame = Frame.of(self.name, whole, epsilon)
        super().__init__(frame, fourier_core(frame, SPACE, FourierOptions(k=k)), noise, {"rows": rows, "k": k})


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
