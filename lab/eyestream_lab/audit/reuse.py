"""Tests for repeated noise: over calls, threads, copies of the process, or two processes.

A mechanism releases one chunk again and again. Its outputs are then independent draws of one law, so two of them agree
with the same chance wherever they stand in the sequence. The tests compare parts of outputs bit by bit: the whole, each
feature, each row, each Fourier coefficient. They compare them at each distance in one sequence, or place by place in
two. Where many more agree than any two of the sequence do, noise was used twice. A mechanism with few possible outputs
agrees often, and is not accused: it agrees as often at every distance.
"""

import math

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.audit.estimate import incomplete_beta

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

_ALPHA = 1e-6
"""Chance of a false alarm of one call, shared among all comparisons."""
_LEAST = 4
"""Fewer agreements at one distance are no finding."""
_SCATTER = 2.0
"""Fewer than so many times the expected agreements are no finding."""
_PARTS, _DISTANCES, _CROWD = 24, 64, 40
"""Most features, rows and coefficients that are compared; distances that always are; and how often a value may come for
the distances between its places to be compared too."""


def repeated(outputs: Array) -> str | None:
    """A sentence on a repetition within outputs (m, F, n) for one chunk; None when there is none."""
    parts = _parts([outputs])
    m = len(outputs)
    for name, (labels,) in parts.items():
        expected = _agreement(labels)
        for distance in _distances(labels):
            same = labels[distance:] == labels[:-distance]
            parity = (np.arange(m - distance) // distance) % 2
            for half in (same[parity == 0], same[parity == 1]):  # in each, no two pairs share a member
                agree, pairs = int(half.sum()), len(half)
                if _too_many(agree, pairs, expected, _ALPHA / (m * len(parts))):
                    return f"{name} of the output is that of {distance} calls before in {agree} of {pairs} cases"
    return None


def shared(first: Array, second: Array, between: str) -> str | None:
    """A sentence on outputs that two sequences (m, F, n) for one chunk share, place by place or shifted by up to 4."""
    parts = _parts([first, second])
    for name, (own, other) in parts.items():
        expected = _agreement(np.concatenate([own, other]))
        for shift in range(-4, 5):
            ours, theirs = own[max(shift, 0) :], other[max(-shift, 0) :]
            pairs = min(len(ours), len(theirs))
            agree = int((ours[:pairs] == theirs[:pairs]).sum())
            if _too_many(agree, pairs, expected, _ALPHA / (9 * len(parts))):
                return f"{name} of the output is the same in {between} in {agree} of {pairs} calls"
    return None


def _too_many(agree: int, pairs: int, expected: float, alpha: float) -> bool:
    """Whether so many of independent pairs agree by chance with less than `alpha`: the tail of a binomial law."""
    if agree < _LEAST or agree <= _SCATTER * expected * pairs:
        return False
    chance = min(max(expected, 1.0 / pairs / 100), 1.0)  # none was expected to agree: not 0, which any pair refutes
    return incomplete_beta(agree, pairs - agree + 1, chance) < alpha


def _agreement(labels: Labels) -> float:
    """Share of all pairs of places whose labels agree."""
    counts = np.unique(labels, return_counts=True)[1].astype(np.float64)
    m = len(labels)
    return float((counts * (counts - 1)).sum() / (m * (m - 1)))


def _distances(labels: Labels) -> list[int]:
    """Distances to compare at: the short ones, and those at which rare labels come again, `_LEAST` times or more."""
    m = len(labels)
    short = range(1, min(_DISTANCES, m // 2))
    order = np.argsort(labels, kind="stable")
    first = labels[order]
    again: dict[int, int] = {}
    starts = np.flatnonzero(np.concatenate([[True], first[1:] != first[:-1]]))
    for group in np.split(order, starts[1:]):
        if 1 < len(group) <= _CROWD:
            for distance in np.diff(group).tolist():
                again[distance] = again.get(distance, 0) + 1
    often = [distance for distance, times in again.items() if times >= _LEAST and distance <= m // 2]
    return sorted({*short, *often})


def _parts(sequences: list[Array]) -> dict[str, list[Labels]]:
    """By the name of a part, its labels (m,) in each sequence: equal where the outputs are equal in that part."""
    together = np.concatenate(sequences)
    cuts = np.cumsum([len(sequence) for sequence in sequences])[:-1]
    features, n = together.shape[1:]
    found = {"the whole": together.reshape(len(together), -1)}
    step_f, step_n = (max(math.ceil(size / _PARTS), 1) for size in (features, n))
    if features > 1:
        found |= {f"feature {index}": together[:, index] for index in range(0, features, step_f)}
    if n > 1:
        found |= {f"row {index}": together[:, :, index] for index in range(0, n, step_n)}
        found |= _coefficients(together)
    labelled = {name: _labels(part) for name, part in found.items()}
    return {name: np.split(own, cuts) for name, own in labelled.items() if own.any()}


def _coefficients(chunks: Array) -> dict[str, Array]:
    """Real and imaginary parts of a few Fourier coefficients of the first feature, without their last bits."""
    spectrum = np.fft.rfft(chunks[:, 0], axis=-1)
    scale = np.abs(chunks[:, 0]).max(axis=0).max() * 2.0**-36 or 1.0
    found = {}
    for index in range(0, spectrum.shape[1], max(math.ceil(spectrum.shape[1] / _PARTS), 1)):
        for name, part in (("real", spectrum[:, index].real), ("imaginary", spectrum[:, index].imag)):
            found[f"the {name} part of coefficient {index}"] = np.rint(part / scale)[:, None]
    return found


def _labels(part: Array) -> Labels:
    """(m,) equal numbers for equal rows; all 0 when all rows are equal."""
    rows = np.ascontiguousarray(part + 0.0)  # no negative zero
    whole = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    return np.unique(whole, return_inverse=True)[1].astype(np.int64)
