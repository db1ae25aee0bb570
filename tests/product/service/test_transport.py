"""The link: lost ones are noticed, new ones made, and nothing is left behind."""

import asyncio
import contextlib
import os
import re
import socket
from collections.abc import AsyncIterator, Iterator
from functools import partial

import numpy as np
import pytest

from eyestream.errors import LinkError
from eyestream.rim.config import BrokerSettings
from eyestream.rim.mqtt import client, transport
from eyestream.rim.mqtt import reconnecting as keeper
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.reconnecting import ReconnectingLink
from eyestream.rim.mqtt.transport import Link, Message, connect
from eyestream_lab.embedded import free_port
from eyestream_lab.testing.clocks import PATIENCE_S, until
from tests.rigs.clients import speaking
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.scripted import ScriptedBroker


@pytest.fixture(params=["5", "3.1.1"])
def each_version(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every version that a configuration may ask for."""
    with speaking(request.param):
        yield


def endpoint(port: int) -> Endpoint:
    return Endpoint.of(BrokerSettings(f"mqtt://127.0.0.1:{port}"))


@pytest.mark.usefixtures("each_version")
async def test_messages_come_in_order(mosquitto: Mosquitto) -> None:
    got: list[Message] = []
    async with connect(endpoint(mosquitto.port), client_id=None, deliver=got.append) as link:
        await link.subscribe("t/#", 1)
        for number in range(200):
            await link.publish("t/x", b"%d" % number, qos=1)
        await until(lambda: len(got) == 200)
    assert [int(message.payload) for message in got] == list(range(200))


async def test_nagle_is_off(mosquitto: Mosquitto) -> None:
    async with connect(endpoint(mosquitto.port), client_id=None, deliver=print) as link:
        client_socket = link._client._transport.get_extra_info("socket")
        assert client_socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.usefixtures("each_version")
async def test_a_killed_broker_ends_the_body_with_a_link_error(mosquitto: Mosquitto) -> None:
    async def body() -> None:
        async with asyncio.timeout(PATIENCE_S), connect(endpoint(mosquitto.port), client_id=None, deliver=print):
            mosquitto.stop(kill=True)
            await asyncio.Event().wait()

    with pytest.raises(LinkError):
        await body()


@pytest.mark.usefixtures("each_version")
async def test_a_publish_in_flight_does_not_wait_for_a_dead_broker(mosquitto: Mosquitto) -> None:
    async def body() -> None:
        async with (
            asyncio.timeout(PATIENCE_S),
            connect(endpoint(mosquitto.port), client_id=None, deliver=print) as link,
        ):
            mosquitto.stop(kill=True)
            for _ in range(3):
                await link.publish("t", b"", qos=1)

    with pytest.raises(LinkError):
        await body()


@pytest.mark.usefixtures("each_version")
async def test_errors_of_the_body_come_out_as_they_are(mosquitto: Mosquitto) -> None:
    with pytest.raises(ZeroDivisionError):
        async with connect(endpoint(mosquitto.port), client_id=None, deliver=print):
            raise ZeroDivisionError


@pytest.mark.usefixtures("each_version")
async def test_nobody_listens() -> None:
    with pytest.raises(LinkError, match="cannot connect to the broker at"):
        async with connect(endpoint(free_port()), client_id=None, deliver=print):
            pass


@pytest.mark.parametrize("turns", range(5))
async def test_a_body_that_ends_as_its_link_is_lost_leaves_no_trace_in_its_task(turns: int) -> None:
    """Its task goes on: nobody has cancelled it, and a timeout after it is a TimeoutError."""
    task = asyncio.current_task()
    async with ScriptedBroker() as broker:

        async def body() -> None:
            async with connect(endpoint(broker.port), client_id="me", deliver=print) as link:
                broker.drop("me")
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait({link._client.ended})
                    for _ in range(turns):
                        await asyncio.sleep(0)

        with contextlib.suppress(LinkError):
            await body()
    assert task is not None
    assert task.cancelling() == 0
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await asyncio.Event().wait()


async def test_a_cancel_from_outside_is_no_lost_link() -> None:
    async def body() -> None:
        async with connect(endpoint(broker.port), client_id="me", deliver=print):
            try:
                await asyncio.Event().wait()
            finally:
                raise LinkError("what the body says on its way out")

    async with ScriptedBroker() as broker:
        task = asyncio.create_task(body())
        await until(lambda: bool(broker.greetings))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@contextlib.asynccontextmanager
async def silent_peer(*, hang_up: bool) -> AsyncIterator[int]:
    """Accepts connections and never says CONNACK."""
    writers: list[asyncio.StreamWriter] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        if hang_up:
            writer.close()
        else:
            with contextlib.suppress(OSError):
                await reader.read()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        for writer in writers:
            writer.close()


@pytest.mark.parametrize("hang_up", [False, True])
async def test_a_peer_without_connack_costs_a_bounded_time_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, hang_up: bool
) -> None:
    monkeypatch.setattr(transport, "CONNECT_SECONDS", 0.3)
    async with silent_peer(hang_up=hang_up) as port:
        loop = asyncio.get_running_loop()
        before = loop.time()
        with pytest.raises(LinkError):
            async with connect(endpoint(port), client_id=None, deliver=print):
                pass
        assert loop.time() - before < 1.0
        await asyncio.sleep(0.1)
        names = {task.get_coro().__qualname__ for task in asyncio.all_tasks()}
        assert not any("Client" in name or "attempt" in name for name in names), names


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_a_cancelled_attempt_is_tidied_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the peer neither answers nor hangs up: the socket is closed by force."""
    monkeypatch.setattr(transport, "CONNECT_SECONDS", 0.3)
    before = open_files()
    async with silent_peer(hang_up=False) as port:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1), connect(endpoint(port), client_id=None, deliver=print):
                pass
    await until(lambda: open_files() <= before)


