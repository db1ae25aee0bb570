"""Sums that the devices of a sidecar have spent by chunks whose fate everybody can see.

A chunk is reserved when its first row comes, so the ledger knows of rows that are not released yet. What is said
outside must not: with `release = "on_clock"` a chunk leaves at its time whether or not rows came, and a sum that falls
with the first row of the next one would tell that they did. So what is reserved and held is left out again: the sums
here change when a chunk is released, withheld or lost, which everybody on the private broker sees anyway.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Protocol

from eyestream.core.meter import Odometer
from eyestream.core.release.stream import ChunkCounters
from eyestream.core.remaining import without
from eyestream.core.reservation import Granted, LedgerPort, Request, Withheld
from eyestream.streams import StreamKey


class SpendingLedger(LedgerPort, Protocol):
    """A ledger that says what was spent."""

    def odometer(self, device: str) -> Odometer | None:
        """Sums that a device has spent; None: it is not known."""
        ...


class Spending:
    """Asks the ledger, and knows what the devices had spent when it was asked last.

    Parameters
    ----------
    ledger
        Open, and ours alone.
    streams
        What became of the chunks of every stream, live.
    """

    def __init__(self, ledger: SpendingLedger, streams: Mapping[StreamKey, ChunkCounters]) -> None:
        self._ledger = ledger
        self._streams: dict[str, dict[StreamKey, _Held]] = {}
        for key, known in streams.items():
            self._streams.setdefault(key.device, {})[key] = _Held(known)
        self._odometers = {device: ledger.odometer(device) for device in self._streams}

    async def reserve(self, requests: Sequence[Request], day: int) -> list[Granted | Withheld]:
        """The ledger's answers, of which it is asked in a thread: it waits for the disk. Raises LedgerError."""
        # If this wait is cancelled, the thread goes on to its end: the ledger is whole, and nobody releases under its
        # answers. What it granted then is spent, as after a crash.
        answers, odometers = await asyncio.to_thread(self._ask, requests, day)
        for answer in answers:
            if isinstance(answer, Granted):
                self._streams[answer.request.key.device][answer.request.key].add(answer)
        self._odometers |= odometers
        return answers

    def _ask(
        self, requests: Sequence[Request], day: int
    ) -> tuple[list[Granted | Withheld], dict[str, Odometer | None]]:
        answers = self._ledger.reserve(requests, day)
        return answers, {device: self._ledger.odometer(device) for device in {r.key.device for r in requests}}

    def settle(self, device: str | None = None) -> None:
        """All that was granted of `device`, None: of all, has become something: released, or lost as in a restart."""
        for one in self._streams if device is None else [device]:
            for held in self._streams[one].values():
                held.settle()

    def spent(self, device: str) -> Odometer | None:
        """Without the charges of chunks that are reserved and held; None: nothing."""
        odometer = self._odometers[device]
        if odometer is None:
            return None
        held = {key.stream: sums for key, own in self._streams[device].items() if (sums := own.sums()) != (0, 0)}
        return without(odometer, held) if held else odometer


class _Held:
    """Charges of one stream's chunks that are granted and neither released nor lost yet; they settle in their order."""

    def __init__(self, known: ChunkCounters) -> None:
        self._known, self._done = known, _done(known)
        self._costs: deque[tuple[int, int]] = deque()

    def add(self, granted: Granted) -> None:
        """One more; a chunk of a baseline costs nothing, and one of a later level costs what that level says."""
        charge = granted.spent
        self._costs.append((0, 0) if charge is None else (charge.epsilon, charge.delta))

    def settle(self) -> None:
        """Hold nothing."""
        self._costs.clear()
        self._done = _done(self._known)

    def sums(self) -> tuple[int, int]:
        """Epsilon and delta."""
        done = _done(self._known)
        for _ in range(min(done - self._done, len(self._costs))):
            self._costs.popleft()
        self._done = done
        return sum(epsilon for epsilon, _ in self._costs), sum(delta for _, delta in self._costs)


def _done(known: ChunkCounters) -> int:
    """How many granted chunks have become something."""
    return known.released + known.withheld["baseline"] + known.dropped["mechanism"]
