"""What a mechanism needs to know of the world: public figures, fixed before any user's data is seen.

A calibration comes from a public or consented corpus, or from a declared range. It is not private: a smallest enclosing
ball is often the midpoint of two people's chunks. Never release the recordings that a calibration was made from; it
carries a hash of each, so that such an output can be labelled.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import CalibrationError
from eyestream.spectrum.fourier import most_coefficients

__all__ = [
    "SCHEMA_VERSION",
    "Calibration",
    "JointTables",
    "PerFeatureTables",
    "Provenance",
    "declared_range",
    "recording_hash",
]

SCHEMA_VERSION = 1


def recording_hash(features: NDArray[np.float64]) -> str:
    """Hash of a recording's rows (m, F), by which a calibration knows what it was made from; 32 hexadecimal digits.

    Of the values as float32, so that a recording is known again in another file format.
    """
    digest = hashlib.blake2b(repr(features.shape).encode(), digest_size=16)
    with np.errstate(over="ignore"):
        digest.update(np.ascontiguousarray(features, dtype="<f4").tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Provenance:
    """Where a calibration comes from."""

    corpus: str
    """What the recordings are, in words."""
    people: int
    chunks: int
    """Chunks of the corpus: whole ones without overlap."""
    coverage: float | None
    """Share of the corpus' chunks inside the ball; 1 for the smallest enclosing ball; None for a declared range."""
    recordings: tuple[str, ...]
    """`recording_hash` of every recording used."""
    made_by: str


@dataclass(frozen=True, eq=False)
class PerFeatureTables:
    """Figures of a mechanism that codes each feature by itself; sums of squares are over the n rows of a chunk.

    The *signal* is the chunk for LPA and CFPA and its difference signal for DCFPA.
    """

    centre: NDArray[np.float64]
    """(F, n) centre of the ball of signals."""
    radius: NDArray[np.float64]
    """(F,) its radius: L1 for LPA, Euclidean for CFPA and DCFPA; 0 makes the feature a constant."""
    mean: NDArray[np.float64]
    """(F, n) mean of the corpus' chunks (not signals)."""
    spread: NDArray[np.float64]
    """(F,) S: mean squared distance of the corpus' chunks to `mean`; 0 everywhere when there is no corpus."""
    truncation: NDArray[np.float64]
    """(F, K) T(k), k = 1 .. K, of the plain release."""
    overlap: NDArray[np.float64]
    """(F, K) A(k) of `eyestream.privacy.error_model`."""
    energy: NDArray[np.float64]
    """(F, K) B(k)."""
    stays: NDArray[np.float64]
    forgets: NDArray[np.float64]
    detail: NDArray[np.float64]
    """(F,) variance of a chunk's mean that stays with a person, that which halves from chunk to chunk, and variance of
    a value around the mean of its chunk; all without the corpus' outermost hundredth."""
    diameter: NDArray[np.float64]
    """(F,) largest distance between any two signals of the corpus."""
    between_people: NDArray[np.float64]
    """(F,) the papers' Delta: largest distance between two people's signals at the same chunk index. Bounds nothing."""

    def check(self, features: int, n: int) -> None:
        """Raise CalibrationError when the figures are not of so many features and rows."""
        for name in ("centre", "radius", "mean", "spread", "truncation", "overlap", "energy", "stays"):
            if len(getattr(self, name)) != features:
                raise CalibrationError(f"{name} of the calibration is not of {features} features")
        if self.centre.shape[1:] != (n,) or self.mean.shape[1:] != (n,):
            raise CalibrationError(f"centre or mean of the calibration is not of {n} rows")
        if (self.radius < 0).any():
            raise CalibrationError("a radius of the calibration is negative")


@dataclass(frozen=True, eq=False)
class JointTables:
    """Figures of the mechanism that codes all features jointly (KLT); see `eyestream.privacy.klt` for the model.

    Features are standardised by `mean` and `sd` after the clamp to [lo, hi]; a chunk is described by the M leading
    cosine modes of every released feature, and of those by d scores. A counts the released features.
    """

    mean: NDArray[np.float64]
    """(F,) of the clamped rows."""
    sd: NDArray[np.float64]
    """(F,) of the clamped rows; 0 makes the feature a constant."""
    modes: NDArray[np.float64]
    """(M, n) orthonormal cosines."""
    basis: NDArray[np.float64]
    """(A M, d) takes standardised modes, features by modes, to scores."""
    expand: NDArray[np.float64]
    """(d, A M) takes scores back."""
    poles: NDArray[np.float64]
    """(J,) how much of each component of the scores is left a chunk later; 1: it stays, as a person does."""
    covariances: NDArray[np.float64]
    """(J, d, d) of each component."""
    weights: NDArray[np.float64]
    """(J,) share of each component's estimate that is released; below 1 to shed identity."""
    residual: NDArray[np.float64]
    """(F,) mean square of a standardised value that the scores do not describe."""

    def check(self, features: int, n: int) -> None:
        """Raise CalibrationError when the figures are not of so many features and rows."""
        if not self.mean.shape == self.sd.shape == self.residual.shape == (features,) or self.modes.shape[1:] != (n,):
            raise CalibrationError(f"the moments and modes of the calibration are not of {features} features, {n} rows")
        components, scores = self.covariances.shape[0], self.basis.shape[1]
        shapes = (self.poles.shape, self.weights.shape, self.covariances.shape, self.expand.shape[0])
        if shapes != ((components,), (components,), (components, scores, scores), scores):
            raise CalibrationError("the model of the calibration does not fit together")


