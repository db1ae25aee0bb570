"""From whatever a tracker sends to a point of a declared domain, before any noise.

Every function here is total: NaN, infinities, 1e308 and subnormal numbers end inside the domain, and nothing but the
chunk itself and public figures has a say. The order is fixed: impute, clamp, and then (in the mechanism) project.
"""

import numpy as np
from numpy.typing import NDArray

from eyestream.privacy.workspaces import room, wide

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
        self._lo, self._hi = wide(lo[:, None], n), wide(hi[:, None], n)
        # Column 0 of the padded chunk is the fill; values stand at columns 1 .. n.
        self._padded = room((features, n + 1))
        self._padded[:, 0] = np.clip(fill, lo, hi)
        self._flat = self._padded.reshape(-1)
        self._admitted = room((features, n))
        size = self._flat.size
        self._finite = np.empty(size, dtype=np.bool_)
        self._position = np.arange(size, dtype=np.int16 if size < 2**15 else np.int32)
        # Two arrays that the scan goes to and fro between, each behind zeros as long as its longest step.
        shifts = [2**i for i in range(n.bit_length())]
        ping, pong = np.zeros((2, shifts[-1] + size), dtype=self._position.dtype)
        self._present = ping[shifts[-1] :]
        self._scan = []
        for shift in shifts:
            self._scan.append((ping[shifts[-1] :], ping[shifts[-1] - shift : -shift], pong[shifts[-1] :]))
            ping, pong = pong, ping
        self._source = ping[shifts[-1] :].reshape(features, n + 1)[:, 1:]

    def admit(self, chunk: NDArray[np.float64]) -> NDArray[np.float64]:
        """Chunk (F, n) with every value finite and in range; an internal array, overwritten by the next call.

        A non-finite value is missing and takes the feature's last present value *of this chunk*, or `fill` before the
        first one. Nothing outside the chunk is ever read: a row of another chunk cannot change the result. The same
        work is done whether or not something is missing.
        """
        self._padded[:, 1:] = chunk
        np.isfinite(self._flat, out=self._finite)
        np.multiply(self._finite, self._position, out=self._present)
        for here, before, larger in self._scan:  # running maximum by doubling: the last present position
            np.maximum(here, before, out=larger)
        self._flat.take(self._source, out=self._admitted, mode="wrap")  # none is outside: the quickest way
        np.maximum(self._admitted, self._lo, out=self._admitted)
        np.minimum(self._admitted, self._hi, out=self._admitted)
        return self._admitted
