"""The demo at a terminal of 80 columns and 24 lines: everything fits, the table first, and no word is cut."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.core.mechanisms import build
from eyestream.gaze.samples import Samples
from eyestream.rim.files import calibrations
from eyestream.sdk.subscriber import Chunk
from eyestream.wire.messages import Meta
from eyestream_lab.demo.figures import SHOWN, Figures
from eyestream_lab.demo.view import frame

COMMAND = [sys.executable, "-c", "from eyestream.cli.main import main; main()"]
PNG = b"\x89PNG\r\n\x1a\n"


def at_terminal(*words: str) -> list[str]:
    """What a terminal of 80 x 24 is sent, line by line, without control sequences."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in {"COLUMNS", "LINES"}}
    process = subprocess.Popen(
        [*COMMAND, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=environment | {"TERM": "xterm"}
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            part = os.read(ours, 65_536)
        except OSError:  # Linux: nobody has the other side open any more
            break
        if not part:
            break
        said += part
    os.close(ours)
    assert process.wait(timeout=60) == 0, said[-2000:]
    return re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode()))


@pytest.mark.long
def test_the_demo_fits_80_by_24(tmp_path: Path) -> None:
    """The command that is printed is longer than a line: a shell takes it all the same, so it alone may be wrapped."""
    picture = tmp_path / "demo.png"
    lines = at_terminal("demo", "--fast", "--seconds", "4", "--picture", str(picture))
    assert [line for line in lines if len(line) > 80 and not line.startswith("eyestream listen")] == []
    text = "\n".join(lines)
    device = re.search(r"^device (hmd-\w+); join in from another terminal, with$", text, re.MULTILINE)
    assert device is not None
    assert re.search(rf"^eyestream listen --broker mqtt://127.0.0.1:\d+ --device {device[1]}$", text, re.MULTILINE)
    for word in ("private:", "goes out", "inside", "instead", *SHOWN):
        assert re.search(rf"(^|\s){word}(\s|$)", text), word
    assert picture.read_bytes().startswith(PNG)


def figures(mechanism: str) -> Figures:
    """A demo in which one chunk has come, with figures as wide as they get."""
    calibration = calibrations.load(mechanism)
    known = Figures(
        calibration,
        rival=build(calibrations.load("everyday-klt-one-64"), 4.8),
        rows_total=2560,
        waits="a simulated person at 64 times real time: " + "and so on " * 12,
    )
    known.meta = Meta(
        calibration.names,
        calibration.units,
        2.0,
        calibration.n,
        "klt",
        (1,),
        4.8,
        0.0,
        np.full(52, -1.234e-05, np.float32),
        "claim: 4.8-differential privacy (pure) for one chunk after the baseline of its session, of 64 rows of one "
        "device, all features together, replace-one, local model; losses of chunks add up",
        calibration.content_hash,
    )
    known.latencies_ms, known.gaze.samples, known.rows = [1.0], 123_456, 2345
    released = np.full((52, calibration.n), -1.234e-05, np.float32)
    t = np.arange(calibration.n) / 2.0
    known.chunk = Chunk(1, 0, calibration.names, t, released, 4.8, 0.0, known.meta.guarantee)
    known.raw_mean = known.moved_mean = known.rival_mean = np.full(52, -1.234e-05)
    known.gaze.watch(Samples.of(np.zeros(1), [1.0], [1.0]))
    return known


@pytest.mark.parametrize("name", ["everyday-klt-anchored-64", "everyday-klt-mapped-64"])
@pytest.mark.parametrize("comes", [True, False])
def test_a_frame_has_the_table_first_and_no_line_too_long(name: str, comes: bool) -> None:
    known = figures(name)
    if not comes:
        known.chunk = None
    lines = frame(known, 80, 24)
    assert len(lines) < 24
    assert max(map(len, lines)) < 80
    assert sum("@" in line for line in lines) == 1
    if comes:
        places = [next(i for i, line in enumerate(lines) if line.startswith(feature)) for feature in SHOWN]
        assert places == list(range(places[0], places[0] + 5))
        assert places[-1] < next(i for i, line in enumerate(lines) if "stays inside" in line)


def test_a_low_terminal_keeps_the_table() -> None:
    lines = frame(figures("everyday-klt-anchored-64"), 80, 14)
    assert len(lines) < 15
    assert all(any(line.startswith(feature) for line in lines) for feature in SHOWN)


@pytest.mark.parametrize(
    ("file", "expected"), [("a.jpg", "expected a name that ends with .png"), ("none/a.png", "no such directory")]
)
def test_a_picture_that_cannot_be_drawn_is_refused_at_once(
    file: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["demo", "--picture", str(tmp_path / file)])
    said = capsys.readouterr()
    assert said.err == f"eyestream demo: --picture {tmp_path / file}: {expected}\n"
    assert said.out == ""
