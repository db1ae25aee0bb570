"""How the sidecar and its streams are, as `status` messages, and what is left of the budget of each, as `budget` ones.

A `budget` message is a function of the ceilings, of the day, and of what the ledger had when the sidecar began and how
many chunks of each stream have become something since (`eyestream.rim.sidecar.spending`). No value of a row enters, nor
whether one was missing, nor when it came: a chunk costs what it costs, whatever is in it. It is said when a chunk of
the device is published, after the chunk, so that its moment tells nothing either; and at the start, when ceilings are
lowered, and with a status that says that nothing comes until the next session.

The sums are the device's: nothing is computed from those of a wearer, so no message tells one wearer from another. When
the budget of a wearer is spent, what is withheld shows it, and the message says no more than that.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from itertools import islice

import msgspec

from eyestream.core.meter import Odometer
from eyestream.core.release.stream import Condition
from eyestream.core.remaining import Left, left_of
from eyestream.rim.plan import Plan
from eyestream.streams import StreamKey
from eyestream.wire.messages import MAX_U64, Budget, CeilingName, Status, encode_budget, encode_status
from eyestream.wire.topics import budget_topic, sidecar_status_topic, status_topic

__all__ = ["LAST_WILL", "BudgetBoard", "StatusBoard", "log_condition"]

_LOG = logging.getLogger("eyestream.core.release")

_READY = Status("online", "ready")
_RAW_LINK = Status("degraded", "raw_link")
_LEDGER = Status("degraded", "ledger")
_STOPPED = Status("offline", "stopped")

LAST_WILL = encode_status(Status("offline", "lost"))
"""What the broker says of a sidecar that is gone without a goodbye."""

_OF_CONDITION: dict[Condition, Status] = {
    "ready": _READY,
    "mechanism": Status("degraded", "internal"),
    "window": Status("exhausted", "window"),
    "session": Status("exhausted", "session"),
    "day": Status("exhausted", "day"),
    "lifetime": Status("exhausted", "lifetime"),
    "owner": Status("degraded", "owner"),
    "change": Status("exhausted", "session"),  # another chunk length or window: from the next session on
    "wearer": Status("exhausted", "session"),  # which ceiling it was would tell more about who wears the device
}


_RESUMES: dict[str, str] = {
    "window": "with one of the next chunks",
    "session": "with the tracker's next session",
    "day": "at midnight UTC",
    "lifetime": "never, unless [budget] lifetime_epsilon is raised",
    "wearer": "with a session of another wearer, or at midnight UTC where it was a day's ceiling",
}


def log_condition(key: StreamKey, condition: Condition) -> None:
    """That chunks are withheld is a warning; a window that lets some of them out would say so all the time."""
    resumes = _RESUMES.get(condition)
    fields = {"event": "condition", "device": key.device, "stream": key.stream, "condition": condition}
    if resumes is None or condition == "window":
        _LOG.info("%s: %s", key, condition, extra={"fields": fields})
    else:
        words = "%s: what the budget allows a %s is spent; releases go on %s"
        _LOG.warning(words, key, condition, resumes, extra={"fields": fields})


class StatusBoard:
    """Says how each stream is, and of the sidecar the worst that is no matter of a budget.

    Parameters
    ----------
    sidecar
        Its name.
    keys
        The streams.
    say
        Lets a payload stand at a topic; saying the same again costs nothing.
    """

    def __init__(self, sidecar: str, keys: Iterable[StreamKey], say: Callable[[str, bytes], None]) -> None:
        self.own_topic = sidecar_status_topic(sidecar)
        self._topics = {key: status_topic(*key) for key in keys}
        self._say = say

    def update(
        self, *, stands: Callable[[StreamKey], bool], ledger: bool, condition: Callable[[StreamKey], Condition]
    ) -> None:
        """Say again how each stream is: whether its source stands, the ledger works, and its chunks are released."""
        worst = _READY if ledger else _LEDGER
        for key, topic in self._topics.items():
            link = _READY if stands(key) else _RAW_LINK
            if worst.state == "online":
                worst = link
            status = _OF_CONDITION[condition(key)] if ledger else _LEDGER
            if status.state == "degraded":  # a fault of the chunks weighs more than one of the link
                worst = status
            self._say(topic, encode_status(link if status.state == "online" else status))
        self._say(self.own_topic, encode_status(worst))

    def goodbye(self) -> list[tuple[str, bytes]]:
        """What shall stand when the sidecar has stopped, topic by topic; its own last."""
        return [(topic, encode_status(_STOPPED)) for topic in (*self._topics.values(), self.own_topic)]


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
        What the configuration says, resolved.
    condition
        The condition of a stream. ``change``, after a change of the chunk length, and ``wearer``, when the budget of a
        wearer is spent, let nothing through until the next session.
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
        self.left: dict[StreamKey, Left] = {}
        """What was said last of each stream; to be read only."""
        self._due: dict[str, None] = {}
        self._scheduled = False
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
        """A chunk of the device was published: what is left of all its streams is said by `say_due`, once."""
        self._due[device] = None
        self._say_later()

    def say_due(self) -> None:
        """Say it, of so many devices that the loop is not held up; of the others in the next turn."""
        today = self._today() if self._due else 0
        for device in list(islice(self._due, _AT_ONCE)):
            del self._due[device]
            self._say_of(device, today)
        self._say_later()

    def _say_later(self) -> None:
        if self._due and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._say_rest)

    def _say_rest(self) -> None:
        self._scheduled = False
        self.say_due()

    def _say_of(self, device: str, today: int) -> None:
        odometer, ceilings = self._spent(device), self._plan.ceilings
        for key in self._streams[device]:
            charges = self._plan.streams[key.stream].charges
            first, *_ = left_of(odometer, ceilings, charges, today, stream=key.stream)
            if self._condition(key) in _UNTIL_NEXT_SESSION and first.chunks:
                first = Left("session", 0, "the tracker's next session")
            self.left[key] = first
            self._say(self._topics[key], _payload(first))


def _payload(first: Left) -> bytes:
    at = msgspec.UNSET if first.resumes_at is None else first.resumes_at
    return encode_budget(Budget(min(first.chunks, MAX_U64), _NAMES[first.scope], at))
