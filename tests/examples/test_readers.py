"""The readers in other languages: they read what is good, refuse what is bad, and hear a sidecar at work."""

import asyncio
import contextlib
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import aiomqtt
import pytest

from eyestream.errors import PayloadError
from eyestream.rim.sidecar.sidecar import Sidecar
from eyestream.testing.clocks import until
from eyestream.wire.messages import decode_gaze, decode_meta, decode_private, decode_raw
from tests.rigs.mosquitto import Mosquitto, free_port
from tests.rigs.sidecar import raw_stands, running, settings_for
from tests.rigs.storms import NAMES

ROOT = Path(__file__).parents[2]
EXAMPLES, GOLDEN = ROOT / "examples", ROOT / "tests" / "golden"
LONGEST_FILE = 200

Command = Callable[[Path], list[str]]
"""Builds what has to be built in a folder, and says how it is started."""


def python(program: str) -> Command:
    return lambda folder: [sys.executable, str(EXAMPLES / "python" / program)]


def javascript(program: str) -> Command:
    return lambda folder: ["node", "--experimental-websocket", str(EXAMPLES / "javascript" / program)]


def node(program: str) -> Command:
    return lambda folder: ["node", str(EXAMPLES / "javascript" / program)]


def c(target: str) -> Command:
    def build(folder: Path) -> list[str]:
        copy = shutil.copytree(EXAMPLES / "c", folder / "c", dirs_exist_ok=True)
        subprocess.run(["make", "-s", "-C", copy, target], check=True, timeout=120)
        return [str(copy / target)]

    return build


def csharp(folder: Path) -> list[str]:
    program = folder / "check.exe"
    if not program.exists():
        subprocess.run(["mcs", "-warnaserror", f"-out:{program}", *(EXAMPLES / "csharp").glob("*.cs")], check=True)
    return ["mono", str(program)]


CHECKERS = [
    pytest.param(python("check.py"), id="python"),
    pytest.param(node("check.mjs"), id="javascript", marks=pytest.mark.needs("node")),
    pytest.param(c("check-program"), id="c", marks=pytest.mark.needs("cc", "make")),
    pytest.param(csharp, id="csharp", marks=pytest.mark.needs("mono")),
]
PRINTERS = CHECKERS[2:]
"""Those that compare the words of refusals alone, and print what they read."""

