"""LPA: the Laplace perturbation algorithm, noise on every value of a chunk.

Noise of scale Delta_1 / eps_f on every row of every feature, Delta_1 = 2 r of the L1 ball of the chunk. (Bozkir,
Guenlue, Fuhl, Schaefer, Kasneci: Differential privacy for eye tracking with temporal correlations, PLOS ONE 16(8),
2021; there the sensitivity is read from the data, here it is enforced by projection onto a calibrated ball.)
"""

import numpy as np
from numpy.typing import NDArray

from eyestream.core.additive.ball import L1Lattice, l1_factor, steps_for
from eyestream.core.additive.core import (
    SHOWN_BY,
    AdditiveCore,
    Output,
    PostProcessing,
    PrivateStep,
    ReleasedColumns,
    core_of,
    given,
    law_of,
)
from eyestream.core.additive.signals import TimeTransform, lpa_noise
from eyestream.core.calibration import Calibration, PerFeatureTables
from eyestream.core.frame import Frame
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms.entry import Entry
from eyestream.core.noise import Noise
from eyestream.core.protection import additive_protection
from eyestream.errors import ConfigError

Array = NDArray[np.float64]


class LPA(Mechanism):
    """Laplace perturbation: noise of scale Delta_1 / eps_f on every value.

    Parameters
    ----------
    calibration, epsilon, noise
        As for every mechanism.
    shrink, clip, smooth
        Post-processing, see `PostProcessing`.

    Raises
    ------
    ConfigError
        when epsilon or an option cannot be used.
    CalibrationError
        when the calibration was made for another mechanism.
    """

    name = "lpa"
    protection = additive_protection("noise on every value of every released feature")

    def __init__(
        self,
        calibration: Calibration,
        epsilon: float,
        *,
        noise: Noise | None = None,
        shrink: bool | None = None,
        clip: bool | None = None,
        smooth: bool | None = None,
    ) -> None:
        options = PostProcessing(shrink=shrink, clip=clip, smooth=smooth)
        frame = Frame.of(self.name, calibration, epsilon)
        super().__init__(frame, _core(frame, options), noise, given(options))


def _core(frame: Frame, options: PostProcessing) -> AdditiveCore:
    if frame.calibration.k is not None:
        raise ConfigError("lpa keeps no coefficients: a calibration with k is not for it")
    columns = ReleasedColumns.of(frame)
    scale = 2 * columns.radius * len(frame.active) / frame.epsilon
    try:
        private = _private(frame, columns, scale)
    except OverflowError as error:
        raise ConfigError(f"epsilon {frame.epsilon:g} is outside what the arithmetic can hold: {error}") from None
    if not options.shrinks:
        return core_of(frame, private, Output(columns.centre, np.ones((len(scale), 1))), options)
    gain = columns.gain(lpa_noise(frame.n)[0] * scale**2, np.ones(len(scale), dtype=np.intp))
    return core_of(frame, private, Output(columns.mean + gain * (columns.centre - columns.mean), gain), options)


def _private(frame: Frame, columns: ReleasedColumns, scale: Array) -> PrivateStep:
    steps = steps_for(scale, columns.radius)
    lattice = L1Lattice(columns.radius, steps, frame.n)
    law = law_of(frame, lattice.l1_diameter, frame.n, lattice.largest)
    return PrivateStep(
        transform=lambda: TimeTransform(columns.centre),
        factor=l1_factor,
        radius=columns.radius,
        lattice=lattice,
        law=law,
        steps=steps[:, None],
        noise_sd=law.sd * steps,
    )


ENTRY = Entry(
    mechanism=LPA,
    options=PostProcessing,
    tables=PerFeatureTables,
    shown_by=SHOWN_BY,
    correlation="eyestream.claims.correlation.additive:VALUES",
)
