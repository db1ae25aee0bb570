"""Whether a tracker is there: it is asked again and again, and no sample has a part in the answer.

A tracker may fall silent because the eye is lost, and applications read whether the link stands. So a link is away when
the tracker does not answer, or hangs up, or another one answers in its place. It is never away because no gaze comes.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable

import numpy as np

from eyestream.errors import LinkError
from eyestream.rim.files.gaze_columns import GazeColumns
from eyestream.rim.sources.gaze import DeliverGaze

_LOG = logging.getLogger("eyestream.source")

ASK_EVERY_S = 2.0

NOTHING = GazeColumns(np.zeros(0), np.zeros((0, 2)))
"""No records: what is delivered when the tracker has answered."""


class AskedTracker:
    """One link to a tracker that can be asked.

    Parameters
    ----------
    device
        The tracker's pseudonym, for the log.
    deliver
        As given to `GazeSource.run`.
    refused
        Messages by the reason for which they were not used, counted by the source.
    """

    def __init__(self, device: str, deliver: DeliverGaze, refused: Counter[str]) -> None:
        self._device, self._deliver, self._refused = device, deliver, refused
        self._told = False

    def take(self, records: GazeColumns) -> None:
        """Hand gaze on."""
        self._told = True
        self._deliver(records)

    async def keep(self, listening: Awaitable[None], ask: Callable[[], Awaitable[None]], found: str) -> None:
        """Listen for as long as the tracker answers, and say so each time that it does.

        Parameters
        ----------
        listening
            Brings gaze to `take`; ends, or raises LinkError, when the tracker hangs up.
        ask
            Returns when the tracker has answered; raises LinkError in bounded time when it has not.
        found
            What the tracker is, in words for the log.

        Raises
        ------
        LinkError
            As `listening`; as `ask`, when it raises twice in a row.
        """
        fields = {"event": "source_found", "device": self._device, "found": found}
        _LOG.info("source of %s: found %s", self._device, found, extra={"fields": fields})
        listener = asyncio.ensure_future(listening)
        try:
            while not listener.done():
                self._deliver(NOTHING)
                await asyncio.wait({listener}, timeout=ASK_EVERY_S)
                if not listener.done():
                    await _twice(ask)
                    self._note_silence()
            listener.result()
        finally:
            listener.cancel()
            await asyncio.gather(listener, return_exceptions=True)

    def _note_silence(self) -> None:
        """Say once, of a link on which nothing usable has come yet, what came instead."""
        if not self._told:
            self._told = True
            came = self._refused.most_common(1)
            more = f"; what came was {came[0][0]}" if came else ""
            _LOG.warning("source of %s: the tracker answers, and no gaze has come from it yet%s", self._device, more)


async def _twice(ask: Callable[[], Awaitable[None]]) -> None:
    """Ask once more where a question or its answer was lost."""
    try:
        await ask()
    except LinkError:
        await ask()
