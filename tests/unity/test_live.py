"""The package's client hears a broker: over TLS, with a login, across a restart; and names what is wrong."""

import asyncio
import contextlib
import hashlib
import signal
import ssl
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from eyestream_lab.embedded import free_port
from tests.rigs.certificates import Authority
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.spoken import Spoken, speaking_to
from tests.unity.compiling import HERE, compiled

pytestmark = pytest.mark.needs("mono", "mosquitto")


@dataclass(frozen=True)
class Place:
    """A broker with a plain listener for us, and one with TLS and a login for the package."""

    broker: Mosquitto
    secure: int
    pin: str


@pytest.fixture
def place(tmp_path: Path) -> Place:
    certificate, port = Authority(tmp_path).issue("broker", host="localhost"), free_port()
    passwords = tmp_path / "passwords"
    passwords.touch(0o600)
    subprocess.run(["mosquitto_passwd", "-b", passwords, "application", "right"], check=True, capture_output=True)
    files = (f"certfile {certificate.pem}", f"keyfile {certificate.key}", "tls_version tlsv1.2")
    broker = Mosquitto(tmp_path, f"password_file {passwords}", f"listener {port} 127.0.0.1", *files)
    der = ssl.PEM_cert_to_DER_cert(certificate.pem.read_text())
    return Place(broker, port, hashlib.sha256(der).hexdigest())


@pytest.fixture(scope="module")
def live(core: Path) -> Path:
    return compiled(core.parent, "live.exe", [HERE / "Live.cs"], [core])


@contextlib.asynccontextmanager
async def listening(live: Path, *words: str) -> AsyncIterator[asyncio.StreamReader]:
    """The lines that the program prints."""
    process = await asyncio.create_subprocess_exec("mono", str(live), *words, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield process.stdout
    finally:
        process.kill()
        await process.wait()


async def lines_until(reader: asyncio.StreamReader, last: str) -> list[str]:
    """All lines up to one that begins with `last`."""
    lines: list[str] = []
    while not lines or not lines[-1].startswith(last):
        line = await asyncio.wait_for(reader.readline(), 30)
        assert line, lines
        lines.append(line.decode().rstrip())
    return lines


async def told(spoken: Spoken) -> None:
    await spoken.chunk(0)
    await spoken.chunk(3)


async def test_chunks_come_over_tls_and_again_after_the_broker_was_restarted(live: Path, place: Place) -> None:
    place.broker.start()
    try:
        words = (str(place.secure), "features", "tls", place.pin, "application", "right")
        async with listening(live, *words) as lines:
            async with speaking_to(place.broker.url) as spoken:
                began = await lines_until(lines, "status Online")
                await told(spoken)
                chunks = await lines_until(lines, "chunk 3")
            place.broker.stop(kill=True)
            fallen = await lines_until(lines, "fault Network")
            await asyncio.sleep(1)
            place.broker.start()
            async with speaking_to(place.broker.url) as spoken:
                again = await lines_until(lines, "status Online")
                await spoken.sidecar("offline", "lost")
                await lines_until(lines, "status Offline")
                await spoken.sidecar("online", "ready")
                await lines_until(lines, "status Online")
                await spoken.chunk(4)
                after = await lines_until(lines, "chunk 4")
    finally:
        place.broker.stop()
    assert {"budget 3600 session", "described Features: 1.5-differential privacy of a chunk"} <= set(began + chunks)
    assert [line for line in chunks if line.startswith("chunk")] == [
        "chunk 0 9223372036854775817 Features 0.3 +- 0.5 missing 0",
        "chunk 3 9223372036854775817 Features 3.3 +- 0.5 missing 2",
    ]
    assert "status NotLinked" in fallen
    assert "status Waiting" in again
    assert after[-1] == "chunk 4 9223372036854775817 Features 4.3 +- 0.5 missing 0"
    assert [line for line in began + chunks + fallen + again + after if "another thread" in line] == []


async def test_a_broker_that_falls_silent_over_tls_is_gone_and_comes_back(live: Path, place: Place) -> None:
    place.broker.start()
    try:
        words = (str(place.secure), "features", "tls", place.pin, "application", "right")
        async with listening(live, *words) as lines, speaking_to(place.broker.url):
            await lines_until(lines, "status Online")
            place.broker.signal(signal.SIGSTOP)
            fallen = await lines_until(lines, "fault")
            place.broker.signal(signal.SIGCONT)
            await lines_until(lines, "status Online")
    finally:
        place.broker.stop(kill=True)
    assert fallen == ["status NotLinked", f"fault Network: the broker at localhost:{place.secure} is silent"]


def test_a_feed_may_end_at_any_moment(core: Path, place: Place) -> None:
    program = compiled(core.parent, "ending.exe", [HERE / "Ending.cs"], [core])
    place.broker.start()
    try:
        words = ["mono", str(program), str(place.secure), place.pin]
        run = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    finally:
        place.broker.stop()
    # Mono itself may print a line about a thread that is gone.
    assert (run.returncode, run.stdout.splitlines()[-1:]) == (0, ["True 0"]), run.stderr[:2000]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"pin": ""}, "fault Tls: the broker's certificate was refused"),
        ({"pin": "0" * 64}, "fault Tls: the broker's certificate was refused"),
        ({"password": "wrong"}, "fault Login: the broker refuses the login of user 'application'"),
        ({"tls": "plain", "pin": ""}, "fault Network: "),
        ({"port": "away"}, "fault Network: "),
    ],
    ids=["no pin", "another pin", "another password", "no TLS", "no broker"],
)
async def test_what_is_wrong_is_a_fault_and_nothing_comes(
    live: Path, place: Place, changed: dict[str, str], said: str
) -> None:
    right = {"port": str(place.secure), "stream": "features", "tls": "tls", "pin": place.pin}
    words = right | {"user": "application", "password": "right"} | changed
    words["port"] = str(free_port()) if words["port"] == "away" else words["port"]
    place.broker.start()
    try:
        async with listening(live, *words.values()) as lines:
            found = await lines_until(lines, "fault")
    finally:
        place.broker.stop()
    assert found[-1].startswith(said)
    assert not [line for line in found if line.startswith(("described", "budget", "chunk"))]
