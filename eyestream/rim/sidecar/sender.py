"""The private side of a sidecar: its retained messages, then released chunks, in order.

A chunk goes to the link in the same turn of the loop in which it is released, when nothing is before it: no task is
woken for it. So does what is retained: between a chunk and the messages that are said with it nothing else runs, and
their distance tells nothing of the rows that come meanwhile. How many may be under way is bounded; each chunk stays
ours until the broker acknowledges it, and goes out again, the same bytes in the same order, on the next link. What is
retained is all said again there.
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import islice

from eyestream.errors import LinkError
from eyestream.rim.mqtt.transport import Link, Properties
from eyestream.wire.release import CLAIM

UNDER_WAY = 16
"""Entries that may be with the broker unacknowledged: with a round trip of 50 ms, 320 chunks a second."""

SOON = 1 / 8
"""Part of an entry's lifetime within which a link that keeps up acknowledges it."""


@dataclass(frozen=True, slots=True, eq=False)
class OutboxEntry:
    """One released chunk. A retry sends these very bytes."""

    topic: str
    payload: bytes
    deadline: float


class Outbox:
    """Released bytes in the order of their release, each until it is acknowledged or too old: those
    under way to the broker, then those that wait.

    An entry is not sent past its deadline, but what is with the socket cannot be taken back. So a link begins with one
    entry under way, gets one more with each that is acknowledged soon, falls back to one when an acknowledgement comes
    late, and gets none while one is overdue: a slow link or a blocked one holds little that goes stale.

    Parameters
    ----------
    length
        Entries held at most, those under way included; of a full outbox the oldest that waits is dropped.
    lifetime_s
        Seconds after which an entry that waits is dropped rather than sent late.
    """

    def __init__(self, length: int, lifetime_s: float) -> None:
        self._waiting: deque[OutboxEntry] = deque()
        self._under_way: deque[tuple[OutboxEntry, float]] = deque()
        self._length = length
        self._most_under_way = max(1, min(UNDER_WAY, length // 2))
        self._window = 1
        self._lifetime_s = lifetime_s
        self.overflow = 0
        """Entries dropped because too many waited."""
        self.expired = 0
        """Entries dropped because they waited for too long."""
        self.delivered = 0
        """Entries that the broker acknowledged."""
        self.refused = 0
        """Entries that the broker said it would not take."""
        self.paused = 0
        """Entries dropped by a pause; some of them were under way."""

    def __len__(self) -> int:
        return len(self._waiting) + len(self._under_way)

    @property
    def waits(self) -> bool:
        """Whether an entry is not under way yet."""
        return bool(self._waiting)

    @property
    def oldest_under_way(self) -> OutboxEntry | None:
        """The message over which a link that is lost now was lost, perhaps."""
        return self._under_way[0][0] if self._under_way else None

    def put(self, topic: str, payload: bytes, now: float) -> None:
        """Append a released chunk."""
        self._waiting.append(OutboxEntry(topic, payload, now + self._lifetime_s))
        if len(self) > self._length:
            self._waiting.popleft()
            self.overflow += 1

    def pause(self) -> None:
        """Drop all, those under way too: what has left has left, and no new link repeats it."""
        self.paused += len(self)
        self._waiting.clear()
        self._under_way.clear()

    def first(self, now: float) -> OutboxEntry | None:
        """The oldest entry that waits and is not too old; it stays until `sent` or `acknowledge`."""
        while self._waiting and self._waiting[0].deadline <= now:
            self._waiting.popleft()
            self.expired += 1
        return self._waiting[0] if self._waiting else None

    def has_room(self, now: float) -> bool:
        """Whether another entry may be sent before one is acknowledged."""
        if not self._under_way:
            return True
        return len(self._under_way) < self._window and self._soon(self._under_way[0][1], now)

    def sent(self, entry: OutboxEntry, now: float) -> None:
        """`entry`, the first one, is under way: it is held until it is acknowledged, and sent again after `recall`."""
        self._waiting.popleft()
        self._under_way.append((entry, now))

    def recall(self) -> None:
        """A new link: what was under way waits again, in its old order and before all others."""
        self._waiting.extendleft(entry for entry, _ in reversed(self._under_way))
        self._under_way.clear()
        self._window = 1

    def acknowledge(self, entry: OutboxEntry, now: float) -> None:
        """The broker has it. Had it been dropped since it was sent, it counts as dropped."""
        self.delivered += self._settle(entry, now)

    def refuse(self, entry: OutboxEntry, now: float) -> None:
        """The broker does not take it, and will not: it is gone."""
        self.refused += self._settle(entry, now)

    def _settle(self, entry: OutboxEntry, now: float) -> bool:
        """No longer hold `entry`; whether it was held."""
        for pair in self._under_way:
            if pair[0] is entry:
                self._under_way.remove(pair)
                self._window = min(self._window + 1, self._most_under_way) if self._soon(pair[1], now) else 1
                return True
        if self._waiting and self._waiting[0] is entry:  # recalled, and yet answered
            self._waiting.popleft()
            return True
        return False

    def _soon(self, sent_at: float, now: float) -> bool:
        return now - sent_at < SOON * self._lifetime_s


class RetainedMessages:
    """Topics with the payload that should stand there, and which of them the broker does not have yet."""

    def __init__(self) -> None:
        self._standing: dict[str, bytes] = {}
        self._pending: dict[str, bytes] = {}

    def retain(self, topic: str, payload: bytes) -> bool:
        """Let `payload` stand at `topic`; what stands there already is not sent twice. Whether it changes."""
        changed = self._standing.get(topic) != payload
        if changed:
            self._standing[topic] = self._pending[topic] = payload
        return changed

    def resend_all(self) -> None:
        """A new link: everything is sent again."""
        self._pending = dict(self._standing)

    def resend(self, topic: str) -> None:
        """Send what stands at `topic` once more, if anything does."""
        if topic in self._standing:
            self._pending[topic] = self._standing[topic]

    def __len__(self) -> int:
        """How many the broker does not have."""
        return len(self._pending)

    def first(self, count: int) -> list[tuple[str, bytes]]:
        """Topics and payloads that the broker does not have, `count` at most; each stays until it is `acknowledged`."""
        return list(islice(self._pending.items(), count))

    def acknowledged(self, topic: str, payload: bytes) -> None:
        """The broker has it, unless another payload stands at the topic by now."""
        if self._pending.get(topic) == payload:
            del self._pending[topic]


_LOG = logging.getLogger("eyestream.link")

SUSPICIOUS_LOSSES = 3
"""Links in a row that were lost over the same bytes, after which these are named as the likely cause."""

SMALL_BYTES = 1024
"""No broker refuses so little: a link that is lost over it was lost for another reason."""

_AT_ONCE = 64
"""Retained messages that may be under way: those of 1,000 devices take 32 round trips, for which the chunks wait."""


class Sender:
    """Serves one link after the other."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self.claims: dict[str, str] = {}
        """Hash of what is claimed of the chunks of each topic; it goes with each where the broker speaks MQTT 5."""
        self._refusals: set[tuple[str, str]] = set()
        self._retained = RetainedMessages()
        self._after_chunks = RetainedMessages()
        self._carrier: Link | None = None
        self._wake = asyncio.Event()
        self._stated = 0
        self._goodbye: list[tuple[str, bytes]] | None = None
        self._suspect = b""
        self._losses = 0
        self._named = False
        self.stands = False
        """Whether a link is up."""

    def retain(self, topic: str, payload: bytes) -> None:
        """Let `payload` stand, retained, at `topic`; it goes before every chunk that is not under way yet."""
        first = not self._retained
        if self._retained.retain(topic, payload) and not (first and self._state_now(self._retained, topic, payload)):
            self._wake.set()

    def retain_after_chunks(self, topic: str, payload: bytes) -> None:
        """Let `payload` stand, retained, at `topic`; it goes after every chunk that waits, and none waits for it."""
        first = not (self._retained or self._after_chunks or self._outbox.waits)
        if self._after_chunks.retain(topic, payload) and not (
            first and self._state_now(self._after_chunks, topic, payload)
        ):
            self._wake.set()

    def resend(self, topic: str) -> None:
        """Send what stands at `topic` once more, in case somebody else has overwritten it at the broker."""
        self._retained.resend(topic)
        self._wake.set()

    def post(self, topic: str, payload: bytes) -> None:
        """Take a released chunk."""
        self._outbox.put(topic, payload, asyncio.get_running_loop().time())
        self._send_on()

    def leave(self, goodbye: Iterable[tuple[str, bytes]]) -> None:
        """Let `serve` end when everything is delivered and `goodbye` is published, topic by topic."""
        self._goodbye = list(goodbye)
        self._wake.set()

    async def serve(self, link: Link) -> None:
        """Retained messages first, then chunks, until it is time to leave or the link is lost."""
        self.stands = True
        self._retained.resend_all()
        self._after_chunks.resend_all()
        self._stated = 0
        if not link.resumed:  # in a resumed session the library sends again what was under way, with its packet ids
            self._outbox.recall()
        try:
            while True:
                self._wake.clear()
                if self._retained:
                    await self._state(link, self._retained)
                    continue
                self._carrier = link
                self._send_on()
                if self._after_chunks and not self._outbox.waits:
                    await self._state(link, self._after_chunks)
                    continue
                if self._goodbye is not None and not self._outbox:
                    for start in range(0, len(self._goodbye), _AT_ONCE):
                        await link.state(self._goodbye[start : start + _AT_ONCE])
                    return
                await self._wake.wait()
        finally:
            self.stands = False
            self._carrier = None
            self._note_end()

    def _state_now(self, retained: RetainedMessages, topic: str, payload: bytes) -> bool:
        """Hand the link a message for which nothing waits; False where it must be sent later."""
        link = self._carrier
        if link is None or self._stated >= _AT_ONCE:
            return False
        try:
            link.send(
                topic, payload, partial(self._note_answer, link), partial(self._note_refused, link, topic), retain=True
            )
        except LinkError:
            self._carrier = None  # it is lost: the next link says everything again
            return False
        self._stated += 1
        retained.acknowledged(topic, payload)
        return True

    def _note_answer(self, link: Link) -> None:
        self._stated -= link is self._carrier

    def _note_refused(self, link: Link, topic: str, why: str) -> None:
        self._note_answer(link)
        self._note_refusal(topic, why)

    async def _state(self, link: Link, retained: RetainedMessages) -> None:
        """Publish some of what the broker does not have."""
        messages = retained.first(_AT_ONCE)
        for topic, why in (await link.state(messages)).items():
            self._note_refusal(topic, why)
        for topic, payload in messages:
            retained.acknowledged(topic, payload)

    def _note_end(self) -> None:
        """A link has ended: was it over the same bytes as those before it? Said once, until something is delivered."""
        entry = self._outbox.oldest_under_way
        pending = (payload for _, payload in self._retained.first(_AT_ONCE))
        suspect = entry.payload if entry is not None else max(pending, key=len, default=b"")
        self._losses = self._losses + 1 if suspect is self._suspect else 1
        self._suspect = suspect
        if self._losses < SUSPICIOUS_LOSSES or self._named or len(suspect) < SMALL_BYTES:
            return
        self._named = True
        _LOG.warning(
            "private broker: %d links in a row were lost while the same message of %d bytes was under way: the broker "
            "probably takes none so large (mosquitto: max_packet_size); `eyestream check` tries it",
            self._losses,
            len(suspect),
        )

    def _send_on(self) -> None:
        """Hand the link what waits, as far as it may be under way; not before the retained messages."""
        link, now = self._carrier, asyncio.get_running_loop().time()
        if link is None or self._retained:
            return
        while self._outbox.has_room(now) and (entry := self._outbox.first(now)) is not None:
            self._outbox.sent(entry, now)  # first: where `send` finds the link lost, the next one recalls the entry
            try:
                link.send(
                    entry.topic,
                    entry.payload,
                    partial(self._acknowledged, entry),
                    partial(self._refused, entry),
                    more=Properties(expiry_s=math.ceil(entry.deadline - now), user=self._user(entry.topic)),
                )
            except LinkError:
                self._carrier = None  # `serve` is about to learn that too
                return

    def _acknowledged(self, entry: OutboxEntry) -> None:
        self._outbox.acknowledge(entry, asyncio.get_running_loop().time())
        self._named = False
        self._go_on()

    def _refused(self, entry: OutboxEntry, why: str) -> None:
        self._outbox.refuse(entry, asyncio.get_running_loop().time())
        self._note_refusal(entry.topic, why)
        self._go_on()

    def _go_on(self) -> None:
        self._send_on()
        if self._goodbye is not None or self._after_chunks:
            self._wake.set()

    def _note_refusal(self, topic: str, why: str) -> None:
        """Say once for each topic what the broker has against it."""
        if (topic, why) not in self._refusals:
            self._refusals.add((topic, why))
            _LOG.warning("private broker: refuses what is published at %s: %s", topic, why)

    def _user(self, topic: str) -> tuple[tuple[str, str], ...]:
        claim = self.claims.get(topic)
        return () if claim is None else ((CLAIM, claim),)
