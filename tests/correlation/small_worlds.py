"""Worlds small enough to list every output of a session, and the bound of Cao et al. to compare with."""

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from eyestream.lab.correlation.chains import MarkovClass
from eyestream.lab.correlation.emissions import Emission, fourier_coordinates, fourier_scale, laplace, response
from eyestream.lab.correlation.second import Windows

Array = NDArray[np.float64]


def stay_or_move(stay: float, states: int = 3) -> Array:
    """A chain that stays, or moves to any other state alike."""
    return np.full((states, states), (1 - stay) / (states - 1)) + np.eye(states) * (stay - (1 - stay) / (states - 1))


def own_words(epsilon: float, states: int = 3) -> Emission:
    """Randomised response of the state itself."""
    return response(epsilon, np.eye(states, dtype=bool))


def pairs_of_rows(stay: float) -> tuple[MarkovClass, Array]:
    """The chain of chunks of two rows, and the chunks; rows are 0, 1/2 or 1 and follow `stay_or_move`."""
    rows = stay_or_move(stay)
    first, last = np.divmod(np.arange(9), 3)
    chain = rows[last][:, first] * rows[first, last]
    return MarkovClass.exact(chain), np.stack([first, last], axis=1) / 2


def chunk_emission(chunks: Array, epsilon: float, *, differences: bool, own: bool = False) -> Emission:
    """CFPA or DCFPA, k = 1, at the published scale for rows in [0, 1]; or, with `own`, scaled to a loss of epsilon."""
    n = chunks.shape[1]
    points = fourier_coordinates(chunks, 1, differences=differences)
    scale = fourier_scale(n, 1, math.sqrt(4 * n - 3 if differences else n), epsilon)
    return laplace(points, float(np.ptp(points)) / epsilon if own else scale)


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


def exact_second(windows: Windows, emission: Emission, chunks: int, second: int) -> float:
    """The supremum over every word of listed outputs of log P(word | z_u = x) / P(word | z_u = x')."""
    length = windows.seconds + (chunks - 1) * windows.hop
    gaze = np.array(list(itertools.product(range(windows.gaze.states), repeat=length)))
    base = windows.gaze.states ** np.arange(windows.seconds)[::-1]
    likelihood = windows.likelihood(gaze)[None]
    for chunk in range(chunks):
        states = gaze[:, chunk * windows.hop : chunk * windows.hop + windows.seconds] @ base
        factor = np.exp(emission.outputs[:, states])
        likelihood = (likelihood[:, None, :] * factor[None]).reshape(-1, len(gaze))
    given = []
    for symbol in range(windows.gaze.states):
        held = gaze[:, second] == symbol
        given.append(likelihood[:, held].sum(axis=1) / windows.likelihood(gaze)[held].sum())
    logs = np.log(np.array(given))
    return float((logs[:, None, :] - logs[None, :, :]).max())
