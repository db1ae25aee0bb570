"""Mechanisms that add noise to coordinates: the one way in which they release a chunk.

Admit the chunk to the domain (impute, clamp), take it into the space of the ball, project it onto the ball, take
coordinates, snap them to integers of the lattice ball, add integer noise, clamp to a public interval. Everything after
that is post-processing. (The projection scales a feature, and so do the coordinates: the one multiplication is done
with the snap.) The mechanisms differ in the transform, the ball and the law of the noise, and that is what
their classes say.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError
from eyestream.privacy.calibration import Calibration
from eyestream.privacy.laws import LaplaceLaw
from eyestream.privacy.mechanism import Mechanism, Releaser
from eyestream.privacy.noise import Noise
from eyestream.privacy.smoothing import Smoother, SmootherState
from eyestream.privacy.transforms import Transform

__all__ = ["AdditiveMechanism", "Factor", "Lattice", "Output", "Parts"]

Array = NDArray[np.float64]


class Lattice(Protocol):
    """Face of the balls of integers."""

    def snap(self, coordinates: Array, factor: Array) -> NDArray[np.int64]:
        """Integers of the ball next to real coordinates, both (B, M), times a factor (B, 1)."""
        ...


class Factor(Protocol):
    """What projects residuals (B, m) onto balls of radius (B,)."""

    def __call__(self, residual: Array, radius: Array, /) -> Array:
        """(B, 1) factors between 0 and 1."""
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
    factor: Factor
    """The projection of the residuals."""
    radius: Array
    """(B,) radius of the ball that the residuals are projected onto."""
    lattice: Lattice
    law: LaplaceLaw
    steps: Array
    """(B, 1) or (B, M) grid steps; 0 for a coordinate of the block that is not released."""
    output: Output
    noise_sd: Array
    """(A,) expected standard deviation of the noise in a released value, root mean square over the rows."""
    k: tuple[int, ...]
    """Coefficients kept of each released feature; empty where nothing is cut."""


class AdditiveMechanism(Mechanism):
    """Noise on the coordinates of a projected chunk.

    Parameters
    ----------
    k
        Number of coefficients kept; by default the calibration's, else the one that minimises the expected error.
    shrink
        Shrink toward the corpus mean by the gain that minimises the expected error: post-processing.
    clip
        Clip the released values to the calibrated range: post-processing.
    smooth
        Filter the chunks of a session instead (`eyestream.privacy.smoothing`), which shrinks too: post-processing.

    Raises
    ------
    ConfigError
        when k is out of range.
    """

    def __init__(
        self,
        calibration: Calibration,
        epsilon: float,
        *,
        k: int | None = None,
        noise: Noise | None = None,
        shrink: bool = False,
        clip: bool = False,
        smooth: bool = False,
    ) -> None:
        super().__init__(calibration, epsilon, noise)
        active = self._active
        try:
            parts = self._assemble(k if k is not None else calibration.k, shrink and not smooth)
        except OverflowError as error:
            raise ConfigError(f"epsilon {epsilon:g} is outside what the arithmetic can hold: {error}") from None
        self._parts = parts
        self._scale = np.broadcast_to(parts.output.gain * parts.steps, parts.law.shape).copy()
        self._offset = parts.output.offset + parts.transform.chunk(0.5 * self._scale)  # the noise is centred at -1/2
        self.k = parts.k
        if len(parts.k) == len(active):
            kept = dict(zip(active.tolist(), parts.k, strict=True))
            self.k = tuple(kept.get(feature, 0) for feature in range(self.features))
        self._clip = (calibration.lo[active][:, None], calibration.hi[active][:, None]) if clip else None
        self.noise_sd = np.zeros(self.features)
        self.noise_sd[active] = parts.noise_sd
        self._smoother = self._make_smoother() if smooth else None
        if self._smoother is not None:
            self.noise_sd[active] = self._smoother.sd

    @abstractmethod
    def _assemble(self, k: int | None, shrink: bool) -> Parts:
        """The transform, the ball and the law of this mechanism."""

    def release(self, chunk: Array) -> Array:
        """One private release of a chunk (F, n); see `Mechanism.release`."""
        if self._smoother is not None:
            return self.session().release(chunk)
        with self._turn:
            return self._finish(self._noisy(self._admit(chunk)))

    @abstractmethod
    def _make_smoother(self) -> Smoother:
        """The filter for the chunks of a session."""

    def session(self) -> Releaser:
        """What releases the chunks of one session in order: the mechanism itself, unless it smooths."""
        return self if self._smoother is None else _SmoothedSession(self, SmootherState(self._smoother))

    def _noisy(self, admitted: Array) -> NDArray[np.int64]:
        """The private step: noisy integers (B, M) of the chunk (A, n); they count from the ball's centre less 1/2."""
        parts = self._parts
        residual = parts.transform.residual(admitted)
        factor = parts.factor(residual, parts.radius)
        integers = parts.lattice.snap(parts.transform.coordinates(residual), factor)
        integers += self._noise.draw(parts.law)
        return parts.law.clamp(integers)

    def _finish(self, integers: NDArray[np.int64]) -> Array:
        """Post-processing: noisy integers (B, M) to a chunk (F, n)."""
        self._plain(integers)
        return self._bounded()

    def _plain(self, integers: NDArray[np.int64]) -> Array:
        """(A, n) the released features that noisy integers stand for, in an array that the next call overwrites."""
        np.add(self._offset, self._parts.transform.chunk(integers * self._scale), out=self._released)
        return self._released

    def _bounded(self) -> Array:
        """(F, n) what was released, clipped if asked for, with the constants in their places."""
        if self._clip is not None:
            np.clip(self._released, *self._clip, out=self._released)
        return self._complete()


class _SmoothedSession:
    """The chunks of one session, filtered."""

    def __init__(self, mechanism: AdditiveMechanism, state: SmootherState) -> None:
        self._mechanism, self._state = mechanism, state

    def release(self, chunk: Array) -> Array:
        """One private release of the session's next chunk (F, n); see `Mechanism.release`."""
        mechanism = self._mechanism
        with mechanism._turn:
            plain = mechanism._plain(mechanism._noisy(mechanism._admit(chunk)))
            mechanism._released[:] = self._state.smooth(plain)
            return mechanism._bounded()
