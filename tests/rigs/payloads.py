"""Rows that nobody has seen before, and what is said of them."""

from collections.abc import Sequence

import msgpack
import numpy as np
from numpy.typing import NDArray

__all__ = ["as_said", "rows_of_a_stranger", "tagged"]


def rows_of_a_stranger(count: int, features: int, seed: int = 1) -> NDArray[np.float32]:
    """(count, F) float32 rows whose every value is a full-precision number of its own."""
    return np.random.default_rng(seed).normal(20.0, 5.0, (count, features)).astype(np.float32)


def as_said(topic: str, payload: bytes) -> bytes:
    """The payload, but of an odometer what differs between two ledgers of one history: its numbers are random."""
    if not topic.endswith("odometer"):
        return payload
    said = msgpack.unpackb(payload)
    assert said.keys() == {"v", "ledger", "life", "began", "reads"}
    return b"%d" % (said["reads"] - said["began"])


def tagged(session: int, rows: Sequence[int], features: int = 2) -> NDArray[np.float32]:
    """(m, F) float32 rows that say which they are: the first feature is 1000 session + row, the others 4242.5."""
    values = np.full((len(rows), features), 4242.5, dtype=np.float32)
    values[:, 0] = [1000 * session + row for row in rows]
    return values
