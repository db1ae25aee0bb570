"""What a session tells about one second of gaze.

Features are computed over windows of many seconds, so a second of gaze enters several chunks. Let the public state of a
chunk carry its whole window: the states X_c are then a Markov chain, the second z_u is a part of X_c for the chunks c =
first .. last that it touches, and given X_first nothing earlier, given X_last nothing later depends on z_u. Hence

    P(all | z_u = x) = sum over X_first .. X_last of P(X_first .. X_last | z_u = x) b(X_first) [prod p(o_c | X_c)]
                       f(X_last)

with b and f the likelihoods of the releases before and after. Two bounds:

- `touched_loss`: sum of the own losses of the touched chunks, plus backward at the first and forward at the last of
  them. It needs no law of the window and compares windows that differ everywhere.
- `window_loss`: the ratio of two averages of one vector over the sequences X_first .. X_last, by `transport`. It knows
  that the rest of the window is the process' own, and is for small worlds: S^(seconds in the touched windows) states.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError
from eyestream.lab.correlation.chains import MarkovClass
from eyestream.lab.correlation.emissions import Emission
from eyestream.lab.correlation.profile import Profile
from eyestream.lab.correlation.transport import closure, largest_log_ratio

__all__ = ["Windows", "touched_loss", "window_loss"]

Array = NDArray[np.float64]

_MOST_SEQUENCES = 128


@dataclass(frozen=True, eq=False)
class Windows:
    """Chunks whose values are functions of the last seconds of gaze.

    Attributes
    ----------
    gaze : one chain of S public symbols, one a second, stationary.
    seconds : length of what one chunk's rows look back on, from the end of the chunk.
    hop : seconds from one chunk to the next, at most `seconds`.

    Raises
    ------
    ConfigError
        unless 1 <= hop <= seconds and the gaze is one stationary chain.
    """

    gaze: MarkovClass
    seconds: int
    hop: int

    def __post_init__(self) -> None:
        if not 1 <= self.hop <= self.seconds:
            raise ConfigError(f"hop: must lie between 1 and the window's {self.seconds} seconds, not {self.hop}")
        if not (self.gaze.is_exact and self.gaze.steady):
            raise ConfigError("gaze: one chain from its stationary law is needed")

    @property
    def contents(self) -> NDArray[np.intp]:
        """(S^seconds, seconds) symbols of every state, the oldest first."""
        return np.array(list(product(range(self.gaze.states), repeat=self.seconds)))

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
        """Chunks whose windows hold `second`; chunk 0's window holds the seconds 0 .. seconds - 1.

        Raises
        ------
        ConfigError
            when no window of the session holds it.
        """
        first = max(0, -(-(second - self.seconds + 1) // self.hop))
        last = min(chunks - 1, second // self.hop)
        if second < 0 or first > last:
            raise ConfigError(f"second: no window of {chunks} chunks holds second {second}")
        return range(first, last + 1)


def touched_loss(found: Profile, emissions: Sequence[Emission], touched: range) -> float:
    """Bound for one second that touches some chunks: their own losses, and what lies on both sides.

    Parameters
    ----------
    found
        Profile of the session whose states carry the windows, of any class.
    emissions
        Of the session.
    touched
        The chunks, consecutive.
    """
    own = sum(emissions[c].loss for c in touched)
    sides = float(found.backward[touched[0]].max() + found.forward[touched[-1]].max())
    return min((own + sides) * (1 + 2.0**-50), found.plain_sum)


def window_loss(windows: Windows, found: Profile, emissions: Sequence[Emission], second: int) -> float:
    """Bound for one second in a small world, from the law of the sequences that hold it.

    Parameters
    ----------
    windows
        The world; `found` is the profile of its `chain` under `emissions`.
    second
        Which one.

    Raises
    ------
    ConfigError
        when no window holds the second, or there are more than 128 sequences.
    """
    touched = windows.touched(second, len(emissions))
    length = windows.seconds + (len(touched) - 1) * windows.hop
    if windows.gaze.states**length > _MOST_SEQUENCES:
        raise ConfigError(
            f"windows: {windows.gaze.states}^{length} sequences, at most {_MOST_SEQUENCES} can be compared"
        )
    sequences = np.array(list(product(range(windows.gaze.states), repeat=length)))
    base = windows.gaze.states ** np.arange(windows.seconds)[::-1]
    states = np.stack(
        [sequences[:, c * windows.hop : c * windows.hop + windows.seconds] @ base for c in range(len(touched))]
    )
    apart = found.backward[touched[0]][np.ix_(states[0], states[0])]
    apart = apart + found.forward[touched[-1]][np.ix_(states[-1], states[-1])]
    for row, chunk in zip(states, touched, strict=True):
        apart = apart + emissions[chunk].log_ratio[np.ix_(row, row)]
    symbol = sequences[:, second - touched[0] * windows.hop]
    with np.errstate(divide="ignore"):
        chance = np.log(windows.likelihood(sequences))
    values = range(windows.gaze.states)
    rows = np.array(
        [np.where(symbol == value, chance - np.logaddexp.reduce(chance[symbol == value]), -np.inf) for value in values]
    )
    pairs = [(x, z) for x in values for z in values if x != z]
    upper, _ = largest_log_ratio(rows[[x for x, _ in pairs]], rows[[z for _, z in pairs]], closure(apart))
    return min(float(upper.max()), found.plain_sum)
