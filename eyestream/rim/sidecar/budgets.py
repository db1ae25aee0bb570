"""What is left of the budget of each stream, as `budget` messages.

A message is a function of the ceilings, of the day, and of what the ledger had when the sidecar began and how many
chunks of each stream have become something since (`eyestream.rim.sidecar.spending`). No value of a row enters, nor
whether one was missing, nor when it came: a chunk costs what it costs, whatever is in it. It is said when a chunk of
the device is published, behind the chunk, so that its moment tells nothing either; and at the start, when ceilings are
lowered, and with a status that says that nothing comes until the next session.

The sums are the device's: nothing is computed from those of a wearer, so no message tells one wearer from another. When
the budget of a wearer is spent, what is withheld shows it, and the message says no more than that.
"""

import asyncio
from collections.abc import Callable
from itertools import islice

import msgspec

from eyestream.privacy.charge import Ceilings
from eyestream.privacy.odometer import Odometer
from eyestream.privacy.remaining import Left, left_of
from eyestream.release.stream import Condition
from eyestream.rim.plan import Plan
from eyestream.streams.key import StreamKey
from eyestream.wire.messages import MAX_U64, Budget, CeilingName, encode_budget
from eyestream.wire.topics import budget_topic

__all__ = ["BudgetBoard"]

_NO_CEILINGS = Ceilings()
_AT_ONCE = 64
"""Devices of which it is said in one turn of the loop: some milliseconds."""


_UNTIL_NEXT_SESSION: frozenset[Condition] = frozenset({"change", "wearer"})
"""What lets nothing through until the next session, whatever the sums say."""

_NAMES: dict[str, CeilingName] = {"session": "session", "day": "day", "lifetime": "lifetime"}


class BudgetBoard:
    """Says what is left of each stream.

    Parameters
    ----------
    plan
        Of the configuration.
    condition
        Of a stream: ``change``, after a change of the chunk length, and ``wearer``, when the budget of a wearer is
        spent, let nothing through until the next session.
    spent
        What a device has spent by chunks that have become something.
    today
        Days since 1970, UTC.
    say
        Lets a payload stand at a topic; saying the same again costs nothing.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        condition: Callable[[StreamKey], Condition],
        spent: Callable[[str], Odometer | None],
        today: Callable[[], int],
        say: Callable[[str, bytes], None],
    ) -> None:
        self._plan, self._condition, self._spent = plan, condition, spent
        self._today, self._say = today, say
        self._streams = {
            device.id: [StreamKey(device.id, stream.name) for stream in plan.streams_of(device)]
            for device in plan.settings.device
        }
        self._topics = {key: budget_topic(*key) for keys in self._streams.values() for key in keys}
        self._due: dict[str, None] = {}
        for device in self._streams:
            self._say_of(device, today())

    def take_over(self, plan: Plan) -> None:
        """Say all of it by the ceilings of `plan`, which has the streams that there were."""
        self._plan = plan
        for device in self._streams:
            self.note(device)

    def note_changes(self) -> None:
        """The condition of a stream may have changed."""
        for device, keys in self._streams.items():
            if any(self._condition(key) in _UNTIL_NEXT_SESSION for key in keys):
                self.note(device)

    def note(self, device: str) -> None:
        """A chunk of the device was published: say what is left of all its streams, once in this turn of the loop."""
        if not self._due:
            asyncio.get_running_loop().call_soon(self._say_due)
        self._due[device] = None

    def _say_due(self) -> None:
        """Of so many devices that the loop is not held up; of the others in the next turn."""
        today = self._today()
        for device in list(islice(self._due, _AT_ONCE)):
            del self._due[device]
            self._say_of(device, today)
        if self._due:
            asyncio.get_running_loop().call_soon(self._say_due)

    def _say_of(self, device: str, today: int) -> None:
        odometer, ceilings = self._spent(device), self._plan.ceilings
        for key in self._streams[device]:
            own, charges = ceilings.streams.get(key.stream, _NO_CEILINGS), self._plan.streams[key.stream].charges
            first, *_ = left_of(odometer, ceilings.device, charges, today, stream=key.stream, own=own)
            if self._condition(key) in _UNTIL_NEXT_SESSION and first.chunks:
                first = Left("session", 0, "the tracker's next session")
            self._say(self._topics[key], _payload(first))


def _payload(first: Left) -> bytes:
    at = msgspec.UNSET if first.resumes_at is None else first.resumes_at
    return encode_budget(Budget(min(first.chunks, MAX_U64), _NAMES[first.scope], at))
