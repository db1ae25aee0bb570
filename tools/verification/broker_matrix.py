"""A sidecar on the brokers of others, with the clients of others as tracker and application; prints a table.

    python -m tools.verification.broker_matrix
    python -m tools.verification.broker_matrix --node-modules DIR --nats PATH --mosquitto PATH_OF_ANOTHER_ONE

Brokers: mosquitto of the system, another mosquitto (2.1, for example), Aedes (`npm install aedes mqtt` in the parent of
DIR), nats-server, RabbitMQ (already at work with its MQTT plug-in: --rabbitmq URL), and amqtt, which is for the demo
alone: it sends retained messages to those who did not ask, and what fails there is no fault of ours. Each is asked all
of `tests.rigs.matrix`, once in the version that they agree on and once in 3.1.1; and ten chunks go from paho,
aiomqtt and mqtt.js to each of them. What is not there is skipped, by its name. Exit code 1 where something failed that
must hold.
"""

import argparse
import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import aiomqtt
import msgspec
import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from eyestream.errors import EyestreamError
from eyestream.rim.config import BrokerSettings
from eyestream.wire.release import decode_private
from eyestream.wire.topics import private_topic, raw_topic
from eyestream_lab.embedded import embedded_broker, free_port
from eyestream_lab.testing.clocks import until
from tests.rigs.matrix import PROBES, at_work, blocks
from tests.rigs.mosquitto import Mosquitto, program

CHUNKS = 10
PATIENCE_SECONDS = 30
AEDES = """
const { Aedes } = require("aedes");
Aedes.createBroker().then((broker) => require("net").createServer(broker.handle).listen(PORT, "127.0.0.1"));
"""
NATS = """
server_name: matrix
listen: 127.0.0.1:%d
jetstream { store_dir: "%s" }
mqtt { listen: "127.0.0.1:%d" }
"""


def listens(port: int, process: "subprocess.Popen[bytes]") -> None:
    """Return when somebody accepts connections at `port`."""
    deadline = time.monotonic() + 30
    while True:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("it does not listen")
        time.sleep(0.05)


@contextlib.contextmanager
def served(command: list[str], port: int, **environment: str) -> Iterator[str]:
    """A broker that is a program."""
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **environment}
    )
    try:
        listens(port, process)
        yield f"mqtt://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=20)


@contextlib.contextmanager
def mosquitto(folder: Path, path: str) -> Iterator[str]:
    with Mosquitto(folder, "log_type none", binary=path) as broker:
        yield broker.url


@contextlib.asynccontextmanager
async def broker_of(name: str, folder: Path, options: argparse.Namespace) -> AsyncIterator[str]:
    """The URL of a broker. Raises LookupError where there is none of that name."""
    port = free_port()
    if name == "amqtt":
        async with embedded_broker() as url:
            yield url
    elif name == "rabbitmq" and options.rabbitmq:
        yield options.rabbitmq
    elif name == "mosquitto" and (path := program()) is not None:
        with mosquitto(folder, path) as url:
            yield url
    elif name == "mosquitto (other)" and options.mosquitto:
        with mosquitto(folder, options.mosquitto) as url:
            yield url
    elif name == "aedes" and options.node_modules:
        script = AEDES.replace("PORT", str(port))
        with served(["node", "-e", script], port, NODE_PATH=options.node_modules) as url:
            yield url
    elif name == "nats-server" and options.nats:
        (folder / "nats.conf").write_text(NATS % (free_port(), folder / "store", port))
        with served([options.nats, "-c", str(folder / "nats.conf")], port) as url:
            yield url
    else:
        raise LookupError(name)


class Paho:
    """Tracker and application on paho."""

    def __init__(self, url: str, version: int) -> None:
        self._where = (url.partition("//")[2].partition(":")[0], int(url.rpartition(":")[2]))
        self._protocol = paho.MQTTv5 if version == 5 else paho.MQTTv311

    def _client(self) -> paho.Client:
        client = paho.Client(CallbackAPIVersion.VERSION2, protocol=self._protocol)
        client.connect(*self._where)
        client.loop_start()
        return client

    @contextlib.asynccontextmanager
    async def application(self, topic: str, got: list[bytes]) -> AsyncIterator[None]:
        client, ready = await asyncio.to_thread(self._client), threading.Event()
        client.on_message = lambda client, data, message: got.append(bytes(message.payload))
        client.on_subscribe = lambda *_: ready.set()
        client.subscribe(topic, 1)
        await until(ready.is_set, PATIENCE_SECONDS)
        yield
        client.disconnect()
        await asyncio.to_thread(client.loop_stop)

    async def send(self, topic: str, payloads: list[bytes]) -> None:
        client = await asyncio.to_thread(self._client)
        for payload in payloads:
            await asyncio.to_thread(client.publish(topic, payload, 1).wait_for_publish, PATIENCE_SECONDS)
        client.disconnect()
        await asyncio.to_thread(client.loop_stop)


class Aiomqtt:
    """Tracker and application on aiomqtt."""

    def __init__(self, url: str, version: int) -> None:
        protocol = aiomqtt.ProtocolVersion.V5 if version == 5 else aiomqtt.ProtocolVersion.V311
        host, port = url.partition("//")[2].split(":")
        self._client: Callable[[], aiomqtt.Client] = lambda: aiomqtt.Client(host, int(port), protocol=protocol)

    @contextlib.asynccontextmanager
    async def application(self, topic: str, got: list[bytes]) -> AsyncIterator[None]:
        async def read(client: aiomqtt.Client) -> None:
            async for message in client.messages:
                got.append(bytes(message.payload))

        async with self._client() as client:
            await client.subscribe(topic, 1)
            task = asyncio.create_task(read(client))
            yield
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def send(self, topic: str, payloads: list[bytes]) -> None:
        async with self._client() as client:
            for payload in payloads:
                await client.publish(topic, payload, 1)


