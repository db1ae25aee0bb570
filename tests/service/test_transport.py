"""The link: lost ones are noticed, new ones made, and nothing is left behind."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import aiomqtt
import numpy as np
import pytest
from conftest import Mosquitto, free_port, until

from eyestream.config import BrokerSettings
from eyestream.errors import LinkError
from eyestream.service import keeper, transport
from eyestream.service.endpoint import Endpoint
from eyestream.service.keeper import Keeper
from eyestream.service.transport import Link, Message, connect


def endpoint(port: int) -> Endpoint:
    return Endpoint.of(BrokerSettings(f"mqtt://127.0.0.1:{port}"))


async def test_messages_come_in_order_and_nagle_is_off(mosquitto: Mosquitto) -> None:
    got: list[Message] = []
    async with connect(endpoint(mosquitto.port), client_id=None, deliver=got.append) as link:
        await link.subscribe("t/#", 1)
        for number in range(200):
            await link.publish("t/x", b"%d" % number, qos=1)
        await until(lambda: len(got) == 200)
        client_socket = link._client._client.socket()
        assert client_socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert [int(message.payload) for message in got] == list(range(200))


async def test_a_killed_broker_ends_the_body_with_a_link_error(mosquitto: Mosquitto) -> None:
    async def body() -> None:
        async with asyncio.timeout(5), connect(endpoint(mosquitto.port), client_id=None, deliver=print):
            mosquitto.stop(kill=True)
            await asyncio.Event().wait()

    with pytest.raises(LinkError):
        await body()


async def test_a_publish_in_flight_does_not_wait_for_a_dead_broker(mosquitto: Mosquitto) -> None:
    async def body() -> None:
        async with asyncio.timeout(5), connect(endpoint(mosquitto.port), client_id=None, deliver=print) as link:
            mosquitto.stop(kill=True)
            for _ in range(3):
                await link.publish("t", b"", qos=1)

    with pytest.raises(LinkError):
        await body()


async def test_errors_of_the_body_come_out_as_they_are(mosquitto: Mosquitto) -> None:
    with pytest.raises(ZeroDivisionError):
        async with connect(endpoint(mosquitto.port), client_id=None, deliver=print):
            raise ZeroDivisionError


async def test_nobody_listens() -> None:
    with pytest.raises(LinkError, match="cannot connect to the broker at"):
        async with connect(endpoint(free_port()), client_id=None, deliver=print):
            pass


@contextlib.asynccontextmanager
async def silent_peer(*, hang_up: bool) -> AsyncIterator[int]:
    """Accepts connections and never says CONNACK."""
    writers: list[asyncio.StreamWriter] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        if hang_up:
            writer.close()
        else:
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


async def test_a_cancelled_attempt_is_tidied_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "CONNECT_SECONDS", 0.3)
    async with silent_peer(hang_up=False) as port:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1), connect(endpoint(port), client_id=None, deliver=print):
                pass
        await asyncio.sleep(0.4)
        assert not transport._leaving


async def test_a_keeper_is_back_within_five_seconds(mosquitto: Mosquitto) -> None:
    loop = asyncio.get_running_loop()
    stands = asyncio.Event()

    async def serve(link: Link) -> None:
        stands.set()
        try:
            await asyncio.Event().wait()
        finally:
            stands.clear()

    link_keeper = Keeper(endpoint(mosquitto.port), serve, what="test", client_id="fixed", deliver=print)
    async with link_keeper.beside(5):
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
async def test_a_cancel_is_heeded_whatever_else_happens_at_that_moment(mosquitto: Mosquitto, moment: str) -> None:
    """The broker's answer or the loss of the link in the same turn of the loop does not outweigh the cancel."""

    async def serve(link: Link) -> None:
        client = link._client
        granted = client._client.on_subscribe

        def also_cancel(*details: object) -> None:
            granted(*details)
            if moment == "lost":
                client._disconnected.set_exception(aiomqtt.MqttError("lost"))
                asyncio.get_running_loop().call_soon(asyncio.get_running_loop().call_soon, task.cancel)
            else:
                task.cancel()

        client._client.on_subscribe = also_cancel
        await link.subscribe("t", 1)
        await asyncio.Event().wait()

    link_keeper = Keeper(endpoint(mosquitto.port), serve, what="test", client_id=None, deliver=print)
    task = asyncio.create_task(link_keeper.run())
    done, _ = await asyncio.wait({task}, timeout=3)
    task.cancel()
    await asyncio.wait({task})
    assert done
    assert task.cancelled()


async def test_a_topic_filter_is_no_topic_to_publish_to(mosquitto: Mosquitto) -> None:
    async with connect(endpoint(mosquitto.port), client_id=None, deliver=print) as link:
        with pytest.raises(LinkError):
            await link.publish("t/#", b"", qos=1)


@pytest.mark.parametrize(("steady_s", "pauses"), [(0.0, [0.1, 0.1, 0.1]), (60.0, [0.1, 0.2, 0.4])])
async def test_a_link_that_stood_begins_the_waits_anew(
    mosquitto: Mosquitto, monkeypatch: pytest.MonkeyPatch, steady_s: float, pauses: list[float]
) -> None:
    seen: list[float] = []
    real = transport.Backoff.wait

    async def wait(self: transport.Backoff) -> None:
        seen.append(self._next)
        await real(self)

    async def serve(link: Link) -> None:
        await asyncio.sleep(0.01)
        if len(seen) < 3:
            raise LinkError("broken by the test")

    monkeypatch.setattr(transport.Backoff, "wait", wait)
    monkeypatch.setattr(keeper, "STEADY_SECONDS", steady_s)
    await Keeper(endpoint(mosquitto.port), serve, what="test", client_id=None, deliver=print).run()
    assert seen == pytest.approx(pauses)


async def test_waits_double_up_to_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(transport.asyncio, "sleep", sleep)
    backoff = transport.Backoff()
    for _ in range(200):
        await backoff.wait()
    nominal = np.minimum(0.1 * 2.0 ** np.arange(200), 2.0)
    shares = np.array(slept) / nominal
    assert shares.min() >= 0.5
    assert shares.max() <= 1.0
    assert np.ptp(shares) > 0.3
