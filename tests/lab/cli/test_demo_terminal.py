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
from eyestream.gaze.samples import Samples
from eyestream.rim.files import calibrations
from eyestream.sdk.subscriber import Chunk
from eyestream.wire.raw import RawRows
from eyestream.wire.release import Meta
from eyestream_lab.demo.figures import SHOWN, DemoState, Pair
from eyestream_lab.demo.view import frame, table

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
    assert "x true: stays inside   [--o--] private, with its error: goes out   | no change" in text
    assert "rate_saccades, 1/s: change since the first minute" in text
    assert re.search(r"^chunk +2  true +[-+.\de]+  private +[-+.\de]+ \+- +[.\de-]+ ", text, re.MULTILINE)
    assert re.search(r"^how sure  rate_saccades: correlation -?[01]\.\d\d; true value within", text, re.MULTILINE)
    assert picture.read_bytes().startswith(PNG)


def figures(shown: tuple[str, ...], calibration: str = "everyday-asked-64", chunks: int = 12) -> DemoState:
    """A demo in which chunks have come, with figures as wide as they get."""
    known = DemoState(
        calibrations.load(calibration),
        shown,
        rows_total=2560,
        waits="a simulated person at 64 times real time: " + "and so on " * 12,
    )
    known.meta = Meta(
        shown,
        known.units,
        1 / 32,
        1,
        "asked",
        (),
        4.8,
        0.0,
        np.full(len(shown), 1.234e-05, np.float32),
        "claim: 4.8-differential privacy (pure) for one chunk after the baseline of its session, of 64 rows of one "
        "device, all features together, replace-one, local model; losses of chunks add up",
        "00" * 32,
    )
    known.latencies_ms, known.gaze.samples, known.rows = [1.0], 123_456, 2345
    values = np.full((len(shown), 1), -1.234e-05, np.float32)
    known.chunk = Chunk(1, 100, shown, np.zeros(1), values, 4.8, 0.0, known.meta.guarantee)
    flat = np.full(len(shown), -1.234e-05)
    known.pairs = [Pair(100 + i, flat[:, None], flat * i, flat) for i in range(chunks)]
    known.gaze.watch(Samples.of(np.zeros(1), [1.0], [1.0]))
    return known


CHOICES = (
    ("rate_saccades",),
    ("blink_rate", "mean_mean_diameter"),
    ("rate_saccades", "mean_saccade_amplitude", "ratio_positive_saccades"),
    SHOWN,
)


@pytest.mark.parametrize("shown", CHOICES)
@pytest.mark.parametrize("comes", [True, False])
def test_a_frame_has_the_table_first_and_no_line_too_long(shown: tuple[str, ...], comes: bool) -> None:
    known = figures(shown)
    if not comes:
        known.chunk = None
    lines = frame(known, 80, 24)
    assert len(lines) < 24
    assert max(map(len, lines)) < 80
    assert sum("@" in line for line in lines) == 1
    if comes:
        places = [next(i for i, line in enumerate(lines) if line.startswith(f"{feature}")) for feature in shown]
        assert places == sorted(places)
        assert all(lines[place + 1].startswith("chunk ") for place in places)
        assert places[-1] < next(i for i, line in enumerate(lines) if "stays inside   (" in line)


def test_a_low_terminal_keeps_the_table() -> None:
    lines = frame(figures(CHOICES[2]), 80, 14)
    assert len(lines) < 15
    assert all(any(line.startswith(feature) for line in lines) for feature in CHOICES[2])


def rows_of(number: int, rows: np.ndarray) -> RawRows:
    return RawRows(1, number, rows.astype(np.float32))


@pytest.mark.parametrize(("name", "shown"), [("everyday-asked-64", CHOICES[1]), ("everyday-klt-anchored-64", SHOWN)])
def test_the_truth_is_the_change_since_the_first_minute(name: str, shown: tuple[str, ...]) -> None:
    """Of blinks too, of which the mechanism takes roots; where levels go out with a centre, that is subtracted."""
    calibration = calibrations.load(name)
    known, anchor = DemoState(calibration, shown), calibration.anchor
    assert anchor is not None
    rows = np.random.default_rng(4).random((4 * 64, 52))
    known.note(rows_of(0, rows))
    centre = np.ldexp(anchor.centre, -anchor.shift)
    names = shown if name == "everyday-asked-64" else calibration.names
    of = [calibration.names.index(one) for one in names]
    meta = Meta(names, ("1",) * len(names), 1 / 32, 1, name, (), 4.8, 0.0, np.ones(len(names), np.float32), "", "")
    released = np.arange(1.0, len(names) + 1)[:, None]
    for index in (2, 3):
        values = (released + centre[of][:, None]).astype(np.float32)
        known.received(Chunk(7, index, names, np.zeros(1), values, 4.8, 0.0, ""), meta, 0.0)
    own = [calibration.names.index(one) for one in shown]
    for pair, chunk in zip(known.pairs, (rows[128:192], rows[192:]), strict=True):
        np.testing.assert_allclose(pair.truth, (chunk.mean(axis=0) - rows[:128].mean(axis=0))[own], rtol=1e-4)
        np.testing.assert_allclose(pair.released, [1.0 + names.index(one) for one in shown], rtol=1e-4)
    assert [line.partition(":")[0] for line in known.found()] == list(shown)


def test_a_line_shows_truth_and_released_value_on_one_scale() -> None:
    known = figures(("rate_saccades",), chunks=0)
    assert known.meta is not None
    known.meta.noise_sd[:] = 0.5
    for index, (truth, released) in enumerate([(1.5, 0.8), (np.nan, -1.0)]):
        known.pairs.append(Pair(index, np.zeros((1, 1)), np.array([truth]), np.array([released])))
    _, _, *lines = table(known, 80, 9)
    bars = [line.partition("+-    0.5  ")[2] for line in lines]
    assert bars[0].index("|") < bars[0].index("o") < bars[0].index("x")
    assert "|" in bars[1]
    assert bars[1].index("[") < bars[1].index("o") < bars[1].index("]")
    assert "x" not in bars[1]
    assert bars[0].index("o") > bars[1].index("o")


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
