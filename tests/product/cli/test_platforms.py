"""Without the modules and functions that only POSIX has: what works, and what says by name that it does not."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

BLOCKED = """
import os, sys
import asyncio, contextlib, io, multiprocessing, numpy, shutil, ssl, subprocess, tempfile, importlib.metadata
for name in ("fcntl", "grp", "pwd", "resource", "termios", "tty", "pty"):
    sys.modules[name] = None
for name in ("fdatasync", "geteuid", "getuid", "O_NOFOLLOW", "O_CLOEXEC", "O_DIRECTORY", "chown", "initgroups",
             "setuid", "setgid"):
    delattr(os, name)
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
said = []
for words in (["run", "--config", config], ["deploy", place]):
    with contextlib.redirect_stderr(io.StringIO()) as told:
        try:
            main(words)
        except SystemExit as ended:
            said.append((ended.code, told.getvalue()))
(code, line), (other, refused) = said
assert code == 2 and "Linux and macOS only" in line, line
assert other == 2 and "expected to be run as root" in refused, refused
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