LISTENERS = [
    pytest.param(python("listen.py"), "mqtt", id="python"),
    pytest.param(node("listen.mjs"), "mqtt", id="javascript", marks=pytest.mark.needs("node")),
    pytest.param(
        javascript("listen.mjs"), "ws", id="javascript-websocket", marks=pytest.mark.needs("node", "websocket")
    ),
    pytest.param(c("listen"), "host", id="c", marks=pytest.mark.needs("cc", "make", "libmosquitto")),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where programs are built, each once."""
    return tmp_path_factory.mktemp("built")


def check(command: list[str], golden: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*command, str(golden)], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("build", CHECKERS)
def test_every_golden_payload_is_read_or_refused(build: Command, built: Path) -> None:
    done = check(build(built), GOLDEN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "51 payloads, 0 faults" in done.stdout + done.stderr


@pytest.mark.parametrize("build", CHECKERS)
def test_control_a_payload_in_the_place_of_another_is_a_fault(build: Command, built: Path, tmp_path: Path) -> None:
    command, golden = build(built), shutil.copytree(GOLDEN, tmp_path / "golden")
    for there, other in (
        ("raw-one-row", "bad-cut"),  # a good one is refused
        ("bad-cut", "raw-one-row"),  # a bad one is read
        ("bad-time", "bad-cut"),  # refused, with another word
    ):
        (golden / f"{there}.msgpack").write_bytes((GOLDEN / f"{other}.msgpack").read_bytes())
        done = check(command, golden)
        assert done.returncode == 1, there
        assert "51 payloads, 1 faults" in done.stdout + done.stderr
        (golden / f"{there}.msgpack").write_bytes((GOLDEN / f"{there}.msgpack").read_bytes())


@pytest.mark.parametrize("build", CHECKERS[:2])
def test_control_another_value_is_a_fault(build: Command, tmp_path: Path) -> None:
    command, golden = build(tmp_path), shutil.copytree(GOLDEN, tmp_path / "golden")
    for key, value in (("session", "11400714819323198486"), ("values", [[1.0] * 4] * 3), ("epsilon", 4.9)):
        index = json.loads((GOLDEN / "index.json").read_text())
        index["payloads"]["private.msgpack"]["holds"][key] = value
        (golden / "index.json").write_text(json.dumps(index))
        assert check(command, golden).returncode == 1, key


def told(line: str, keys: set[str]) -> dict[str, list[str]]:
    """Key -> words that a printed line has for it."""
    found: dict[str, list[str]] = {}
    for word in line.split("\t")[1:]:
        if word in keys:
            found[word] = []
            current = found[word]
        else:
            current.append(word)
    return found


def flat(value: Any) -> list[Any]:
    return [one for part in value for one in flat(part)] if isinstance(value, list) else [value]


def same(word: str, value: Any, *, single: bool) -> bool:
    """Whether a printed word is the value of the index."""
    if value is None:
        return word.lower().lstrip("-") in ("nan", "inf", "infinity")
    if isinstance(value, bool):
        return word == "true"
    if isinstance(value, str):
        return word == value
    return float(word) == value or (single and struct.pack("<f", float(word)) == struct.pack("<f", value))


@pytest.mark.parametrize("build", PRINTERS)
def test_what_is_printed_is_what_the_index_says(build: Command, built: Path) -> None:
    index = json.loads((GOLDEN / "index.json").read_text())["payloads"]
    lines = {line.split("\t", 1)[0]: line for line in check(build(built), GOLDEN).stdout.splitlines()}
    assert lines.keys() == index.keys()
    for name, entry in index.items():
        holds = dict(entry.get("holds", {"refused": entry.get("refused")}))
        holds.pop("v", None)
        said = told(lines[name], set(holds))
        assert said.keys() == holds.keys(), name
        for key, value in holds.items():
            expected = flat(value)
            assert len(said[key]) == len(expected), (name, key)
            fitting = [same(word, one, single=key == "values") for word, one in zip(said[key], expected, strict=True)]
            assert all(fitting), (name, key)


def disturbed(rng: random.Random, payload: bytes) -> bytes:
    """With one to three bytes changed, left out or put in."""
    data = bytearray(payload)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at, heads = rng.randrange(len(data) + 1), (0, 1, 0x7F, 0x8F, 0x90, 0xA0, *range(0xC0, 0x100))
        data[at : at + rng.randrange(3)] = bytes(rng.choices(heads, k=rng.randrange(3)))
    return bytes(data)


def is_read(kind: str, payload: bytes, index: dict[str, Any]) -> bool:
    """Whether our decoder takes it."""
    try:
        if kind == "raw":
            decode_raw(payload, index["features"], index["schema"])
        else:
            decode_gaze(payload, (2, 3), index["schema"])
    except PayloadError:
        return False
    return True


@pytest.mark.parametrize("build", CHECKERS)
def test_what_our_decoder_refuses_readers_refuse_and_no_more(build: Command, built: Path, tmp_path: Path) -> None:
    """800 payloads of the two kinds that a sidecar reads; a refusal may have another word."""
    rng, golden = random.Random(5), tmp_path / "golden"
    index = json.loads((GOLDEN / "index.json").read_text())
    whole = [(entry["kind"], (GOLDEN / name).read_bytes()) for name, entry in index["payloads"].items()]
    whole = [(kind, payload) for kind, payload in whole if kind in ("raw", "gaze")]
    golden.mkdir()
    index["payloads"], read = {}, {}
    for number in range(800):
        kind, payload = rng.choice(whole)
        name, payload = f"{number}.msgpack", disturbed(rng, payload)
        (golden / name).write_bytes(payload)
        read[name] = is_read(kind, payload, index)
        verdict: dict[str, Any] = {"holds": {}} if read[name] else {"refused": "somehow"}
        index["payloads"][name] = {"kind": kind} | verdict
    assert sum(read.values()) > 30
    (golden / "index.json").write_text(json.dumps(index, indent=1))
    lines = check(build(built), golden).stdout.splitlines()[:800]
    said = dict(line.replace(": ", "\t", 1).split("\t", 1) for line in lines)
    assert {name: not words.startswith("refused") for name, words in said.items()} == read


def test_files_are_short() -> None:
    suffixes = {".py", ".mjs", ".html", ".c", ".h", ".cs"}
    long = {str(path): len(path.read_text().splitlines()) for path in EXAMPLES.rglob("*") if path.suffix in suffixes}
    assert len(long) > 15
    assert {path for path, lines in long.items() if lines >= LONGEST_FILE} == set()


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
    return raw_stands(sidecar) and sidecar.private_stands


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


@pytest.mark.needs("node", "websocket")
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
    assert len(asked) == 9
    assert asked == set(re.findall(r' id="(\w+)"', page))
    assert "default-src 'self'" in page  # no request leaves for another place, but the broker's
    assert re.findall(r"https?://", page) == []
