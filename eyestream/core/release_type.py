"""Input and output of a mechanism: declared by its class, checked before anything is booked.

A *chunk* is what one release is made of, (F, n): n rows of F features, or one slot of one category, (1, 1). A domain
that `keeps` its features and rows is released as such; another one as its mechanism's schema says. A mechanism may
bring a domain of its own: a class that is derived from `InputDomain`.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eyestream.core.calibration import Calibration
from eyestream.errors import CalibrationError


@dataclass(frozen=True, slots=True)
class InputDomain:
    """Chunks of one row, whatever is in it; what other domains differ in is theirs.

    Attributes
    ----------
    live : whether a stream has such chunks.
    keeps : whether a release has the features and rows of its chunk; else the core of the mechanism has a `schema`.
    length : what n must be, in words.
    """

    live: ClassVar[bool] = True
    keeps: ClassVar[bool] = True

    @property
    def length(self) -> str:
        """Condition on n, in words."""
        return "1"

    def unit(self, n: int, features: int, seconds: float) -> str:
        """The unit in which neighbours may differ, in words."""
        rows = f"{n} consecutive rows" if n > 1 else "one row"
        together = f", all {features} features together" if features > 1 else ""
        return f"{rows} ({seconds:g} s) of one device{together}"

    def takes(self, n: int) -> bool:
        """Whether a chunk may have so many rows."""
        return n == 1

    def check(self, calibration: Calibration) -> None:
        """Refuse a calibration of other chunks, by a CalibrationError."""
        if not self.takes(calibration.n):
            raise CalibrationError(f"the chunk length must be {self.length}, not {calibration.n}")

    def window_s(self, calibration: Calibration) -> float | None:
        """Seconds of gaze that one row describes; None: the stream knows."""
        return None


@dataclass(frozen=True, slots=True)
class Rows(InputDomain):
    """Chunks of n rows of F features, each inside its range.

    Attributes
    ----------
    powers_of_two : whether n must be one, 2 or more; else any n is taken.
    """

    powers_of_two: bool = True

    @property
    def length(self) -> str:
        """Condition on n, in words."""
        return "a power of two" if self.powers_of_two else "1 or more"

    def takes(self, n: int) -> bool:
        """Whether a chunk may have so many rows."""
        return n >= 2 and n & (n - 1) == 0 if self.powers_of_two else n >= 1


@dataclass(frozen=True, slots=True)
class Summaries(Rows):
    """Chunks of rows, of which something is released that has features and rows of its own."""

    keeps: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Category(InputDomain):
    """One category a slot: chunks of one row of one feature, which is a whole number 0 .. K - 1."""

    def check(self, calibration: Calibration) -> None:
        """Refuse a calibration of other chunks, by a CalibrationError."""
        shape = (len(calibration.names), calibration.n)
        if shape != (1, 1):
            raise CalibrationError(f"one category a slot is a chunk of the shape (1, 1), not {shape}")
        low, high = float(calibration.lo[0]), float(calibration.hi[0])
        if low != 0 or high < 1 or high != np.rint(high):
            raise CalibrationError(f"categories are the whole numbers from 0 to K - 1, not {low:g} to {high:g}")


@dataclass(frozen=True, slots=True)
class GazeSlot(InputDomain):
    """The gaze of one slot, as counts: how many samples lie in each cell of a field, and how many were lost, (F, 1).

    What is released of it has features of its own. Each slot describes its own time alone.
    """

    keeps: ClassVar[bool] = False

    def unit(self, n: int, features: int, seconds: float) -> str:
        """The unit in which neighbours may differ, in words."""
        return f"the gaze of {seconds:g} s of one device, any samples, any number of them, or none"

    def window_s(self, calibration: Calibration) -> float:
        """Seconds of a slot."""
        return 1 / calibration.rate_hz


@dataclass(frozen=True, slots=True)
class OutputSchema:
    """Names, units and shape of a release.

    Attributes
    ----------
    names, units : of each released feature.
    shape : (F, n) of a released chunk.
    step_s : seconds from one row to the next.

    Raises
    ------
    ValueError
        when the figures do not fit each other.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    shape: tuple[int, int]
    step_s: float

    def __post_init__(self) -> None:
        if not len(self.names) == len(self.units) == self.shape[0] >= 1 or self.shape[1] < 1:
            raise ValueError(f"{len(self.names)} names and {len(self.units)} units for the shape {self.shape}")
        if not 0 < self.step_s < np.inf:
            raise ValueError(f"a step of {self.step_s} s")
