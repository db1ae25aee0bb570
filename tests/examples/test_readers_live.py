"""The readers in other languages hear a sidecar at work."""

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiomqtt
import numpy as np
import pytest

from eyestream.rim.sidecar.sidecar import Sidecar
from eyestream.wire.gaze import encode_gaze
from eyestream.wire.release import decode_meta, decode_private
from eyestream.wire.status import Reading, encode_reading
from eyestream_lab.embedded import free_port
from eyestream_lab.testing.clocks import until
from tests.examples.programs import EXAMPLES, Command, c, node, python
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.sidecar import running, settings_for
from tests.rigs.spoken import speaking_to
from tests.rigs.storms import NAMES

LISTENERS = [
    pytest.param(python("listen.py"), "mqtt", id="python"),
    pytest.param(node("listen.mjs"), "mqtt", id="javascript", marks=pytest.mark.needs("node")),
    pytest.param(
        node("listen.mjs", "--experimental-websocket"),
        "ws",
        id="javascript-websocket",
        marks=pytest.mark.needs("node", "websocket"),
    ),
    pytest.param(c("listen"), "host", id="c", marks=pytest.mark.needs("cc", "make", "libmosquitto")),
]


@pytest.fixture
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Mosquitto, int]]:
    """A broker that also listens for WebSockets."""
    port = free_port()
    web = (f"listener {port} 127.0.0.1", "protocol websockets", "allow_anonymous true")
    broker = Mosquitto(tmp_path_factory.mktemp("both"), *web)
    broker.start()
    yield broker, port
    broker.stop()