@pytest.mark.long
@pytest.mark.usefixtures("each_version")
async def test_a_keeper_is_back_within_five_seconds(mosquitto: Mosquitto) -> None:
    loop = asyncio.get_running_loop()
    stands = asyncio.Event()

    async def serve(link: Link) -> None:
        stands.set()
        try:
            await asyncio.Event().wait()
        finally:
            stands.clear()

    link_keeper = ReconnectingLink(endpoint(mosquitto.port), serve, what="test", client_id="fixed", deliver=print)
    async with link_keeper.beside(PATIENCE_S):
        for outage_s in (0.0, 1.0):
            mosquitto.stop(kill=True)
            await until(lambda: not stands.is_set())
            await asyncio.sleep(outage_s)
            mosquitto.start()
            back = loop.time()
            async with asyncio.timeout(10):
                await stands.wait()
            assert loop.time() - back < 5
    assert link_keeper.links == 3


@pytest.mark.parametrize("moment", ["granted", "lost"])
@pytest.mark.parametrize("turns", range(5))
async def test_a_cancel_is_heeded_whatever_else_happens_at_that_moment(
    mosquitto: Mosquitto, moment: str, turns: int
) -> None:
    """The broker's answer or the loss of the link in the same turn of the loop does not outweigh the cancel."""

    async def serve(link: Link) -> None:
        client, loop = link._client, asyncio.get_running_loop()
        heard = client.data_received

        def cancel_after(left: int) -> None:
            if left:
                loop.call_soon(cancel_after, left - 1)
            else:
                task.cancel()

        def also_cancel(data: bytes) -> None:
            heard(data)
            if moment == "lost":
                client._transport.abort()
            cancel_after(turns)

        client.data_received = also_cancel
        await link.subscribe("t", 1)
        await asyncio.Event().wait()

    link_keeper = ReconnectingLink(endpoint(mosquitto.port), serve, what="test", client_id=None, deliver=print)
    task = asyncio.create_task(link_keeper.run())
    done, _ = await asyncio.wait({task}, timeout=PATIENCE_S)
    task.cancel()
    await asyncio.wait({task})
    assert done
    assert task.cancelled()


@pytest.mark.usefixtures("each_version")
async def test_a_topic_filter_is_no_topic_to_publish_to(mosquitto: Mosquitto) -> None:
    async with connect(endpoint(mosquitto.port), client_id=None, deliver=print) as link:
        with pytest.raises(LinkError):
            await link.publish("t/#", b"", qos=1)


@pytest.mark.usefixtures("each_version")
async def test_what_deliver_raises_comes_out_as_it_is(mosquitto: Mosquitto) -> None:
    """A fault of ours is no weather: the keeper must not try again for ever."""

    def deliver(message: Message) -> None:
        raise ZeroDivisionError

    async def serve(link: Link) -> None:
        await link.subscribe("t", 1)
        await link.publish("t", b"", qos=0)
        await asyncio.Event().wait()

    link_keeper = ReconnectingLink(endpoint(mosquitto.port), serve, what="test", client_id=None, deliver=deliver)
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(ZeroDivisionError):
            await link_keeper.run()


