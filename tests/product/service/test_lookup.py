"""A name server that does not answer costs its link, and nobody else."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from eyestream.errors import LinkError
from eyestream.rim.config import BrokerSettings
from eyestream.rim.mqtt import transport
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.opening import addresses
from eyestream.rim.mqtt.transport import connect
from eyestream_lab.testing.clocks import PATIENCE_S, until
from tests.rigs.mosquitto import Mosquitto


@pytest.fixture
def silence(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """No name is found before it is set; then none exists."""
    spoken, found = threading.Event(), socket.getaddrinfo

    def getaddrinfo(host: str, *args: Any, **kwargs: Any) -> Any:
        if host == "far.example":
            spoken.wait(20)
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return found(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(transport, "CONNECT_SECONDS", 0.2)
    yield spoken
    spoken.set()


async def try_to_connect(url: str = "mqtt://far.example") -> str:
    with pytest.raises(LinkError) as raised:
        async with connect(Endpoint.of(BrokerSettings(url)), client_id=None, deliver=print):
            pass
    return str(raised.value)


def lookups() -> int:
    return sum(thread.name == "look-up" for thread in threading.enumerate())


def test_a_silent_name_server_holds_up_neither_the_threads_of_the_loop_nor_its_end(silence: threading.Event) -> None:
    async def attempts() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
        for _ in range(4):
            assert "no answer" in await try_to_connect()
        assert lookups() == 1
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.to_thread(int)  # the ledger's way to the disk

    before = time.monotonic()
    asyncio.run(attempts())
    assert time.monotonic() - before < 10


async def test_when_the_name_server_speaks_its_word_counts(silence: threading.Event) -> None:
    await try_to_connect()
    silence.set()
    assert "no such name" in await try_to_connect()
    await until(lambda: lookups() == 0)
    assert "no such name" in await try_to_connect()  # asked anew, not remembered


async def test_what_is_an_address_and_what_cannot_be_a_name() -> None:
    assert await addresses("127.0.0.1") == ["127.0.0.1"]
    assert await addresses("::1") == ["::1"]
    assert "127.0.0.1" in await addresses("localhost")
    with pytest.raises(UnicodeError):
        await addresses("a" * 300)
    assert "cannot connect" in await try_to_connect(f"mqtt://{'a' * 300}")


async def test_every_address_of_a_name_is_tried(mosquitto: Mosquitto, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where `localhost` is ::1 first, and the broker listens at 127.0.0.1 alone."""
    found, asked = socket.getaddrinfo, []

    def getaddrinfo(host: str, *args: Any, **kwargs: Any) -> Any:
        asked.append(host)
        if host == "near.example":
            return found("127.0.0.9", *args, **kwargs) + found("127.0.0.1", *args, **kwargs)
        return found(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    port = mosquitto.port
    async with connect(
        Endpoint.of(BrokerSettings(f"mqtt://near.example:{port}")), client_id=None, deliver=print
    ) as link:
        await link.publish("t", b"", qos=1)  # returns with the broker's acknowledgement
    assert "near.example" in asked
