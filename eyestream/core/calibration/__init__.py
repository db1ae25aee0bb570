"""A mechanism's knowledge of the world: public figures, fixed before any user's data is seen.

A calibration comes from a public or consented corpus, or from a declared range. It is not private: a smallest enclosing
ball is often the midpoint of two people's chunks. Never release the recordings that a calibration was made from; it
carries hashes of them, so that such an output can be labelled (`eyestream_lab.calibration.fingerprints`).
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from eyestream.core.anchor import Anchor
from eyestream.core.calibration.tables import STORED_NAMES, JointTables, PerFeatureTables, Tables
from eyestream.core.session import OffsetSpec
from eyestream.errors import CalibrationError
from eyestream.streams import FrontEndMark, same_rate
from eyestream.version import VERSION

__all__ = ["SCHEMA_VERSION", "Calibration", "JointTables", "PerFeatureTables", "Provenance", "Tables", "product"]

SCHEMA_VERSION = 1


def product() -> str:
    """Name and version of this program."""
    return f"eyestream {VERSION}"


@dataclass(frozen=True)
class Provenance:
    """Where a calibration comes from."""

    corpus: str
    """The recordings, in words."""
    people: int
    chunks: int
    """Chunks of the corpus: whole ones without overlap."""
    coverage: float | None
    """Share of the corpus' chunks inside the ball; 1 for the smallest enclosing ball; None for a declared range."""
    recordings: tuple[str, ...]
    """Hashes of the recordings used, each as a whole."""
    made_by: str


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """Public figures for one mechanism, one chunk length and one set of features.

    Raises
    ------
    CalibrationError
        when the figures do not fit each other.
    """

    mechanism: str
    names: tuple[str, ...]
    units: tuple[str, ...]
    rate_hz: float
    n: int
    k: int | None
    """Fourier coefficients kept, when that was chosen at calibration; None: the mechanism minimises its error."""
    declared: NDArray[np.bool_]
    """(F,) declared constants: released as `fill`, their input is never read."""
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    """(F,) finite range of each feature: [lo, hi]."""
    fill: NDArray[np.float64]
    """(F,) stands for a feature of which nothing was seen in a chunk, and for a constant."""
    tables: Tables
    provenance: Provenance
    fingerprints: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    """Fingerprints of the rows of the recordings used, increasing; empty in files of version 0.1.0."""
    front_end: FrontEndMark | None = None
    """The front end that made the rows; None where nobody named it: files of version 0.1.0, rows of a tracker's own."""
    takes_off: OffsetSpec | None = None
    """The public part of a session's offset, such as a baseline; None: rows are taken as they are.
    Ranges, fill and tables are of what is left of the rows."""

    def __post_init__(self) -> None:
        features = len(self.names)
        if features == 0 or len(set(self.names)) != features:
            raise CalibrationError("a calibration needs feature names, each once")
        for name, array in self.arrays():
            if not np.isfinite(array).all():
                raise CalibrationError(f"{name} of the calibration holds a value that is not finite")
        for name in ("declared", "lo", "hi", "fill"):
            if getattr(self, name).shape != (features,):
                raise CalibrationError(f"{name} of the calibration is not one value for each of {features} features")
        if len(self.units) != features:
            raise CalibrationError(f"the calibration has {len(self.units)} units for {features} features")
        if not 0 < self.rate_hz < np.inf:
            raise CalibrationError("the rate of the calibration must be positive and finite")
        if self.fingerprints.dtype != np.uint64 or self.fingerprints.ndim != 1:
            raise CalibrationError("the fingerprints of the calibration are not a list of 64-bit numbers")
        self.tables.check(features, self.n)
        if self.takes_off is not None:
            self.takes_off.check(features, self.n)
        if not (self.lo <= self.hi).all():
            raise CalibrationError("lo of the calibration lies above hi")
        if self.n < 1:
            raise CalibrationError(f"a chunk has at least one row, not {self.n}")
        most = self.n // 2 + 1
        if self.k is not None and not 1 <= self.k <= most:
            raise CalibrationError(f"k must lie between 1 and {most}, not {self.k}")

    def __repr__(self) -> str:
        shape = f"{len(self.names)} features, chunks of {self.n} rows at {self.rate_hz:g} Hz"
        return f"<Calibration of {self.mechanism}: {shape}, {self.provenance.people} people, {self.content_hash[:12]}>"

    @property
    def anchor(self) -> Anchor | None:
        """The public part of a baseline, for who shows or measures baselines; None where there is none."""
        return self.takes_off if isinstance(self.takes_off, Anchor) else None

    @property
    def sessions(self) -> int:
        """Sessions of a pseudonym, whose history is subtracted from its rows, the first one withheld; 0: no history."""
        return 0 if self.takes_off is None else self.takes_off.sessions

    @property
    def constant(self) -> NDArray[np.bool_]:
        """(F,) features that are released as constants: declared, of radius 0, or of one value in the corpus."""
        constant: NDArray[np.bool_] = self.declared | (self.lo == self.hi) | (self.tables.scale == 0)
        return constant

    def arrays(self) -> Iterator[tuple[str, NDArray[np.generic]]]:
        """Every array of the calibration with its name in files, in a fixed order."""
        for name in ("declared", "lo", "hi", "fill"):
            yield name, getattr(self, name)
        for column in fields(self.tables):
            name = STORED_NAMES.get(column.name, column.name)
            if getattr(self.tables, column.name) is not None:
                yield f"tables.{name}", getattr(self.tables, column.name)
        if len(self.fingerprints):
            yield "fingerprints", self.fingerprints
        if self.takes_off is not None:
            yield from self.takes_off.arrays()

    def header(self) -> dict[str, object]:
        """Everything but the arrays, as JSON knows it."""
        told: dict[str, object] = {} if self.front_end is None else {"front_end": asdict(self.front_end)}
        if self.takes_off is not None:
            told |= self.takes_off.header()
        return told | {
            "schema_version": SCHEMA_VERSION,
            "mechanism": self.mechanism,
            "names": list(self.names),
            "units": list(self.units),
            "rate_hz": self.rate_hz,
            "n": self.n,
            "k": self.k,
            "provenance": asdict(self.provenance),
        }

    @cached_property
    def content_hash(self) -> str:
        """Hash of everything in the calibration, 32 hexadecimal digits; independent of how it is stored."""
        digest = hashlib.blake2b(json.dumps(self.header(), sort_keys=True).encode(), digest_size=16)
        for name, array in self.arrays():
            digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def check_stream(self, names: Sequence[str], rate_hz: float) -> None:
        """Refuse a stream that this calibration was not made for.

        Raises
        ------
        CalibrationError
            naming the first difference.
        """
        if len(names) != len(self.names):
            raise CalibrationError(f"the stream has {len(names)} features, the calibration {len(self.names)}")
        for index, (ours, theirs) in enumerate(zip(self.names, names, strict=True)):
            if ours != theirs:
                raise CalibrationError(f"feature {index} is {theirs!r} in the stream and {ours!r} in the calibration")
        if not same_rate(rate_hz, self.rate_hz):
            raise CalibrationError(f"the stream has {rate_hz:g} rows a second, the calibration {self.rate_hz:g}")

    def check_front_end(self, ours: FrontEndMark) -> bool:
        """Refuse gaze of a front end whose rows this calibration was not made from.

        Parameters
        ----------
        ours
            Of the front end that will make the rows.

        Returns
        -------
        bool
            Whether it is the very front end. If not, its detector is the same, and so rows mean the same, but the
            tracker is another one: `eyestream fit` tells which features fit.

        Raises
        ------
        CalibrationError
            with the remedy, when the detector is another one, or the calibration does not tell its own.
        """
        made = self.front_end
        if made is not None and made.detector == ours.detector:
            return made.front_end == ours.front_end
        found = "does not tell which front end made its rows"
        if made is not None:
            found = f"was made from rows of front end {made.front_end} (profile {made.profile})"
        raise CalibrationError(
            f"the calibration {found}; gaze of profile {ours.profile} is made into rows by front end {ours.front_end}, "
            "whose events are others. Take a shipped calibration of this version, or make one: eyestream extract and "
            f"eyestream calibrate, of public or consented gaze with profile {ours.profile}"
        )
