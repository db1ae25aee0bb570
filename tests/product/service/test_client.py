"""One connection: what our client says is judged packet by packet, and what it hears settles what it must."""

import asyncio
import random
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import paho.mqtt.client as paho
import pytest

from eyestream.errors import LinkError
from eyestream.rim.mqtt.carrier import Carrier, Outgoing, Paho
from eyestream.rim.mqtt.client import AT_ONCE, Client
from eyestream.rim.mqtt.messages import Limits, Message, Properties, Will
from eyestream_lab.testing.clocks import until
from tests.product.service.judge import Judge
from tests.rigs.clients import WELCOME, Pipe, at_a_pipe
from tests.rigs.strangers import packet

FIVE = WELCOME[True]
joined_clients: list[tuple[Client, Pipe]] = []


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    """What a loop does after a socket is closed."""
    yield
    while joined_clients:
        client, pipe = joined_clients.pop()
        pipe.close()
        client.connection_lost(None)


async def joined(
    welcome: bytes = FIVE, *, judge: Judge | None = None, deliver: Callable[[Message], None] = print, **greeting: Any
) -> tuple[Client, Pipe, Judge]:
    """A client whose every word is judged, and whom a broker has welcomed."""
    judge = judge or Judge()
    client, pipe, greets = at_a_pipe(deliver, judge.hear, five=True, **greeting)
    joined_clients.append((client, pipe))
    await asyncio.sleep(0)
    client.data_received(welcome)
    await greets
    return client, pipe, judge


def publish_to(client: Client, topic: str, done: list[str], name: str = "", **said: Any) -> None:
    """Publish; note in `done` what becomes of it."""
    retain = said.pop("retain", False)
    refused = lambda why: done.append(f"{name}: {why}")  # noqa: E731
    client.publish(topic, b"x", retain, acknowledged=partial(done.append, name), refused=refused, **said)


def message(number: int) -> bytes:
    return packet(0x32 if number else 0x30, b"\0\x01m" + (number.to_bytes(2, "big") if number else b"") + b"\0x")


def room_for(receive_maximum: int, *, present: bool = False) -> bytes:
    return packet(0x20, bytes([present, 0, 3, 0x21]) + receive_maximum.to_bytes(2, "big"))


def random_greeting(chance: random.Random) -> dict[str, Any]:
    """As any of our callers might ask for it."""
    return {
        "client_id": chance.choice(["me", "x" * 100, "\u20ac"]),
        "will": chance.choice([None, Will("w", b""), Will("w/\u20ac", bytes(300), 5)]),
        "clean_session": chance.random() < 0.7,
    }


def random_properties(chance: random.Random) -> Properties:
    return Properties(
        chance.choice([None, 1, 60, (1 << 32) - 1]),
        (("claim", "x" * chance.randrange(100)),) * chance.randrange(3),
    )


@pytest.mark.parametrize("seed", range(60))
async def test_what_we_say_keeps_every_rule_in_every_order(seed: int) -> None:
    """Greeting, publishing, subscribing, being sent messages and leaving, with late answers and little room."""
    chance = random.Random(seed)
    delivered: list[Message] = []
    done: list[str] = []
    judge = Judge(receive_maximum=chance.choice([1, 3, 20]))
    client, pipe, _ = await joined(
        room_for(judge.receive_maximum), judge=judge, deliver=delivered.append, **random_greeting(chance)
    )
    assert client.limits == Limits(receive_maximum=judge.receive_maximum)
    asked: list[asyncio.Task[list[str | None]]] = []
    sent = published = 0
    for _ in range(200):
        step = chance.randrange(6)
        if step == 0:
            published += 1
            publish_to(client, "t/1", done, more=random_properties(chance))
        elif step == 1:
            await client.publish_at_most_once("t/0", b"", chance.random() < 0.5, random_properties(chance))
        elif step == 2:
            filters = chance.sample(["a", "+/b", "#", "c/+/#", "/"], chance.randint(1, 5))
            asked.append(asyncio.create_task(client.subscribe(filters, chance.randrange(2))))
            await asyncio.sleep(0)
        elif step == 3:
            ids = [chance.choice([0, 0, *range(1, 9)]) for _ in range(chance.randint(1, 4))]
            judge.owed += [number for number in ids if number]
            sent += len(ids)
            client.data_received(b"".join(map(message, ids)))
        elif step == 4 and judge.publishes:
            client.data_received(judge.acknowledge(chance.choice(judge.publishes)))
        elif step == 5 and judge.subscribes:
            number = chance.choice(list(judge.subscribes))
            codes = bytes([1] * judge.subscribes.pop(number))
            client.data_received(packet(0x90, number.to_bytes(2, "big") + b"\0" + codes))
            await asyncio.sleep(0)
    while judge.publishes:  # what waited for room comes now
        client.data_received(judge.acknowledge(judge.publishes[0]))
    assert (len(delivered), judge.owed, judge.held) == (sent, [], b"")
    assert len(done) == published
    assert sum(task.done() for task in asked) == len(asked) - len(judge.subscribes)
    leaving = asyncio.create_task(client.leave(1.0, in_order=chance.random() < 0.5))
    await asyncio.sleep(0)
    assert judge.gone
    assert pipe.closed
    client.connection_lost(None)
    await leaving
    for task in asked:
        if not task.done():
            with pytest.raises(LinkError):
                await task


