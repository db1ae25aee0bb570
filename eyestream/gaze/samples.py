"""Gaze samples as arrays, after units and geometry are settled, and the rows that a front end makes of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True, eq=False)
class TimedRows:
    """m rows: `t` (m,) the ends of their windows in seconds of the tracker's clock, `values` (m, F) or NaN."""

    t: NDArray[np.float64]
    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.t)


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """n samples of one eye tracker, in the order in which they came; n may be 0.

    Attributes
    ----------
    t
        (n,) seconds on the tracker's clock. Not checked here: the front end drops what does not go forward.
    x, y
        (n,) degrees: azimuth, to the right of the wearer positive, and elevation, up positive.
    pupil_mm
        (n,) diameter in mm; NaN where there is none.
    valid
        (n,) whether the eye was tracked; x and y of other samples are never read.
    """

    t: NDArray[np.float64]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    pupil_mm: NDArray[np.float64]
    valid: NDArray[np.bool_]

    def __post_init__(self) -> None:
        shape = self.t.shape
        alike = shape == self.x.shape == self.y.shape == self.pupil_mm.shape == self.valid.shape
        if len(shape) != 1 or not alike:
            raise ValueError(f"samples: five arrays of one length wanted, t is {shape}, x {self.x.shape}")

    @classmethod
    def of(
        cls,
        t: ArrayLike,
        x: ArrayLike,
        y: ArrayLike,
        pupil_mm: ArrayLike | None = None,
        valid: ArrayLike | None = None,
    ) -> "Samples":
        """Samples from anything that numpy takes; without `valid`, a sample counts where x and y are finite."""
        times, right, up = (np.atleast_1d(np.asarray(a, dtype=np.float64)) for a in (t, x, y))
        pupil = np.full(times.shape, np.nan) if pupil_mm is None else np.atleast_1d(np.asarray(pupil_mm, np.float64))
        seen = np.isfinite(right) & np.isfinite(up)
        if valid is not None:
            seen &= np.atleast_1d(np.asarray(valid, dtype=np.bool_))
        return cls(times, right, up, pupil, seen)

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, which: slice) -> "Samples":
        return Samples(self.t[which], self.x[which], self.y[which], self.pupil_mm[which], self.valid[which])

    def picked(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> "Samples":
        """Those of a mask, or of indices in their order."""
        return Samples(self.t[which], self.x[which], self.y[which], self.pupil_mm[which], self.valid[which])

    def copy(self) -> "Samples":
        """The same in arrays of its own."""
        return Samples(self.t.copy(), self.x.copy(), self.y.copy(), self.pupil_mm.copy(), self.valid.copy())

    @classmethod
    def joined(cls, parts: "list[Samples]") -> "Samples":
        """The parts one after the other."""
        if not parts:
            return cls.of([], [], [])
        arrays = ((s.t, s.x, s.y, s.pupil_mm) for s in parts)
        t, x, y, pupil = (np.concatenate(column) for column in zip(*arrays, strict=True))
        return cls(t, x, y, pupil, np.concatenate([s.valid for s in parts]))
