"""What goes wrong with TLS ends in one sentence that names the remedy; what a restart mends is tried again."""

import asyncio
import contextlib
import re
import socket
import ssl
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import pytest

from eyestream.errors import LinkError
from eyestream.ops.check_ports import Port, name_finding
from eyestream.rim.config import BrokerSettings
from eyestream.rim.files import recordings
from eyestream.rim.files.recordings import Recording
from eyestream.rim.mqtt import transport
from eyestream.rim.mqtt.endpoint import Endpoint, tls_fault
from eyestream.rim.mqtt.reconnecting import ReconnectingLink
from eyestream.rim.mqtt.transport import Link, connect
from eyestream.sdk.discovery import discover
from eyestream.sdk.publisher import Publisher
from eyestream.sdk.subscriber import subscribe
from eyestream_lab.embedded import free_port
from eyestream_lab.testing.clocks import PATIENCE_S, until
from tests.rigs.certificates import Authority, Certificate
from tests.rigs.listener import Listener
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.scripted import ScriptedBroker
from tests.rigs.sidecar import running, settings_for
from tests.rigs.storms import traffic


class Hasty(Listener):
    """Says some words to each who comes, and hangs up; with no words it is silent."""

    def __init__(self, words: bytes | None, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(tls)
        self._words = words

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._words is None:
            with contextlib.suppress(OSError):
                await reader.read()
        else:
            writer.write(self._words)
        writer.close()


@dataclass(frozen=True)
class Authorities:
    """An authority that is known, one that is not, and what a broker shows."""

    known: Authority
    foreign: Authority

    def shown(self, certificate: Certificate | None = None, *, wants: bool = False) -> ssl.SSLContext:
        """Of a broker that has `certificate`, or a good one; `wants` one of its clients."""
        made = certificate or self.known.issue("broker", host="localhost")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(made.pem, made.key)
        if wants:
            context.load_verify_locations(self.known.pem)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


@pytest.fixture
def world(tmp_path: Path) -> Authorities:
    return Authorities(Authority(tmp_path), Authority(tmp_path, "foreign"))


def certificate(shown: Callable[[Authorities], Certificate | None]) -> Callable[[Authorities], Listener]:
    return lambda world: ScriptedBroker(tls=world.shown(shown(world)))


@contextlib.contextmanager
def strict(context: ssl.SSLContext) -> Iterator[str]:
    """A port that says why it ends a handshake, which a server of asyncio does not; its URL."""

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                raw, _ = listening.accept()
                with raw.dup() as kept:  # or what it said is lost with the connection
                    with contextlib.suppress(OSError), context.wrap_socket(raw, server_side=True) as peer:
                        peer.recv(100)
                        peer.sendall(b"\x20\x02\0\0")
                        peer.recv(100)
                    with contextlib.suppress(OSError):
                        kept.recv(4096)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"mqtts://localhost:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


AUTHORITY = r"no authority known here has signed its certificate: give its ca\.pem \(ca_file, --ca-file\)"
NO_TLS = "name its TLS port, or write mqtt:// for a link without encryption"
FAULTS = {
    "another authority": (certificate(lambda w: w.foreign.issue("b", host="localhost")), AUTHORITY),
    "self-signed": (certificate(lambda w: w.known.self_signed("localhost")), AUTHORITY),
    "another name": (
        certificate(lambda w: w.known.issue("b", host="other.example")),
        "its certificate is for another name: connect by the name that it is for",
    ),
    "expired": (
        certificate(lambda w: w.known.issue("b", host="localhost", days=-1)),
        "its certificate has expired: renew it there, or correct the clock here",
    ),
    "a plain port that hangs up": (lambda w: Hasty(b""), NO_TLS),
    "a plain port that speaks": (lambda w: Hasty(b"SSH-2.0-x\r\n"), NO_TLS),
    "a plain port that is silent": (lambda w: Hasty(None), "no answer: does it speak TLS at this port"),
    "a wrong password": (
        lambda w: ScriptedBroker(tls=w.shown(), refusal=5),
        r"Not authorized: correct the login \(username, password_file\)",
    ),
    "hangs up after the handshake": (lambda w: Hasty(b"", w.shown()), "may want a client certificate, or refuse ours"),
}


async def refusal(work: Awaitable[object]) -> str:
    """Why there is no link: one line, and nothing of OpenSSL's files."""
    with pytest.raises(LinkError) as caught:
        await work
    said = str(caught.value)
    assert "\n" not in said
    assert not re.search(r"_ssl\.c|\[SSL|Errno", said)
    return said


async def entered(settings: BrokerSettings) -> None:
    async with connect(Endpoint.of(settings), client_id=None, deliver=print):
        pass


@pytest.mark.parametrize("fault", FAULTS)
async def test_each_fault_of_a_broker_is_a_sentence_with_its_remedy(
    world: Authorities, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(transport, "CONNECT_SECONDS", 0.6)
    made, why = FAULTS[fault]
    async with made(world) as broker:
        settings = BrokerSettings(broker.url.replace("mqtt://127.0.0.1", "mqtts://localhost"), ca_file=world.known.pem)
        said = await refusal(entered(settings))
    assert re.search(why, said), said
    assert said.startswith(f"cannot connect to the broker at localhost:{broker.port}: ")


@pytest.mark.parametrize("latest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_client_certificate_that_is_wanted(world: Authorities, latest: ssl.TLSVersion) -> None:
    context = world.shown(wants=True)
    context.maximum_version = latest
    with strict(context) as url:

        def settings(own: Certificate | None) -> BrokerSettings:
            files = {} if own is None else {"cert_file": own.pem, "key_file": own.key}
            return BrokerSettings(url, ca_file=world.known.pem, version="3.1.1", **files)

        said = await refusal(entered(settings(None)))
        assert re.search("want a client certificate|wants a client certificate: give cert_file and key_file", said)
        for own in (world.foreign.issue("me"), world.known.issue("me", days=-1)):
            assert "it refuses our client certificate: give one" in await refusal(entered(settings(own)))
        await entered(settings(world.known.issue("me")))


@pytest.mark.parametrize("version", ["auto", "5", "3.1.1"])
async def test_a_port_that_speaks_tls_is_recognised(world: Authorities, version: str) -> None:
    """In plain words, by a broker whose certificate nobody has to know; one that only hangs up is no such port."""
    async with ScriptedBroker(tls=world.shown()) as broker, Hasty(b"") as hasty:
        plain = broker.url.replace("mqtts", "mqtt")
        said = await refusal(entered(BrokerSettings(plain, version=version)))
        assert said.endswith(f":{broker.port}: it speaks TLS at this port: write mqtts://")
        assert broker.greetings == []
        assert "TLS" not in await refusal(entered(BrokerSettings(hasty.url, version=version)))


def test_what_openssl_may_say_besides() -> None:
    """Words of later versions, and faults that have no words of ours, are sentences too."""
    unknown = ssl.SSLCertVerificationError(1, "x")
    unknown.verify_code, unknown.verify_message = 85, "Missing Authority Key Identifier"
    assert tls_fault(unknown) == "its certificate is refused: make it again (Missing Authority Key Identifier)"
    later = ssl.SSLError(1, "x")
    later.reason = "RECORD_LAYER_FAILURE"
    assert NO_TLS in tls_fault(later)
    later.reason = "SOMETHING_ELSE"
    assert tls_fault(later) == "TLS fails: look into the log of the broker (something else)"


WAYS = {
    "subscribe": lambda broker: subscribe(broker, "hmd-1", wait_s=3.0).__aenter__(),
    "Publisher": lambda broker: Publisher(broker, "hmd-1", wait_s=3.0).__aenter__(),
    "discover": lambda broker: discover(broker, seconds=0.1, wait_s=3.0),
}


@pytest.mark.parametrize("way", WAYS)
async def test_what_programs_import_says_it_too(world: Authorities, way: str) -> None:
    async with ScriptedBroker(tls=world.shown(), refusal=5) as broker:
        login, foreign = await asyncio.gather(
            *(refusal(WAYS[way](BrokerSettings(broker.url, ca_file=one.pem))) for one in (world.known, world.foreign))
        )
    assert "correct the login" in login
    assert "no authority known here" in foreign


@pytest.mark.long
async def test_every_command_says_it_in_one_line(world: Authorities, tmp_path: Path) -> None:
    recording = tmp_path / "one.npz"
    recordings.save(Recording(np.arange(9) / 2.0, np.ones((9, 1)), ("one",)), recording)
    commands = (["devices"], ["monitor"], ["listen", "--device", "d"], ["gatekeeper", "--device", "d"])

    async def said(*words: object) -> bytes:
        program = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", "from eyestream.cli.main import main; main()", *map(str, words)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        _, complaint = await program.communicate()
        assert program.returncode == 2, complaint
        assert complaint.count(b"\n") == 1, complaint
        return complaint

    async with ScriptedBroker(tls=world.shown(), refusal=5) as broker:
        there = ("--broker", broker.url, "--ca-file", world.known.pem, "--wait", 0.5)
        for words in (*commands, ["replay", recording, "--device", "d"]):
            assert b"correct the login" in await said(*words, *there)


async def test_a_check_of_a_port_says_it_too(world: Authorities, tmp_path: Path) -> None:
    async with ScriptedBroker(tls=world.shown()) as broker:
        trusting = ssl.create_default_context(cafile=world.known.pem)
        way = Endpoint("127.0.0.1", broker.port, tls=trusting)
        assert (await name_finding("private", Port("localhost", way))).passed
        finding = await name_finding("private", Port("other.example", way))
        assert "its certificate is for another name" in str(finding)
        assert "_ssl.c" not in str(finding)


class Deaf(Listener):
    """Welcomes, and reads no goodbye of TLS."""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"\x20\x02\0\0")
        await writer.drain()
        writer.transport._ssl_protocol._transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.Event().wait()


async def test_a_link_is_cut_by_force_after_its_time(world: Authorities) -> None:
    """TLS waits until the peer says goodbye too: `leave` must not."""

    async def body() -> None:
        async with connect(Endpoint.of(settings), client_id=None, deliver=print) as link:
            await link._client.leave(0.05, in_order=True)
            async with asyncio.timeout(0.5):
                await asyncio.Event().wait()

    async with Deaf(world.shown()) as broker:
        settings = BrokerSettings(broker.url, ca_file=world.known.pem, version="3.1.1")
        with pytest.raises(LinkError, match="lost"):
            await body()


async def test_a_broker_that_restarts_is_waited_for(world: Authorities) -> None:
    """Links that it ends with a goodbye of TLS, and with none: both come back, and nothing is raised on the way."""
    links: list[Link] = []

    async def serve(link: Link) -> None:
        links.append(link)
        await asyncio.Event().wait()

    async with ScriptedBroker(tls=world.shown()) as broker:
        endpoint = Endpoint.of(BrokerSettings(broker.url, ca_file=world.known.pem))
        link = ReconnectingLink(endpoint, serve, what="x", client_id="me", deliver=print)
        async with link.beside(2.0):
            for number in range(2, 4):
                await broker.down()
                broker.drop_all() if number == 2 else broker.drop("me")
                await until(lambda: link._trouble is not None)
                await broker.up()
                await until(lambda number=number: link.links == number)
    assert len(links) == 3


@pytest.mark.needs("mosquitto")
async def test_a_sidecar_and_an_application_outlive_a_broker_that_restarts(
    tmp_path_factory: pytest.TempPathFactory, world: Authorities, tmp_path: Path
) -> None:
    """By SIGTERM and by SIGKILL, while rows come in."""
    shown, port = world.known.issue("broker", host="localhost"), free_port()
    lines = (f"listener {port} 127.0.0.1", f"certfile {shown.pem}", f"keyfile {shown.key}")
    made = Mosquitto(tmp_path_factory.mktemp("m"), *lines)
    made.start()
    login = BrokerSettings(f"mqtts://localhost:{port}", ca_file=world.known.pem)
    settings = msgspec.structs.replace(settings_for(made.url, tmp_path), private=login, raw=login)
    try:
        async with running(settings) as sidecar, subscribe(login, "hmd-1") as chunks, traffic(login):
            await until(lambda: sidecar.raw_stands and sidecar.private_stands)
            for kill in (False, True):
                await asyncio.wait_for(anext(chunks), PATIENCE_S)
                made.stop(kill=kill)
                await until(lambda: not chunks.connected and not sidecar.private_stands)
                made.start()
                await until(lambda: sidecar.raw_stands and sidecar.private_stands and chunks.connected)
            await asyncio.wait_for(anext(chunks), PATIENCE_S)
    finally:
        made.stop()
