"""Loss across releases of additive noise under a published class of processes.

`eyestream.claims.correlation.published` has the proof: the loss of a release s chunks from the secret is at most
mean over features of min(m, c a^s) epsilon + g. A mechanism differs from another in c and m alone.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from eyestream.claims.correlation.published import OUTWARD, PublishedClass
from eyestream.core.additive.core import AdditiveCore
from eyestream.core.calibration import PerFeatureTables
from eyestream.core.mechanism import Mechanism
from eyestream.core.noise.laws import COORDINATE_DEVIATION

Array = NDArray[np.float64]

_NEAR = 20_000  # chunks beyond it count like the last one before


@dataclass(frozen=True)
class AdditiveBound:
    """A `CrossChunkBound` of additive noise.

    Attributes
    ----------
    shares : c and m (A,) of each released feature, of a mechanism.
    both : where the two contents that are compared lie, in words.
    """

    shares: Callable[[Mechanism], tuple[Array, Array]]
    both: str
    saturates: bool = False

    def time_constant_s(self, process: PublishedClass) -> float:
        """Time constant of the values."""
        return process.time_constant_s

    def within(self, process: PublishedClass) -> str:
        """The range of the two contents, in words."""
        return self.both

    def side(
        self, mechanism: Mechanism, process: PublishedClass, most: float, chunks: int, *, first: int, every: int
    ) -> float:
        """Loss by `chunks` chunks on one side, in nats."""
        core, epsilon, near = mechanism.core, float(mechanism.loss.epsilon), min(chunks, _NEAR)
        assert isinstance(core, AdditiveCore)
        (stretch, limit), grid = self.shares(mechanism), _grid_loss(core)
        shares = (float(np.minimum(limit, stretch * most ** (first + every * s)).mean()) * OUTWARD for s in range(near))
        terms = [min(epsilon, share * epsilon + grid) for share in shares]
        return OUTWARD * (math.fsum(terms) + (chunks - near) * (terms[-1] if terms else 0.0))


def _grid_loss(core: AdditiveCore) -> float:
    """Loss by one grid step, and by the deviation of the sampler, in every integer of a chunk."""
    law = core.private.law
    count = law.shape[1]
    rates = sum((Fraction(rate) for rate in law.rates.tolist()), Fraction(0))
    return float((rates + len(law.rates) * COORDINATE_DEVIATION) * count) * OUTWARD


def _of_values(mechanism: Mechanism) -> tuple[Array, Array]:
    whole = np.ones(len(mechanism.frame.active))
    return 2.0 * whole, whole


def _of_chunks(mechanism: Mechanism) -> tuple[Array, Array]:
    whole = np.ones(len(mechanism.frame.active))
    return whole, whole


def _of_differences(mechanism: Mechanism) -> tuple[Array, Array]:
    tables, active, n = mechanism.calibration.tables, mechanism.frame.active, mechanism.n
    assert isinstance(tables, PerFeatureTables)
    whole = np.ones(len(active))
    low, high = (end[:, 0] for end in mechanism.frame.range)
    centre, diameter = tables.centre[active].sum(axis=1), 2 * tables.radius[active]
    long = 1 / (2 * math.sin(math.pi / (4 * n + 2)))
    stretch = np.sqrt(1 + np.minimum(long**2 + long, n * ((high - low) / diameter) ** 2)) * OUTWARD
    last = (np.maximum(high, centre) - np.minimum(low, centre)) / (diameter * math.sqrt(n)) * OUTWARD
    return stretch, np.where(np.array(mechanism.core.k) == 1, np.minimum(whole, last), whole)


VALUES = AdditiveBound(_of_values, "both in the ball of the calibration")
"""The ball is a taxicab ball of chunks: its projection moves two points apart, to twice their distance."""

CHUNKS = AdditiveBound(_of_chunks, "both in the ball of the calibration")
"""The ball is a Euclidean ball of chunks."""

DIFFERENCES = AdditiveBound(_of_differences, "both in the ball and in the range of the calibration")
"""The ball is a Euclidean ball of difference signals."""
