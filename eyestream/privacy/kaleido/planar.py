"""Discrete planar Laplace noise: P(z) ~ exp(-a |z + (1/2, 1/2)|) on the integers of a plane, the norm Euclidean.

The probability of z changes by at most e^(a |d|) when z moves by d, which is what geo-indistinguishability asks
(Andres, Bordenabe, Chatzikokolakis, Palamidessi, CCS 2013, whose planar Laplace this is on a grid).

**Sampling.** Two independent discrete Laplace integers of rate b <= a / sqrt(2) (`eyestream.privacy.noise.laws`) are
proposed, and kept with probability exp(-(a |z'| - b |z'|_1)), z' = z + (1/2, 1/2), which is at most 1 because |z'|_1 <=
sqrt(2) |z'|. About 2 pi / 8 = 0.785 of the proposals are kept. How many are drawn depends on the noise alone, never on
gaze. The probability is computed with 40 decimal digits and compared with 128 random bits.

**Deviation.** The proposal's digits deviate by at most what `COORDINATE_DEVIATION` says, a coordinate, both neighbours
included. The factor that makes the sum 1 is one for both neighbours. The comparison rounds by less than 2^-128 of at
least e^-64 where it matters, which is below 2^-35 in the logarithm. `planar_rate` charges all of it.

**Reach.** A noisy point is clamped to the field afterwards, [-A, A] on each axis. The integers of the proposal end at T
>= 2 A + 64 / b. Shifted by s = T - 2 A from where a clamp begins, the law has fallen by at least exp(-a s (T + X) / (2
sqrt(2) T)) <= e^-32 (X >= 0 is where it begins), so what is missing beyond T changes no probability by more than a
factor of 1 + 2 e^-32. That is in the charge too.
"""

from decimal import Context, Decimal

import numpy as np
from numpy.typing import NDArray

from eyestream.privacy.noise.bits import Bits
from eyestream.privacy.noise.laws import LaplaceLaw, ideal_rate

__all__ = ["PlanarLaw", "planar_rate"]

_CONTEXT = Context(prec=40)
_ROUNDING = 2.0**-33
_BELOW_ROOT_HALF = 0.7071067811865474  # rounded down


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

    Raises
    ------
    OverflowError
        when the noise does not fit into the integers of the sampler.
    """

    shape = (2,)

    def __init__(self, rate: float, largest: int) -> None:
        self._proposal = LaplaceLaw(np.array([rate * _BELOW_ROOT_HALF]), 2, largest)
        self._half_rate = _CONTEXT.divide(Decimal(rate), Decimal(2))
        self._half_proposal = _CONTEXT.divide(Decimal(float(self._proposal.rates[0])), Decimal(2))

    def sample(self, bits: Bits) -> NDArray[np.int64]:
        """One draw."""
        while True:
            drawn: NDArray[np.int64] = self._proposal.sample(bits)[0]
            uniform = int.from_bytes(bits.words(4).tobytes(), "little")
            if uniform < self.kept(*drawn.tolist()):
                return drawn

    def kept(self, x: int, y: int) -> int:
        """With what probability a proposal is kept, times 2^128, rounded down."""
        across, upright = abs(2 * x + 1), abs(2 * y + 1)
        length = _CONTEXT.sqrt(Decimal(across * across + upright * upright))
        apart = _CONTEXT.subtract(
            _CONTEXT.multiply(self._half_rate, length),
            _CONTEXT.multiply(self._half_proposal, Decimal(across + upright)),
        )
        share = _CONTEXT.exp(-max(apart, Decimal(0)))
        return int(_CONTEXT.multiply(share, Decimal(2**128)))
