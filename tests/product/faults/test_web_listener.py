"""The listener for web pages that `private-tls.conf` has in comments: encrypted, with logins and rights."""

import asyncio
import contextlib
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiomqtt
import pytest

from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import connect
from eyestream.wire.status import Status, encode_status
from eyestream.wire.topics import private_topic, status_topic
from eyestream_lab.embedded import free_port
from eyestream_lab.testing.clocks import PATIENCE_S
from tests.product.faults.deployment import PASSWORDS, Deployment

ROOT = Path(__file__).resolve().parents[3]
READY = encode_status(Status("online", "ready"))


def listens(port: int) -> bool:
    """Whether somebody takes connections there."""
    with contextlib.closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def deployment(tmp_path_factory: pytest.TempPathFactory, mosquitto: object) -> Iterator[tuple[Deployment, int]]:
    """With the listener opened as the comment says, on a port of this test."""
    made, port = Deployment(tmp_path_factory.mktemp("d")), free_port()
    head, listener, block = made.private.text().partition("# listener 8443\n")
    assert listener
    lines = [line.removeprefix("# ") for line in block.splitlines()]
    made.private.write("\n".join([head, f"listener {port} 127.0.0.1", *lines]))
    made.private.start()
    deadline = time.monotonic() + PATIENCE_S  # its Unix socket stands a moment earlier
    while not listens(port):
        assert time.monotonic() < deadline, made.private.log.read_text()
        time.sleep(0.01)
    yield made, port
    made.stop()


@contextlib.asynccontextmanager
async def page(deployment: Deployment, port: int, user: str | None, password: str) -> AsyncIterator[aiomqtt.Client]:
    """Another client than ours, over an encrypted WebSocket."""
    async with aiomqtt.Client(
        "localhost",
        port,
        username=user,
        password=password if user else None,
        transport="websockets",
        tls_context=ssl.create_default_context(cafile=str(deployment.authority.pem)),
        timeout=PATIENCE_S,
    ) as client:
        yield client


@contextlib.asynccontextmanager
async def said(deployment: Deployment) -> AsyncIterator[None]:
    """While the sidecar's retained status is there."""
    own = Endpoint.of(deployment.login("sidecar", deployment.private.url))
    async with connect(own, client_id=None, deliver=print) as link:
        await link.publish(status_topic("hmd-1"), READY, qos=1, retain=True)
        yield


async def first(client: aiomqtt.Client) -> bytes:
    """The first message that comes."""
    async with asyncio.timeout(PATIENCE_S):
        async for message in client.messages:
            return bytes(message.payload)
    raise AssertionError("the link ended")


async def test_an_application_logs_in_and_reads(deployment: tuple[Deployment, int]) -> None:
    made, port = deployment
    async with said(made), page(made, port, "application", PASSWORDS["application"]) as client:
        await client.subscribe("#", qos=1)
        assert await first(client) == READY


@pytest.mark.parametrize(("user", "password"), [(None, ""), ("application", "wrong"), ("nobody", "x")])
async def test_nobody_else_gets_in(deployment: tuple[Deployment, int], user: str | None, password: str) -> None:
    made, port = deployment
    with pytest.raises(aiomqtt.MqttError, match=r"(?i)not authori"):
        async with page(made, port, user, password):
            pytest.fail("connected")


async def test_it_has_the_rights_of_an_application_and_no_others(deployment: tuple[Deployment, int]) -> None:
    """What it publishes reaches nobody: the status, which comes later, is the first thing that is heard."""
    made, port = deployment
    login = (made, port, "application", PASSWORDS["application"])
    async with page(*login) as listener, page(*login) as writer:
        await listener.subscribe("#", qos=1)
        await writer.publish(private_topic("hmd-1"), b"forged", qos=1)
        async with said(made):
            assert await first(listener) == READY


async def test_it_speaks_no_plain_websocket(deployment: tuple[Deployment, int]) -> None:
    _, port = deployment
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
    writer.write(b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
    with contextlib.suppress(ConnectionError):
        answer = await asyncio.wait_for(reader.read(), PATIENCE_S)
        assert not answer.startswith(b"HTTP/1.1 101")
    writer.close()


@pytest.mark.needs("websocket")
async def test_the_example_in_javascript_reads_there(deployment: tuple[Deployment, int]) -> None:
    made, port = deployment
    login = {"MQTT_USERNAME": "application", "MQTT_PASSWORD": PASSWORDS["application"]}
    trusted = {"NODE_EXTRA_CA_CERTS": str(made.authority.pem)}
    program = str(ROOT / "examples" / "javascript" / "listen.mjs")
    words = ("node", "--no-warnings", "--experimental-websocket", program, f"wss://localhost:{port}", "hmd-1")
    async with said(made):
        process = await asyncio.create_subprocess_exec(
            *words, stdout=asyncio.subprocess.PIPE, env=os.environ | login | trusted
        )
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), PATIENCE_S)
        process.kill()
        await process.wait()
    assert line == b"status online ready\n"
