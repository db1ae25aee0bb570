"""What an operator sees and does: readiness, watchdog, metrics, logs, reload, stop."""

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from eyestream.core.charge import Ceilings
from eyestream.errors import ConfigError, LinkError
from eyestream.ops.deployment.layout import unit_text
from eyestream.ops.metrics import Page, health, metrics, serve
from eyestream.rim.config import Settings, StreamSettings
from eyestream.rim.files import calibrations
from eyestream.rim.files.recordings import Recording
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.plan import resolved
from eyestream.rim.process import Notifier
from eyestream.rim.sidecar.assembly import assemble
from eyestream.rim.sidecar.sidecar import Sidecar
from eyestream.sdk.publisher import Publisher
from eyestream.sdk.replay import replay
from eyestream_lab.embedded import free_port
from eyestream_lab.simulation.people import load_statistics, simulate_person
from eyestream_lab.testing.clocks import PATIENCE_S, until
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.sidecar import at_work, running, settings_for
from tests.rigs.spy import spying

NAMES = calibrations.load("everyday-cfpa-32").names
ROOT = Path(__file__).resolve().parents[3]
COMMAND = [sys.executable, "-c", "from eyestream.cli.main import main; main()"]


@pytest.fixture
def manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, socket.socket]]:
    """A service manager's socket."""
    path = str(tmp_path_factory.mktemp("n") / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as pipe:
        pipe.bind(path)
        pipe.setblocking(False)
        yield path, pipe


def told(pipe: socket.socket) -> list[str]:
    """What it was told so far."""
    words = []
    while True:
        try:
            words.append(pipe.recv(256).decode())
        except BlockingIOError:
            return words


async def test_signs_of_life_stop_with_the_work(
    manager: tuple[str, socket.socket], mosquitto: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, pipe = manager
    notifier = Notifier({"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "150000"})
    async with running(settings_for(mosquitto.url, tmp_path)) as sidecar:
        watch = asyncio.create_task(notifier.watch(sidecar.pulse))
        await asyncio.sleep(0.4)
        assert told(pipe).count("WATCHDOG=1") >= 3
        stuck, real = asyncio.Event(), sidecar.pipeline.run_turn

        async def hang(*given: object) -> None:
            await stuck.wait()
            await real(*given)  # type: ignore[arg-type]

        monkeypatch.setattr(sidecar.pipeline, "run_turn", hang)  # as a disk that does not come back would
        await asyncio.sleep(0.2)
        told(pipe)
        await asyncio.sleep(0.4)
        assert told(pipe) == []
        stuck.set()
        await until(lambda: told(pipe) != [])
        watch.cancel()


async def test_without_a_manager_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never() -> None:
        raise AssertionError

    made, real = [], socket.socket
    monkeypatch.setattr(socket, "socket", lambda *arguments: made.append(arguments) or real(*arguments))
    nobody = {"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "x"}
    for environment, watchdog_s, sockets in (({}, 0.0, 0), (nobody, 0.0, 1), ({"WATCHDOG_USEC": "1000"}, 0.001, 0)):
        made.clear()
        notifier = Notifier(environment)
        notifier.send("READY=1")
        await notifier.watch(never)
        assert (notifier.watchdog_s, len(made)) == (watchdog_s, sockets)


async def ask(port: int, request: bytes) -> tuple[int, str]:
    """Status and body; 0 when there is no answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        answer = await reader.read()
    except ConnectionError:
        return 0, ""
    finally:
        writer.close()
    head, _, body = answer.decode().partition("\r\n\r\n")
    return (int(head.split()[1]) if head else 0), body


def page(status: int, body: str) -> Page:
    async def answer() -> tuple[int, str]:
        return status, body

    return answer


@pytest.mark.long
async def test_the_window_is_small() -> None:
    async with serve(0, {"/metrics": page(200, "figures\n"), "/healthz": page(503, "ledger\n")}) as port:
        assert await ask(port, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n") == (200, "figures\n")
        assert await ask(port, b"GET /healthz HTTP/1.0\r\n\r\n") == (503, "ledger\n")
        for request, status in (
            (b"GET / HTTP/1.1\r\n\r\n", 404),
            (b"GET /metrics/../etc HTTP/1.1\r\n\r\n", 404),
            (b"POST /metrics HTTP/1.1\r\n\r\n", 405),
            (b"\x16\x03\x01\r\n\r\n", 400),
            (b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * 1000 + b"\r\n", 400),
        ):
            assert (await ask(port, request))[0] in {status, 0}, request[:30]
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
        ended = await asyncio.wait_for(asyncio.gather(*(reader.read() for reader, _ in idle)), 4)
        assert ended == [b""] * 20  # twelve turned away at once, eight when their time was over
        assert (await ask(port, b"GET /metrics HTTP/1.1\r\n\r\n"))[0] == 200
        for _, writer in idle:
            writer.close()
        with pytest.raises(LinkError, match="cannot be opened"):
            await serve(port, {}).__aenter__()


def settled(sidecar: Sidecar) -> int:
    """Chunks that were released, withheld or dropped."""
    counters = sidecar.pipeline.counters
    return counters.released + counters.withheld.total() + counters.dropped.total()


async def counted(mosquitto: Mosquitto, folder: Path, rows: np.ndarray) -> str:
    """All metrics after the same messages, of the given values."""
    async with running(settings_for(mosquitto.url, folder, window_epsilon=4.8)) as sidecar:
        await until(lambda: health(sidecar) == "ok")
        async with Publisher(mosquitto.url, "hmd-1", NAMES, 2.0) as publisher:
            for begin in range(0, len(rows), 16):
                await publisher.send(rows[begin : begin + 16])
            await publisher.send(rows[:16], seq=len(rows) + 32)
        await until(lambda: settled(sidecar) == 7 and len(sidecar.outbox) == 0)
        return metrics(sidecar, read_ledger(folder / "ledger").odometers, Ceilings.of(2, 9.6))


async def test_metrics_do_not_depend_on_what_the_eyes_did(mosquitto: Mosquitto, tmp_path: Path) -> None:
    plain = rows_of_a_stranger(160, len(NAMES))
    wild = plain * np.float32(1e30)
    wild[::3] = np.nan
    wild[1::7, ::2] = np.inf
    for folder in "abc":
        (tmp_path / folder).mkdir()
    one = await counted(mosquitto, tmp_path / "a", plain)
    other = await counted(mosquitto, tmp_path / "b", wild)
    third = await counted(mosquitto, tmp_path / "c", np.zeros_like(plain))
    assert one == other == third
    assert 'eyestream_chunks_withheld_total{ceiling="window"} 3\n' in one
    assert "eyestream_chunks_delivered_total 4\n" in one
    assert 'eyestream_link_up{side="raw"} 1\n' in one
    names = set(re.findall(r"^eyestream_(\w+)", one, re.MULTILINE))
    assert names == {
        "epsilon_ceiling",
        "epsilon_spent",
        "raw_messages_received_total",
        "raw_messages_taken_total",
        "raw_messages_dropped_total",
        "gaze_messages_rejected_total",
        "gaze_samples_received_total",
        "gaze_samples_untimed_total",
        "raw_messages_paused_total",
        "raw_messages_waiting",
        "rows_total",
        "chunks_due_total",
        "chunks_released_total",
        "chunks_withheld_total",
        "chunks_delivered_total",
        "chunks_undelivered_total",
        "chunks_waiting",
        "links_total",
        "messages_cut_total",
        "link_up",
        "ledger_failed",
    }  # a new one must be shown not to depend on values before it is added here
    for line in one.splitlines():
        labels = r'(\{\w+="[\w-]+"(,\w+="\w+")*\})?'
        assert re.fullmatch(rf"# (HELP|TYPE) eyestream_\w+ .+|eyestream_\w+{labels} \d+(\.\d+)?", line), line


async def test_health_says_what_is_wrong(mosquitto: Mosquitto, tmp_path: Path) -> None:
    raw = f"mqtt://127.0.0.1:{free_port()}"
    async with running(settings_for(mosquitto.url, tmp_path, raw_url=raw)) as sidecar:
        await until(lambda: sidecar.private_stands)
        assert health(sidecar) == "raw_link"
        sidecar.pipeline.failed = True
        assert health(sidecar) == "ledger"


def lower(settings: Settings, **ceilings: float) -> Settings:
    return msgspec.structs.replace(settings, budget=msgspec.structs.replace(settings.budget, **ceilings))


async def released(sidecar: Sidecar, publisher: Publisher, chunks: int) -> int:
    """How many of so many chunks are released."""
    before, due = sidecar.pipeline.counters.released, sidecar.pipeline.counters.due
    for _ in range(chunks):
        await publisher.send(rows_of_a_stranger(32, len(NAMES)))
    await until(lambda: settled(sidecar) == due + chunks and len(sidecar.outbox) == 0)
    return sidecar.pipeline.counters.released - before


def dearer(stream: StreamSettings) -> StreamSettings:
    """The same stream with another epsilon."""
    return msgspec.structs.replace(stream, privacy=msgspec.structs.replace(stream.privacy, epsilon=1.0))


async def test_a_reload_can_only_tighten(mosquitto: Mosquitto, tmp_path: Path) -> None:
    settings = settings_for(mosquitto.url, tmp_path)
    with assemble(resolved(settings), lambda: 20_000) as made:
        sidecar = made.sidecar
        async with (
            spying(mosquitto.url) as spy,
            at_work(sidecar),
            Publisher(mosquitto.url, "hmd-1", NAMES, 2.0) as publisher,
        ):
            await until(lambda: health(sidecar) == "ok")
            assert await released(sidecar, publisher, 4) == 4
            lowered = lower(settings, window_epsilon=4.8)
            await made.reload(lowered)
            assert await released(sidecar, publisher, 4) == 2
            for other, key in (
                (settings, "window_epsilon"),
                (lower(lowered, day_epsilon=1e7), "day_epsilon"),
                (lower(lowered, session_epsilon=1.0), "session_epsilon"),
                (lower(lowered, window_chunks=1), "budget"),
                (msgspec.structs.replace(lowered, device=()), "device"),
                (msgspec.structs.replace(lowered, stream=(dearer(lowered.stream[0]),)), "stream"),
            ):
                with pytest.raises(ConfigError, match=key):
                    await made.reload(other)
            assert await released(sidecar, publisher, 4) == 2
        words = [meta["guarantee"] for meta in spy.leaf("meta")]
        assert len(set(words)) == 2
        assert words[0] != words[-1]


def configure(folder: Path, url: str, more: str = "") -> Path:
    """A configuration and a ledger, as `eyestream init` makes them."""
    subprocess.run([*COMMAND, "init", str(folder)], check=True, capture_output=True)
    path = folder / "sidecar.toml"
    text = path.read_text().replace("mqtt://localhost:1883", url).replace("\n[[device]]", f"\n{more}\n[[device]]")
    path.write_text(re.sub(r"^id = .*$", 'id = "hmd-1"', text, flags=re.M))
    return path


async def said(process: asyncio.subprocess.Process, words: str) -> str:
    """The next log line with `words` in it."""
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE_S):
        while words not in (line := (await process.stderr.readline()).decode()):
            assert line, f"ended without {words!r}"
    return line


async def test_a_service_from_start_to_stop(
    manager: tuple[str, socket.socket], mosquitto: Mosquitto, tmp_path: Path
) -> None:
    """Ready, watched, measured, reloaded, refused, and stopped by SIGTERM in the middle of heavy traffic."""
    notify, pipe = manager
    port = free_port()
    path = configure(tmp_path / "c", mosquitto.url, f'[log]\nformat = "json"\n\n[metrics]\nport = {port}\n')
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *("run", "--config", str(path)),
        stderr=subprocess.PIPE,
        env={"NOTIFY_SOCKET": notify, "WATCHDOG_USEC": "600000", "PATH": ""},
    )
    words: list[str] = []
    async with spying(mosquitto.url, "eyestream/v1/hmd-1/features/private") as spy:
        for _ in range(2):
            entry = json.loads(await said(process, "connected to"))
            assert entry.keys() == {"time", "level", "logger", "message"}
        status = 503
        while status != 200:
            await asyncio.sleep(0.05)
            status, _ = await ask(port, b"GET /healthz HTTP/1.1\r\n\r\n")
        text = path.read_text()
        path.write_text(text.replace("day_epsilon = 2304.0", "day_epsilon = 9999.0"))
        process.send_signal(signal.SIGHUP)
        assert "the old configuration stays" in await said(process, "day_epsilon is higher")
        path.write_text("nonsense")
        process.send_signal(signal.SIGHUP)
        await said(process, "not TOML")
        path.write_text(text.replace("day_epsilon = 2304.0", "day_epsilon = 2000.0"))
        process.send_signal(signal.SIGHUP)
        await said(process, "hold from now on")

        async def flood() -> None:
            async with Publisher(mosquitto.url, "hmd-1", NAMES, 2.0) as publisher:
                while True:
                    await publisher.send(rows_of_a_stranger(64, len(NAMES)))

        load = asyncio.create_task(flood())
        await until(lambda: len(spy.chunks()) > 30)
        _, figures = await ask(port, b"GET /metrics HTTP/1.1\r\n\r\n")
        assert re.search(r"^eyestream_chunks_released_total [1-9]\d+$", figures, re.MULTILINE)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        last = json.loads(await said(process, "stopped:"))
        assert await process.wait() == 0
        assert time.monotonic() - began < 5
        load.cancel()
        await asyncio.gather(load, return_exceptions=True)
        words += told(pipe)
        count = read_ledger(tmp_path / "c" / "ledger").odometers["hmd-1"].released
        await until(lambda: len(spy.chunks()) == count)
    assert last["message"].endswith("0 undelivered")
    kept = "STATUS=the old configuration stays: "
    ready, higher, nonsense, lower, stopping = (word for word in words if word != "WATCHDOG=1")
    assert (ready, stopping) == ("READY=1", "STOPPING=1")
    assert higher == f"{kept}[budget] day_epsilon is higher; without a restart it can only be lowered"
    assert nonsense.startswith(f"{kept}{path}: not TOML")
    assert lower == f"STATUS=the ceilings of {path} hold"
    assert words[0] == "READY=1"
    assert "WATCHDOG=1" in words


async def test_a_simulated_person_through_a_broker(mosquitto: Mosquitto, tmp_path: Path) -> None:
    """A recording that the repository makes itself: every row comes out, as noise of the right names and times."""
    person = simulate_person(load_statistics(), 200, np.random.default_rng(7))
    recording = Recording(np.arange(200) / 2.0, person.astype(np.float64), NAMES, simulated=True)
    async with spying(mosquitto.url) as spy, running(settings_for(mosquitto.url, tmp_path)) as sidecar:
        await until(lambda: health(sidecar) == "ok")
        async with Publisher(mosquitto.url, "hmd-1", NAMES, 2.0) as publisher:
            assert await replay(publisher, recording, speed=np.inf) == 200
        await until(lambda: len(spy.chunks()) == 7)
    chunks = spy.leaf("private")
    assert spy.chunks() == list(range(7))
    values = np.concatenate([np.frombuffer(chunk["values"], "<f4").reshape(52, 32) for chunk in chunks], axis=1)
    assert np.isfinite(values).all()
    varied = ~calibrations.load("everyday-cfpa-32").constant
    assert not np.isclose(values[varied, :200].T, person[:, varied], rtol=1e-6).any()


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_demo_leaves_nothing(tmp_path: Path, stop: signal.Signals) -> None:
    environment = {"TMPDIR": str(tmp_path), "PATH": ""}
    process = subprocess.Popen([*COMMAND, "demo"], stdout=subprocess.PIPE, env=environment, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    assert list(tmp_path.iterdir()) != []
    process.send_signal(stop)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + stop
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("system", ["linux", "android"])
def test_memory_is_kept_private(system: str) -> None:
    """Android is a Linux by another name, from Python 3.13 on."""
    code = f"import ctypes, sys\nsys.platform = {system!r}\nfrom eyestream.rim.process import *\n"
    code += "print(memory_is_private())\nkeep_memory_private()"
    code += "\nprint(memory_is_private())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_the_unit_is_tight_and_names_what_exists() -> None:
    text = unit_text("eyestream", "/usr/bin/eyestream")
    lines = [line for line in text.splitlines() if line and not line.startswith(("#", "["))]
    assert all(re.fullmatch(r"\w+=.*", line) for line in lines)
    for needed in ("Type=notify", "User=eyestream", "ProtectSystem=strict", "NoNewPrivileges=yes", "LimitCORE=0"):
        assert needed in lines
    [watchdog] = [int(line.partition("=")[2]) for line in lines if line.startswith("WatchdogSec=")]
    assert 5 <= watchdog <= 60
    for line in lines:
        if line.startswith("Exec") and "/usr/bin/eyestream" in line:
            command = line.split()[1]
            assert (ROOT / "eyestream" / "cli" / f"{command}.py").exists()
