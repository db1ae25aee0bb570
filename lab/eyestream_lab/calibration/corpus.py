"""The people of a corpus, one recording each, cut into chunks: what calibrations are learned from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from eyestream.core.anchor import BASELINE_S, Anchor, Baseline
from eyestream.core.calibration import Calibration, Provenance, product
from eyestream.core.calibration.tables import Tables
from eyestream.core.frame import Domain
from eyestream.errors import CalibrationError
from eyestream.streams import FrontEndMark, same_rate
from eyestream_lab.calibration.anchors import anchor_of
from eyestream_lab.calibration.fingerprints import recording_hash, row_fingerprints

Array = NDArray[np.float64]

WORDBOOK_MINIMA = ("wb1_min", "wb2_min", "wb3_min", "wb4_min")
"""Features that are declared constants unless something else is said."""


class Rows(Protocol):
    """A recording, as a corpus needs it: rows (m, F), their names and rate, and a name for messages."""

    @property
    def features(self) -> Array:
        """(m, F), NaN is missing."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """F names."""
        ...

    @property
    def units(self) -> tuple[str, ...]:
        """F units."""
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
        """The front end that made the rows out of gaze, where that is known."""
        ...


def whole_chunks(features: Array, n: int) -> Array:
    """Chunks (C, F, n) of a recording's rows (m, F): whole ones without overlap, the tail left out."""
    count = len(features) // n
    return features[: count * n].reshape(count, n, features.shape[1]).transpose(0, 2, 1)


def refuse_twice(recordings: Sequence[Rows]) -> None:
    """Raise CalibrationError where two recordings hold the same rows, under whatever names: one would count twice.

    Where nothing varies, recordings of two people may be alike.
    """
    known: dict[str, str] = {}
    for recording in recordings:
        if np.diff(np.nan_to_num(recording.features), axis=0).any():
            rows = recording_hash(recording.features)
            if rows in known:
                raise CalibrationError(
                    f"{known[rows]} and {recording.path} hold the same rows: give each recording once"
                )
            known[rows] = recording.path


