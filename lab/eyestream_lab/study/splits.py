"""Which rows of a recording are known to the attacker, and which are to be attributed."""

import math

import numpy as np

__all__ = ["WINDOW_S", "contiguous_split", "halves"]

WINDOW_S = 30.0
"""Span of raw gaze that one row summarises: rows closer than this share gaze samples."""


def halves(rows: int, n: int) -> tuple[slice, slice]:
    """First half against second half, cut between two chunks of `n` rows, as published: nothing is left out between.

    Examples
    --------
    >>> halves(100, 32)
    (slice(0, 32, None), slice(32, 100, None))
    """
    cut = rows // n // 2 * n
    return slice(0, cut), slice(cut, rows)


def contiguous_split(rows: int, n: int, rate_hz: float, rng: np.random.Generator) -> tuple[list[slice], list[slice]]:
    """A random contiguous half of the chunks of `n` rows to test, the rest to train.

    What lies within `WINDOW_S` of the tested block is left out of the training, in whole chunks: those rows share gaze
    samples with it. At least one chunk stays on each side of the split.
    """
    chunks = rows // n
    tested = max(chunks // 2, 1)
    gap = math.ceil(WINDOW_S * rate_hz / n)
    starts = [s for s in range(chunks - tested + 1) if s - gap > 0 or s + tested + gap < chunks]
    start = int(rng.choice(starts)) if starts else 0
    before, after = max(start - gap, 0) if starts else 0, start + tested + gap if starts else tested
    train = [slice(0, before * n), slice(after * n, chunks * n)]
    return [part for part in train if part.start < part.stop], [slice(start * n, (start + tested) * n)]
