"""A mechanism of one category a slot to copy from: k-ary randomised response, pure epsilon-differential privacy.

In each slot, a front end says which of K declared categories the wearer was in: 0, 1, .. K - 1, such as "no data",
"reading", "looking around". A chunk is one slot, of the shape (1, 1). Two chunks are neighbours when they differ in any
way (replace-one): whatever stands in them, each has one category. The whole epsilon of a chunk protects it.

The released category is (own + s) mod K. The shift s is 0 .. K - 1, and each s above 0 has the probability a / 2^128.
So the released category is the own one with the probability 1 - (K - 1) a / 2^128, and each other one with a / 2^128.
Whatever two inputs are, the odds of every output differ by no more than (2^128 - (K - 1) a) / a, which is at most
e^epsilon if and only if a >= 2^128 / (e^epsilon + K - 1). (Warner, JASA 60, 1965; Kairouz, Oh, Viswanath, JMLR 17,
2016.) The integer a is rounded up, from an upper bound in exact decimals: the law is exact, without a float.
"""

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

import msgspec
import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.mechanisms import Entry, Frame, Mechanism, register
from eyestream.core.noise import Bits, Noise
from eyestream.core.protection import Protection
from eyestream.core.release_type import Category
from eyestream.errors import CalibrationError

Array = NDArray[np.float64]
WHOLE = 2**128


def weight_for(epsilon: float, categories: int) -> int:
    """The least a with (2^128 - (K - 1) a) / a <= e^epsilon, or a little more."""
    with localcontext() as context:
        context.prec = 120
        shrunk = (-Decimal(epsilon)).exp() * (1 + Decimal(10) ** -100)  # e^-epsilon from above
        return max(1, math.ceil(WHOLE * shrunk / (1 + (categories - 1) * shrunk)))


class ShiftLaw:
    """A draw is one shift 0 .. K - 1; the same words are taken whatever is drawn."""

    shape = (1,)

    def __init__(self, epsilon: float, categories: int) -> None:
        self.weight, self._others = weight_for(epsilon, categories), categories - 1

    def sample(self, bits: Bits) -> NDArray[np.int64]:
        """One draw, (1,)."""
        place = int.from_bytes(bits.words(4).tobytes(), "little") // self.weight
        return np.array([place + 1 if place < self._others else 0])


class _Core:
    """Public figures; it needs no arrays of its own to work."""

    k, start, delta = (), None, Fraction(0)

    def __init__(self, frame: Frame) -> None:
        self._count = int(frame.range[1][0, 0]) + 1
        self.law = ShiftLaw(frame.epsilon, self._count)
        keep = WHOLE - (self._count - 1) * self.law.weight
        self.gain = Fraction(self._count * keep, WHOLE)  # what a release raises the chance of a right guess by
        own, found = np.meshgrid(np.arange(self._count), np.arange(self._count))
        error = ((own - found) ** 2).sum() / self._count * (self.law.weight / WHOLE)
        self.noise_sd: Array = np.array([math.sqrt(error)])

    def step(self) -> "_Core":
        return self

    def release(self, admitted: Array, noise: Noise, turn: int, state: Array | None, out: Array) -> Array | None:
        own = np.rint(admitted).astype(np.int64)  # admitted values lie in [0, K - 1], whatever came in
        out[:] = (own + noise.draw(self.law)[0]) % self._count
        return state


class CategoryResponse(Mechanism):
    """Each released category is the own one, or another one that was drawn uniformly."""

    name = "category-response"
    domain = Category()
    protection = Protection(
        law="k-ary randomised response on the category of a slot: each other category has the same probability, which "
        "epsilon fixes",
        exact="the probability of each other category is an integer multiple of 2^-128, rounded toward more privacy; "
        "no floating point in the proof",
        sampler="nothing is charged for the sampler: what is drawn has the law itself",
        floating_point="integers",
    )

    def __init__(self, calibration: Calibration, epsilon: float, *, noise: Noise | None = None) -> None:
        frame = Frame.of(self.name, calibration, epsilon)
        self.domain.check(calibration)
        super().__init__(frame, _Core(frame), noise)


@dataclass(frozen=True, eq=False, repr=False)
class Labels:
    """The one figure of this mechanism, (1,): K - 1, the highest category."""

    scale: Array

    def check(self, features: int, n: int) -> None:
        """Refuse figures of another size."""
        if self.scale.shape != (features,):
            raise CalibrationError("expected the number of categories of one feature")


OPTIONS = msgspec.defstruct("Options", [], frozen=True, kw_only=True)
ENTRY = register(Entry(CategoryResponse, OPTIONS, Labels))
