"""Sidecars with one ledger at one broker, in thousands of histories on a simulated clock.

The broker keeps what is retained, gives each link its messages in order after a delay, and lets one link of a client id
stand. A sidecar here is the real `Ownership` on the real `ReconnectingLink`; what it releases is the numbers of the
ticks at which it took a row. Sidecars stop for a while and go on (SIGSTOP), begin and are killed. A stranger, who has
no ledger, says again whatever he has heard.
"""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, cast

import pytest

from eyestream.errors import ConfigError, LinkError
from eyestream.rim.ledger.identity import client_id
from eyestream.rim.mqtt import reconnecting, transport
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.reconnecting import ReconnectingLink
from eyestream.rim.mqtt.transport import Link, Message
from eyestream.rim.sidecar import ownership
from eyestream.rim.sidecar.ownership import Ownership
from eyestream.wire.status import Status, encode_status
from eyestream.wire.topics import sidecar_status_topic
from eyestream_lab.testing.clocks import simulated

TICK_S = 0.05
CHUNK = 4
LEDGER = b"l" * 16


class Broker:
    """Keeps what is retained, and counts by tick what was released."""

    def __init__(self, chance: random.Random, slowest_s: float) -> None:
        self.chance, self.slowest_s = chance, slowest_s
        self.retained: dict[str, bytes] = {}
        self.links: dict[str, FakeLink] = {}
        self.released: Counter[int] = Counter()
        self.by: list[str] = []
        self.one_at_a_time = asyncio.Lock()

    def publish(self, topic: str, payload: bytes, *, retain: bool) -> None:
        """Take a message of a link that stands."""
        if retain:
            self.retained[topic] = payload
        for link in list(self.links.values()):
            link.hand_on(Message(topic, payload, False))


class FakeLink(Link):
    """One link of a sidecar, or of a stranger; while the sidecar is stopped nothing is heard and nothing is done."""

    def __init__(self, broker: Broker, name: str, node: "Node", deliver: Callable[[Message], None]) -> None:
        self._broker, self.name, self._node, self._deliver = broker, name, node, deliver
        self.stands, self._subscribed, self.reason = True, False, None  # as `Client` says why it ended a link
        self._messages: asyncio.Queue[tuple[float, Message | None]] = asyncio.Queue()
        self._last = 0.0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pump = asyncio.create_task(self._hear())

    def hand_on(self, message: Message) -> None:
        """Let the link have a message, or end."""
        if self._subscribed and message.topic.endswith("owner"):
            self._put(message)

    def _put(self, message: Message | None) -> None:
        """It arrives after a delay, and after what was sent before it."""
        now = asyncio.get_running_loop().time()
        self._last = max(self._last, now + self._broker.chance.uniform(0, self._broker.slowest_s))
        self._messages.put_nowait((self._last, message))

    def end(self) -> None:
        """Another link takes its place: what is written to it from now on is nowhere, and the sidecar hears it late."""
        self.stands = False
        self._broker.links.pop(self.name, None)
        self._put(None)

    async def _hear(self) -> None:
        while True:
            due, message = await self._messages.get()
            await asyncio.sleep(due - asyncio.get_running_loop().time())
            await self._node.awake.wait()
            if message is None:
                self.ended.set_exception(LinkError("the link is lost"))
                return
            self._deliver(message)

    async def subscribe_all(self, topic_filters: Sequence[str], qos: int) -> None:
        """Subscribe to what sidecars say of themselves."""
        await self._node.awake.wait()
        if self.stands:
            self._subscribed = True
            for topic, payload in self._broker.retained.items():
                self._put(Message(topic, payload, True))

    async def publish(self, topic: str, payload: bytes, *, qos: int, retain: bool = False, **more: Any) -> None:
        """Publish after a while."""
        await asyncio.sleep(self._broker.chance.uniform(0, self._broker.slowest_s))
        await self._node.awake.wait()
        if self.stands:
            self._broker.publish(topic, payload, retain=retain)

    def send(self, topic: str, payload: bytes, *settled: Any, **more: Any) -> None:
        """Publish at once."""
        if self.stands:
            self._broker.publish(topic, payload, retain=False)


