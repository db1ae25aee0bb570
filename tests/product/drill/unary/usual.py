"""What is taken off: the first spell of a session is withheld, and later flags say whether they differ from its own.

Raw data of the first spell enters every release of its session, as a baseline does (`eyestream.core.anchor`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.core.protection import Fact
from eyestream.core.scopes import Reach
from eyestream.errors import CalibrationError

__all__ = ["Usual", "stored"]

Array = NDArray[np.float64]

_REACH = Reach(
    "one spell after the first one of its session,",
    "the sum over its session, where it enters the first spell",
    "after the first spell",
    unit=("side", "the sum over its session"),
)


@dataclass(frozen=True, eq=False, repr=False)
class Usual:
    """Public: from which share of flags on, (1,), the right counts as a session's usual side."""

    share: Array
    chunks: int = 1
    sessions: int = 0
    reach: Reach = _REACH

    def check(self, features: int, n: int) -> None:
        """Raise CalibrationError when it is not for so many features."""
        if self.share.shape != (features,):
            raise CalibrationError(f"the usual side of the calibration is not of {features} features")

    def header(self) -> dict[str, object]:
        """Its key in a calibration."""
        return {"usual": {"spells": self.chunks}}

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Its array in a calibration."""
        yield "usual.share", self.share

    def session(self, before: Any = None) -> "Side":
        """Of a session, whatever was before it."""
        return Side(self.share)

    def restored(self, numbers: Array) -> "Side":
        """The side that has such numbers; raises ValueError where there is none."""
        if numbers.shape != (1,) or numbers[0] not in (-1.0, 0.0, 1.0):
            raise ValueError("expected the number of a side")
        return Side(self.share, float(numbers[0]))

    def fact(self, n: int, seconds: float) -> Fact:
        """What a guarantee says of it."""
        words = f"the first {seconds:g} s of each session are withheld, and say which side is usual in it"
        return Fact("usual side", words, {"usual": {"spells": self.chunks}})


def stored(public: Any, arrays: Mapping[str, NDArray[Any]]) -> Usual:
    """What a calibration has stored."""
    return Usual(arrays["usual.share"], int(public["spells"]))


class Side:
    """Of one session: 0 left, 1 right, -1 before it is known. Raw data."""

    def __init__(self, share: Array, side: float = -1.0) -> None:
        self._share, self._side = share, side

    @property
    def complete(self) -> bool:
        """Whether the first spell has come."""
        return self._side >= 0.0

    def take(self, chunk: Array) -> None:
        """The first spell."""
        seen = chunk[np.isfinite(chunk)]
        self._side = float(len(seen) > 0 and seen.mean() >= self._share[0])

    def off(self, chunk: Array) -> Array:
        """Flags that say whether they differ from the usual one."""
        return np.abs(chunk - self._side)

    def erase(self) -> None:
        """Forget it."""
        self._side = 0.0

    def numbers(self) -> Array:
        """What `Usual.restored` needs."""
        return np.array([self._side])
