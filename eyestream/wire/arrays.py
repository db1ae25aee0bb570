"""Arrays on the wire: `bin`, little-endian float32, C order, with the shape beside them; times are float64."""

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from eyestream.wire.envelope import MAX_RELEASE_BYTES, documented, refuse

__all__ = ["FLOAT32", "FLOAT64", "Shape", "from_bin", "to_bin"]

FLOAT32 = np.dtype("<f4")
FLOAT64 = np.dtype("<f8")
Shape = Annotated[tuple[int, ...], documented(minItems=2, maxItems=2)]
"""Rows and columns of an array."""


def to_bin(array: NDArray[np.floating]) -> tuple[tuple[int, int], bytes]:
    """Shape and bytes of a two-dimensional array; what float32 cannot hold becomes infinite.

    Raises
    ------
    PayloadError
        ``shape``: not two dimensions, or no columns.
    """
    if array.ndim != 2 or array.shape[1] < 1:
        raise refuse("shape")
    rows, columns = array.shape
    with np.errstate(all="ignore"):
        return (rows, columns), np.asarray(array, FLOAT32).tobytes()


def from_bin(shape: tuple[int, ...], values: bytes) -> NDArray[np.float32]:
    """The array that a payload declares, a read-only view of `values`.

    Raises
    ------
    PayloadError
        ``shape``: not two dimensions, no columns, or more than any payload could fill; ``length``: other bytes than the
        shape needs.
    """
    if len(shape) != 2 or shape[0] < 0 or not 1 <= shape[1] <= MAX_RELEASE_BYTES:  # numpy cannot hold 0 rows of 2^64
        raise refuse("shape")
    if len(values) != shape[0] * shape[1] * FLOAT32.itemsize:
        raise refuse("length")
    return np.frombuffer(values, FLOAT32).reshape(shape)
