"""A command that takes its time says so: a bar at a terminal, elsewhere a line now and then."""

import io
import time

import pytest

from eyestream.cli.progress import Line, Progress, busy


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    moment = [100.0]
    monkeypatch.setattr("eyestream.cli.progress.time.monotonic", lambda: moment[0])
    return moment


def test_in_a_pipe_a_line_every_half_minute(now: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    line = Line()
    for second in range(100):
        now[0] = 100.0 + second
        line(f"{second} of 100 cells done")
    line.clear()
    assert capsys.readouterr().err.splitlines() == [f"{second} of 100 cells done" for second in (30, 60, 90)]


def test_at_a_terminal_a_bar_and_what_is_left(now: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("COLUMNS", "72")
    counted = Progress("read", 8, "recordings")
    for done in (0, 2, 8):
        now[0] = 100.0 + 3.0 * done
        counted(done)
    counted.clear()
    assert terminal.getvalue().split("\r\033[K")[1:] == [
        "[                    ] read: 0 of 8 recordings",
        "[#####               ] read: 2 of 8 recordings, about 18 s left",
        "[####################] read: 8 of 8 recordings",
        "",
    ]


def test_no_line_is_wider_than_the_terminal(now: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("COLUMNS", "40")
    Line()("a recording with a name that is longer than the terminal is wide")
    assert len(terminal.getvalue().removeprefix("\r\033[K")) == 39


def test_what_cannot_be_counted_says_how_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with busy("learning") as counted:
        counted(3, 4)
        deadline = time.monotonic() + 10.0
        while "learning: 3 of 4 done, " not in terminal.getvalue():
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert terminal.getvalue().endswith("\r\033[K")