class Node:
    """One sidecar: a process that may stop and go on."""

    def __init__(self, label: str, name: str, broker: Broker, ledger: bytes = LEDGER, device: str = "hmd-1") -> None:
        self.label, self._broker = label, broker
        self.awake, self._owned = asyncio.Event(), False
        self.awake.set()
        self._rows: list[int] = []
        self.owners = Ownership(name, ledger, [device], lambda: None)
        self._status = sidecar_status_topic(name)
        self._link: FakeLink | None = None
        self._private = ReconnectingLink(
            cast(Endpoint, self),
            self._serve,
            what="private broker",
            client_id=client_id(ledger, "private"),
            deliver=self.owners.deliver,
            before=self._ask_around,
        )
        self.refused = ""
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._private.run())
                group.create_task(self._take_rows())
        except* ConfigError as errors:
            self.refused = str(errors.exceptions[0])

    async def _ask_around(self) -> None:
        await self.owners.ask_around(cast(Endpoint, self), name_wait_s=None if self._private.links else 1.0)

    async def _serve(self, link: Link) -> None:
        async with self.owners.answering(link):
            await link.publish(*self.owners.statement, qos=1, retain=True)
            await link.publish(self._status, encode_status(Status("online", "ready")), qos=1, retain=True)
            self._link, self._owned = cast(FakeLink, link), True
            try:
                await asyncio.Event().wait()
            finally:
                self._link = None

    async def _take_rows(self) -> None:
        """Take a row at each tick; a chunk goes to the link that there is when it is complete, whatever came before."""
        while True:
            await asyncio.sleep(TICK_S)
            await self.awake.wait()
            if self._owned:
                self._rows.append(round(asyncio.get_running_loop().time() / TICK_S))
            if len(self._rows) >= CHUNK and self._link is not None and not self.owners.disputed:
                chunk, self._rows = self._rows, []
                if self._link.stands:
                    self._broker.released.update(chunk)
                    self._broker.by.append(self.label)

    async def stop_for(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT after so long; who was stopped before has had time to ask meanwhile.

        Two that are stopped in turn, within the second of a question, do not hear each other: that is no part of what
        is promised.
        """
        async with self._broker.one_at_a_time:
            self.awake.clear()
            await asyncio.sleep(seconds)
            self.awake.set()
            await asyncio.sleep(2 * ownership.ANSWER_SECONDS)


@contextlib.asynccontextmanager
async def connect(node: Any, *, client_id: str | None, deliver: Any, **more: Any) -> AsyncIterator[Link]:
    """Connect to the broker of a node; the only link of its client id."""
    broker = node._broker
    await asyncio.sleep(broker.chance.uniform(0, broker.slowest_s))
    await node.awake.wait()
    name = client_id or str(broker.chance.random())
    if (other := broker.links.get(name)) is not None:
        other.end()
    link = broker.links[name] = FakeLink(broker, name, node, deliver)
    try:
        async with transport._until_lost(cast(Any, link)):
            yield link
    finally:
        link._pump.cancel()
        link.ended.cancel()
        if broker.links.get(name) is link:
            del broker.links[name]


@pytest.fixture(autouse=True)
def the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (ownership, reconnecting):
        monkeypatch.setattr(module, "connect", connect)


async def replaying(broker: Broker) -> None:
    """A stranger who says again, as it was and at each question, whatever he has heard."""
    heard: dict[tuple[str, bytes], None] = {}
    node = type("Stranger", (), {"awake": asyncio.Event(), "_broker": broker})()
    node.awake.set()
    async with connect(node, client_id=None, deliver=lambda message: heard.setdefault(message[:2])) as link:
        await link.subscribe_all([], 0)
        while True:
            await asyncio.sleep(broker.chance.uniform(0.05, 0.3))
            topics = [topic for topic, _ in heard]
            for topic, payload in broker.chance.sample(list(heard), min(8, len(heard))):
                kept = broker.chance.random() < 0.5
                await link.publish(topic, payload, qos=1, retain=kept and "/look-" not in topic)
                await link.publish(broker.chance.choice(topics), payload, qos=1)


async def history(seed: int, *, copies: bool) -> tuple[Broker, list[Node]]:
    """One history of 40 s: a sidecar, copies of it perhaps under another name, and a stranger."""
    random.seed(seed)  # of the waits between attempts
    chance = random.Random(seed)
    broker = Broker(chance, chance.choice([0.0, 0.01, 0.1]))
    nodes = [Node("0", "a", broker)]
    stranger = asyncio.create_task(replaying(broker)) if chance.random() < 0.5 or not copies else None
    pauses = []
    async with asyncio.timeout(40):
        with contextlib.suppress(TimeoutError):
            for step in range(1, 13):
                await asyncio.sleep(chance.uniform(0, 4))
                what = chance.random()
                if copies and what < 0.4 and len([node for node in nodes if not node.task.done()]) < 2:
                    nodes.append(Node(str(step), chance.choice("ab"), broker))
                elif what < 0.9:
                    pauses.append(asyncio.create_task(chance.choice(nodes).stop_for(chance.uniform(0, 5))))
                elif not copies:
                    nodes[-1].task.cancel()
                    await asyncio.wait({nodes[-1].task})
                    nodes.append(Node(str(step), "a", broker))
    for node in nodes:
        node.awake.set()
    await asyncio.sleep(6)
    for task in (*pauses, *(node.task for node in nodes), *([] if stranger is None else [stranger])):
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    return broker, nodes


def test_copies_never_release_the_same_row_whatever_stops_and_goes_on() -> None:
    """And however it went, one is left at most, which is at work."""
    taken_over = 0
    for seed in range(60):
        broker, nodes = simulated(history(seed, copies=True))
        assert max(broker.released.values(), default=0) <= 1, seed
        assert [node.task.cancelled() for node in nodes if not node.refused] == [True], seed
        taken_over += len(set(broker.by)) > 1
    assert taken_over > 5, "a copy does begin while the first one is stopped"


def test_nobody_without_the_ledger_locks_a_sidecar_out() -> None:
    """Its own words, questions and proofs are said again, retained and not, over restarts and pauses."""
    for seed in range(20):
        broker, nodes = simulated(history(seed, copies=False))
        assert [node.refused for node in nodes if node.refused] == [], seed
        assert nodes[-1].label in broker.by, seed
        assert not nodes[-1].owners.disputed