class MqttJs:
    """Tracker and application on mqtt.js."""

    def __init__(self, url: str, version: int, node_modules: str) -> None:
        self._url, self._version, self._modules = url, "5" if version == 5 else "4", node_modules

    async def _start(self, role: str, topic: str) -> asyncio.subprocess.Process:
        script = Path(__file__).with_name("foreign.js")
        process = await asyncio.create_subprocess_exec(
            "node", str(script), role, self._url, self._version, topic,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "NODE_PATH": self._modules}, limit=1 << 20,
        )  # fmt: skip
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await process.stdout.readline() == b"ready\n"
        return process

    @contextlib.asynccontextmanager
    async def application(self, topic: str, got: list[bytes]) -> AsyncIterator[None]:
        process = await self._start("application", topic)

        async def read() -> None:
            assert process.stdout is not None
            while line := await process.stdout.readline():
                got.append(bytes.fromhex(line.decode()))

        task = asyncio.create_task(read())
        yield
        process.terminate()
        await process.wait()
        await task

    async def send(self, topic: str, payloads: list[bytes]) -> None:
        process = await self._start("tracker", topic)
        assert process.stdin is not None
        assert process.stdout is not None
        for payload in payloads:
            process.stdin.write(payload.hex().encode() + b"\n")
            async with asyncio.timeout(PATIENCE_SECONDS):
                assert await process.stdout.readline() == b"sent\n"
        process.stdin.close()
        await process.wait()


async def foreign(client: "Paho | Aiomqtt | MqttJs", broker: BrokerSettings, folder: Path) -> str:
    """Chunks from a foreign tracker to a foreign application."""
    got: list[bytes] = []
    async with at_work(broker, folder) as (_, device, _), client.application(private_topic(device), got):
        await client.send(raw_topic(device), blocks(CHUNKS))
        await until(lambda: len(got) == CHUNKS, PATIENCE_SECONDS)
    assert [decode_private(payload).chunk for payload in got] == list(range(CHUNKS))
    return "ok"


async def cell(probe: Callable[[], Awaitable[str]]) -> str:
    """What a probe found; never raises what a broker can be guilty of."""
    try:
        async with asyncio.timeout(120):
            return await probe()
    except (AssertionError, TimeoutError, EyestreamError, OSError, aiomqtt.MqttError, RuntimeError) as error:
        return f"FAILS ({type(error).__name__}: {str(error)[:80]})"
    except BaseExceptionGroup as error:
        return f"FAILS ({error.exceptions[0]!r:.80})"


async def row(name: str, version: str, options: argparse.Namespace) -> dict[str, str]:
    """All cells of one broker in one version."""
    found: dict[str, str] = {"broker": name, "asked": version}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        try:
            async with broker_of(name, folder, options) as url:
                broker = msgspec.convert({"url": url, "version": version}, BrokerSettings)
                for head, probe in PROBES.items():
                    (folder / head).mkdir()
                    found[head] = await cell(lambda probe=probe, head=head: probe(broker, folder / head))  # type: ignore[misc]
                if version == "auto":
                    await strangers(found, broker, folder, options)
        except LookupError:
            found["version"] = "skipped"
    return found


async def strangers(found: dict[str, str], broker: BrokerSettings, folder: Path, options: argparse.Namespace) -> None:
    """The cells of foreign clients, in the version that the broker speaks."""
    number = 5 if found["version"] == "5" else 3
    clients: dict[str, Paho | Aiomqtt | MqttJs] = {
        "paho": Paho(broker.url, number),
        "aiomqtt": Aiomqtt(broker.url, number),
    }
    if options.node_modules:
        clients["mqtt.js"] = MqttJs(broker.url, number, options.node_modules)
    for head, client in clients.items():
        (folder / head).mkdir()
        found[head] = await cell(lambda client=client, head=head: foreign(client, broker, folder / head))  # type: ignore[misc]


def table(rows: list[dict[str, str]]) -> str:
    heads = ["broker", "asked", *PROBES, "paho", "aiomqtt", "mqtt.js"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(row.get(head, "") for head in heads) + " |" for row in rows]
    return "\n".join(lines)


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mosquitto", help="another mosquitto than the system's")
    parser.add_argument("--node-modules", help="directory with aedes and mqtt in it")
    parser.add_argument("--nats", help="nats-server")
    parser.add_argument("--rabbitmq", help="URL of one that is at work")
    parser.add_argument("--only", action="append", help="name of a broker; may be given again")
    parser.add_argument("--json", type=Path, help="also write the rows there")
    options = parser.parse_args()
    names = options.only or ["mosquitto", "mosquitto (other)", "aedes", "nats-server", "rabbitmq", "amqtt"]
    rows = []
    for name in names:
        for version in ("auto", "3.1.1"):
            rows.append(await row(name, version, options))
            print(json.dumps(rows[-1]), file=sys.stderr)
            if rows[-1]["version"] == "skipped":
                break
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return int(any("FAILS" in value for row in rows if row["broker"] != "amqtt" for value in row.values()))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
