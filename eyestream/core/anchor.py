"""A baseline for each session: what stays constant in a wearer's features cancels before anything else sees them.

The first chunks of a session, about a minute, are withheld. Their mean, feature by feature, is the session's
*baseline*. It is subtracted from every later chunk, and the public centre is added in its place. Values are rounded
down to a grid first, and all is integers: a constant that is added to a feature in a whole session changes nothing that
is released. The baseline is raw data that lives as long as its session. A change in it changes the input of every
release of the session, so only the session's sum bounds that. `BASELINE.md` has the proofs, and what a restart, several
baselines in one session and an eye that was not seen mean.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.core.protection import Fact
from eyestream.core.scopes import Reach
from eyestream.errors import CalibrationError

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

BASELINE_S = 60.0
"""Seconds of each session that are withheld, rounded up to whole chunks."""

LEAST_SEEN = 0.5
"""Share of a baseline's rows that should have values; and share of its values that a row with values has."""

_LARGEST = 2**44
"""Grid steps that a value may lie from 0: sums of 256 rows and more stay below 2^53."""

_MOST_ROWS = 256


@dataclass(frozen=True, eq=False, repr=False)
class Anchor:
    """The public part of the baselines of all sessions.

    Attributes
    ----------
    chunks : of each session that are withheld and make its baseline; at least one, and at most 256 rows in all.
    shift : (F,) a feature's grid has steps of 2^-shift.
    centre : (F,) grid steps that stand where the baseline was.
    roots : (F,) what is added to a feature before its square root is taken, as of counts, whose spread grows with
        their level; 0: no root is taken of it. None: of none.

    Raises
    ------
    CalibrationError
        when they do not fit together.
    """

    chunks: int
    shift: Integers
    centre: Integers
    roots: Array | None = None

    def __post_init__(self) -> None:
        if self.shift.ndim != 1 or self.shift.shape != self.centre.shape or self.chunks < 1:
            raise CalibrationError("the baseline of the calibration does not fit together")
        if self.shift.dtype != np.int64 or self.centre.dtype != np.int64:
            raise CalibrationError("the baseline of the calibration is not in whole numbers")
        if self.roots is not None and (
            self.roots.shape != self.shift.shape or self.roots.dtype != np.float64 or not (self.roots >= 0).all()
        ):
            raise CalibrationError("the roots of the calibration's baseline do not fit it")
        if (np.abs(self.shift) > 1000).any() or (np.abs(self.centre) > _LARGEST).any():
            raise CalibrationError("the baseline of the calibration lies outside of its grid")

    @property
    def sessions(self) -> int:
        """Sessions have no part in one another."""
        return 0

    @property
    def reach(self) -> Reach:
        """Into all of its session."""
        why = "at worst it is in a baseline, changes every later release of its session, and costs their sum"
        return Reach("one chunk after the baseline of its session,", why, "in no baseline")

    def check(self, features: int, n: int) -> None:
        """Raise CalibrationError when it is not for so many features and rows."""
        if len(self.shift) != features or self.chunks * n > _MOST_ROWS:
            raise CalibrationError(f"the baseline of the calibration is not of {features} features, {n} rows a chunk")

    def header(self) -> dict[str, object]:
        """The baseline's key in the header of a calibration."""
        return {"baseline_chunks": self.chunks}

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """The baseline's arrays with their names in a calibration."""
        yield "anchor.shift", self.shift
        yield "anchor.centre", self.centre
        if self.roots is not None:
            yield "anchor.roots", self.roots

    def rooted(self, chunk: Array) -> Array:
        """The chunk (F, n) with roots in the place of what they are taken of: below 0 it is 0; -inf is missing."""
        if self.roots is None:
            return chunk
        values = np.where(np.isfinite(chunk), chunk, np.nan)
        added = self.roots[:, None]
        return np.where(added > 0, np.sqrt(np.maximum(values + added, 0.0)), values)

    def session(self, before: Any = None) -> "Baseline":
        """A baseline of a session, whatever was before it."""
        return Baseline(self)

    def restored(self, numbers: Array) -> "Baseline":
        """The baseline that has such numbers; raises ValueError as `Baseline.restored`."""
        return Baseline.restored(self, numbers)

    def fact(self, n: int, seconds: float) -> Fact:
        """A guarantee's fact on it."""
        chunks = f"{self.chunks} chunks" if self.chunks > 1 else "chunk"
        return Fact(
            "baseline",
            f"the first {chunks} of each session ({self.chunks * seconds:g} s) are never released and "
            "cost nothing by themselves. Their mean is subtracted from all later ones. So a constant that is added to "
            "a feature through a whole session, in whole steps of its grid (at most a millionth of its range), changes "
            "nothing that is released: of such constants the loss is 0, over any number of sessions; of another one "
            "the sum over the session is what is proved. The other side: a change of a row in these chunks changes "
            "the input of every later release of its session, and costs up to the sum over them. A pause, a jump of "
            "row numbers and a restart of the sidecar begin a session too. Rows are left out before its baseline, so "
            "that no gaze event and no second of gaze enters it and a chunk before it. Nothing is claimed of what is "
            "not constant: how far features move was seen to tell people apart"
            + ("" if self.roots is None else ". Of a rate of blinks, constants are added to its coded root"),
            {"baseline_chunks": self.chunks},
        )