@pytest.mark.parametrize("seed", range(20))
async def test_a_session_that_the_broker_continues_is_continued(seed: int) -> None:
    """Links are lost at any moment; what is unacknowledged is sent again, the same bytes under the same packet id, or
    forgotten where the broker forgot.
    """
    chance = random.Random(seed)
    outgoing, done, published = Outgoing(), list[str](), 0
    held: dict[int, bytes] = {}
    room = chance.choice([1, 2, 10])
    for _ in range(30):
        present = bool(held) and chance.random() < 0.7
        before = len(done)
        client, pipe, judge = await joined(
            room_for(room, present=present),
            judge=Judge(receive_maximum=room, resumed=dict(held) if present else {}),
            outgoing=outgoing,
            resume=True,
            client_id="me",
            will=Will("w", b"", 5),
        )
        assert client.resumed == present
        if not present:
            assert outgoing.oldest == 0  # forgotten, and nobody is told that it arrived
            assert len(done) == before
        for _ in range(chance.randrange(12)):
            if chance.random() < 0.5:
                published += 1
                publish_to(client, "t", done, str(published))
            elif judge.publishes:
                answer = judge.acknowledge(chance.choice(judge.publishes))
                client.data_received(answer if chance.random() < 0.8 else answer[:1] + b"\x03" + answer[2:] + b"\x97")
        held = {**judge.bodies, **judge.resumed}
        pipe.close()
        client.connection_lost(None)
    assert len(set(done)) == len(done) > 0


async def test_what_the_broker_does_not_take_is_not_sent() -> None:
    done: list[str] = []
    welcome = packet(0x20, b"\0\0\x0a\x21\0\x02\x25\0\x27\0\0\0\x28")
    client, _, judge = await joined(welcome, judge=Judge(receive_maximum=2, packet_bytes=40, retain=False))
    publish_to(client, "t" * 40, done, "large")
    publish_to(client, "t", done, "kept", retain=True)
    with pytest.raises(ValueError, match=r"takes 40 .*max_packet_size"):
        await client.publish_at_most_once("t" * 40, b"", False)
    with pytest.raises(LinkError, match="takes 40"):
        await client.subscribe(["t" * 40], 1)
    await asyncio.sleep(0)
    assert done == ["large: of 48 bytes, and it takes 40 (max_packet_size)", "kept: it keeps no retained messages"]
    done.clear()
    for number in range(5):
        publish_to(client, "t", done, str(number))
    assert len(judge.publishes) == 2
    first, second = judge.publishes
    asking = asyncio.create_task(client.subscribe(["t"], 1))
    await asyncio.sleep(0)
    judge.owed = [7]
    client.data_received(message(7))
    assert (len(judge.subscribes), judge.owed) == (1, [])  # neither waits for room
    client.data_received(judge.acknowledge(first)[:1] + b"\x03" + first.to_bytes(2, "big") + b"\x97")
    assert done == ["0: Quota exceeded (0x97)"]
    assert judge.publishes[0] == second
    assert len(judge.publishes) == 2
    client.data_received(b"\x40\x02\xff\0")  # not sent: an answer to nothing
    while judge.publishes:
        client.data_received(judge.acknowledge(judge.publishes[0]))
    assert done == ["0: Quota exceeded (0x97)", "1", "2", "3", "4"]
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


