"""What the devices of a sidecar have spent by chunks of which something has become.

A chunk is reserved when its first row comes, so the ledger knows of rows that are not released yet. What is told
outside must not: with `release = "on_clock"` a chunk leaves at its time whether or not rows came, and a sum that falls
with the first row of the next one would tell that they did. So what is reserved and held is left out again: the sums
here change when a chunk is released, withheld or lost, which everybody on the private broker sees anyway.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from eyestream.privacy.charge import Charge
from eyestream.privacy.odometer import Odometer
from eyestream.privacy.remaining import without
from eyestream.privacy.reservation import Granted, Request, Withheld
from eyestream.release.ports import Ledger
from eyestream.release.stream import ChunkCounters
from eyestream.streams.key import StreamKey

__all__ = ["Spending", "SpendingLedger"]


class SpendingLedger(Ledger, Protocol):
    """A ledger that says what was spent."""

    def odometer(self, device: str) -> Odometer | None:
        """What a device has spent; None: it is not known."""
        ...


class Spending:
    """Asks the ledger, and knows what the devices had spent when it was asked last.

    Parameters
    ----------
    ledger
        Open, and ours alone.
    streams
        What became of the chunks of every stream, live, and what one of them costs.
    """

    def __init__(self, ledger: SpendingLedger, streams: Mapping[StreamKey, tuple[ChunkCounters, Charge]]) -> None:
        self._ledger = ledger
        self._granted: Counter[StreamKey] = Counter()
        self._streams: dict[str, dict[StreamKey, tuple[ChunkCounters, Charge]]] = {}
        for key, known in streams.items():
            self._streams.setdefault(key.device, {})[key] = known
        self._odometers = {device: ledger.odometer(device) for device in self._streams}

    async def reserve(self, requests: Sequence[Request], day: int) -> list[Granted | Withheld]:
        """The ledger's answers, of which it is asked in a thread: it waits for the disk. Raises LedgerError."""
        answers, odometers = await asyncio.to_thread(self._ask, requests, day)
        self._granted.update(answer.request.key for answer in answers if isinstance(answer, Granted))
        self._odometers |= odometers
        return answers

    def _ask(
        self, requests: Sequence[Request], day: int
    ) -> tuple[list[Granted | Withheld], dict[str, Odometer | None]]:
        answers = self._ledger.reserve(requests, day)
        return answers, {device: self._ledger.odometer(device) for device in {r.key.device for r in requests}}

    def spent(self, device: str) -> Odometer | None:
        """Without the charges of chunks that are reserved and held; None: nothing."""
        odometer = self._odometers[device]
        if odometer is None:
            return None
        held = {}
        for key, (known, charge) in self._streams[device].items():
            chunks = self._granted[key] - known.released - known.withheld["baseline"] - known.dropped["mechanism"]
            held[key.stream] = (chunks * charge.epsilon, chunks * charge.delta)
        return without(odometer, held)
