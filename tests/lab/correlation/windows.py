"""A small world in which a second of gaze enters several chunks: all its gaze and all its outputs can be listed.

The state of a chunk carries its whole window, so the states X_c are a Markov chain. The second z_u is a part of X_c for
the chunks c = first .. last that it touches. Given X_first nothing earlier depends on z_u, and given X_last nothing
later. `touched_loss` is the bound that `eyestream guarantee` uses: the own losses of the touched chunks, plus backward
at the first and forward at the last of them.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.correlation.chains import MarkovClass
from eyestream_lab.correlation.emissions import Emission
from eyestream_lab.correlation.profile import Profile

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Windows:
    """Chunks whose values are functions of the last seconds of gaze.

    Attributes
    ----------
    gaze : one chain of S public symbols, one a second, from its stationary law.
    seconds : length of what one chunk's rows look back on, from the end of the chunk.
    hop : seconds from one chunk to the next, at most `seconds`.
    """

    gaze: MarkovClass
    seconds: int
    hop: int

    @property
    def contents(self) -> NDArray[np.intp]:
        """(S^seconds, seconds) symbols of every state, the oldest first."""
        return np.array(list(itertools.product(range(self.gaze.states), repeat=self.seconds)))

    def chain(self) -> MarkovClass:
        """The chain of the windows."""
        contents, rows = self.contents, self.gaze.lowest
        kept = (contents[:, None, self.hop :] == contents[None, :, : self.seconds - self.hop]).all(axis=2)
        chance = np.ones(kept.shape)
        before = np.broadcast_to(contents[:, None, -1], kept.shape)
        for entry in range(self.seconds - self.hop, self.seconds):
            now = np.broadcast_to(contents[None, :, entry], kept.shape)
            chance = chance * rows[before, now]
            before = now
        return MarkovClass.exact(kept * chance, self.likelihood(contents))

    def likelihood(self, sequences: NDArray[np.intp]) -> Array:
        """(N,) probabilities of sequences (N, m) of symbols."""
        steps = self.gaze.lowest[sequences[:, :-1], sequences[:, 1:]].prod(axis=1)
        result: Array = self.gaze.first_lowest[sequences[:, 0]] * steps
        return result

    def touched(self, second: int, chunks: int) -> range:
        """Chunks whose windows hold `second`; chunk 0's window holds the seconds 0 .. seconds - 1."""
        first = max(0, -(-(second - self.seconds + 1) // self.hop))
        return range(first, min(chunks - 1, second // self.hop) + 1)


def touched_loss(found: Profile, emissions: Sequence[Emission], touched: range) -> float:
    """Bound for one second that touches these chunks, from the profile of a session whose states carry the windows."""
    own = sum(emissions[c].loss for c in touched)
    sides = float(found.backward[touched[0]].max() + found.forward[touched[-1]].max())
    return min((own + sides) * (1 + 2.0**-50), found.plain_sum)


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
