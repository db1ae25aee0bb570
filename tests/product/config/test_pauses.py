"""A pause that ends a session is at least as long as what a row describes, where each session has a baseline."""

import re
from pathlib import Path

import msgspec
import pytest

from eyestream.cli.main import main
from eyestream.errors import ConfigError
from eyestream.rim import config
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.plan import resolved


@pytest.fixture
def path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The default configuration, which takes baselines of rows over 30 s."""
    main(["init", str(tmp_path / "s")])
    capsys.readouterr()
    return tmp_path / "s" / "sidecar.toml"


def changed(path: Path, *pairs: tuple[str, str]) -> Path:
    text = path.read_text()
    for old, new in pairs:
        text, count = re.subn(old, new, text)
        assert count == 1, old
    path.write_text(text)
    return path


SHORT = (r"(?m)^idle_s = 60\.0", "idle_s = 29.9")


@pytest.mark.parametrize(
    "command", ["check --config-only --config", "check --config", "run --config", "guarantee --config"]
)
def test_a_shorter_pause_is_refused_in_one_line(path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    changed(path, SHORT)
    with pytest.raises(SystemExit):
        main([*command.split(), str(path)])
    told = capsys.readouterr()
    [line] = [line for line in (told.out + told.err).splitlines() if "idle_s" in line]
    assert "[[stream]] idle_s = 29.9: expected at least 30 (window_s = 30 and memory_s = 0)" in line
    assert "baseline" in line


def test_a_reload_keeps_what_was(path: Path) -> None:
    before = config.load(path)
    with pytest.raises(ConfigError, match=r"\[stream\] has changed"):
        resolved(before).lowered(config.load(changed(path, SHORT)))


def test_the_memory_of_the_front_end_counts(path: Path) -> None:
    """Whether the configuration tells it, or the profile of a source in this process has it."""
    changed(path, (r"(?m)^# memory_s = 0\.0 ", "memory_s = 30.5"))
    with pytest.raises(ConfigError, match=r"idle_s = 60: expected at least 60\.5 \(window_s = 30 and memory_s = 30\.5"):
        resolved(config.load(path))


def test_the_memory_of_a_source_counts(path: Path) -> None:
    memory_s = load_profile("neon").memory_s
    changed(path, SHORT, (r"(?m)^# \[source\]\n# kind", "[source]\nkind"))
    with pytest.raises(ConfigError, match=rf"expected at least {30 + memory_s:.8g} "):
        resolved(config.load(path))


def test_just_as_long_a_pause_will_do(path: Path) -> None:
    settings = config.load(changed(path, (SHORT[0], "idle_s = 30.0")))
    assert resolved(settings).streams.keys() == {"features"}


@pytest.mark.parametrize("calibration", ["everyday-klt-one-64", "everyday-cfpa-64"])
def test_without_a_baseline_any_pause_will_do(path: Path, calibration: str) -> None:
    """Every chunk of the tracker's grid is released once, whatever breaks a session off."""
    other = ("everyday-klt-anchored-64", calibration)
    settings = config.load(changed(path, other, (SHORT[0], "idle_s = 1.0")))
    [(served, _)] = resolved(settings).served.values()
    assert served.apart == 0


def test_so_many_rows_are_left_out_that_no_second_of_gaze_enters_both_sides(path: Path) -> None:
    """2 rows a second over 30 s: one second of gaze enters 62 consecutive rows."""
    settings = config.load(path)
    [(served, _)] = resolved(settings).served.values()
    assert served.apart == 61
    [longer] = [msgspec.structs.replace(stream, memory_s=1.3) for stream in settings.stream]
    [(served, _)] = resolved(msgspec.structs.replace(settings, stream=(longer,))).served.values()
    assert served.apart == 64
