"""The attacker that knows the chain: outputs that change the odds most, and Bayes' rule for any outputs.

`strongest` goes through the session from its ends toward the secret and keeps, for every pair of states, the outputs
that so far tell them apart best. Each entry it returns is the log-ratio of one series of outputs that can occur, hence
a *lower* bound of epsilon', to stand beside the upper one of `eyestream_lab.correlation.profile`. `change_of_odds` is
the forward-backward filter (Baum, Petrie, Soules, Weiss, 1970): what a Bayesian with some prior makes of given outputs.
It shares nothing with the bounds but the class.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError
from eyestream_lab.correlation.chains import MarkovClass
from eyestream_lab.correlation.emissions import Emission

__all__ = ["Attack", "change_of_odds", "strongest"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Attack:
    """Outputs that tell two states of one chunk apart.

    Attributes
    ----------
    log_odds : log of the factor by which the odds of the pair change.
    pair : the states x and x'.
    outputs : (T, S) log-likelihoods of the outputs of the whole session.
    """

    log_odds: float
    pair: tuple[int, int]
    outputs: Array


def strongest(process: MarkovClass, emissions: Sequence[Emission], chunk: int) -> Attack:
    """The best outputs found against chunk `chunk` of a session whose chain is known.

    Raises
    ------
    ConfigError
        when the class holds more than one chain, or there is no such chunk.
    """
    if not process.is_exact:
        raise ConfigError("process: an attacker knows one chain; take one out of the class")
    if not 0 <= chunk < len(emissions):
        raise ConfigError(f"chunk: must lie between 0 and {len(emissions) - 1}, not {chunk}")
    rows = process.backward(len(emissions))
    with np.errstate(divide="ignore"):
        behind = [np.log(r.lowest) + _columns(e) for r, e in zip(rows[:chunk], emissions, strict=False)]
        ahead = [np.log(process.lowest) + _columns(e) for e in reversed(emissions[chunk + 1 :])]
    before, words_before = _strongest_kernels(behind, process.states)
    after, words_after = _strongest_kernels(ahead, process.states)
    own = emissions[chunk].outputs[:, :, None] - emissions[chunk].outputs[:, None, :]
    possible = process.first_highest > 0 if chunk == 0 else rows[chunk - 1].possible
    total = np.where(np.logical_and.outer(possible, possible), own.max(axis=0) + before + after, -np.inf)
    x, z = np.unravel_index(int(total.argmax()), total.shape)
    middle = emissions[chunk].outputs[own[:, x, z].argmax()]
    early = [e.outputs[o] for e, o in zip(emissions, words_before[x][z], strict=False)]
    late = [e.outputs[o] for e, o in zip(reversed(emissions), words_after[x][z], strict=False)][::-1]
    return Attack(float(total[x, z]), (int(x), int(z)), np.array([*early, middle, *late]))


def _columns(emission: Emission) -> Array:
    """(O, 1, S) likelihoods of the state that is reached."""
    return emission.outputs[:, None, :]


def _strongest_kernels(log_kernels: Sequence[Array], states: int) -> tuple[Array, list[list[list[int]]]]:
    """Log-ratios (S, S) attained by outputs, from the end of a session on, and the number of each output.

    Parameters
    ----------
    log_kernels
        For each chunk, from the end toward the secret, (O, S, S): log P(o, y | x) up to a constant of the output.
    states
        S.
    """
    vectors = np.zeros((states, states, states))  # for a pair, the log-likelihood of its outputs given each state
    words: list[list[list[int]]] = [[[] for _ in range(states)] for _ in range(states)]
    for kernels in log_kernels:
        kept = vectors.reshape(-1, states)
        grown = np.logaddexp.reduce(kernels[:, None, :, :] + kept[None, :, None, :], axis=3)
        flat = grown.reshape(-1, states)
        best = (flat[:, :, None] - flat[:, None, :]).argmax(axis=0)
        vectors = flat[best]
        output, origin = np.divmod(best, states * states)
        words = [
            [[*words[origin[x, z] // states][origin[x, z] % states], int(output[x, z])] for z in range(states)]
            for x in range(states)
        ]
    own = np.arange(states)
    return vectors[own[:, None], own[None, :], own[:, None]] - vectors[own[:, None], own[None, :], own[None, :]], words


def change_of_odds(process: MarkovClass, outputs: Array, chunk: int) -> Array:
    """(S, S) log of posterior odds over prior odds of the states of `chunk`, given (T, S) log-likelihoods of outputs.

    By the filter: P(s_t, outputs up to t), then P(outputs after t | s_t). Impossible states have NaN.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        rows, prior = np.log(process.lowest), process.first_lowest
        joint = np.log(prior) + outputs[0]
        for likelihood in outputs[1 : chunk + 1]:
            joint = np.logaddexp.reduce(joint[:, None] + rows, axis=0) + likelihood
            prior = prior @ process.lowest
        later = np.zeros(process.states)
        for likelihood in outputs[:chunk:-1]:
            later = np.logaddexp.reduce(rows + likelihood + later, axis=1)
        evidence: Array = joint + later - np.log(prior)
        return evidence[:, None] - evidence[None, :]
