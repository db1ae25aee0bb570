"""From whatever a tracker sends to a point of a declared domain, before any noise.

Every function here is total: NaN, infinities, 1e308 and subnormal numbers end inside the domain, and nothing but the
chunk itself and public figures has a say. The order is fixed: impute, clamp, and then (in the mechanism) project.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["Domain"]


class Domain:
    """Imputation of missing values and the clamp to the calibrated range.

    Parameters
    ----------
    lo, hi
        (F,) finite bounds of each feature, lo < hi.
    fill
        (F,) the public value that stands for a feature of which nothing has been seen in the chunk yet.
    n
        Chunk length.
    """

    def __init__(self, lo: NDArray[np.float64], hi: NDArray[np.float64], fill: NDArray[np.float64], n: int) -> None:
        features = len(lo)
        if not (np.isfinite(lo).all() and np.isfinite(hi).all() and np.isfinite(fill).all()):
            raise ValueError("the range and the fill of every feature must be finite")
        if not (lo < hi).all():
            raise ValueError("lo must be below hi for every feature")
        self.shape = (features, n)
        self._lo = lo[:, None].copy()
        self._hi = hi[:, None].copy()
        # Column 0 of the padded chunk is the fill; values stand at columns 1 .. n.
        self._padded = np.empty((features, n + 1))
        self._padded[:, 0] = np.clip(fill, lo, hi)
        self._flat = self._padded.reshape(-1)
        self._column = np.arange(1, n + 1, dtype=np.intp)
        self._row_start = np.arange(features, dtype=np.intp)[:, None] * (n + 1)
        self._source = np.empty((features, n), dtype=np.intp)
        self._finite = np.empty((features, n), dtype=np.bool_)
        self._admitted = np.empty((features, n))

    def admit(self, chunk: NDArray[np.float64]) -> NDArray[np.float64]:
        """Chunk (F, n) with every value finite and in range; an internal array, overwritten by the next call.

        A non-finite value is missing and takes the feature's last present value *of this chunk*, or `fill` before the
        first one. Nothing outside the chunk is ever read: a row of another chunk cannot change the result. The same
        work is done whether or not something is missing.
        """
        np.isfinite(chunk, out=self._finite)
        np.multiply(self._finite, self._column, out=self._source)
        np.maximum.accumulate(self._source, axis=1, out=self._source)
        self._source += self._row_start
        self._padded[:, 1:] = chunk
        np.take(self._flat, self._source, out=self._admitted, mode="clip")
        np.maximum(self._admitted, self._lo, out=self._admitted)
        np.minimum(self._admitted, self._hi, out=self._admitted)
        return self._admitted
