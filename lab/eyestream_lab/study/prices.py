"""Price of a way of releasing, in units that do not depend on how long a chunk is, beside every figure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eyestream.ops.new_configuration import reach_of_features
from eyestream_lab.study.cells import Record
from eyestream_lab.study.population import Population


@dataclass(frozen=True)
class Price:
    """Epsilon of a way of releasing, in units that do not depend on how long a chunk is.

    Attributes
    ----------
    chunk : of one chunk.
    minute : of a minute of the stream, on average.
    worst_minute : of any one minute of gaze: of all chunks that it can enter, through the reach of a row.
    second : the same of any one second of gaze.
    """

    chunk: float
    minute: float
    worst_minute: float
    second: float


def price(epsilon: float, n: int, rate_hz: float) -> Price:
    """Price of chunks of `n` rows of the 52 features that cost `epsilon` each.

    Examples
    --------
    Half a minute of rows, at two a second, costs half of what a minute costs:

    >>> price(4.8, 60, 2.0).minute
    9.6
    """
    stream = reach_of_features(rate_hz)
    minute, second = (epsilon * stream.chunks_touched(n, seconds) for seconds in (60.0, 1.0))
    return Price(epsilon, epsilon * 60 * rate_hz / n, minute, second)


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