@dataclass(frozen=True, eq=False)
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
    tables: PerFeatureTables | JointTables
    provenance: Provenance

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
        self.tables.check(features, self.n)
        if not (self.lo <= self.hi).all():
            raise CalibrationError("lo of the calibration lies above hi")
        if self.n < 2 or (self.n & (self.n - 1) and self.mechanism != "fpa"):
            raise CalibrationError(f"the chunk length must be a power of two, not {self.n}")
        if self.k is not None and not 1 <= self.k <= most_coefficients(self.n):
            raise CalibrationError(f"k must lie between 1 and {most_coefficients(self.n)}, not {self.k}")

    @property
    def constant(self) -> NDArray[np.bool_]:
        """(F,) features that are released as constants: declared, of radius 0, or of one value in the corpus."""
        constant: NDArray[np.bool_] = self.declared | (self.lo == self.hi)
        scale = self.tables.radius if isinstance(self.tables, PerFeatureTables) else self.tables.sd
        constant |= scale == 0
        return constant

    def arrays(self) -> Iterator[tuple[str, NDArray[np.generic]]]:
        """Every array of the calibration with its name, in a fixed order."""
        for name in ("declared", "lo", "hi", "fill"):
            yield name, getattr(self, name)
        for field in fields(self.tables):
            yield f"tables.{field.name}", getattr(self.tables, field.name)

    def header(self) -> dict[str, object]:
        """Everything but the arrays, as JSON knows it."""
        return {
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

    def made_from(self, features: NDArray[np.float64]) -> bool:
        """Whether the recording with rows `features` (m, F) was used to make this calibration."""
        return recording_hash(features) in self.provenance.recordings

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
        if abs(rate_hz - self.rate_hz) > 0.01 * self.rate_hz:
            raise CalibrationError(f"the stream has {rate_hz:g} rows a second, the calibration {self.rate_hz:g}")


def declared_range(calibration: Calibration, n: int) -> Calibration:
    """The same features with balls that hold every chunk of `n` rows inside the range, whatever corpus there was.

    The centre is the middle of the range; with R = hi - lo the radius is n R / 2 in L1 (LPA), sqrt(n) R / 2 in L2
    (CFPA, FPA), sqrt(4 n - 3) R / 2 for the difference signal (DCFPA), half of Delta_1 and Delta_2 of the range. T(k)
    is a bound on what truncation can cost inside the range: n R^2 / 4, and for DCFPA the radius squared times the
    squared norm of the cumulative sum, 1 / (4 sin^2(pi / (4 n + 2))).
    """
    features = len(calibration.names)
    width = calibration.hi - calibration.lo
    middle = np.repeat(((calibration.hi + calibration.lo) / 2)[:, None], n, axis=1)
    factor = {"lpa": float(n), "dcfpa": float(np.sqrt(4 * n - 3))}.get(calibration.mechanism, float(np.sqrt(n)))
    centre = middle.copy()
    if calibration.mechanism == "dcfpa":
        centre[:, 1:] = 0.0
    radius = np.where(calibration.declared, 0.0, factor * width / 2)
    count = 1 if calibration.mechanism == "lpa" else most_coefficients(n)
    loss = radius**2 / (4 * np.sin(np.pi / (4 * n + 2)) ** 2) if calibration.mechanism == "dcfpa" else n * width**2 / 4
    truncation = np.repeat(loss[:, None], count, axis=1)
    truncation[:, -1] = 0.0
    nothing = np.zeros(features)
    tables = PerFeatureTables(
        centre=centre,
        radius=radius,
        mean=middle,
        spread=nothing,
        truncation=truncation,
        overlap=np.zeros((features, count)),
        energy=np.zeros((features, count)),
        stays=nothing,
        forgets=nothing,
        detail=nothing,
        diameter=2 * radius,
        between_people=nothing,
    )
    provenance = replace(calibration.provenance, coverage=None, people=0, chunks=0)
    return replace(calibration, n=n, tables=tables, provenance=provenance)
