"""How far a feature goes, evened out: for calibrations that hide a wearer behind a baseline.

A baseline takes off where somebody's features lie, and leaves how far they go from there, which tells people apart too.
So each feature of each chunk is multiplied by the square root of (what is usual) / (how far it goes in this chunk):

    z -> z sqrt(reach / r),   r = the root mean square of z over the rows of the chunk,

z the standardised level of the feature, behind baseline, clamp and map. Somebody who goes twice as far is seen to go
1.4 times as far. With reach = E r^2 / E r over the corpus the mean square of z stays what it was. What comes out is not
undone: the release says of everybody that he moves half-way, by the logarithm, as people usually do.

It is a function of the one chunk and of public figures, as clamp and map are. So the guarantee stays what it was, no
session holds anything more, and what a baseline cancels to the last bit stays cancelled.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["evened", "usual_reach"]

Array = NDArray[np.float64]

_MOST = 64.0
"""A feature that goes less than this part of what is usual is taken to go so far: it is made at most 8 times larger."""


def evened(values: Array, reach: Array, out: Array | None = None) -> Array:
    """Levels (.., A, n), standardised and finite, of features whose usual `reach` (A,) is; the same work for all."""
    own = np.sqrt(np.einsum("...fi,...fi->...f", values, values) / values.shape[-1])
    factor = np.sqrt(reach / np.maximum(own, reach / _MOST))
    return np.asarray(np.multiply(values, factor[..., None], out=out), np.float64)


def usual_reach(chunks: Array, present: NDArray[np.bool_]) -> Array:
    """(A,) E r^2 / E r over the standardised chunks (N, A, n) that are `present` (N, A); 1 where nothing moves."""
    own = np.sqrt((chunks**2).mean(axis=2)) * present
    whole = own.sum(axis=0)
    return np.asarray(np.divide((own**2).sum(axis=0), whole, out=np.ones_like(whole), where=whole > 0), np.float64)
