"""What a way of releasing costs, in units that do not depend on how long a chunk is, beside every figure."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from eyestream.ops.new_configuration import reach_of_features
from eyestream_lab.study.fidelity import Price, price_of
from eyestream_lab.study.population import Population

__all__ = ["price", "with_prices"]

Record = dict[str, Any]


def price(epsilon: float, n: int, rate_hz: float) -> Price:
    """Of chunks of `n` rows of the 52 features that cost `epsilon` each."""
    return price_of(epsilon, n, reach_of_features(rate_hz))


def with_prices(records: Sequence[Record], population: Population, whole: Sequence[str]) -> list[Record]:
    """The records with `minute`, epsilon a minute, and `second`, the loss of any one second of gaze.

    Parameters
    ----------
    whole
        Sources that release a recording as one: their epsilon is that of a recording, here of the mean length, and any
        second of it costs all of it.
    """
    minutes = float(np.diff(population.starts).mean()) / population.rate_hz / 60
    told = []
    for record in records:
        epsilon, n = record.get("epsilon"), record.get("n")
        if record.get("source") in whole and epsilon:
            told.append(record | {"minute": epsilon / minutes, "second": epsilon})
        elif epsilon and n:
            of = price(epsilon, n, population.rate_hz)
            told.append(record | {"minute": of.minute, "second": of.second})
        else:
            told.append(dict(record))
    return told
