"""The one way in which a mechanism adds noise to coordinates of a chunk.

Take the admitted chunk into the space of the ball, project it onto the ball, take coordinates, snap them to integers of
the lattice ball, add integer noise, clamp to a public interval: the private step. Everything after that is
post-processing, composed of parts: shrink (a gain toward the corpus mean), smooth (a filter over the session), clip.
(The projection scales a feature, and so do the coordinates: the one multiplication is done with the snap.) Mechanisms
differ in the transform, the ball, the lattice and the law of the noise.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from eyestream.core.additive.smoothing import Smoother
from eyestream.core.additive.transforms import Transform
from eyestream.core.leakage import ball_gain, composed_gain
from eyestream.core.noise import Noise
from eyestream.core.noise.laws import DIGIT_DEVIATION, LaplaceLaw

__all__ = ["AdditiveCore", "AdditiveStep", "Factor", "Lattice", "Output", "PrivateStep"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Lattice(Protocol):
    """Face of the balls of integers."""

    largest: int
    l1_diameter: Integers

    def snap(self, coordinates: Array, factor: Array) -> Integers:
        """Integers of the ball next to real coordinates, both (B, M), times a factor (B, 1)."""
        ...


class Factor(Protocol):
    """What projects residuals (B, m) onto balls of radius (B,)."""

    def __call__(self, residual: Array, radius: Array, /) -> Array:
        """(B, 1) factors between 0 and 1."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class PrivateStep:
    """From an admitted chunk (A, n) to noisy integers (B, M); A features are released, in B blocks of M coordinates.

    Attributes
    ----------
    transform : makes a transform with buffers of its own.
    factor : the projection of the residuals.
    radius : (B,) of the ball that the residuals are projected onto.
    lattice, law : the ball of integers, and the noise on them.
    steps : (B, 1) or (B, M) grid steps; 0 for a coordinate of the block that is not released.
    noise_sd : (A,) standard deviation of the noise in a released value before any gain, root mean square over the rows.
    k : coefficients kept of each released feature; empty where nothing is cut.
    """

    transform: Callable[[], Transform]
    factor: Factor
    radius: Array
    lattice: Lattice
    law: LaplaceLaw
    steps: Array
    noise_sd: Array
    k: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Output:
    """Post-processing into a chunk: clip(smooth(offset + gain * chunk(coordinates))), for the released features.

    Attributes
    ----------
    offset : (A, n) what is released when all coordinates are those of the centre.
    gain : (A, 1) shrinkage of each feature; ones for the plain form.
    smoother : filters the chunks of a session.
    clip : (A, 1) lowest and highest released value.
    """

    offset: Array
    gain: Array
    smoother: Smoother | None = None
    clip: tuple[Array, Array] | None = None


class AdditiveCore:
    """Noise on the coordinates of a projected chunk; a core for `eyestream.core.mechanism`.

    Attributes
    ----------
    private, output : what it is made of.
    scale : (B, M) from integers to coordinates, gain included.
    offset : (A, n) of the output; the noise is centred at -1/2, which is made up for here.
    """

    delta = Fraction(0)

    def __init__(self, private: PrivateStep, output: Output) -> None:
        self.private, self.output = private, output
        self.k = private.k
        self.scale = np.broadcast_to(output.gain * private.steps, private.law.shape).copy()
        self.offset = output.offset + private.transform().chunk(0.5 * self.scale)
        self.noise_sd = output.gain[:, 0] * private.noise_sd if output.smoother is None else output.smoother.sd
        self.start = None if output.smoother is None else output.smoother.start

    @property
    def gain(self) -> Fraction:
        """Upper bound on the gain of one chunk, the product over the blocks; computed again each time."""
        lattice, law = self.private.lattice, self.private.law
        _, count = law.shape
        deviation = len(law.digits.words) * DIGIT_DEVIATION

        @functools.cache
        def block(rate: float, l1_diameter: int) -> Fraction:
            radius = Fraction(l1_diameter, 2)
            return ball_gain(rate, [lattice.largest] * count, radius, len(law.digits.words), deviation=deviation)

        return composed_gain(map(block, law.rates.tolist(), lattice.l1_diameter.tolist()))

    def step(self) -> "AdditiveStep":
        """What releases, with arrays of its own."""
        return AdditiveStep(self)


class AdditiveStep:
    """One release at a time."""

    def __init__(self, core: AdditiveCore) -> None:
        self.core = core
        self.transform = core.private.transform()
        self.law = core.private.law.own()

    def noisy(self, admitted: Array, noise: Noise) -> Integers:
        """The private step: noisy integers (B, M) of a chunk (A, n); they count from the ball's centre less 1/2."""
        private = self.core.private
        residual = self.transform.residual(admitted)
        factor = private.factor(residual, private.radius)
        integers = private.lattice.snap(self.transform.coordinates(residual), factor)
        integers += noise.draw(self.law)
        return private.law.clamp(integers)

    def plain(self, integers: Integers, out: Array) -> None:
        """Write the features (A, n) that noisy integers stand for to `out`."""
        np.add(self.core.offset, self.transform.chunk(integers * self.core.scale), out=out)

    def release(self, admitted: Array, noise: Noise, turn: int, state: Array | None, out: Array) -> Array | None:
        """As `eyestream.core.mechanism.Step` has it."""
        self.plain(self.noisy(admitted, noise), out)
        output = self.core.output
        if output.smoother is not None:
            assert state is not None
            out[:], state = output.smoother.smooth(out, turn, state)
        if output.clip is not None:
            np.clip(out, *output.clip, out=out)
        return state