@pytest.mark.parametrize("moment", ["greeting", "subscription"])
async def test_a_fault_of_deliver_is_no_weather_at_any_moment(moment: str) -> None:
    """Nor are its words, which may hold what was delivered, the words of a link error."""

    def deliver(message: Message) -> None:
        raise ValueError(message.payload)

    message = b"\x30\x04\x00\x01tx"
    server, _ = await scripted_peer(*([GREETING + message] if moment == "greeting" else [GREETING, message]))
    async with server:
        with pytest.raises(ValueError, match="x"):
            async with connect(endpoint(server.sockets[0].getsockname()[1]), client_id=None, deliver=deliver) as link:
                await link.subscribe("t", 0)


async def scripted_peer(*answers: bytes) -> tuple[asyncio.Server, bytearray]:
    """Answers each thing it is told with the next of `answers`, whatever it was."""
    told = bytearray()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):  # or nothing closes it: asyncio of Python 3.11.2 does not
            for answer in answers:
                told.extend(await reader.read(4096))
                writer.write(answer)
            await reader.read()
        writer.close()

    return await asyncio.start_server(accept, "127.0.0.1", 0), told


GREETING = b"\x20\x02\x00\x00"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"\x20\x02\x00\x05", "Not authorized"),
        (b"\x20\x02\x00\x04", "Bad user name or password"),
        (b"\x20\x02\x00\x09", "Unspecified error"),
        (b"HTTP/1.1 400 Bad Request\r\n" * 5, "does not speak MQTT"),
        (b"\xff" * 9, "does not speak MQTT"),
    ],
)
async def test_why_a_peer_is_no_broker_for_us(answer: bytes, why: str) -> None:
    server, _ = await scripted_peer(answer)
    async with server:
        with pytest.raises(LinkError, match=why):
            async with connect(endpoint(server.sockets[0].getsockname()[1]), client_id=None, deliver=print):
                pass


async def test_a_refused_filter() -> None:
    server, _ = await scripted_peer(GREETING, b"\x90\x03\x00\x01\x80")
    async with server, connect(endpoint(server.sockets[0].getsockname()[1]), client_id=None, deliver=print) as link:
        with pytest.raises(LinkError, match="refuses the subscription to t"):
            await link.subscribe("t", 1)


async def test_a_broker_that_falls_out_of_its_role_ends_the_link() -> None:
    server, _ = await scripted_peer(GREETING, b"\x82\x00")
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(LinkError, match="does not speak MQTT"):
            async with asyncio.timeout(PATIENCE_S), connect(endpoint(port), client_id=None, deliver=print) as link:
                await link.publish("t", b"", qos=1)


async def test_only_what_is_acknowledged_counts_and_each_once(mosquitto: Mosquitto) -> None:
    """Acknowledgements out of order, twice, or of what nobody sent settle what they name and nothing else."""
    server, told = await scripted_peer(GREETING, b"\x40\x02\x00\x02" * 2 + b"\x40\x02\x00\x09")
    acknowledged: list[int] = []
    async with server, connect(endpoint(server.sockets[0].getsockname()[1]), client_id=None, deliver=print) as link:
        for number in range(3):
            link.send("t", b"%d" % number, partial(acknowledged.append, number))
        await until(lambda: acknowledged != [])
        await asyncio.sleep(0.05)
    assert acknowledged == [1]
    assert told.endswith(b"\x32\x06\x00\x01t\x00\x010\x32\x06\x00\x01t\x00\x021\x32\x06\x00\x01t\x00\x032")


async def test_statements_go_out_together_and_all_must_be_acknowledged() -> None:
    server, told = await scripted_peer(GREETING, b"\x40\x02\x00\x02")
    async with server, connect(endpoint(server.sockets[0].getsockname()[1]), client_id=None, deliver=print) as link:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await link.state([("t", b"0"), ("t", b"1")])
    assert b"\x33\x06\x00\x01t\x00\x010\x33\x06\x00\x01t\x00\x021" in told


async def test_each_message_at_qos_1_is_acknowledged_after_it_was_delivered() -> None:
    message = b"\x32\x06\x00\x01t\x00\x07x"
    server, told = await scripted_peer(GREETING + message + b"\x30\x04\x00\x01ty" + message, b"")
    got: list[Message] = []
    async with server, connect(endpoint(server.sockets[0].getsockname()[1]), client_id=None, deliver=got.append):
        await until(lambda: told.endswith(b"\x40\x02\x00\x07" * 2))
    assert [(m.payload, m.packet_id) for m in got] == [(b"x", 7), (b"y", 0), (b"x", 7)]


