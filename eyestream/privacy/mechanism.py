"""The face that all mechanisms share, and the one way in which a chunk is released.

A mechanism is built once from (calibration, epsilon, noise) and then frozen. Its price is `epsilon` and `delta`: the
loss of one chunk of one device, all features together, under `replace_one` in the local model (two chunks are
neighbours when they differ in any way inside the declared domain). `release` is one release: releasing the same chunk
twice costs twice.

The steps are the same for all: admit the chunk to the domain (impute, clamp), take it into the space of the ball,
project it onto the ball, take coordinates, snap them to integers of the lattice ball, add integer noise, clamp to a
public interval. Everything after that is post-processing. The mechanisms differ in the transform, the ball and the law
of the noise, and that is what their classes say.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import CalibrationError, ConfigError
from eyestream.privacy.calibration import Calibration
from eyestream.privacy.domain import Domain
from eyestream.privacy.laws import Law
from eyestream.privacy.noise import Noise, SecureNoise
from eyestream.privacy.transforms import Transform

__all__ = ["Lattice", "Mechanism", "Output", "Parts", "Project", "Releaser"]

Array = NDArray[np.float64]


class Lattice(Protocol):
    """Face of the balls of integers."""

    def snap(self, coordinates: Array) -> NDArray[np.int64]:
        """Integers of the ball next to real coordinates, both (B, M)."""
        ...


class Project(Protocol):
    """Projection of residuals (B, m) onto balls of radius (B,), in place."""

    def __call__(self, residual: Array, radius: Array, /) -> Array:
        """The projected residuals."""
        ...


class Releaser(Protocol):
    """What gives private chunks for chunks: a mechanism, or a mechanism with the state of one session."""

    def release(self, chunk: Array, /) -> Array:
        """One private release of a chunk (F, n)."""
        ...


@dataclass(frozen=True)
class Output:
    """Post-processing into a chunk: offset + gain * chunk(coordinates), for the released features."""

    offset: Array
    """(A, n) what stays when all coordinates are those of the centre."""
    gain: Array
    """(A, 1) shrinkage of each feature; ones for the plain form."""


@dataclass(frozen=True)
class Parts:
    """What a mechanism is made of; A features are released, in B blocks of M coordinates."""

    transform: Transform
    project: Project
    radius: Array
    """(B,) radius of the ball that the residuals are projected onto."""
    lattice: Lattice
    law: Law
    steps: Array
    """(B, 1) or (B, M) grid steps; 0 for a coordinate of the block that is not released."""
    output: Output
    noise_sd: Array
    """(A,) expected standard deviation of the noise in a released value, root mean square over the rows."""
    k: tuple[int, ...]
    """Coefficients kept of each released feature; a single number where the features are coded jointly; else empty."""


class Mechanism(ABC):
    """Private release of chunks.

    Parameters
    ----------
    calibration
        Made for this mechanism.
    epsilon
        Loss of one chunk, all features together.
    k
        Number of coefficients kept; by default the calibration's, else the one that minimises the expected error.
    noise
        Source of noise; tests alone pass another than `SecureNoise`.
    shrink
        Shrink toward the corpus mean by the gain that minimises the expected error: post-processing.
    clip
        Clip the released values to the calibrated range: post-processing.

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
        when epsilon or k is out of range, or epsilon does not fit the arithmetic.
    CalibrationError
        when the calibration was made for another mechanism.
    """

    name: ClassVar[str]
    delta: float = 0.0

    def __init__(
        self,
        calibration: Calibration,
        epsilon: float,
        *,
        k: int | None = None,
        noise: Noise | None = None,
        shrink: bool = False,
        clip: bool = False,
    ) -> None:
        if calibration.mechanism != self.name:
            raise CalibrationError(f"the calibration was made for {calibration.mechanism}, not for {self.name}")
        if not (math.isfinite(epsilon) and epsilon > 0):
            raise ConfigError(f"epsilon must be a positive, finite number, not {epsilon}")
        self.calibration = calibration
        self.epsilon = float(epsilon)
        self.n = calibration.n
        self.features = len(calibration.names)
        self._noise = noise if noise is not None else SecureNoise()
        self._active = np.flatnonzero(~calibration.constant)
        if len(self._active) == 0:
            raise CalibrationError("every feature of the calibration is a constant: there is nothing to release")
        try:
            parts = self._assemble(k if k is not None else calibration.k, shrink)
        except OverflowError as error:
            raise ConfigError(f"epsilon {epsilon:g} is outside what the arithmetic can hold: {error}") from None
        self._parts = parts
        active = self._active
        self.k = parts.k
        if len(parts.k) == len(active):
            kept = dict(zip(active.tolist(), parts.k, strict=True))
            self.k = tuple(kept.get(feature, 0) for feature in range(self.features))
        self._domain = Domain(calibration.lo[active], calibration.hi[active], calibration.fill[active], self.n)
        self._clip = (calibration.lo[active][:, None], calibration.hi[active][:, None]) if clip else None
        self._template = np.repeat(calibration.fill[:, None], self.n, axis=1)
        self.noise_sd = np.zeros(self.features)
        self.noise_sd[active] = parts.noise_sd

    @abstractmethod
    def _assemble(self, k: int | None, shrink: bool) -> Parts:
        """The transform, the ball and the law of this mechanism."""

    @property
    def guarantee(self) -> str:
        """The claim about one released chunk, in words."""
        if not self._noise.certified:
            return "none: the noise comes from a test source"
        return (
            f"{self.epsilon:g}-differential privacy (pure) for one chunk of {self.n} rows of one device, all features "
            "together, replace-one, local model; losses of chunks add up"
        )

    def prepare(self) -> None:
        """Draw the noise of the next release ahead of time, if there is time for it."""
        self._noise.ahead(self._parts.law)

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
        if chunk.shape != (self.features, self.n):
            raise ValueError(f"a chunk must have the shape {(self.features, self.n)}, not {chunk.shape}")
        return self._finish(self._noisy(chunk))

    def session(self) -> "Releaser":
        """What releases the chunks of one session in order; the mechanism itself when chunks do not help each other."""
        return self

    def _noisy(self, chunk: Array) -> Array:
        """The private step: noisy coordinates (B, M) of a chunk (F, n), relative to those of the ball's centre."""
        parts = self._parts
        admitted = self._domain.admit(chunk[self._active])
        residual = parts.project(parts.transform.residual(admitted), parts.radius)
        integers = parts.lattice.snap(parts.transform.coordinates(residual))
        integers += self._noise.draw(parts.law)
        np.clip(integers, -parts.law.limit, parts.law.limit, out=integers)
        return (integers + 0.5) * parts.steps

    def _finish(self, coordinates: Array) -> Array:
        """Post-processing: noisy coordinates (B, M) to a chunk (F, n)."""
        output = self._parts.output
        released = output.offset + output.gain * self._parts.transform.chunk(coordinates)
        if self._clip is not None:
            np.clip(released, *self._clip, out=released)
        chunk = self._template.copy()
        chunk[self._active] = released
        return chunk
