"""init, run, replay, listen and demo as somebody at a terminal meets them."""

import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.rim import config
from eyestream.rim.files import recordings
from eyestream.rim.files.recordings import Recording
from eyestream.rim.ledger.identity import client_id
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream_lab.embedded import free_port
from tests.rigs.mosquitto import Mosquitto

ROOT = Path(__file__).resolve().parents[3]
EYESTREAM = [sys.executable, "-c", "from eyestream.cli.main import main; main()"]


def eyestream(*words: object, timeout: float = 30) -> subprocess.CompletedProcess[str]:
    """One finished command."""
    return subprocess.run([*EYESTREAM, *map(str, words)], capture_output=True, text=True, timeout=timeout, check=False)


def complaint(*words: object) -> str:
    """What a command that a person must mend says: exit code 2, one line, nothing else."""
    done = eyestream(*words)
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("eyestream")
    return done.stderr


@pytest.fixture
def deployment(tmp_path: Path) -> Path:
    """A fresh configuration with its ledger: the first two chunks of a session are withheld."""
    assert eyestream("init", tmp_path / "conf").returncode == 0
    return tmp_path / "conf" / "sidecar.toml"


def edit(path: Path, *pairs: tuple[str, str]) -> Path:
    text = path.read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    return path


@contextmanager
def sidecar(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A sidecar at work, told to stop by SIGTERM after the body."""
    process = subprocess.Popen([*EYESTREAM, "run", "--config", str(path)], stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(timeout=10)
        assert process.stderr is not None
        process.said = process.stderr.read()  # type: ignore[attr-defined]
        process.stderr.close()


def small_recording(folder: Path, rows: int = 64) -> Path:
    names = config.load(ROOT / "config" / "sidecar.toml").stream[0].names
    features = np.random.default_rng(1).normal(10, 1, (rows, len(names)))
    recordings.save(Recording(np.arange(rows) / 2.0, features, names), folder / "one.npz")
    return folder / "one.npz"


def test_init_writes_a_configuration_of_its_own_and_a_ledger(deployment: Path) -> None:
    settings = config.load(deployment)
    assert re.fullmatch(r"hmd-[0-9a-f]{10}", settings.device[0].id)
    assert re.fullmatch(r"sidecar-[0-9a-f]{8}", settings.sidecar.name)
    assert settings.device[0].id not in ("hmd-0000000000", "hmd-4f1c07a9d2")
    header, odometers, *_ = read_ledger(settings.sidecar.ledger)
    assert abs(header.created - time.time()) < 60
    assert odometers == {}


def test_init_says_what_is_withheld(tmp_path: Path) -> None:
    assert "the first 64 s of each session are withheld" in eyestream("init", tmp_path / "a").stdout
    assert "withheld" not in eyestream("init", tmp_path / "b", "--mechanism", "cfpa").stdout


def test_init_overwrites_nothing_and_makes_no_second_ledger_for_a_pseudonym(deployment: Path) -> None:
    """A lost ledger beside a configuration: what was released under its pseudonym is still out in the world."""
    before, ledger = deployment.read_bytes(), deployment.parent / "ledger"
    assert "neither is ever overwritten" in complaint("init", deployment.parent)
    ledger.unlink()
    said = complaint("init", deployment.parent)
    assert "put the ledger back" in said
    assert f"eyestream budget --new --ledger {ledger}" in said
    assert not ledger.exists()
    assert eyestream("budget", "--new", "--ledger", ledger).returncode == 0
    assert ledger.exists()
    assert deployment.read_bytes() == before


def test_what_a_person_must_mend_is_one_line(deployment: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"

    def variant(old: str, new: str) -> Path:
        broken.write_text(deployment.read_text().replace('"ledger"', f'"{deployment.parent / "ledger"}"'))
        return edit(broken, (old, new))

    assert "[[stream]] 'features' schemas: unknown key" in complaint(
        "run", "--config", variant("schema = 1", "schemas = 1\nschema = 1")
    )
    assert "[stream.privacy] 'features' epsilon: expected a number above 0, found" in complaint(
        "run", "--config", variant("epsilon = 4.8", 'epsilon = "4.8"')
    )
    assert "cannot read the configuration" in complaint("run", "--config", tmp_path / "nowhere.toml")
    assert "feature 0 is 'blinks' in the stream" in complaint(
        "run", "--config", variant('"rate_fixations"', '"blinks"')
    )
    assert "no such file" in complaint("run", "--config", variant('"everyday-klt-anchored-64"', '"everyday-none-64"'))
    assert (
        "there is no ledger" in complaint("run", "--config", ROOT / "config" / "sidecar.toml")
        or (ROOT / "config" / "ledger").exists()
    )
    assert "window_epsilon: expected at least" in complaint(
        "run", "--config", variant("window_epsilon = 9.6", "window_epsilon = 4.7")
    )
    assert "mqtt://host" in complaint("run", "--config", variant("mqtt://localhost:1883", "localhost:1883"))


def test_what_a_person_must_mend_on_the_command_line(tmp_path: Path) -> None:
    nobody = f"mqtt://127.0.0.1:{free_port()}"
    recording = small_recording(tmp_path)
    there = ("--broker", nobody, "--device", "hmd-1", "--wait", 0.3)
    assert "cannot connect to the broker" in complaint("replay", recording, *there)
    assert "cannot connect to the broker" in complaint("listen", *there)
    assert "no such file" in complaint("replay", tmp_path / "none.npz", *there)
    assert "no such directory" in complaint("listen", *there, "--out", tmp_path / "none" / "x.npz")
    assert "ends with one of" in complaint("listen", *there, "--out", tmp_path / "x.txt")
    assert "--speed" in complaint("replay", recording, *there, "--speed", "-1")
    assert "'a/b'" in complaint("replay", recording, "--broker", nobody, "--device", "a/b")
    assert "no command runn; did you mean run?" in complaint("runn")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = eyestream("demo", "--seconds", 3, "--port", port)  # its gaze is shown before its broker stands
        assert done.returncode == 2
        assert f"port {port} of 127.0.0.1 is taken" in done.stderr
        assert done.stderr.count("\n") == 1


def test_two_sidecars_do_not_share_a_ledger(deployment: Path, mosquitto: Mosquitto) -> None:
    edit(deployment, ("mqtt://localhost:1883", mosquitto.url))
    with sidecar(deployment):
        deadline = time.monotonic() + 10
        while "sidecar" not in (mosquitto.log.read_text() if mosquitto.log.exists() else ""):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert "in use by another process" in complaint("run", "--config", deployment)


def test_replay_run_and_listen_together(deployment: Path, mosquitto: Mosquitto, tmp_path: Path) -> None:
    edit(deployment, ("mqtt://localhost:1883", mosquitto.url))
    device = config.load(deployment).device[0].id
    recording, out = small_recording(tmp_path, 320), tmp_path / "private.npz"
    there = ("--broker", mosquitto.url, "--device", device)
    with sidecar(deployment) as process:
        listening = subprocess.Popen(
            [*EYESTREAM, "listen", *there, "--out", str(out), "--chunks", "6", "--show", "blink_rate"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert listening.stderr is not None
        assert "waiting for chunks" in listening.stderr.readline()  # said when the subscription stands
        baseline = listening.stderr.readline()
        if baseline.startswith("no sidecar serves"):  # on a slow machine the sidecar comes later
            baseline = listening.stderr.readline()
        assert "baseline: the first 2 chunks of each session (64 s) are never" in baseline
        ours = config.load(deployment).sidecar
        raw_link = client_id(read_ledger(ours.ledger).header.ledger_id, f"raw {ours.name}")
        deadline = time.monotonic() + 30
        while f"Sending SUBACK to {raw_link}" not in mosquitto.log.read_text():
            assert time.monotonic() < deadline, "the sidecar does not take raw rows"
            time.sleep(0.02)
        sent = eyestream("replay", recording, recording, *there, "--speed", "max")
        table, _ = listening.communicate(timeout=60)
        assert Path(f"/proc/{process.pid}/limits").read_text().splitlines()[5].split()[4:6] == ["0", "0"]
    assert sent.returncode == listening.returncode == process.returncode == 0
    assert sent.stderr.count("320 rows sent") == 2
    assert "lost" not in sent.stderr
    assert "klt, 64 rows a chunk" in table
    assert "blink_rate" in table
    released = recordings.load(out)
    assert released.features.shape == (6 * 64, 52), "of five chunks of each session three"
    assert released.names == config.load(deployment).stream[0].names
    assert "of each session the first 64 s are withheld" in process.said  # type: ignore[attr-defined]
    assert "10 chunks due, 6 released, 4 withheld" in process.said  # type: ignore[attr-defined]
    assert "6 delivered" in process.said  # type: ignore[attr-defined]
    assert "Traceback" not in process.said  # type: ignore[attr-defined]


def heeds_signals(pid: int) -> None:
    """Wait until a process has a handler for SIGTERM: before that, a signal ends it the hard way."""
    deadline = time.monotonic() + 20
    while True:
        caught = re.search(r"^SigCgt:\s*([0-9a-f]+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
        if caught is not None and int(caught[1], 16) >> (signal.SIGTERM - 1) & 1:
            return
        assert time.monotonic() < deadline, "it does not heed signals"
        time.sleep(0.02)


def test_a_sidecar_without_a_broker_stops_at_once_when_told(deployment: Path) -> None:
    edit(deployment, ("localhost:1883", f"127.0.0.1:{free_port()}"))
    with sidecar(deployment) as process:
        assert process.stderr is not None
        lines = [process.stderr.readline()]
        while not any("trying again" in line for line in lines):
            assert lines[-1] != "", "it ended by itself"
            lines.append(process.stderr.readline())
        before = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.wait(timeout=5)
        assert time.monotonic() - before < 1.5
    assert process.returncode == 0
    said = "".join(lines) + process.said  # type: ignore[attr-defined]
    assert "Traceback" not in said


def test_demo_prints_one_json_object(tmp_path: Path) -> None:
    done = eyestream("demo", "--seconds", 2, "--speed", 80, "--json", "--mechanism", "dcfpa")
    assert done.returncode == 0, done
    assert done.stderr == ""
    said = json.loads(done.stdout)
    keys = ["samples", "rows", "chunks", "mechanism", "epsilon_per_chunk", "epsilon_session", "latency_ms"]
    assert list(said) == keys
    assert (said["samples"], said["rows"], said["chunks"], said["mechanism"]) == (160 * 120 + 1, 261, 5, "dcfpa")
    assert said["epsilon_session"] == pytest.approx(5 * said["epsilon_per_chunk"])
    assert 0 < said["latency_ms"]["p50"] <= said["latency_ms"]["p99"] < 1000


def test_demo_without_a_terminal_prints_lines_and_a_summary() -> None:
    done = eyestream("demo", "--seconds", 1.75, "--speed", 80)
    assert done.returncode == 0, done
    assert done.stderr == ""
    assert re.search(r"^gaze   \d+ samples", done.stdout, re.MULTILINE)
    assert len(re.findall(r"^chunk \d of 2", done.stdout, re.MULTILINE)) == 2
    assert "\x1b" not in done.stdout
    assert "4.8-differential privacy" in done.stdout
    assert "The session's first minute (0.8 s here) is withheld, and its mean is subtracted" in done.stdout
    assert "rate_saccades, 1/s: change since the first minute" in done.stdout
    assert re.search(r"^chunk   3  true +\S+  private +\S+ \+-", done.stdout, re.MULTILINE)
    assert re.search(
        r"^how sure  rate_saccades: true value within the error in [0-2] of 2 chunks$", done.stdout, re.MULTILINE
    )
    done = eyestream("demo", "--features", "fatige")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "did you mean fatigue?" in done.stderr
    done = eyestream("demo", "--seconds", 1, "--speed", 80)
    assert done.returncode == 2
    assert "--seconds: expected more than 1.18: the first minute of a session is withheld" in done.stderr


@pytest.mark.long
def test_devices_knows_that_a_sidecar_was_killed(deployment: Path, mosquitto: Mosquitto) -> None:
    """Asked at once after the kill: it listens for longer than the last will is delayed."""
    edit(deployment, ("mqtt://localhost:1883", mosquitto.url))
    with sidecar(deployment) as process:
        said = eyestream("devices", "--broker", mosquitto.url, "--seconds", 3).stdout
        assert re.search(r"^sidecar-\w+ +sidecar +online, ready \((kept|\d s ago)\)$", said, re.MULTILINE)
        process.kill()
        said = eyestream("devices", "--broker", mosquitto.url).stdout
    assert re.search(r"^sidecar-\w+ +sidecar +offline, lost \(\d s ago\)$", said, re.MULTILINE)
    assert re.search(r"no chunk while we listened: one comes every 32 s$", said, re.MULTILINE)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_demo_is_quiet(number: signal.Signals, code: int) -> None:
    process = subprocess.Popen([*EYESTREAM, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.5)
    process.send_signal(number)
    _, said = process.communicate(timeout=10)
    assert process.returncode == code
    assert said == ""


def test_help_of_every_command_is_there() -> None:
    done = eyestream("--help")
    assert done.returncode == 0
    for command in ("demo", "init", "run", "replay", "listen"):
        assert command in done.stdout
        own = eyestream(command, "--help")
        assert own.returncode == 0
        assert f"usage: eyestream {command}" in own.stdout


def test_run_loads_neither_corpus_code_nor_extras() -> None:
    code = "import sys, eyestream.cli.run; print([name for name in sys.modules if not name.startswith('numpy')])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "eyestream.rim.sidecar.sidecar" in loaded
    for other in ("eyestream_lab", "eyestream.offline", "amqtt", "rich", "scipy", "eyestream_lab.demo"):
        assert f"'{other}" not in loaded


def test_a_closed_pipe_ends_quietly() -> None:
    command = shlex.join([*EYESTREAM, "demo", "--seconds", "2", "--speed", "80"])
    done = subprocess.run(["sh", "-c", f"{command} | head -n 1"], capture_output=True, text=True, check=False)
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_a_listener_of_a_device_that_nobody_serves_is_told(mosquitto: Mosquitto) -> None:
    words = [*EYESTREAM, "listen", "--broker", mosquitto.url, "--device", "hmd-typo"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "waiting for chunks of hmd-typo" in process.stderr.readline()
        assert "no sidecar serves hmd-typo here so far: `eyestream devices` lists" in process.stderr.readline()
        process.kill()


def test_without_a_broker_it_is_the_one_that_init_writes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []
    monkeypatch.setattr("eyestream.cli.devices.main", lambda options: asked.append(options.broker))
    main(["devices"])
    main(["init", str(tmp_path / "c")])
    written = config.load(tmp_path / "c" / "sidecar.toml").private.url
    assert [Endpoint.of(config.BrokerSettings(url)).port for url in (*asked, written)] == [1883, 1883]
    assert [Endpoint.of(config.BrokerSettings(url)).host for url in (*asked, written)] == ["localhost", "localhost"]
