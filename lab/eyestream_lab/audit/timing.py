"""Whether the time of a release depends on the chunk: interleaved, by ranks, and seen three times."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["LEAST_NS", "interleaved", "unlike"]

Nanoseconds = NDArray[np.int64]

LEAST_NS = {"program": 30_000.0}
"""Differences below are not looked at; for what is called in the same process 1,000 ns."""
_SHARE, _RANKS, _DEVIATIONS = 0.25, 0.12, 6.0
_QUARTILES = (0.25, 0.5, 0.75)


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