@pytest.mark.parametrize("size", [0, 100, 126, 127, 128, 16_370, 16_383, 16_384, 70_000, 2_097_151, 2_097_152])
async def test_the_size_of_a_packet_is_known_before_it_is_sent(size: int) -> None:
    """To the byte, with every form of its length: one more and it is refused."""
    written: list[bytes] = []
    client, pipe, greets = at_a_pipe(print, written.append, five=True)
    joined_clients.append((client, pipe))
    await asyncio.sleep(0)
    client.data_received(FIVE)
    await greets
    more = Properties(7, user=(("claim", "x"),))
    await client.publish_at_most_once("t/\u20ac", bytes(size), False, more)
    _, exact = client._weigh("t/\u20ac", bytes(size), more, 0)
    assert exact == len(written[-1])


async def test_a_broker_without_qos_1() -> None:
    done: list[str] = []
    client, _, judge = await joined(packet(0x20, b"\0\0\x02\x24\0"))
    publish_to(client, "t", done, "one")
    await asyncio.sleep(0)
    assert done == ["one: it takes QoS 0 only"]
    await client.publish_at_most_once("t", b"", False)
    assert judge.publishes == []


@pytest.mark.parametrize("welcome", [FIVE, packet(0x20, b"\0\0\x03\x13\0\x01")])
async def test_a_quiet_client_asks_in_time(welcome: bytes) -> None:
    """After half of its own keep-alive or of the broker's; paho would count in whole seconds."""
    client, _, judge = await joined(welcome, keepalive_s=1 if welcome is FIVE else 60)
    for pings in (1, 2, 3):
        await until(lambda pings=pings: judge.pings == pings)  # type: ignore[misc]
        client.data_received(b"\xd0\0")


async def test_what_comes_at_once_is_read_in_turns() -> None:
    """In order, each once, and nothing more is taken from the socket meanwhile: others have their turn of the loop."""
    got: list[Message] = []
    client, pipe, judge = await joined(deliver=got.append)
    stream = b"".join(packet(0x30, b"\0\x01m\0%d" % number) for number in range(1000))
    client.data_received(stream)
    assert len(got) == AT_ONCE
    assert pipe.paused
    await until(lambda: not pipe.paused)
    assert [int(message.payload) for message in got] == list(range(1000))
    assert judge.held == b""


async def test_ids_in_use_are_not_taken_again() -> None:
    """65,535 ids in a circle: one that is owed an answer is passed by."""
    client, _, judge = await joined(client_id="me")
    done: list[str] = []
    publish_to(client, "t", done, "first")
    client._paho._last_mid = 65_500
    for _ in range(50):
        publish_to(client, "t", done)
        client.data_received(judge.acknowledge(judge.publishes[-1]))
    assert judge.publishes == [1]
    assert "first" not in done


async def test_a_message_at_qos_0_answers_for_none_at_qos_1() -> None:
    """paho numbers them in one circle, and calls alike when the one is written and the other acknowledged."""
    client, _, judge = await joined()
    done: list[str] = []
    publish_to(client, "t", done, "first")
    client._paho._last_mid = 65_500
    for _ in range(50):
        await client.publish_at_most_once("t", b"", False)
    assert done == []
    client.data_received(judge.acknowledge(1))
    assert done == ["first"]