@dataclass(frozen=True, eq=False)
class Corpus:
    """Recordings of the people of a corpus, one each, cut into chunks and made finite.

    What was not recorded is no figure of anybody: chunks in which nothing is present are left out, figures of a feature
    are of the chunks that have it, and a feature that no recording has is a constant.

    Attributes
    ----------
    chunks : (N, F, n) imputed as the mechanisms impute.
    seen : (N, F, n) where values are; elsewhere they are imputed.
    present : (N, F) whether the chunk has any value of the feature.
    person : (N,) index of the person of each chunk.
    index : (N,) index of the chunk in its recording.
    hashes, fingerprints : by which a calibration knows the recordings again.
    front_end : what made the rows of all of them; None where it is not known.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
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
    present: NDArray[np.bool_]
    seen: NDArray[np.bool_]
    front_end: FrontEndMark | None = None

    @classmethod
    def of(cls, recordings: Sequence[Rows], n: int) -> "Corpus":
        """Cut `recordings` into chunks of `n` rows.

        Raises
        ------
        CalibrationError
            when the recordings do not share names, rate and front end, or one holds no whole chunk with a value.
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
        lo, hi, fill = _range(np.concatenate([r.features for r in recordings]))
        parts = [whole_chunks(r.features, n) for r in recordings]
        if sum(map(len, parts)) == 0:
            raise CalibrationError(f"no recording holds a whole chunk of {n} rows")
        seen: NDArray[np.bool_] = np.asarray(np.isfinite(np.concatenate(parts)))
        found: NDArray[np.bool_] = np.asarray(seen.any(axis=2))
        kept: NDArray[np.bool_] = np.asarray(found.any(axis=1))
        person = np.repeat(np.arange(len(parts)), [len(part) for part in parts])[kept]
        if len(kept) and len(np.unique(person)) < np.count_nonzero([len(part) for part in parts]):
            empty = next(r for i, r in enumerate(recordings) if len(parts[i]) and i not in person)
            raise CalibrationError(f"{empty.path} holds no chunk with a value")
        domain = Domain(np.where(lo < hi, lo, np.nextafter(lo, -np.inf)), hi, fill, n)
        return cls(
            names=first.names,
            units=first.units,
            rate_hz=first.rate_hz,
            n=n,
            lo=lo,
            hi=hi,
            fill=fill,
            chunks=np.array([domain.admit(chunk).copy() for chunk in np.concatenate(parts)[kept]]),
            person=person,
            index=np.concatenate([np.arange(len(part)) for part in parts])[kept],
            hashes=tuple(recording_hash(r.features) for r in recordings),
            fingerprints=np.unique(np.concatenate([row_fingerprints(r.features) for r in recordings])),
            present=found[kept],
            seen=seen[kept],
            front_end=first.front_end,
        )

    def anchored(self) -> "tuple[Corpus, Anchor]":
        """The same less a baseline of each recording's first minute, which is left out, and what is public of it.

        Raises
        ------
        CalibrationError
            when a recording has no chunk after its baseline.
        """
        centre = np.array([_mean_where(self.chunks[:, f], self.present[:, f]) for f in range(len(self.names))])
        anchor = anchor_of(self.lo, self.hi, centre, self.n, self.rate_hz)
        anchor.check(len(self.names), self.n)
        chunks = np.full_like(self.chunks, np.nan)
        for one in np.unique(self.person):
            baseline = Baseline(anchor)
            own = np.flatnonzero(self.person == one)
            held = np.where(self.present[own][:, :, None], self.chunks[own], np.nan)
            placed = {int(i): chunk for i, chunk in zip(self.index[own], held, strict=True)}
            for i in range(anchor.chunks):
                baseline.take(placed.get(i, np.full_like(chunks[0], np.nan)))
            chunks[own] = [baseline.off(chunk) for chunk in held]
        present: NDArray[np.bool_] = np.asarray(np.isfinite(chunks).any(axis=2))
        kept = (self.index >= anchor.chunks) & present.any(axis=1)
        if len(np.unique(self.person[kept])) < len(np.unique(self.person)):
            raise CalibrationError(f"a recording holds nothing behind the {BASELINE_S:g} s of its baseline")
        rows = np.where(present[kept][:, :, None], chunks[kept], np.nan)
        lo, hi, fill = _range(rows.transpose(0, 2, 1).reshape(-1, len(self.names)))
        return replace(
            self,
            lo=lo,
            hi=hi,
            fill=fill,
            chunks=np.where(np.isfinite(rows), rows, fill[:, None]),
            person=self.person[kept],
            index=self.index[kept] - anchor.chunks,
            present=present[kept],
            seen=self.seen[kept],
        ), anchor

    @property
    def lacks(self) -> str:
        """Which features recordings lack as a whole, in words; empty when none does."""
        people = np.array([self.present[self.person == one].any(axis=0) for one in np.unique(self.person)])
        said = []
        for count in np.unique(lacking := (~people).sum(axis=0))[::-1]:
            if count:
                names = ", ".join(np.array(self.names)[lacking == count])
                there = len(people) - count
                said.append(f"{names}: of {there} people" if there else f"{names}: of nobody, released as constants")
        return "; ".join(said)

    def calibration(self, mechanism: str, tables: Tables, *, description: str, **others: Any) -> Calibration:
        """A calibration made from this corpus; `others` are fields of it, or of its provenance, that differ.

        Raises
        ------
        CalibrationError
            when the figures do not fit each other.
        """
        provenance = Provenance(
            corpus=f"{description}; {self.lacks}" if self.lacks else description,
            people=len(self.hashes),
            chunks=len(self.chunks),
            coverage=others.pop("coverage", None),
            recordings=self.hashes,
            made_by=product(),
        )
        fields: dict[str, Any] = {
            "names": self.names,
            "units": self.units,
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


def in_sequence(scores: Array, index: NDArray[np.intp]) -> Array:
    """Scores (N, d) of one person's chunks with these indices, at their places (T, d), NaN where there is no chunk."""
    placed = np.full((int(index.max()) + 1, scores.shape[1]), np.nan)
    placed[index] = scores
    return placed


def _mean_where(values: Array, there: NDArray[np.bool_]) -> float:
    """Mean of the chunks (N, n) that are there (N,); 0 when none is."""
    return float(values[there].mean()) if there.any() else 0.0


def _range(rows: Array) -> tuple[Array, Array, Array]:
    """Lowest, highest and mean present value of every feature of rows (m, F); 0 of what has none."""
    present = np.where(np.isfinite(rows), rows, np.nan)
    empty = np.isnan(present).all(axis=0)
    if empty.all():
        raise CalibrationError("no recording has a value")
    present[:, empty] = 0.0
    lo, hi = np.nanmin(present, axis=0), np.nanmax(present, axis=0)
    with np.errstate(all="ignore"):
        return lo, hi, np.clip(np.nanmean(present, axis=0), lo, hi)
