"""The people of a corpus, one recording each, cut into chunks: what calibrations are learned from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import CalibrationError
from eyestream.privacy.calibration.calibration import Calibration, Provenance, product
from eyestream.privacy.calibration.fingerprints import recording_hash, row_fingerprints
from eyestream.privacy.calibration.tables import Tables
from eyestream.privacy.domain import Domain
from eyestream.streams.front_end import FrontEndMark
from eyestream.streams.spec import same_rate

__all__ = ["WORDBOOK_MINIMA", "Corpus", "Rows", "whole_chunks"]

Array = NDArray[np.float64]

WORDBOOK_MINIMA = ("wb1_min", "wb2_min", "wb3_min", "wb4_min")
"""Features that are declared constants unless something else is said."""


class Rows(Protocol):
    """What a corpus needs of a recording: rows (m, F), their names and rate, and a name for messages."""

    @property
    def features(self) -> Array:
        """(m, F), NaN is missing."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """F names."""
        ...

    @property
    def rate_hz(self) -> float:
        """Nominal rows a second."""
        ...

    @property
    def path(self) -> str:
        """Where it comes from."""
        ...

    @property
    def front_end(self) -> FrontEndMark | None:
        """What made the rows out of gaze, where that is known."""
        ...


def whole_chunks(features: Array, n: int) -> Array:
    """Chunks (C, F, n) of a recording's rows (m, F): whole ones without overlap, the tail left out."""
    count = len(features) // n
    return features[: count * n].reshape(count, n, features.shape[1]).transpose(0, 2, 1)


@dataclass(frozen=True, eq=False)
class Corpus:
    """Recordings of the people of a corpus, one each, cut into chunks and made finite.

    Attributes
    ----------
    chunks : (N, F, n) imputed as the mechanisms impute.
    person : (N,) index of the person of each chunk.
    index : (N,) index of the chunk in its recording.
    hashes, fingerprints : by which a calibration knows the recordings again.
    front_end : what made the rows of all of them; None where it is not known.
    """

    names: tuple[str, ...]
    rate_hz: float
    n: int
    lo: Array
    hi: Array
    fill: Array
    chunks: Array
    person: NDArray[np.intp]
    index: NDArray[np.intp]
    hashes: tuple[str, ...]
    fingerprints: NDArray[np.uint64]
    front_end: FrontEndMark | None = None

    @classmethod
    def of(cls, recordings: Sequence[Rows], n: int) -> "Corpus":
        """Cut `recordings` into chunks of `n` rows.

        Raises
        ------
        CalibrationError
            when the recordings do not share names and rate, or hold no whole chunk, or a feature has no value at all.
        """
        if not recordings:
            raise CalibrationError("a calibration needs at least one recording")
        first = recordings[0]
        for recording in recordings[1:]:
            if recording.names != first.names:
                raise CalibrationError(f"{recording.path} has other features than {first.path}")
            if not same_rate(recording.rate_hz, first.rate_hz):
                raise CalibrationError(f"{recording.path} has another rate than {first.path}")
            if recording.front_end != first.front_end:
                raise CalibrationError(f"{recording.path} was made by another front end than {first.path}")
        lo, hi, fill = _range(first.names, np.concatenate([r.features for r in recordings]))
        parts = [whole_chunks(r.features, n) for r in recordings]
        if sum(map(len, parts)) == 0:
            raise CalibrationError(f"no recording holds a whole chunk of {n} rows")
        domain = Domain(np.where(lo < hi, lo, np.nextafter(lo, -np.inf)), hi, fill, n)
        return cls(
            names=first.names,
            rate_hz=first.rate_hz,
            n=n,
            lo=lo,
            hi=hi,
            fill=fill,
            chunks=np.array([domain.admit(chunk).copy() for part in parts for chunk in part]),
            person=np.repeat(np.arange(len(parts)), [len(part) for part in parts]),
            index=np.concatenate([np.arange(len(part)) for part in parts]),
            hashes=tuple(recording_hash(r.features) for r in recordings),
            fingerprints=np.unique(np.concatenate([row_fingerprints(r.features) for r in recordings])),
            front_end=first.front_end,
        )

    def calibration(self, mechanism: str, tables: Tables, *, description: str, **others: Any) -> Calibration:
        """A calibration made from this corpus; `others` are fields of it, or of its provenance, that differ.

        Raises
        ------
        CalibrationError
            when the figures do not fit each other.
        """
        provenance = Provenance(
            corpus=description,
            people=len(self.hashes),
            chunks=len(self.chunks),
            coverage=others.pop("coverage", None),
            recordings=self.hashes,
            made_by=product(),
        )
        fields: dict[str, Any] = {
            "names": self.names,
            "units": ("1",) * len(self.names),
            "rate_hz": self.rate_hz,
            "n": self.n,
            "k": None,
            "declared": np.zeros(len(self.names), dtype=np.bool_),
            "lo": self.lo,
            "hi": self.hi,
            "fill": self.fill,
            "fingerprints": self.fingerprints,
            "front_end": self.front_end,
        }
        return Calibration(mechanism=mechanism, tables=tables, provenance=provenance, **fields | others)


def _range(names: tuple[str, ...], rows: Array) -> tuple[Array, Array, Array]:
    """Lowest, highest and mean present value of every feature of rows (m, F)."""
    present = np.where(np.isfinite(rows), rows, np.nan)
    empty = np.isnan(present).all(axis=0)
    if empty.any():
        raise CalibrationError(f"feature {names[int(np.argmax(empty))]} has no value in any recording")
    lo, hi = np.nanmin(present, axis=0), np.nanmax(present, axis=0)
    with np.errstate(all="ignore"):
        return lo, hi, np.clip(np.nanmean(present, axis=0), lo, hi)
