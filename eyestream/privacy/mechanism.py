"""The face that all mechanisms share.

A mechanism is built once from (calibration, epsilon, noise) and then frozen. Its price is `epsilon` and `delta`: the
loss of one chunk of one device, all features together, under `replace_one` in the local model (two chunks are
neighbours when they differ in any way inside the declared domain). `release` is one release: releasing the same chunk
twice costs twice.
"""

import math
import threading
from abc import ABC, abstractmethod
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import CalibrationError, ConfigError
from eyestream.privacy.calibration import Calibration
from eyestream.privacy.charge import EPSILON_UNITS, MOST_UNITS
from eyestream.privacy.domain import Domain
from eyestream.privacy.noise import Noise, SecureNoise

__all__ = ["Mechanism", "Releaser"]

Array = NDArray[np.float64]


class Releaser(Protocol):
    """What gives private chunks for chunks: a mechanism, or a mechanism with the state of one session."""

    def release(self, chunk: Array, /) -> Array:
        """One private release of a chunk (F, n)."""
        ...


class Mechanism(ABC):
    """Private release of chunks.

    Releases of one mechanism, by several threads or in several sessions, wait for one another: they share its scratch
    arrays. One session is for one thread.

    Parameters
    ----------
    calibration
        Made for this mechanism.
    epsilon
        Loss of one chunk, all features together.
    noise
        Source of noise; tests alone pass another than `SecureNoise`.

    Attributes
    ----------
    epsilon, delta : loss of one chunk.
    guarantee : the claim in words, or "none" with its reason.
    noise_sd : (F,) expected standard deviation of the noise in a released value; 0 for constants.
    n, features : chunk length and number of features, constants included.
    k : coefficients kept of each feature, 0 for constants; one number where the features are coded jointly; empty where
        nothing is cut.

    Raises
    ------
    ConfigError
        when epsilon is out of range, or does not fit the arithmetic.
    CalibrationError
        when the calibration was made for another mechanism.
    """

    name: ClassVar[str]
    delta: float = 0.0
    k: tuple[int, ...]
    noise_sd: Array

    def __init__(self, calibration: Calibration, epsilon: float, noise: Noise | None) -> None:
        if calibration.mechanism != self.name:
            raise CalibrationError(f"the calibration was made for {calibration.mechanism}, not for {self.name}")
        if not (math.isfinite(epsilon) and epsilon > 0):
            raise ConfigError(f"epsilon must be a positive, finite number, not {epsilon}")
        if not 1 <= epsilon * EPSILON_UNITS <= MOST_UNITS:
            low, high = 1 / EPSILON_UNITS, MOST_UNITS / EPSILON_UNITS
            raise ConfigError(f"epsilon must lie between {low:g} and {high:g}, as a ledger counts it, not {epsilon}")
        self.calibration = calibration
        self.epsilon = float(epsilon)
        self.n = calibration.n
        self.features = len(calibration.names)
        self._shape = (self.features, self.n)
        self._turn = threading.Lock()
        self._noise = noise if noise is not None else SecureNoise()
        self._active = active = np.flatnonzero(~calibration.constant)
        if len(active) == 0:
            raise CalibrationError("every feature of the calibration is a constant: there is nothing to release")
        self._domain = Domain(calibration.lo[active], calibration.hi[active], calibration.fill[active], self.n)
        constants = np.flatnonzero(calibration.constant)
        self._order = np.argsort(np.concatenate([active, constants]))
        self._rows = np.repeat(calibration.fill[np.concatenate([active, constants])][:, None], self.n, axis=1)
        self._released = self._rows[: len(active)]

    @property
    def guarantee(self) -> str:
        """The claim about one released chunk, in words."""
        if not self._noise.certified:
            return "none: the noise comes from a test source"
        return (
            f"{self.epsilon:g}-differential privacy (pure) for one chunk of {self.n} rows of one device, all features "
            "together, replace-one, local model; losses of chunks add up"
        )

    @abstractmethod
    def release(self, chunk: Array) -> Array:
        """One private release of a chunk.

        Parameters
        ----------
        chunk
            (F, n), features by rows; any values, NaN and infinities are missing.

        Returns
        -------
        (F, n), a new array.

        Raises
        ------
        ValueError
            when the shape is another.
        """

    def session(self) -> Releaser:
        """What releases the chunks of one session in order; the mechanism itself when chunks do not help each other."""
        return self

    def _admit(self, chunk: Array) -> Array:
        """(A, n) the features that are released, imputed and clamped; raises ValueError for another shape."""
        if chunk.shape != self._shape:
            raise ValueError(f"a chunk must have the shape {self._shape}, not {chunk.shape}")
        return self._domain.admit(chunk.take(self._active, axis=0))

    def _complete(self) -> Array:
        """(F, n) a new array of the features in `_released` (A, n), with the constants in their places."""
        return self._rows.take(self._order, axis=0)