@contextlib.asynccontextmanager
async def reading(command: list[str], **more: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A program whose lines are read."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe, env=os.environ | more)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def expected(client: aiomqtt.Client, count: int) -> list[str]:
    """The lines that a reader should print, of what the broker sends."""
    lines: list[str] = []
    async for message in client.messages:
        if message.topic.value.endswith("/meta"):
            meta = decode_meta(message.payload)
        else:
            chunk = decode_private(message.payload)
            mean, unit = float(chunk.values[0].astype(float).mean()), meta.units[0]
            lines.append(f"chunk {chunk.chunk} epsilon {chunk.epsilon:g}: {meta.names[0]} {mean:.3f} {unit}")
            if len(lines) == count:
                break
    return lines


def standing(sidecar: Sidecar) -> bool:
    return sidecar.raw_stands and sidecar.private_stands


@pytest.mark.needs("mosquitto")
@pytest.mark.parametrize(("build", "scheme"), LISTENERS)
async def test_from_tracker_to_application(
    both: tuple[Mosquitto, int], build: Command, scheme: str, built: Path, tmp_path: Path
) -> None:
    """Rows of the example of a tracker are released, and each reader prints the chunks that the broker sends."""
    broker, web = both
    place = {"mqtt": [broker.url], "ws": [f"ws://127.0.0.1:{web}"], "host": ["127.0.0.1", str(broker.port)]}[scheme]
    async with (
        running(settings_for(broker.url, tmp_path)) as sidecar,
        aiomqtt.Client("127.0.0.1", broker.port) as client,
        reading([*build(built), *place, "hmd-1", "3"]) as listener,
    ):
        assert listener.stdout is not None
        await until(lambda: standing(sidecar))
        for leaf in ("meta", "private"):
            await client.subscribe(f"eyestream/v1/hmd-1/features/{leaf}", qos=1)
        while (line := await asyncio.wait_for(listener.stdout.readline(), 60)) != b"status online ready\n":
            assert line, "it ended"
        sender = await asyncio.create_subprocess_exec(
            *python("send.py")(tmp_path), broker.url, "hmd-1", "96", str(len(NAMES))
        )
        assert await sender.wait() == 0
        printed, faults = await asyncio.wait_for(listener.communicate(), 60)
        assert printed.decode().splitlines() == await asyncio.wait_for(expected(client, 3), 60)
        assert (listener.returncode, sidecar.pipeline.counters.rejected.total()) == (0, 0), faults


@pytest.mark.needs("mosquitto")
@pytest.mark.parametrize(("build", "scheme"), [one for one in LISTENERS if one.id != "javascript-websocket"])
async def test_a_reader_says_that_the_ledger_went_back(
    mosquitto: Mosquitto, build: Command, scheme: str, built: Path
) -> None:
    """And nothing of what comes late or again, or of an honest restart."""
    place = [mosquitto.url] if scheme == "mqtt" else ["127.0.0.1", str(mosquitto.port)]
    async with speaking_to(mosquitto.url) as stream, reading([*build(built), *place, "hmd-1"]) as listener:
        assert listener.stdout is not None
        assert await asyncio.wait_for(listener.stdout.readline(), 60) == b"status online ready\n"
        quiet = (1, 100, 150), (1, 100, 140), (2, 150, 160), (1, 100, 150), (3, 90, 95), (3, 90, 95)
        for states, said in ((b"day", quiet), (b"session", ((3, 90, 96),)), (b"lifetime", ((4, 155, 155),))):
            for life, began, reads in said:
                await stream.say("odometer", encode_reading(Reading("0" * 32, life, began, reads)))
            await stream.status("exhausted", states.decode())
            back = [] if said is quiet else [b"the ledger went back: what was spent since is spent again\n"]
            for line in (*back, b"status exhausted %s\n" % states):
                assert await asyncio.wait_for(listener.stdout.readline(), 60) == line


@pytest.mark.needs("mosquitto", "node", "websocket")
async def test_the_page_shows_chunks(both: tuple[Mosquitto, int], tmp_path: Path) -> None:
    """Its script, with a document of our own in the place of a browser's."""
    broker, web = both
    words = [str(EXAMPLES / "javascript" / "page.mjs"), f"ws://127.0.0.1:{web}", "hmd-1"]
    harness = Path(__file__).with_name("page_harness.mjs")
    async with (
        running(settings_for(broker.url, tmp_path)) as sidecar,
        reading(["node", "--no-warnings", "--experimental-websocket", str(harness), *words]) as page,
    ):
        assert page.stdout is not None
        await until(lambda: standing(sidecar))
        shown: list[str] = []
        sender = None
        while shown.count("trace: drawn") < 3:
            line = await asyncio.wait_for(page.stdout.readline(), 60)
            assert line, "it ended"
            shown.append(line.decode().strip())
            if sender is None and "status: online: ready" in shown:
                words = [*python("send.py")(tmp_path), broker.url, "hmd-1", "96", str(len(NAMES))]
                sender = await asyncio.create_subprocess_exec(*words)
        assert sender is not None
        assert await sender.wait() == 0
    assert any(line.startswith(f"feature: {len(NAMES)} options, {NAMES[0]} (") for line in shown)
    assert [line.split()[2] for line in shown if line.startswith("last: chunk")] == ["0", "1", "2"]


def test_the_page_has_what_its_script_asks_for() -> None:
    page, script = ((EXAMPLES / "javascript" / f"page.{suffix}").read_text() for suffix in ("html", "mjs"))
    asked = set(re.findall(r'part\("(\w+)"\)', script))
    assert len(asked) == 10
    assert asked == set(re.findall(r' id="(\w+)"', page))
    assert "default-src 'self'" in page  # no request leaves for another place, but the broker's
    assert re.findall(r"https?://", page) == []


@pytest.mark.needs("mosquitto", "cc", "make", "libmosquitto")
async def test_a_sender_of_gaze_in_c_says_what_the_publisher_says(mosquitto: Mosquitto, built: Path) -> None:
    """The same bytes as `encode_gaze`, five samples a message; a lost eye is one of them."""
    samples = np.array([[1.5, -2.25, 3.5], [np.nan] * 3, [0.0, 1e-3, 4.0], [-30.0, 20.0, 2.0], [7.0, 7.0, np.nan]])
    times = np.arange(5) / 90 + 12.0
    lines = "".join(f"{t!r} {x!r} {y!r} {p!r}\n" for t, (x, y, p) in zip(times.tolist(), samples.tolist(), strict=True))
    async with aiomqtt.Client("127.0.0.1", mosquitto.port) as client:
        await client.subscribe("eyestream/v1/hmd-1/gaze/raw")
        sender = await asyncio.create_subprocess_exec(
            *c("send")(built), "127.0.0.1", str(mosquitto.port), "hmd-1", stdin=asyncio.subprocess.PIPE
        )
        await sender.communicate((lines * 2).encode())
        assert sender.returncode == 0
        async with asyncio.timeout(30):
            heard = [(await anext(client.messages)).payload for _ in range(2)]
    assert heard == [encode_gaze(times, samples.astype(np.float32), 1)] * 2
