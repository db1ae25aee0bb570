"""How the sidecar and its streams are, as `status` messages; what is left of the budget of each, as `budget` ones, and
what each has spent, as `odometer` ones.

A `budget` message is a function of the ceilings, of the day, and of what the ledger had when the sidecar began and how
many chunks of each stream have become something since (`eyestream.rim.sidecar.spending`). No value of a row enters, nor
whether one was missing, nor when it came: a chunk costs what it costs, whatever is in it. It is said when a chunk of
the device is published, after the chunk, so that its moment tells nothing either; and at the start, when ceilings are
lowered, and with a status that says that nothing comes until the next session.

The sums are the device's: nothing is computed from those of a wearer, so no message tells one wearer from another. When
the budget of a wearer is spent, what is withheld shows it, and the message says no more than that.

An `odometer` message goes with it, and says of the same sums what can only grow. LEDGER.md, section 5, derives that it
tells nothing that chunks and `budget` do not.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

import msgspec

from eyestream.core.meter import Odometer
from eyestream.core.release.stream import Condition
from eyestream.core.remaining import Left, left_of
from eyestream.rim.ledger.identity import ledger_name, odometer_ledger, odometer_start
from eyestream.rim.plan import Plan
from eyestream.streams import StreamKey
from eyestream.wire.envelope import MAX_U64
from eyestream.wire.status import Budget, CeilingName, Reading, Status, encode_budget, encode_reading, encode_status
from eyestream.wire.topics import budget_topic, odometer_topic, sidecar_status_topic, status_topic

_LOG = logging.getLogger("eyestream.core.release")

_READY = Status("online", "ready")
_RAW_LINK = Status("degraded", "raw_link")
_LEDGER = Status("degraded", "ledger")
_PAUSED = Status("paused", "paused")
STOPPED = Status("offline", "stopped")
"""The status of a stream that is served no more."""

LAST_WILL = encode_status(Status("offline", "lost"))
"""The broker's word on a sidecar that is gone without a goodbye."""

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
        self,
        *,
        stands: Callable[[StreamKey], bool],
        ledger: bool,
        condition: Callable[[StreamKey], Condition],
        paused: bool = False,
    ) -> None:
        """Say again how each stream is: whether its source stands, the ledger works, and its chunks are released.

        While it is paused, that is all that is said: nothing of links, of the ledger or of a budget.
        """
        if paused:
            for topic in (*self._topics.values(), self.own_topic):
                self._say(topic, encode_status(_PAUSED))
            return
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
        """Statuses that shall stand when the sidecar has stopped, topic by topic; its own last."""
        return [(topic, encode_status(STOPPED)) for topic in (*self._topics.values(), self.own_topic)]


_AT_ONCE = 64
"""Devices of which it is said in one turn of the loop: some milliseconds."""


_UNTIL_NEXT_SESSION: frozenset[Condition] = frozenset({"change", "wearer"})
"""Conditions that let nothing through until the next session, whatever the sums say."""

_NAMES: dict[str, CeilingName] = {"session": "session", "day": "day", "lifetime": "lifetime"}


_A_MILLIONTH = 10**6
"""Units of a charge in a millionth of epsilon: in units of a charge a sum of years would not fit 64 bits."""


class Odometers:
    """Readings of the odometer of each stream: all that the stream has spent, counted from a secret number.

    Parameters
    ----------
    ledger_id
        The id of the ledger, a secret.
    former_ledgers
        Gives, for a device, the names of the ledgers that it was exported from, in order.
    """

    def __init__(self, ledger_id: bytes, former_ledgers: Callable[[str], Sequence[str]]) -> None:
        self._ledger_id, self._former_ledgers = ledger_id, former_ledgers
        self.begin_life()

    def begin_life(self) -> None:
        """Let what is read from now on be of another life: a process that was copied had the one before."""
        self._life = secrets.randbits(64)
        self._began: dict[StreamKey, int] = {}

    def reading(self, key: StreamKey, odometer: Odometer | None) -> Reading:
        """Reading of a stream's odometer when its device has spent `odometer`; None: nothing."""
        stream = None if odometer is None else odometer.streams.get(key.stream)
        spent = 0 if stream is None else -(-stream.epsilon // _A_MILLIONTH)
        reads = odometer_start(self._ledger_id, key) + spent
        former = self._former_ledgers(key.device)
        return Reading(
            odometer_ledger(ledger_name(self._ledger_id), key),
            self._life,
            self._began.setdefault(key, reads),
            reads,
            odometer_ledger(former[-1], key) if former else msgspec.UNSET,
        )


class BudgetBoard:
    """Says what is left of each stream, and what its odometer reads.

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
    odometers
        What the odometers read.
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
        odometers: Odometers,
        say: Callable[[str, bytes], None],
    ) -> None:
        self._plan, self._condition, self._spent = plan, condition, spent
        self._today, self._odometers, self._say = today, odometers, say
        self._streams = {
            device.id: [StreamKey(device.id, stream.name) for stream in plan.streams_of(device)]
            for device in plan.settings.device
        }
        keys = [key for keys in self._streams.values() for key in keys]
        self._topics = {key: (budget_topic(*key), odometer_topic(*key)) for key in keys}
        self.left: dict[StreamKey, Left] = {}
        """The last message about each stream; to be read only."""
        self._due: dict[str, None] = {}
        self._scheduled = False
        for device in self._streams:
            self._say_of(device, today())

    def take_over(self, plan: Plan) -> None:
        """Say all of it by the ceilings of `plan`, which has the streams that there were."""
        self._plan = plan
        self.note_all()

    def begin_life(self) -> None:
        """Another link stands: say of all streams what they have spent, as of another life."""
        self._odometers.begin_life()
        self.note_all()

    def note_all(self) -> None:
        """What is left of every device is said by `say_due`."""
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
            budget, own = self._topics[key]
            at = msgspec.UNSET if first.resumes_at is None else first.resumes_at
            self._say(budget, encode_budget(Budget(min(first.chunks, MAX_U64), _NAMES[first.scope], at)))
            self._say(own, encode_reading(self._odometers.reading(key, odometer)))
