"""Symmetric unary encoding: a bit for each count, of which the own one is 1, and each bit is flipped by itself.

**Neighbours** are two spells of one device that differ in any way (replace-one), the first spell of the session being
the same. Each has one count, so two of the bits differ. A bit is flipped with the probability w / 2^64. So the odds of
every output differ by at most ((2^64 - w) / w)^2, which is at most e^epsilon if and only if w >= 2^64 / (e^(epsilon /
2) + 1): w is rounded up from an upper bound in exact decimals. (Wang, Blocki, Li, Jha, USENIX Security 2017.)
"""

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.mechanisms import Frame, Mechanism
from eyestream.core.noise import Bits, Noise
from eyestream.core.protection import Fact, Protection
from eyestream.core.release_type import InputDomain, OutputSchema
from eyestream.errors import CalibrationError

__all__ = ["Unary", "weight_for"]

Array = NDArray[np.float64]


def weight_for(epsilon: float) -> int:
    """The least w with ((2^64 - w) / w)^2 <= e^epsilon, or a little more."""
    with localcontext() as context:
        context.prec = 80
        shrunk = (-Decimal(epsilon) / 2).exp() * (1 + Decimal(10) ** -60)
        return max(1, math.ceil(2**64 * shrunk / (1 + shrunk)))


@dataclass(frozen=True, slots=True)
class Flags(InputDomain):
    """Spells of n rows of one flag, 0 or 1."""

    keeps: ClassVar[bool] = False

    def unit(self, n: int, features: int, seconds: float) -> str:
        """What may differ between neighbours."""
        return f"a spell of {n} flags ({seconds:g} s) of one device"

    def takes(self, n: int) -> bool:
        """Whether a spell may have so many flags."""
        return 1 <= n <= 64

    def check(self, calibration: Calibration) -> None:
        """Refuse a calibration of anything else."""
        if (calibration.lo.tolist(), calibration.hi.tolist()) != ([0.0], [1.0]):
            raise CalibrationError("a flag is 0 or 1, and a spell has one a row")


class FlipLaw:
    """Which of so many bits are flipped."""

    def __init__(self, epsilon: float, count: int) -> None:
        self.shape, self.weight = (count,), weight_for(epsilon)

    def sample(self, bits: Bits) -> NDArray[np.int64]:
        """One draw."""
        return (bits.words(2 * self.shape[0]).view(np.uint64) < np.uint64(self.weight)).astype(np.int64)


class _Core:
    """Public figures."""

    k, start, delta = (), None, Fraction(0)

    def __init__(self, frame: Frame) -> None:
        count = frame.n + 1
        names = tuple(f"{i} of {frame.n}" for i in range(count))
        self.law = FlipLaw(frame.epsilon, count)
        self.schema = OutputSchema(names, ("1",) * count, (count, 1), frame.n / frame.calibration.rate_hz)
        self.noise_sd: Array = np.full(count, math.sqrt(self.law.weight / 2**64))

    def step(self) -> "_Core":
        return self

    def release(self, admitted: Array, noise: Noise, turn: int, state: Array | None, out: Array) -> Array | None:
        out[:] = 0.0
        out[int(np.rint(admitted).sum()), 0] = 1.0
        out[:, 0] = np.abs(out[:, 0] - noise.draw(self.law))
        return state


class Unary(Mechanism):
    """How many flags of a spell differ from the usual one, a bit for each count."""

    name = "unary"
    unit = "spell"
    domain: ClassVar[InputDomain] = Flags()
    protection = Protection(
        law="symmetric unary encoding of a count: each of its bits is flipped by itself, with a probability that "
        "epsilon fixes",
        exact="the probability of a flip is an integer multiple of 2^-64, rounded toward more privacy",
        sampler="nothing is charged for the sampler: what is drawn has the law itself",
        floating_point="integers",
        entropy="the operating system's generator, asked directly for each release",
        attacker="who cannot break the system's generator, with all other computing power",
    )

    def __init__(self, calibration: Calibration, epsilon: float, *, noise: Noise | None = None) -> None:
        frame = Frame.of(self.name, calibration, epsilon)
        super().__init__(frame, _Core(frame), noise)

    def facts(self, seconds: float) -> tuple[Fact, ...]:
        """What is said of spells."""
        several = Fact("bits", "several bits of a spell may be 1, or none", {"bits": self.n + 1})
        return (*super().facts(seconds), several)