def stored(chunks: Any, arrays: Mapping[str, NDArray[Any]]) -> Anchor:
    """The anchor that a calibration has stored under the key of `Anchor.header`, with its arrays."""
    return Anchor(int(chunks), arrays["anchor.shift"], arrays["anchor.centre"], arrays.get("anchor.roots"))


class Baseline:
    """The baseline of one session: first taken in, then taken off.

    Not for two threads at once. What it holds is raw data.
    """

    __slots__ = ("_anchor", "_count", "_seen", "_shift", "_steps", "_sum", "_widths")

    def __init__(self, anchor: Anchor) -> None:
        self._anchor, self._seen = anchor, 0
        self._steps = np.ldexp(1.0, anchor.shift)[:, None]  # powers of two: products with them are exact
        self._widths = np.ldexp(1.0, -anchor.shift)[:, None]
        self._sum, self._count = np.zeros((2, len(anchor.shift)), dtype=np.int64)
        self._settle()

    @property
    def complete(self) -> bool:
        """Whether all its chunks are there."""
        return self._seen >= self._anchor.chunks

    def take(self, chunk: Array) -> None:
        """One of the session's first chunks (F, n), NaN and infinities are missing; RuntimeError when complete."""
        if self.complete:
            raise RuntimeError("the baseline of this session is complete")
        chunk = self._anchor.rooted(chunk)
        there = np.isfinite(chunk)
        with np.errstate(all="ignore"):
            steps = np.floor(np.where(there, chunk, 0.0) * self._steps)
        steps = np.minimum(np.maximum(steps, -_LARGEST), _LARGEST)
        self._sum = self._sum + steps.astype(np.int64).sum(axis=1)
        self._count = self._count + there.sum(axis=1)
        self._seen += 1
        self._settle()

    def off(self, chunk: Array) -> Array:
        """The chunk (F, n) less the baseline, around the public centre; a new array, not finite where missing.

        Inside the domain these are whole numbers below 2^46, and exact; the clamp behind it ends what lies outside.
        """
        with np.errstate(all="ignore"):  # as in a release: a warning would tell that a raw value is a special one
            moved = self._anchor.rooted(chunk) * self._steps
            np.floor(moved, out=moved)
            moved += self._shift  # never -0.0, so that no sum is: a 0 has one form
            moved *= self._widths
        return moved

    def numbers(self) -> Array:
        """(2 F + 1,) what `restored` needs; all are whole, below 2^53. Raw data."""
        return np.concatenate([self._sum, self._count, [self._seen]]).astype(np.float64)

    @classmethod
    def restored(cls, anchor: Anchor, numbers: Array) -> "Baseline":
        """The baseline whose `numbers` they were.

        Raises
        ------
        ValueError
            They are of no baseline of this anchor.
        """
        baseline, features = cls(anchor), len(anchor.shift)
        whole = numbers.astype(np.int64)
        if numbers.shape != (2 * features + 1,) or (whole != numbers).any() or not 0 <= whole[-1] <= anchor.chunks:
            raise ValueError("expected the numbers of a baseline")
        baseline._sum, baseline._count = whole[:features], whole[features:-1]
        if (baseline._count < 0).any() or (baseline._count > _MOST_ROWS).any():
            raise ValueError("expected the numbers of a baseline")
        baseline._seen = int(whole[-1])
        baseline._settle()
        return baseline

    def erase(self) -> None:
        """Overwrite it with nothing: every feature is missing."""
        self._sum.fill(0)
        self._count.fill(0)
        self._settle()

    def _settle(self) -> None:
        """The number to add to a value, in grid steps: NaN where the baseline has none."""
        mean = self._sum // np.maximum(self._count, 1)
        self._shift = np.where(self._count > 0, self._anchor.centre - mean, np.nan)[:, None]
