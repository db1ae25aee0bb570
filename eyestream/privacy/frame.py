"""Which features of a chunk a mechanism releases, and at what price; checked once, before anything is built on it."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import CalibrationError, ConfigError
from eyestream.privacy.calibration import Calibration
from eyestream.privacy.charge import EPSILON_UNITS, MOST_UNITS, spendable
from eyestream.privacy.domain import Domain
from eyestream.privacy.workspaces import wide

__all__ = ["Frame", "Page"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Frame:
    """A calibration, the epsilon of one chunk, and the features that are released.

    Attributes
    ----------
    calibration
        Made for the mechanism.
    epsilon
        Of one chunk, all features together.
    active
        (A,) indices of the features that are released; the others are constants.
    """

    calibration: Calibration
    epsilon: float
    active: NDArray[np.intp]

    @classmethod
    def of(cls, name: str, calibration: Calibration, epsilon: float) -> "Frame":
        """The frame of the mechanism `name`.

        Raises
        ------
        ConfigError
            when epsilon is out of range.
        CalibrationError
            when the calibration was made for another mechanism, or every feature is a constant.
        """
        if calibration.mechanism != name:
            raise CalibrationError(f"the calibration was made for {calibration.mechanism}, not for {name}")
        if not (math.isfinite(epsilon) and epsilon > 0):
            raise ConfigError(f"epsilon must be a positive, finite number, not {epsilon}")
        if not 1 <= epsilon * EPSILON_UNITS <= MOST_UNITS:
            low, high = 1 / EPSILON_UNITS, MOST_UNITS / EPSILON_UNITS
            raise ConfigError(f"epsilon must lie between {low:g} and {high:g}, as a ledger counts it, not {epsilon}")
        active = np.flatnonzero(~calibration.constant)
        if len(active) == 0:
            raise CalibrationError("every feature of the calibration is a constant: there is nothing to release")
        return cls(calibration, spendable(float(epsilon)), active)

    @property
    def n(self) -> int:
        """Rows of a chunk."""
        return self.calibration.n

    @property
    def features(self) -> int:
        """F, constants included."""
        return len(self.calibration.names)

    @property
    def share(self) -> float:
        """Epsilon of one released feature, where each is coded by itself."""
        return self.epsilon / len(self.active)

    @property
    def range(self) -> tuple[Array, Array]:
        """(A, 1) lo and hi of the released features."""
        return self.calibration.lo[self.active][:, None], self.calibration.hi[self.active][:, None]

    def whole(self, values: Array) -> Array:
        """(F,) `values` (A,) in their places, 0 for constants."""
        every = np.zeros(self.features)
        every[self.active] = values
        return every


class Page:
    """The arrays in which one chunk is taken in and put together; of one release at a time.

    Attributes
    ----------
    released : (A, n) where the released features are written to.
    """

    def __init__(self, frame: Frame) -> None:
        calibration, active = frame.calibration, frame.active
        self._active = active
        self._domain = Domain(calibration.lo[active], calibration.hi[active], calibration.fill[active], frame.n)
        constants = np.flatnonzero(calibration.constant)
        self._order = np.argsort(np.concatenate([active, constants]))
        self._rows = wide(calibration.fill[np.concatenate([active, constants])][:, None], frame.n)
        self.released = self._rows[: len(active)]

    def admit(self, chunk: Array) -> Array:
        """(A, n) the features of a chunk (F, n) that are released, imputed and clamped; overwritten by the next."""
        return self._domain.admit(chunk.take(self._active, axis=0))

    def complete(self) -> Array:
        """(F, n) a new array of `released`, with the constants in their places."""
        return self._rows.take(self._order, axis=0)
