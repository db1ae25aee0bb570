"""The whole way: a program, the layer, a sidecar, its broker, the bridge, and back; and what comes when one dies."""

import os
import re
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eyestream.cli.main import main
from tests.openxr.machine import VALID, Built, Looking, program
from tests.rigs.mosquitto import Mosquitto

COMMAND = [sys.executable, "-c", "from eyestream.cli.main import main; main()"]
GONE_S = 2.0
EYES = (13.375, -4.21875)  # in single precision as they are


@contextmanager
def running(*words: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A command at work."""
    with log.open("ab") as file, subprocess.Popen([*COMMAND, *words], stdout=file, stderr=file) as process:
        try:
            yield process
        finally:
            process.kill()


class Frames:
    """A program that looks ninety times a second, in a thread of its own.

    Attributes
    ----------
    seen : of each frame, when it was on the monotonic clock, the flags, the pose, and how old the gaze was, s.
    """

    def __init__(self, looking: Looking) -> None:
        self._looking, self._over = looking, threading.Event()
        self.seen: list[tuple[float, int, tuple[float, ...], float]] = []
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        while not self._over.wait(1 / 90):
            flags, pose, seen_ns = self._looking.look()
            age_s = (self._looking.program.now() - seen_ns) * 1e-9
            self.seen.append((time.monotonic(), flags, pose, age_s))

    def __enter__(self) -> "Frames":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def until(self, true: Callable[[int], bool], seconds: float = 30.0) -> float:
        """How long it took until the flags of a frame were so."""
        begun = time.monotonic()
        while not self.seen or not true(self.seen[-1][1]):
            assert time.monotonic() < begun + seconds, "it did not come to be"
            time.sleep(0.01)
        return time.monotonic() - begun


@pytest.mark.long
@pytest.mark.needs("cc", "make")
def test_released_gaze_comes_back_and_goes_with_the_sidecar_and_the_bridge(
    built: Built, mosquitto: Mosquitto, tmp_path: Path
) -> None:
    main(["init", str(tmp_path / "xr"), "--mechanism", "tile"])
    file, log = tmp_path / "xr" / "sidecar.toml", tmp_path / "log"
    device = re.findall(r'id = "(hmd-\w+)"', file.read_text())[-1]
    table = f'\n[source]\nkind = "openxr"\nrate_hz = 90.0\n[source.options]\nfolder = "{built.place}"\n'
    file.write_text(file.read_text().replace("mqtt://localhost:1883", mosquitto.url) + table)
    sidecar = ("run", "--config", str(file))
    bridge = ("openxr", "run", "--device", device, "--broker", mosquitto.url, "--folder", str(built.place))
    built.eyes(*EYES)
    with program(built) as through, Frames(Looking(through)) as frames, running(*sidecar, log=log) as first:
        time.sleep(3)
        assert {flags for _, flags, _, _ in frames.seen} == {0}  # the default: the owner has switched nothing on
        with running(*bridge, log=log) as dying:
            frames.until(lambda flags: flags == VALID)
            begun = len(frames.seen)
            time.sleep(8)
            shown = [frame for frame in frames.seen[begun:] if frame[1]]
            assert {flags for _, flags, _, _ in frames.seen} == {0, VALID}
            poses = {pose[:4] for _, _, pose, _ in shown}
            page = (built.place / "page").read_bytes()
            dying.send_signal(signal.SIGKILL)
            assert frames.until(lambda flags: flags == 0) < GONE_S
        with running(*bridge, log=log):
            frames.until(lambda flags: flags == VALID)
            first.send_signal(signal.SIGKILL)
            assert frames.until(lambda flags: flags == 0) < GONE_S
            with running(*sidecar, log=log):
                frames.until(lambda flags: flags == VALID)
    assert 3 <= len(poses) <= 9
    assert 0.5 < min(age for _, _, _, age in shown) < max(age for _, _, _, age in shown) < 4.0
    for raw in EYES:
        assert struct.pack("<f", raw) not in page
        assert str(raw).encode() not in log.read_bytes()
    assert os.stat(built.place / "page").st_size < 8192
