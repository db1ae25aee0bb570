"""For applications: what several released words of a session say together."""

from collections.abc import Iterable, Mapping

import numpy as np

from eyestream.errors import ConfigError
from eyestream.rim.sdk.subscriber import Chunk

__all__ = ["posterior"]


def posterior(chunks: Iterable[Chunk], prior: Mapping[str, float] | None = None) -> dict[str, float]:
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
    if not found or any(chunk.word is None or chunk.names != found[0].names for chunk in found):
        raise ConfigError("expected chunks of one stream of words, at least one")
    names = found[0].names
    weights = dict.fromkeys(names, 1.0) if prior is None else dict(prior)
    if set(weights) != set(names) or not all(0 < weight < np.inf for weight in weights.values()):
        raise ConfigError(f"prior: expected a positive number for each of {', '.join(names)}")
    logs = np.log([weights[name] for name in names])
    logs += np.sum([np.log(chunk.values[:, 0].astype(np.float64)) for chunk in found], axis=0)
    odds = np.exp(logs - logs.max())
    return dict(zip(names, (odds / odds.sum()).tolist(), strict=True))
