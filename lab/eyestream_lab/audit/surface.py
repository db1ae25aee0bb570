"""Whether the low bits of outputs are those of floating-point arithmetic on noise.

Mironov (2012): the sum of a datum and a floating-point noise does not reach all doubles, and which it reaches depends
on the datum. Seen from outside, a sum that comes out much smaller than its terms ends in zero bits, because its last
bit is that of the larger term. Two tests follow.

*Unlike low bits*: among outputs of one magnitude, the share that ends in zero bits differs between two inputs; that is
the proof, whatever the noise.

*No grid*: the smallest outputs end in zero bits, so they come from floating-point sums, and outputs lie on no lattice
in time, differences, frequency, cosines, Haar and Hadamard coordinates. Noise drawn on a grid and then transformed
shows its lattice there; correctly rounded noise keeps all its bits where it is small.

A lattice is offset + spacing * integer, both unknown, up to what rounding makes of them.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.audit.estimate import lower_share
from eyestream_lab.audit.inputs import Neighbours
from eyestream_lab.audit.subject import Subject

Array = NDArray[np.float64]

_LEAST, _GAPS, _FINE, _ZERO = 32.0, 256, 1 / 16, 4.0
_CENTRE = (0.1, 0.9)

Nanoseconds = NDArray[np.int64]

LEAST_NS = {"program": 30_000.0}
"""Differences below are not looked at; for what is called in the same process 1,000 ns."""
_SHARE, _RANKS, _DEVIATIONS = 0.25, 0.12, 6.0
_QUARTILES = (0.25, 0.5, 0.75)


def spacing(values: Array, resolution: float) -> float | None:
    """Spacing of the lattice that `values` (m,) lie on, which are known to within `resolution`; None if there is none.

    The differences of neighbours in the sorted list go through Euclid's algorithm, smallest first, while their
    remainders exceed what rounding makes of them. Numbers without a lattice end below 32 resolutions, and there no
    lattice could be told from rounding.
    """
    low, high = np.quantile(values, _CENTRE)
    inside = np.unique(values[(values >= low) & (values <= high)])
    gaps = np.diff(inside)
    gaps = gaps[gaps > 4 * resolution]
    if len(gaps) < len(values) / 8:  # most values came several times
        return float(gaps.min()) if len(gaps) else math.inf
    found, error = _common_divisor(np.sort(gaps)[:_GAPS], 2 * resolution)
    if found < _LEAST * max(resolution, error):
        return None
    places = np.concatenate([[0.0], np.cumsum(np.rint(np.diff(inside) / found))])
    places -= np.rint(places.mean())
    slope, offset = np.polyfit(places, inside, 1)
    residual = np.abs(inside - slope * places - offset)
    fits = np.quantile(residual, 0.95) <= max(8 * resolution, _FINE * found)
    return float(slope) if fits else None


def _common_divisor(gaps: Array, error: float) -> tuple[float, float]:
    """The largest number of which all `gaps`, each known to within `error`, are multiples; and its own error."""
    common, uncertain = float(gaps[0]), error
    for gap in gaps[1:].tolist():
        (larger, off), (smaller, doubt) = (gap, error), (common, uncertain)
        while smaller > _ZERO * doubt:
            times = round(larger / smaller)
            rest = abs(larger - times * smaller), off + times * doubt
            if larger is gap and rest[0] <= _ZERO * rest[1]:  # a multiple, which tells the divisor better
                larger, off = min(((smaller, doubt), (gap / times, error / times)), key=lambda item: item[1])
                break
            (larger, off), (smaller, doubt) = (smaller, doubt), rest
        common, uncertain = larger, off
    return common, uncertain


def transforms(n: int) -> dict[str, NDArray[Any]]:
    """(C, n) transforms of a signal in which noise may have been drawn; differences keep the first value."""
    time = np.eye(n)
    wave = np.fft.rfft(time, axis=0, norm="ortho")
    fourier = np.concatenate([wave.real, wave.imag[1 : (n + 1) // 2]])
    steps = time - np.eye(n, k=-1)
    rows = np.arange(n)
    cosine = np.cos(np.pi * (rows[None, :] + 0.5) * rows[:, None] / n) / math.sqrt(n)
    found = {"time": time, "frequency": fourier, "differences": steps, "frequency of differences": fourier @ steps}
    found["cosines"] = cosine
    if n > 1 and n & (n - 1) == 0:
        haar: NDArray[Any] = np.ones((1, 1))
        hadamard: NDArray[Any] = np.ones((1, 1))
        while len(haar) < n:
            size = len(haar)
            haar = np.concatenate([np.kron(haar, [1.0, 1.0]), math.sqrt(size) * np.kron(np.eye(size), [1.0, -1.0])])
            hadamard = np.kron(hadamard, [[1.0, 1.0], [1.0, -1.0]])
        found |= {"Haar": haar / math.sqrt(n), "Hadamard": hadamard / math.sqrt(n)}
    return found


_ZEROS = 16
"""A last bit of at least so many units ends in zero bits: one output in 16 does by chance."""
_SMALLEST, _COMMON = 30, 0.5
_FEATURES, _COORDINATES = 6, 16
_ALPHA = 1e-7
_OFF = 2
_MARGIN = 3
"""The last bit of a sum lies 53 bits (24) below its larger term; a grid must be coarser than that by so many bits."""
_TIMES = 2.0
"""The shares must differ by more than this factor."""


def surface_inputs(subject: Subject, spread: Array) -> Neighbours:
    """A chunk of values with full mantissas, as large as the noise lets come near 0; and one of the smallest values.

    `spread` (F, 1) is about how far outputs of a feature scatter.
    """
    low, high = subject.bounds()
    most, least = np.maximum(np.abs(low), np.abs(high)), np.abs(np.clip(0.0, low, high))
    size = np.clip(spread, least, most) * np.random.default_rng(4).uniform(0.85, 0.99, (subject.features, subject.n))
    large = np.where(np.abs(high) >= np.abs(low), size, -size)
    return Neighbours("large and small values", np.clip(large, low, high), np.clip(0.0, low, high) * np.ones_like(size))


def surface(large: Array, small: Array) -> list[str]:
    """Evidence for floating-point noise in outputs (m, F, n) under the two chunks of `surface_inputs`."""
    found: list[str] = []
    features = _noisy_features(large)[:_FEATURES]
    if not features:
        return found
    bits = 24 if all((y == y.astype(np.float32)).all() for y in (large, small)) else 53
    factors = _factors(large.shape[2])
    for factor in factors:
        unlike = _unlike(*(_smallest(y, features, bits, factor) for y in (large, small)))
        if unlike is not None:
            found.append(unlike)
            break
    for feature in features:
        own = large[:, feature]
        if _clipped(own):
            continue
        share = max(_share(*_smallest(large, [feature], bits, factor)) for factor in factors)
        if share >= _COMMON and not (_on_grid(own, bits) or _on_fine_grid(bits, own, small[:, feature])):
            found.append(
                f"feature {feature}: {share:.0%} of the smallest outputs end in zero bits, less than 10% would by "
                "chance, and the outputs lie on no grid"
            )
    return found


def _factors(n: int) -> list[float]:
    """Factors that undo the last step of an inverse transform, a division by n or its root; none by powers of two."""
    return [1.0, *(factor for factor in (float(n), math.sqrt(n)) if math.frexp(factor)[0] != 0.5)]


def _share(magnitude: Array, ends: NDArray[np.bool_]) -> float:
    """How many of the smallest outputs end in zero bits; 0 where there are too few of them."""
    least = np.argsort(magnitude)[:_SMALLEST]
    return float(ends[least].mean()) if len(least) == _SMALLEST else 0.0


def _noisy_features(y: Array) -> list[int]:
    spread = np.ptp(y, axis=0)
    return [int(feature) for feature in np.flatnonzero((spread > 0).any(axis=1))]


def _clipped(y: Array) -> bool:
    """Whether an exact value comes often, which a transform would smear."""
    flat = np.sort(y.ravel()[np.isfinite(y.ravel())])
    most = np.diff(np.flatnonzero(np.concatenate([[True], np.diff(flat) != 0, [True]]))).max()
    return bool(most > max(0.02 * len(flat), 2 * y.shape[1]))


def _smallest(y: Array, features: list[int], bits: int, factor: float) -> tuple[Array, NDArray[np.bool_]]:
    """The smallest value of each draw that is not 0 (d,), as a magnitude, and whether it ends in zero bits.

    Values that come often are left out: they are ends of a range, not sums. A product with a factor is known to within
    two units of its last bit; it is taken to end in zeros where it could.
    """
    flat = np.abs(y[:, features].reshape(len(y), -1))
    values, counts = np.unique(flat, return_counts=True)
    often = values[counts > max(0.002 * flat.size, 2 * y.shape[2])]
    flat = np.where(np.isin(flat, often) | (flat == 0), np.inf, flat)
    least = flat.min(axis=1)
    least = least[np.isfinite(least)]
    if factor == 1.0:
        return least, np.ldexp(np.frexp(least)[0], bits).astype(np.int64) % _ZEROS == 0
    units = np.rint(np.ldexp(np.frexp(least * factor)[0], bits)).astype(np.int64)
    return least, (units + _OFF) % (4 * _ZEROS) <= 2 * _OFF


def _unlike(first: tuple[Array, NDArray[np.bool_]], second: tuple[Array, NDArray[np.bool_]]) -> str | None:
    """Whether the low bits of outputs of one magnitude differ between the inputs."""
    octaves = [np.frexp(magnitude)[1] for magnitude, _ in (first, second)]
    both = np.intersect1d(octaves[0], octaves[1])
    for octave in both.tolist():
        shares = []
        for (_, ends), places in zip((first, second), octaves, strict=True):
            own = ends[places == octave]
            shares.append((int(own.sum()), len(own)))
        for (hits, draws), (others, among) in (shares, shares[::-1]):
            low = lower_share(hits, draws, _ALPHA / len(both))
            high = 1 - lower_share(among - others, among, _ALPHA / len(both))
            if low > _TIMES * high:
                return (
                    f"outputs between 2^{octave - 1} and 2^{octave} end in zero bits in {hits} of {draws} draws "
                    f"under one chunk, in {others} of {among} under another"
                )
    return None


def _on_grid(y: Array, bits: int) -> bool:
    """Whether the outputs (m, n) of a feature lie on a lattice, in some transform, in every coordinate with noise."""
    resolution = float(np.quantile(np.abs(y), 0.999)) * 2.0 ** (2 - bits)
    return any(all(found) for found in _seen(y, resolution))


def _on_fine_grid(bits: int, *outputs: Array) -> bool:
    """Whether all outputs are multiples of one power of two that is too coarse for the last bit of a sum."""
    values = np.abs(np.concatenate([y.ravel() for y in outputs]))
    values = values[values > 0]
    mantissa = np.ldexp(np.frexp(values)[0], 53).astype(np.int64)
    last = np.log2((mantissa & -mantissa).astype(np.float64)) + np.frexp(values)[1] - 53
    return bool(last.min() >= np.log2(np.median(values)) + _MARGIN - bits)


def _seen(y: Array, resolution: float) -> Iterator[Iterator[bool]]:
    for name, transform in transforms(y.shape[1]).items():
        coordinates, known = y @ transform.T, resolution * (1.0 if name == "time" else 4.0)
        spread = np.ptp(np.quantile(coordinates, (0.1, 0.9), axis=0), axis=0)
        noisy = np.flatnonzero(spread > 64 * known)[:_COORDINATES]
        yield (spacing(coordinates[:, index], known) is not None for index in noisy) if len(noisy) else iter([False])


def interleaved(kinds: int, times: int) -> NDArray[np.int64]:
    """(2 * kinds * times,) an order of inputs: every kind from 1 on beside the input 0, in random order."""
    rng = np.random.default_rng()
    order = np.empty((times, kinds, 2), dtype=np.int64)
    for row in order:
        row[:, 0], row[:, 1] = 0, 1 + rng.permutation(kinds)
    return rng.permuted(order, axis=2).ravel()


def unlike(usual: Nanoseconds, other: Nanoseconds, least_ns: float = 1000.0) -> str | None:
    """How far the times of two kinds of chunk differ; None when they do not clearly.

    A quartile must differ by a quarter and by `least_ns`, and the chance that one is longer than the other must be
    away from one half by 0.12 and by six standard deviations.
    """
    first, second = (np.quantile(times, _QUARTILES) for times in (usual, other))
    apart = np.abs(second - first)
    clear = (apart > _SHARE * np.minimum(first, second)) & (apart > least_ns)
    longer = _longer(usual, other)
    deviation = np.sqrt((len(usual) + len(other) + 1) / (12 * len(usual) * len(other)))
    if not clear.any() or abs(longer - 0.5) < max(_RANKS, _DEVIATIONS * deviation):
        return None
    return f"median {second[1] / 1000:.1f} us instead of {first[1] / 1000:.1f} us, longer in {longer:.0%} of pairs"


def _longer(usual: Nanoseconds, other: Nanoseconds) -> float:
    """The chance that the other takes longer, ties counted half (Mann and Whitney 1947)."""
    ordered = np.sort(usual)
    below, up_to = np.searchsorted(ordered, other, "left"), np.searchsorted(ordered, other, "right")
    return float((below + up_to).mean() / (2 * len(usual)))
