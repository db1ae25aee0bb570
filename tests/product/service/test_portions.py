"""A link that is read by the clock: when messages arrive, that each comes once, and what is held meanwhile."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence

import pytest

from eyestream.errors import LinkError
from eyestream.rim.mqtt.client import Client
from eyestream.rim.mqtt.messages import Message
from eyestream.rim.mqtt.portions import MOST_BYTES, PORTION_S
from eyestream_lab.testing.clocks import simulated
from tests.rigs.clients import WELCOME, Pipe, at_a_pipe
from tests.rigs.strangers import packet

READ_BYTES = 256 * 1024  # of one read of asyncio
Sent = tuple[float, bytes]


def message(payload: bytes, packet_id: int = 0) -> bytes:
    number = packet_id.to_bytes(2, "big") if packet_id else b""
    return packet(0x32 if packet_id else 0x30, b"\0\x01m" + number + b"\0" + payload)


class Kernel(Pipe):
    """A socket that holds what comes while nobody reads; the loop looks at it once in a turn."""

    def __init__(self, hear: Callable[[bytes], None]) -> None:
        super().__init__(hear)
        self.client: Client
        self.buffer = bytearray()
        self.resumed = self.reads = 0
        self._looks = False

    def come(self, data: bytes) -> None:
        self.buffer += data
        self._look()

    def resume_reading(self) -> None:
        self.resumed += self.paused
        super().resume_reading()
        self._look()

    def _look(self) -> None:
        if not self._looks:
            self._looks = True
            asyncio.get_running_loop().call_soon(self._read)

    def _read(self) -> None:
        self._looks = False
        if self.paused or self.closed or not self.buffer:
            return
        data = bytes(self.buffer[:READ_BYTES])
        del self.buffer[:READ_BYTES]  # which copies nothing of what stays
        self.reads += 1
        self.client.data_received(data)
        self._look()


class World:
    """A client that is read by the clock: what it handed on and when, and what it acknowledged."""

    def __init__(self) -> None:
        self.came: list[tuple[Message, float]] = []
        self.acknowledged: list[int] = []
        self.portions: list[int] = []
        self.asked = 0
        self.on_acknowledged: Callable[[], None] = lambda: None

    async def __aenter__(self) -> "World":
        # Before the greeting `hear` is told CONNECT, which is no matter here.
        self.client, pipe, greets = at_a_pipe(print, self._hear, five=True)
        self.kernel = Kernel(self._hear)
        self.kernel.client = self.client
        self.client.connection_made(self.kernel)
        await asyncio.sleep(0)
        self.client.data_received(WELCOME[True])
        await greets
        self.client.read_by_the_clock(self.take)
        del pipe
        return self

    async def __aexit__(self, *_: object) -> None:
        self.kernel.closed = True
        self.client.connection_lost(None)

    def take(self, messages: list[Message], at: float) -> None:
        self.portions.append(len(messages))
        self.came += [(message, at) for message in messages]

    def _hear(self, data: bytes) -> None:
        self.asked += data == b"\xc0\x00"
        while data.startswith(b"\x40\x02"):
            self.acknowledged.append(int.from_bytes(data[2:4], "big"))
            data = data[4:]
        self.on_acknowledged()

    @property
    def payloads(self) -> list[bytes]:
        return [message.payload for message, _ in self.came]


def in_a_world(test: Callable[[World], Awaitable[None]]) -> World:
    async def live() -> World:
        async with World() as world:
            await test(world)
        return world

    return simulated(live())


async def send(world: World, sent: Sequence[Sent]) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    for after, data in sorted(sent, key=lambda one: one[0]):
        await asyncio.sleep(began + after - loop.time())
        world.kernel.come(data)
    await asyncio.sleep(1.0)


def arrivals(sent: Sequence[Sent]) -> dict[bytes, float]:
    world = in_a_world(lambda world: send(world, sent))
    assert len(world.payloads) == len(set(world.payloads)) == len(sent)  # nothing lost, nothing twice
    return {message.payload: at for message, at in world.came}


def gaze(chance: random.Random, count: int, begin_s: float, end_s: float, name: str) -> list[Sent]:
    return [
        (chance.uniform(begin_s, end_s), message(f"{name} {i}".encode(), chance.choice([0, 0, i + 1])))
        for i in range(count)
    ]


@pytest.mark.parametrize("seed", range(30))
def test_a_message_arrives_at_the_first_multiple_after_it_came_whatever_others_do(seed: int) -> None:
    """Streams that differ in one event, and in nothing else, are read alike outside of it."""
    chance = random.Random(seed)
    common = gaze(chance, chance.choice([3, 40, 200]), 0.0, 3.0, "common")
    event = [gaze(chance, chance.choice([0, 1, 30]), 1.0, 1.3, name) for name in ("one", "other")]
    one, other = (arrivals(common + more) for more in event)
    for at, data in common:
        payload = data[data.index(b"common") :]
        assert one[payload] == other[payload]
        slots = one[payload] / PORTION_S
        assert slots == pytest.approx(round(slots), abs=1e-5)
        assert -1e-6 <= one[payload] - at <= PORTION_S + 1e-6


def test_what_came_together_is_handed_on_together() -> None:
    sent = [(0.001 * i, message(b"%d" % i)) for i in range(1000)]
    world = in_a_world(lambda world: send(world, sent))
    assert world.payloads == [b"%d" % i for i in range(1000)]
    assert 20 <= len(world.portions) <= 23
    assert world.kernel.reads <= 23


def test_a_silent_link_wakes_nobody() -> None:
    async def silence(world: World) -> None:
        await send(world, [(0.0, message(b"x"))])
        before = world.kernel.resumed
        await asyncio.sleep(20.0)
        assert (world.kernel.resumed, world.kernel.paused) == (before, False)
        await send(world, [(0.0, message(b"y"))])

    assert in_a_world(silence).payloads == [b"x", b"y"]


@pytest.mark.parametrize("window", [10, 20, 32])
def test_a_burst_of_a_second_at_qos_1_does_not_wait_for_a_multiple_with_each_window(window: int) -> None:
    """A broker sends no more than `window` before it is answered to: at 50 ms each, 1,000 would take seconds."""

    async def burst(world: World) -> None:
        loop, waiting, under_way = asyncio.get_running_loop(), list(range(1, 1001)), set[int]()

        async def broker() -> None:
            while waiting:
                under_way.difference_update(world.acknowledged)
                if len(under_way) < window:
                    under_way.add(waiting[0])
                    world.kernel.come(message(b"%d" % waiting[0], waiting.pop(0)))
                await asyncio.sleep(0.00005)  # each comes alone

        before = loop.time()
        await broker()
        assert loop.time() - before < 0.3
        await asyncio.sleep(PORTION_S)

    world = in_a_world(burst)
    assert world.payloads == [b"%d" % i for i in range(1, 1001)]
    assert world.acknowledged == [*range(1, 1001)]


def test_what_is_held_is_bounded_in_a_flood() -> None:
    """At QoS 1, from a broker that does not wait: it is left to the kernel, and nothing of it is lost."""

    async def flood(world: World) -> None:
        held = []
        await send(world, [(0.0, b"".join(message(bytes(1000), 1 + i % 60_000) for i in range(8000)))])
        portions = world.client._portions
        assert portions is not None
        world.kernel.come(message(b"first", 1))
        for _ in range(200):
            world.kernel.come(b"".join(message(bytes(60_000), 1 + i) for i in range(10)))
            held.append(portions._held_bytes)
            await asyncio.sleep(0.001)
        assert max(held) <= MOST_BYTES + READ_BYTES + 60_000
        await asyncio.sleep(30.0)

    world = in_a_world(flood)
    assert (len(world.came), len(world.acknowledged)) == (8000 + 1 + 2000, 8000 + 1 + 2000)


def test_a_backlog_of_more_than_one_read_comes_in_one_portion_of_time() -> None:
    """As a broker sends it after an outage: 3 MB do not take a multiple for each read."""
    data = b"".join(message(b"%07d" % i + bytes(500)) for i in range(6000))
    world = in_a_world(lambda world: send(world, [(0.0, message(b"begins")), (0.01, data)]))
    assert [int(payload[:7]) for payload in world.payloads[1:]] == [*range(6000)]
    assert len({round(at / PORTION_S) for _, at in world.came}) == 1


def test_what_was_read_before_the_link_was_lost_is_handed_on() -> None:
    async def lose(world: World) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(1.5 * PORTION_S - loop.time() % PORTION_S)
        world.kernel.come(message(b"x", 7))
        await asyncio.sleep(0.001)
        assert world.payloads == []
        world.kernel.closed = True
        world.client.connection_lost(None)
        assert world.payloads == [b"x"]
        await asyncio.sleep(1.0)

    world = in_a_world(lose)
    assert (world.payloads, world.acknowledged) == ([b"x"], [7])


def test_what_raises_over_a_portion_ends_the_link() -> None:
    async def fail(world: World) -> None:
        def take(messages: list[Message], at: float) -> None:
            raise MemoryError

        world.client.read_by_the_clock(take)
        world.kernel.come(message(b"x"))
        await asyncio.sleep(1.0)
        assert world.kernel.closed
        assert isinstance(world.client.reason, MemoryError)

    in_a_world(fail)


@pytest.mark.parametrize("answers", [True, False])
def test_a_broker_is_asked_and_heard_while_gaze_flows_and_while_none_does(answers: bool) -> None:
    async def live(world: World) -> None:
        def answer() -> None:
            if answers and world.asked > said[0]:
                said[0] = world.asked
                asyncio.get_running_loop().call_later(0.02, world.kernel.come, b"\xd0\x00")

        said = [0]
        world.on_acknowledged = answer
        await send(world, [(i / 60, message(b"%d" % i)) for i in range(60 * 100)])
        await asyncio.sleep(200.0)
        assert world.kernel.closed == (not answers)

    world = in_a_world(live)
    assert (len(world.came), world.asked >= 2) == (6000, True)


def test_a_client_that_is_gone_is_not_read_by_the_clock() -> None:
    async def go(world: World) -> None:
        world.kernel.closed = True
        with pytest.raises(LinkError, match="lost"):
            world.client.read_by_the_clock(world.take)

    in_a_world(go)


def test_packets_that_are_cut_anywhere_come_once() -> None:
    chance, sent = random.Random(1), list[Sent]()
    stream = b"".join(message(b"%d" % i, chance.choice([0, i + 1])) for i in range(300))
    at, wall = 0, 0.0
    while at < len(stream):
        size = chance.choice([1, 7, 100, 1000])
        sent.append((wall, stream[at : at + size]))
        at, wall = at + size, wall + chance.choice([0.0, 0.01, 0.07])
    world = in_a_world(lambda world: send(world, sent))
    assert world.payloads == [b"%d" % i for i in range(300)]


def test_a_broker_that_sends_and_does_not_read_is_given_up() -> None:
    """Acknowledgements would wait for it without a bound."""

    async def deaf(world: World) -> None:
        world.kernel.get_write_buffer_size = lambda: 4 * len(world.acknowledged)  # type: ignore[method-assign]
        for number in range(400):
            world.kernel.come(b"".join(message(b"%d" % i, 1 + i % 60_000) for i in range(1000)))
            await asyncio.sleep(0.1)
            if world.kernel.closed:
                assert number * 1000 * 4 <= 1 << 20
                break
        assert str(world.client.reason) == "the broker sends and does not read"

    in_a_world(deaf)
