"""Worlds small enough to list every output of a session, and the bound of Cao et al. to compare with."""

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.correlation.chains import MarkovClass
from eyestream_lab.correlation.emissions import Emission, laplace, response

Array = NDArray[np.float64]


def stay_or_move(stay: float, states: int = 3) -> Array:
    """A chain that stays, or moves to any other state alike."""
    return np.full((states, states), (1 - stay) / (states - 1)) + np.eye(states) * (stay - (1 - stay) / (states - 1))


def own_words(epsilon: float, states: int = 3) -> Emission:
    """Randomised response of the state itself."""
    return response(epsilon, np.eye(states, dtype=bool))


def withheld(states: int) -> Emission:
    """Nothing is released: every state looks the same."""
    return Emission(np.zeros((states, states)), np.zeros((1, states)), True)


def pairs_of_rows(stay: float) -> tuple[MarkovClass, Array]:
    """The chain of chunks of two rows, and the chunks; rows are 0, 1/2 or 1 and follow `stay_or_move`."""
    rows = stay_or_move(stay)
    first, last = np.divmod(np.arange(9), 3)
    chain = rows[last][:, first] * rows[first, last]
    return MarkovClass.exact(chain), np.stack([first, last], axis=1) / 2


def chunk_emission(chunks: Array, epsilon: float, *, differences: bool, own: bool = False) -> Emission:
    """CFPA or DCFPA, k = 1, at the published scale for rows in [0, 1]; or, with `own`, scaled to a loss of epsilon."""
    n = chunks.shape[1]
    points = chunks[:, -1] if differences else chunks.sum(axis=1)  # the differences add up to the last row
    sensitivity = math.sqrt(4 * n - 3 if differences else n)
    return laplace(points, (float(np.ptp(points)) if own else math.sqrt(n) * sensitivity) / epsilon)


def all_vectors(rows: Array, outputs: Array, steps: int) -> Array:
    """(words, S) likelihood of every word of `steps` outputs beyond, given the state."""
    vectors = np.ones((1, len(rows)))
    for _ in range(steps):
        vectors = ((np.exp(outputs)[:, None, :] * vectors[None]).reshape(-1, len(rows))) @ rows.T
    return vectors


def sides(rows: Array, outputs: Array, steps: int) -> Array:
    """(S, S) exact supremum of log f(x) / f(x') over every word of `steps` extreme outputs."""
    logs = np.log(all_vectors(rows, outputs, steps))
    return (logs[:, :, None] - logs[:, None, :]).max(axis=0)


def exact_total(process: MarkovClass, emission: Emission, length: int, chunk: int) -> float:
    """epsilon' of a chunk of one chain by listing every word of outputs on either side."""
    back = process.backward(length)[0].lowest
    before, after = sides(back, emission.outputs, chunk), sides(process.lowest, emission.outputs, length - 1 - chunk)
    return float((emission.log_ratio + before + after).max())


def cao(rows: Array, epsilon: float, steps: int) -> float:
    """BPL (or FPL) after `steps` further releases, by listing all sets of columns (Cao et al., ICDE 2017, eq. 23)."""
    leaked = epsilon
    for _ in range(steps):
        best = 0.0
        for size in range(1, len(rows)):
            for chosen in itertools.combinations(range(len(rows)), size):
                share = rows[:, chosen].sum(axis=1)
                affine = np.log(share * math.expm1(leaked) + 1)
                best = max(best, float(affine.max() - affine.min()))
        leaked = best + epsilon
    return leaked


def random_chain(rng: np.random.Generator, states: int) -> Array:
    """Rows from a Dirichlet law, from nearly fixed to nearly uniform."""
    rows = rng.dirichlet(np.full(states, rng.choice([0.3, 1.0, 3.0])), states) + 1e-3
    return rows / rows.sum(axis=1, keepdims=True)
