"""Calibration of the mechanisms that code every feature by itself, from recordings of a public or consented corpus."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import CalibrationError
from eyestream.offline.corpus.balls import covering_ball, diameter, enclosing_ball, enclosing_taxicab_ball
from eyestream.offline.corpus.persistence import lagged_moments, staying_part
from eyestream.privacy.ball import l1_factor, l2_factor
from eyestream.privacy.calibration import Calibration, PerFeatureTables, Provenance, recording_hash
from eyestream.privacy.domain import Domain
from eyestream.rim.files.recordings import Recording
from eyestream.spectrum.difference import difference, integrate
from eyestream.spectrum.fourier import RealFourier, coordinate_count, most_coefficients

__all__ = ["Corpus", "calibrate_per_feature", "whole_chunks"]

Array = NDArray[np.float64]
WORDBOOK_MINIMA = ("wb1_min", "wb2_min", "wb3_min", "wb4_min")


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

    @classmethod
    def of(cls, recordings: Sequence[Recording], n: int) -> "Corpus":
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
            if abs(recording.rate_hz - first.rate_hz) > 0.01 * first.rate_hz:
                raise CalibrationError(f"{recording.path} has another rate than {first.path}")
        rows = np.concatenate([r.features for r in recordings])
        present = np.where(np.isfinite(rows), rows, np.nan)
        empty = np.isnan(present).all(axis=0)
        if empty.any():
            raise CalibrationError(f"feature {first.names[int(np.argmax(empty))]} has no value in any recording")
        lo, hi = np.nanmin(present, axis=0), np.nanmax(present, axis=0)
        fill = np.clip(np.nanmean(present, axis=0), lo, hi)
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
        )


def calibrate_per_feature(
    corpus: Corpus,
    mechanism: str,
    *,
    coverage: float = 0.95,
    k: int | None = None,
    declared: Sequence[str] = WORDBOOK_MINIMA,
    description: str = "recordings given by the user",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Calibration:
    """Calibration of LPA, CFPA or DCFPA.

    Parameters
    ----------
    coverage
        Share of the corpus' signals inside the ball, around their mean; 1 for the smallest enclosing ball.
    k
        Number of coefficients, when the mechanism shall not choose it by itself.
    declared
        Names of features that are declared constants: released as `fill`, their input never read.
    progress
        Called with (features done, features).

    Raises
    ------
    CalibrationError
        when `coverage` is not in (0, 1].
    """
    if not 0 < coverage <= 1:
        raise CalibrationError(f"coverage must lie above 0 and at most at 1, not {coverage}")
    constant = np.isin(corpus.names, list(declared))
    columns = []
    for feature in range(len(corpus.names)):
        columns.append(_feature_tables(corpus, feature, mechanism, coverage))
        progress(feature + 1, len(corpus.names))
    tables = PerFeatureTables(**{name: np.array([c[name] for c in columns]) for name in columns[0]})
    return Calibration(
        mechanism=mechanism,
        names=corpus.names,
        units=("1",) * len(corpus.names),
        rate_hz=corpus.rate_hz,
        n=corpus.n,
        k=k,
        declared=constant,
        lo=corpus.lo,
        hi=corpus.hi,
        fill=np.where(constant, np.median(corpus.chunks, axis=(0, 2)), corpus.fill),
        tables=tables,
        provenance=Provenance(
            corpus=description,
            people=len(corpus.hashes),
            chunks=len(corpus.chunks),
            coverage=coverage,
            recordings=corpus.hashes,
            made_by=f"eyestream {version('eyestream')}",
        ),
    )


def _feature_tables(corpus: Corpus, feature: int, mechanism: str, coverage: float) -> dict[str, Array | float]:
    """Columns of `PerFeatureTables` for one feature."""
    chunks = np.ascontiguousarray(corpus.chunks[:, feature])  # (N, n)
    signals = difference(chunks) if mechanism == "dcfpa" else chunks
    order = 1 if mechanism == "lpa" else 2
    if coverage < 1:
        centre, radius = covering_ball(signals, coverage, order)
    else:
        centre, radius = enclosing_taxicab_ball(signals) if order == 1 else enclosing_ball(signals)
    mean = chunks.mean(axis=0)
    figures: dict[str, Array | float] = _persistence(chunks, corpus.person) | {
        "centre": centre,
        "radius": radius,
        "mean": mean,
        "spread": float(((chunks - mean) ** 2).sum(axis=1).mean()),
        "diameter": diameter(signals, order),
        "between_people": max(
            (diameter(signals[corpus.index == i], order) for i in range(int(corpus.index.max()) + 1)), default=0.0
        ),
    }
    factor = l1_factor if mechanism == "lpa" else l2_factor
    tiny = np.finfo(np.float64).tiny  # radius 0 makes the feature a constant; its figures are not used
    residual = signals - centre
    inside = centre + factor(residual, np.full(len(signals), max(radius, tiny))) * residual
    return figures | _error_tables(chunks, inside, mean, mechanism)


def _persistence(chunks: Array, person: NDArray[np.intp]) -> dict[str, Array | float]:
    """Variances of chunks (N, n) for smoothing: what stays with a person, what is forgotten, what is inside a chunk.

    Of values clipped to the corpus' 0.5 % and 99.5 % quantiles: a few events decide the variance of some features.
    """
    clipped = np.clip(chunks, *np.quantile(chunks, [0.005, 0.995]))
    level = clipped.mean(axis=1) - clipped.mean()
    variance = float((level**2).mean())
    own = [level[person == one, None] for one in np.unique(person)]
    stays = float(np.clip(staying_part(lagged_moments(own))[0, 0], 0.0, variance))
    return {"stays": stays, "forgets": variance - stays, "detail": float(clipped.var(axis=1).mean())}


def _error_tables(chunks: Array, inside: Array, mean: Array, mechanism: str) -> dict[str, Array]:
    """T, A and B of `eyestream.privacy.error_model` for every k, from chunks (N, n) and their projected signals."""
    count, n = chunks.shape
    most = 1 if mechanism == "lpa" else most_coefficients(n)
    truncation, overlap, energy = np.empty(most), np.empty(most), np.empty(most)
    mean_signal = difference(mean) if mechanism == "dcfpa" else mean
    if mechanism == "lpa":
        kept, kept_mean = inside, mean
        return {
            "truncation": np.array([((chunks - kept) ** 2).sum(axis=1).mean()]),
            "overlap": np.array([((chunks - mean) * (kept - kept_mean)).sum(axis=1).mean()]),
            "energy": np.array([((kept - kept_mean) ** 2).sum(axis=1).mean()]),
        }
    fourier = RealFourier(count + 1, n, most)
    coordinates = fourier.coordinates(np.vstack([inside, mean_signal])).copy()
    for k in range(1, most + 1):
        first = np.zeros_like(coordinates)
        first[:, : coordinate_count(n, k)] = coordinates[:, : coordinate_count(n, k)]
        signals = fourier.signals(first)
        back = integrate(signals) if mechanism == "dcfpa" else signals
        kept, kept_mean = back[:-1], back[-1]
        truncation[k - 1] = ((chunks - kept) ** 2).sum(axis=1).mean()
        overlap[k - 1] = ((chunks - mean) * (kept - kept_mean)).sum(axis=1).mean()
        energy[k - 1] = ((kept - kept_mean) ** 2).sum(axis=1).mean()
    return {"truncation": truncation, "overlap": overlap, "energy": energy}
