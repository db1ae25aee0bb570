"""`eyestream forget` finds the sidecar by its ledger."""

import fcntl
import os
import signal
from pathlib import Path

import pytest

from eyestream.cli import main as command
from eyestream.cli.forget import holder
from eyestream.rim.ledger.reading import create_ledger

CONFIG = """[sidecar]
ledger = "ledger"
[[device]]
id = "hmd-1"
[[stream]]
[stream.privacy]
calibration = "everyday-klt-32"
epsilon = 4
"""


def test_the_holder_of_a_ledger_is_read_from_the_locks() -> None:
    lines = ["1: POSIX  ADVISORY  WRITE 7 fe:00:42 0 EOF", "2: FLOCK  ADVISORY  WRITE 8 fe:00:142 0 EOF"]
    assert holder(lines, 42) is None
    assert holder([*lines, "3: FLOCK  ADVISORY  WRITE 9 fe:00:42 0 EOF"], 42) == 9


def test_the_process_that_holds_the_ledger_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, told = tmp_path / "sidecar.toml", list[int]()
    config.write_text(CONFIG)
    create_ledger(tmp_path / "ledger", created=0)
    command.main(["forget", "--config", str(config)])
    assert "nothing is remembered" in capsys.readouterr().out
    before = signal.signal(signal.SIGUSR1, lambda number, frame: told.append(number))
    try:
        with (tmp_path / "ledger").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            command.main(["forget", "--config", str(config)])
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert told == [signal.SIGUSR1]
    assert f"process {os.getpid()} is to forget" in capsys.readouterr().out