@pytest.mark.long
@pytest.mark.parametrize("acknowledges", [False, True])
async def test_a_broker_that_is_there_and_owes_an_acknowledgement_for_long_is_given_up(
    monkeypatch: pytest.MonkeyPatch, acknowledges: bool
) -> None:
    """Some drop what is above a quota, and answer pings all the same: nothing would ever go out again."""
    monkeypatch.setattr(transport, "KEEPALIVE_SECONDS", 1)
    monkeypatch.setattr(client, "MAX_OWED_PERIODS", 2)

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4096)
        writer.write(GREETING)
        while told := await reader.read(4096):
            writer.write(b"\xd0\x00" * told.count(b"\xc0\x00"))
            for packet_id in re.findall(rb"\x32\x05\x00\x01t(..)", told, re.DOTALL) if acknowledges else []:
                writer.write(b"\x40\x02" + packet_id)
        writer.close()

    async def talk(link: Link) -> None:
        link.send("t", b"", lambda: None)
        for _ in range(25):
            await asyncio.sleep(0.1)
            link.send("t", b"", lambda: None)

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with asyncio.timeout(10):
            if acknowledges:
                async with connect(endpoint(port), client_id=None, deliver=print) as link:
                    await talk(link)
            else:
                with pytest.raises(LinkError, match="does not acknowledge"):
                    async with connect(endpoint(port), client_id=None, deliver=print) as link:
                        await talk(link)


@pytest.mark.parametrize(("steady_s", "pauses"), [(0.0, [0.1, 0.1, 0.1]), (60.0, [0.1, 0.2, 0.4])])
async def test_a_link_that_stood_begins_the_waits_anew(
    mosquitto: Mosquitto, monkeypatch: pytest.MonkeyPatch, steady_s: float, pauses: list[float]
) -> None:
    seen: list[float] = []
    real = transport.Backoff.pause

    def pause(self: transport.Backoff) -> float:
        seen.append(self._next)
        return real(self)

    async def serve(link: Link) -> None:
        await asyncio.sleep(0.01)
        if len(seen) < 3:
            raise LinkError("broken by the test")

    monkeypatch.setattr(transport.Backoff, "pause", pause)
    monkeypatch.setattr(keeper, "STEADY_SECONDS", steady_s)
    await ReconnectingLink(endpoint(mosquitto.port), serve, what="test", client_id=None, deliver=print).run()
    assert seen == pytest.approx(pauses)


async def test_a_link_that_is_away_is_tried_once_more_at_the_end(
    mosquitto: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, whatever pause it is in: the last words are said where the broker is back, and no wait without it."""
    monkeypatch.setattr(transport.Backoff, "pause", lambda self: 1000.0)
    attempts, stood, leave = [], asyncio.Event(), asyncio.Event()

    async def serve(link: Link) -> None:
        attempts.append("stood")
        stood.set()
        await leave.wait()

    ends = []
    for back in (True, False):
        attempts.clear(), stood.clear(), leave.clear()
        link_keeper = ReconnectingLink(endpoint(mosquitto.port), serve, what="test", client_id=None, deliver=print)
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            group.create_task(link_keeper.run())
            await stood.wait()
            mosquitto.stop(kill=True)
            await until(lambda keeper=link_keeper: keeper._trouble is not None)  # type: ignore[misc]
            if back:
                mosquitto.start()
            leave.set()
            link_keeper.leave()
        ends.append(attempts.copy())
    assert ends == [["stood", "stood"], ["stood"]]


async def test_waits_double_up_to_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    backoff = transport.Backoff()
    for _ in range(200):
        await backoff.wait()
    nominal = np.minimum(0.1 * 2.0 ** np.arange(200), 2.0)
    shares = np.array(slept) / nominal
    assert shares.min() >= 0.5
    assert shares.max() <= 1.0
    assert np.ptp(shares) > 0.3


@pytest.mark.long
async def test_a_broker_that_sends_and_does_not_read_costs_a_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has more and more messages acknowledged, and never takes an acknowledgement."""
    monkeypatch.setattr(client, "MAX_UNREAD_BYTES", 1 << 16)
    got = 0

    def count(message: Message) -> None:
        nonlocal got
        got += 1

    async def send_only(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(14)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"\x20\x02\0\0")
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b"\x32\x05\0\x01t\0\x01" * 4096)
                await writer.drain()
        writer.close()

    async def body(port: int) -> None:
        async with asyncio.timeout(120), connect(endpoint(port), client_id=None, deliver=count) as link:
            own = link._client._transport.get_extra_info("socket")
            own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # what the system holds is not ours
            await asyncio.Event().wait()

    async with await asyncio.start_server(send_only, "127.0.0.1") as server:
        with pytest.raises(LinkError, match="does not read"):
            await body(server.sockets[0].getsockname()[1])
    assert got > 4096
