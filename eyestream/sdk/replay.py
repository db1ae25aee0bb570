"""A recording as if live: rows at their times, numbered by the nominal period."""

import asyncio
import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from eyestream.rim.files.recordings import Recording
from eyestream.sdk.publisher import Publisher
from eyestream.wire.raw import rows_per_message

MOST_ROWS = 64
"""Rows of one message at most; fewer when they are wide."""


def row_numbers(t: NDArray[np.float64], rate: float) -> NDArray[np.int64]:
    """Number of each row on the nominal grid: a missing row stays missing.

    Parameters
    ----------
    t
        (m,) seconds, increasing.
    rate
        Rows a second.

    Examples
    --------
    >>> row_numbers(np.array([10.0, 10.5, 12.01]), 2.0).tolist()
    [0, 1, 4]
    """
    numbers: NDArray[np.int64] = np.rint((t - t[0]) * rate).astype(np.int64)
    return numbers


async def replay(
    publisher: Publisher,
    recording: Recording,
    *,
    speed: float,
    progress: Callable[[int], None] = lambda sent: None,
) -> int:
    """Publish one recording as one session, and end the session.

    Parameters
    ----------
    publisher
        An open publisher with the recording's names.
    recording
        What to send. Of rows that fall on the same number the first is sent.
    speed
        1 is real time; `math.inf` sends as fast as the broker takes it.
    progress
        Called with the number of rows handed over so far.

    Returns
    -------
    int
        Rows handed over, lost ones included.
    """
    numbers = row_numbers(recording.t, publisher.rate)
    first = np.concatenate([[True], np.diff(numbers) > 0])
    t, rows, numbers = recording.t[first], recording.features[first], numbers[first]
    loop = asyncio.get_running_loop()
    start = loop.time()
    sent = 0
    while sent < len(t):
        if math.isfinite(speed):
            await asyncio.sleep(start + (t[sent] - t[0]) / speed - loop.time())
            due = max(sent + 1, int(np.searchsorted(t, t[0] + (loop.time() - start) * speed, side="right")))
        else:
            due = len(t)
        for begin, end in _runs(numbers[sent:due], rows.shape[1]):
            await publisher.send(rows[sent + begin : sent + end], seq=int(numbers[sent + begin]))
            progress(sent + end)
        sent = due
    await publisher.end_session()
    return sent


def _runs(numbers: NDArray[np.int64], features: int) -> Iterator[tuple[int, int]]:
    """Half-open ranges of rows with consecutive numbers, each small enough for one message."""
    most = max(1, min(MOST_ROWS, rows_per_message(features)))
    begin = 0
    for here in range(1, len(numbers) + 1):
        if here == len(numbers) or numbers[here] != numbers[here - 1] + 1 or here - begin == most:
            yield begin, here
            begin = here