@pytest.mark.parametrize(("codes", "good"), [(b"\x01", False), (b"\x01\x01\x01", False), (b"\x01\x87", True)])
async def test_an_answer_for_each_topic_filter(codes: bytes, good: bool) -> None:
    client, _, judge = await joined()
    asking = asyncio.create_task(client.subscribe(["a", "b"], 1))
    await asyncio.sleep(0)
    [number] = judge.subscribes
    client.data_received(packet(0x90, number.to_bytes(2, "big") + b"\0" + codes))
    if good:
        assert await asking == [None, "Not authorized (0x87)"]
    else:
        with pytest.raises(LinkError, match="answer for each topic filter"):
            await asking


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0x8B, "Server shutting down (0x8b)"),
        (0x8E, "Session taken over (0x8e)"),
        (0x95, "Packet too large (0x95)"),
        (0x97, "Quota exceeded (0x97)"),
        (0x00, "Normal disconnection (0x00)"),
    ],
)
async def test_why_the_broker_ends_the_link(code: int, words: str) -> None:
    client, pipe, _ = await joined()
    client.data_received(packet(0xE0, bytes([code]) + b"\x06\x1f\0\x03a\x07b"))
    assert pipe.closed
    client.connection_lost(None)
    with pytest.raises(LinkError) as caught:
        await client.ended
    assert str(caught.value) == f"the broker ends the link: {words}: ab"


NOT_WRITTEN: list[tuple[str, dict[str, Any]]] = [
    ("a topic with a surrogate", {"topic": "\ud800"}),
    ("a topic with U+0000", {"topic": "a\0"}),
    ("a topic with '+'", {"topic": "a/+"}),
    ("a topic with '#'", {"topic": "#"}),
    ("an empty topic", {"topic": ""}),
    ("a topic of 65,536 bytes", {"topic": "x" * 65_536}),
    ("a packet above 268,435,455 bytes", {"payload": bytes(268_435_453)}),
    ("a user property with U+0000", {"user": (("a", "\0"),)}),
    ("a user property with a surrogate", {"user": (("\ud800", ""),)}),
    ("an expiry of 0", {"expiry_s": 0}),
    ("an expiry of five bytes", {"expiry_s": 1 << 32}),
]


@pytest.mark.parametrize(("what", "said"), NOT_WRITTEN, ids=lambda part: part if isinstance(part, str) else "")
async def test_what_cannot_be_written_is_refused_and_not_sent(what: str, said: dict[str, Any]) -> None:
    """The library would send some of it."""
    client, _, judge = await joined()
    topic, payload = said.pop("topic", "t"), said.pop("payload", b"")
    with pytest.raises(ValueError, match=r"."):
        await client.publish_at_most_once(topic, payload, False, Properties(**said))
    refused: list[str] = []
    try:
        client.publish(topic, payload, False, acknowledged=print, refused=refused.append, more=Properties(**said))
    except ValueError:
        refused.append(what)
    await asyncio.sleep(0)
    assert len(refused) == 1
    assert (judge.publishes, judge.held) == ([], b"")


@pytest.mark.parametrize("name", ["\ud800", "a\0", "", "x" * 65_536, "a/#/b", "a/b#", "a+/b"])
async def test_a_filter_that_cannot_be_written_is_refused(name: str) -> None:
    client, _, judge = await joined()
    with pytest.raises(LinkError, match="cannot subscribe: "):
        await client.subscribe(["good", name], 1)
    assert judge.subscribes == {}


@pytest.mark.parametrize("five", [False, True])
@pytest.mark.parametrize(
    "greeting",
    [
        {"client_id": "\0"},
        {"client_id": "\ud800"},
        {"will": Will("a/#", b"")},
        {"will": Will("", b"")},
        {"will": Will("w", bytes(65_536))},
        {"clean_session": False},
    ],
)
async def test_a_greeting_that_cannot_be_written_is_refused(five: bool, greeting: dict[str, Any]) -> None:
    said = bytearray()
    with pytest.raises(ValueError, match=r"."):
        await at_a_pipe(print, said.extend, five=five, **greeting)[2]
    assert said == b""


def test_the_one_private_method_of_the_library_is_there() -> None:
    """Else paho would open a socket of its own; and a hook of its own for that would be better than this."""
    assert callable(paho.Client._create_socket)
    client = Paho("me", five=True, clean_session=True)
    client.carrier = Carrier(Pipe(lambda said: None))
    client.connect("nowhere")
    assert client.socket() is client.carrier


async def test_the_library_has_no_thread() -> None:
    before = threading.enumerate()
    await joined()
    assert threading.enumerate() == before
