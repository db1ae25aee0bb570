"""The embedded broker: loopback, a free port, bounded stops, one line when the port is taken."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable

import pytest

from eyestream.errors import LinkError
from eyestream.rim.config import BrokerSettings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Message, connect
from eyestream_fleet.demo import servers
from eyestream_lab import embedded
from eyestream_lab.embedded import embedded_broker, free_port
from eyestream_lab.testing.clocks import PATIENCE_S, until


async def test_it_carries_retained_messages_quietly(caplog: pytest.LogCaptureFixture) -> None:
    got: list[Message] = []
    with caplog.at_level(logging.DEBUG):
        async with asyncio.timeout(PATIENCE_S), embedded_broker() as url:
            endpoint = Endpoint.of(BrokerSettings(url))
            assert endpoint.host == "127.0.0.1"
            async with connect(endpoint, client_id="a", deliver=got.append) as link:
                await link.publish("t/kept", b"1", qos=1, retain=True)
                await link.subscribe("t/#", 1)
                await link.publish("t/live", b"2", qos=1)
                await until(lambda: len(got) == 2)
    assert sorted(message.topic for message in got) == ["t/kept", "t/live"]
    assert not [record for record in caplog.records if record.name.startswith(("amqtt", "transitions"))]


async def test_a_taken_port_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(LinkError, match=f"port {port} of 127.0.0.1 is taken"):
            await embedded_broker(port).__aenter__()


@pytest.mark.parametrize("given", [embedded.free_port, servers.free_port])
def test_no_port_is_given_twice(given: Callable[[], int]) -> None:
    """Three servers ask for twelve before one of them listens, and each outgoing connection takes one as well."""
    ports = [given() for _ in range(500)]
    with socket.create_server(("127.0.0.1", 0)) as server, contextlib.ExitStack() as opened:
        here = [opened.enter_context(socket.create_connection(server.getsockname())) for _ in range(100)]
        assert len({*ports, *(one.getsockname()[1] for one in here)}) == 600
    socket.create_server(("127.0.0.1", ports[0])).close()


@pytest.mark.parametrize("seconds", [embedded.STOP_SECONDS, 0.0])  # 0: amqtt's shutdown hangs
async def test_it_stops_while_a_client_is_connected_and_frees_its_port(
    seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "STOP_SECONDS", seconds)
    port = free_port()
    ended: list[str] = []

    async def stay(url: str, stands: asyncio.Event) -> None:
        try:
            async with connect(Endpoint.of(BrokerSettings(url)), client_id=None, deliver=print):
                stands.set()
                await asyncio.Event().wait()
        except LinkError:
            ended.append(url)

    async with asyncio.timeout(PATIENCE_S):
        for _ in range(2):
            async with embedded_broker(port) as url:
                stands = asyncio.Event()
                client = asyncio.create_task(stay(url, stands))
                await stands.wait()
            await client
    assert len(ended) == 2
