"""Released words as applications read them: the word of a chunk, and what several words say together."""

from collections.abc import Iterable, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError


class _Released(Protocol):
    """A released chunk (`eyestream.Chunk`), as far as it is read here."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def values(self) -> NDArray[np.float32]: ...

    @property
    def units(self) -> tuple[str, ...]: ...


class Words:
    """The meaning of a chunk.

    Parameters
    ----------
    chunk
        Released by this mechanism.

    Attributes
    ----------
    odds : how likely each task is, given what was released of this chunk alone.
    word : the released word, which is the likeliest task.
    """

    def __init__(self, chunk: _Released) -> None:
        self.odds = dict(zip(chunk.names, chunk.values[:, 0].tolist(), strict=True))
        self.word = max(self.odds, key=self.odds.__getitem__)


def posterior(chunks: Iterable[_Released], prior: Mapping[str, float] | None = None) -> dict[str, float]:
    """How likely each task is, where one task goes on through all of `chunks`.

    By Bayes' rule, with the law of the randomised response alone: words are taken for independent given the task, and
    the judge for right. A judge errs, and often the same way in successive chunks. So the values are surer than they
    should be. Their order is what several words say.

    Parameters
    ----------
    chunks
        Released words of one stream, in any order.
    prior
        How likely each task was before, in any unit; None: all alike.

    Raises
    ------
    ConfigError
        There is no chunk, a chunk has no word, or the prior is not of its tasks.
    """
    found = list(chunks)
    if not found or any(set(one.units) != {"probability"} or one.names != found[0].names for one in found):
        raise ConfigError("expected chunks of one stream of words, at least one")
    names = found[0].names
    weights = dict.fromkeys(names, 1.0) if prior is None else dict(prior)
    if set(weights) != set(names) or not all(0 < weight < np.inf for weight in weights.values()):
        raise ConfigError(f"prior: expected a positive number for each of {', '.join(names)}")
    logs = np.log([weights[name] for name in names])
    logs += np.sum([np.log(chunk.values[:, 0].astype(np.float64)) for chunk in found], axis=0)
    odds = np.exp(logs - logs.max())
    return dict(zip(names, (odds / odds.sum()).tolist(), strict=True))
