"""Which rows of a recording are known to the attacker, and which are to be attributed."""

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
