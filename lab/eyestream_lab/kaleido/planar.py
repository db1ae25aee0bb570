"""Discrete planar Laplace noise: P(z) ~ exp(-a |z + (1/2, 1/2)|) on the integers of a plane, the norm Euclidean.

The probability of z changes by at most e^(a |d|) when z moves by d, which is what geo-indistinguishability asks
(Andres, Bordenabe, Chatzikokolakis, Palamidessi, CCS 2013, whose planar Laplace this is on a grid).

**Sampling.** Two independent discrete Laplace integers of rate b <= a / sqrt(2) (`eyestream.core.noise.laws`) are
proposed, and kept with probability exp(-(a |z'| - b |z'|_1)), z' = z + (1/2, 1/2), which is at most 1 because |z'|_1 <=
sqrt(2) |z'|. About 2 pi / 8 = 0.785 of the proposals are kept. How many are drawn depends on the noise alone, never on
gaze. The probability is computed with 40 decimal digits and compared with so many random bits that the least one, at
the far end of the field, still has 64 of them.

**Deviation.** The proposal's digits deviate by at most what `COORDINATE_DEVIATION` says, a coordinate, both neighbours
included. The factor that makes the sum 1 is one for both neighbours. The comparison rounds by less than 2^-63 of a
probability inside the field. `planar_rate` charges all of it. (With 128 bits alone, a place that is far away at a large
epsilon would be impossible from one place and possible from its neighbour.)

**Reach.** A noisy point is clamped to the field afterwards, [-A, A] on each axis. The integers of the proposal end at
T >= 2 A + 64 / b. A clamp begins at some noise X, 0 <= X <= 2 A. From X to T the law falls by at least
exp(-a (T^2 - X^2) / (2 sqrt(2) T)), where (T^2 - X^2) / T >= T - X >= 64 / b, hence by e^-32 or more, and further out
by more than that. So what is missing beyond T changes no probability by more than a factor of 1 + 2 e^-32, which is in
the charge too.
"""

import math
from decimal import Context, Decimal

import numpy as np
from numpy.typing import NDArray

from eyestream.core.noise import Bits
from eyestream.core.noise.laws import LaplaceLaw, ideal_rate

_CONTEXT = Context(prec=40)
_ROUNDING = 2.0**-33
_BELOW_ROOT_HALF = 0.7071067811865474  # rounded down
_FALL = 0.83  # (1 - 1/sqrt(2)) 2 sqrt(2), rounded up: how the logarithm falls from 0 to (2 A, 2 A), in units of a A


def planar_rate(epsilon: float, reach: int) -> float:
    """Largest a that keeps points at most `reach` integers apart within `epsilon`, deviations included.

    Raises
    ------
    OverflowError
        when epsilon is too small for the precision of the sampler.
    """
    return ideal_rate(epsilon - _ROUNDING, reach, 2)


class PlanarLaw:
    """One draw is (2,) integers.

    Parameters
    ----------
    rate
        a, per unit of the integers.
    largest
        A, bound on the absolute value of each coordinate that the noise is added to.

    Attributes
    ----------
    words : of random bits, 32 each, that decide whether a proposal is kept.

    Raises
    ------
    OverflowError
        when the noise does not fit into the integers of the sampler.
    """

    shape = (2,)

    def __init__(self, rate: float, largest: int) -> None:
        self._proposal = LaplaceLaw(np.array([rate * _BELOW_ROOT_HALF]), 2, largest)
        self.words = 2 + math.ceil(_FALL * rate * largest / (32 * math.log(2)))
        self._half_rate = _CONTEXT.divide(Decimal(rate), Decimal(2))
        self._half_proposal = _CONTEXT.divide(Decimal(float(self._proposal.rates[0])), Decimal(2))

    def sample(self, bits: Bits) -> NDArray[np.int64]:
        """One draw."""
        while True:
            drawn: NDArray[np.int64] = self._proposal.sample(bits)[0]
            uniform = int.from_bytes(bits.words(self.words).tobytes(), "little")
            if uniform < self.kept(*drawn.tolist()):
                return drawn

    def kept(self, x: int, y: int) -> int:
        """With what probability a proposal is kept, times 2^(32 words), rounded down."""
        across, upright = abs(2 * x + 1), abs(2 * y + 1)
        length = _CONTEXT.sqrt(Decimal(across * across + upright * upright))
        apart = _CONTEXT.subtract(
            _CONTEXT.multiply(self._half_rate, length),
            _CONTEXT.multiply(self._half_proposal, Decimal(across + upright)),
        )
        share = _CONTEXT.exp(-max(apart, Decimal(0)))
        return int(_CONTEXT.multiply(share, Decimal(2 ** (32 * self.words))))
