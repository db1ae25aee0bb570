"""Without the modules and functions that only POSIX has: what works, and what says by name that it does not."""

import subprocess
import sys
from pathlib import Path

import pytest

from eyestream.rim import config
from tests.rigs.mosquitto import Mosquitto

ROOT = Path(__file__).resolve().parents[3]

BLOCKED = """
import os, sys
from tests.rigs.windows import become
become()
"""

IMPORTS = """
import importlib, eyestream
from eyestream.cli.main import commands
for place, _ in commands().values():
    importlib.import_module(place)
for name in eyestream.__all__:
    getattr(eyestream, name)
"""

OFFLINE = """
import contextlib, io
import numpy as np, eyestream
from eyestream.cli.main import main
place = sys.argv[1]
rows = f"{place}/rows/sim-00"
main(["simulate", "--people", "4", "--seconds", "100", "--seed", "1", "--out", f"{place}/rows"])
main(["simulate", "--people", "1", "--seconds", "60", "--seed", "1", "--gaze", "--out", f"{place}/gaze"])
main(["init", f"{place}/sidecar"])
config = f"{place}/sidecar/sidecar.toml"
main(["guarantee", "--config", config])
main(["budget", "--config", config])
main(["extract", f"{place}/gaze/sim-000.csv", "--profile", "degrees", "--out", f"{place}/extracted"])
main(["events", f"{place}/gaze/sim-000.csv", "--profile", "degrees"])
main(["privatize", f"{rows}0.npz", "--calibration", "everyday-klt-32", "--epsilon", "4.8", "--out", f"{place}/private"])
main(["calibrate", *(f"{rows}{i}.npz" for i in range(4)), "--mechanism", "cfpa", "--chunk", "32",
      "--out", f"{place}/own.npz"])
released = eyestream.CFPA(eyestream.load_calibration("everyday-cfpa-32"), epsilon=4.8).release(np.ones((52, 32)))
assert released.shape == (52, 32)
main(["privatize", f"{rows}0.npz", "--calibration", "everyday-klt-32", "--epsilon", "4.8", "--out", f"{place}/booked",
      "--ledger", f"{place}/sidecar/ledger", "--device", "hmd-1"])
said = []
for words in (["audit", "cfpa", "--epsilon", "4.8", "--calibration", "everyday-cfpa-32"], ["deploy", place],
              ["listen", "--device", "hmd-1", "--broker", "unix:///run/broker"]):
    with contextlib.redirect_stderr(io.StringIO()) as told:
        try:
            main(words)
        except SystemExit as ended:
            said.append((ended.code, told.getvalue()))
for (code, line), words in zip(said, ("this system cannot: Linux and macOS can", "expected to be run as root",
                                     "this system has no sockets with a path"), strict=True):
    assert code == 2 and words in line and line.count("\\n") == 1, line
print("all of it")
"""


def told(code: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED + code, *words], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_command_and_every_name_can_be_imported() -> None:
    assert told(IMPORTS) == ""


@pytest.mark.long
def test_offline_commands_work_and_the_others_say_why_not(tmp_path: Path) -> None:
    assert told(OFFLINE, str(tmp_path)).endswith("all of it\n")


def test_control_something_is_blocked() -> None:
    with pytest.raises(AssertionError):
        told("import fcntl")
    assert "fdatasync" not in told("print(dir(os))")


LEDGER = """
from pathlib import Path
from eyestream.errors import LedgerError
from eyestream.rim.ledger.file import LedgerFile, create_file, is_held, put

def refused():
    try:
        LedgerFile(path)
    except LedgerError as error:
        return "in use by another process" in str(error)

path = Path(sys.argv[1], "ledger")
create_file(path, b"a" * 100)
assert not is_held(path)
file = LedgerFile(path)
file.append(b"bcd")
file.sync()
file.write_again(50)
assert path.read_bytes() == b"a" * 100 + b"bcd"
assert refused() and is_held(path)
file.replace(file.prepare(b"new"))
file.append(b"er")
file.sync()
assert file.is_there(5) and path.read_bytes() == b"newer"
assert refused()
file.close()
LedgerFile(path).close()
put(path, b"put")
assert path.read_bytes() == b"put"
"""


def test_a_ledger_is_held_rewritten_and_put_under_a_lock_beside_it(tmp_path: Path) -> None:
    assert told(LEDGER, str(tmp_path)) == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == [".ledger.lock", "ledger"]


LIVE = """
from eyestream.cli.main import main
main(sys.argv[1:])
"""

TRACKER = """
import asyncio, numpy as np, eyestream
from pathlib import Path
from eyestream.rim import config

async def main(path):
    settings = config.load(Path(path))
    stream, device, broker = settings.stream[0], settings.device[0].id, settings.private
    rows = np.random.default_rng(1).normal(10, 1, (64, len(stream.names)))
    async with asyncio.timeout(60), eyestream.subscribe(broker, device) as chunks:
        async with eyestream.Publisher(broker, device, stream.names, stream.rate_hz) as tracker:
            await tracker.send(rows)
        async for chunk in chunks:
            assert chunk.values.shape == (len(stream.names), 64)
            break

asyncio.run(main(*sys.argv[1:]))
print("a chunk")
"""


def start(*words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", BLOCKED + LIVE, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.long
def test_a_sidecar_and_its_applications_work_with_a_password(tmp_path: Path, mosquitto: Mosquitto) -> None:
    """The ledger is spent from, and held against a second process. The next life reads it, and the stop is in order."""
    path, secret = tmp_path / "own" / "sidecar.toml", tmp_path / "password"
    secret.write_text("secret")
    secret.chmod(0o666)
    told(LIVE, "init", str(path.parent), "--mechanism", "cfpa")
    login = f'"{mosquitto.url}"\nusername = "somebody"\npassword_file = "{secret}"'
    path.write_text(path.read_text().replace('"mqtt://localhost:1883"', login))
    device = config.load(path).device[0].id
    for life in range(2):
        running = start("run", "--config", str(path))
        try:
            assert running.stderr is not None
            assert any("raw broker: connected" in line for line in running.stderr)
            words = ("listen", "--device", device, "--broker", mosquitto.url, "--chunks", "1")
            listening = start(*words, "--username", "somebody", "--password-file", str(secret))
            assert listening.stderr is not None
            assert any("left" in line for line in listening.stderr)
            assert told(TRACKER, str(path)) == "a chunk\n"
            out, err = listening.communicate(timeout=60)
            assert listening.returncode == 0, err
            assert life or "4.8" in out
            second = start("run", "--config", str(path))
            assert "in use by another process" in second.communicate(timeout=30)[1]
            assert second.returncode == 2
        finally:
            running.terminate()
            said = running.communicate(timeout=30)[1]
        assert running.returncode == 0, said
    assert "478 chunks" in told(LIVE, "budget", "--config", str(path))


@pytest.mark.long
def test_the_demo_works() -> None:
    done = start("demo", "--fast", "--seconds", "4", "--json")
    out, err = done.communicate(timeout=90)
    assert done.returncode == 0, err
    assert '"chunks"' in out
