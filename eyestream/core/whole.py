"""Private release of a whole recording, chunk by chunk in one session."""

import numpy as np
from numpy.typing import NDArray

from eyestream.core.mechanism import Mechanism


def chunk_count(rows: int, n: int) -> int:
    """Chunks of `n` rows that a recording of `rows` rows falls into, a partial last one included."""
    return -(-rows // n)


def release_rows(mechanism: Mechanism, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Private rows (m, F) for rows (m, F).

    The losses of the chunks add up to `chunk_count` times the mechanism's. A partial last chunk is imputed, released
    whole and cut. Rows of a baseline are NaN.
    """
    n = mechanism.n
    released = np.full_like(rows, np.nan)
    session = mechanism.session()
    for start in range(0, len(rows), n):
        chunk = np.full((mechanism.features, n), np.nan)
        part = rows[start : start + n]
        chunk[:, : len(part)] = part.T
        if session.awaits_baseline:
            session.anchor(chunk)
            continue
        released[start : start + n] = session.release(chunk)[:, : len(part)].T
    return released
