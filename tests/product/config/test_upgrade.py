"""A configuration of version 0.1.0 still starts, says so in one line, and can be rewritten with its comments."""

import re
from pathlib import Path

import pytest

from eyestream.cli.main import main
from eyestream.errors import ConfigError
from eyestream.rim import config
from eyestream.rim.config.upgrade import upgraded_text
from eyestream.rim.mqtt.endpoint import Endpoint

OLD = (Path(__file__).parent / "sidecar-0.1.0.toml").read_text()


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "sidecar.toml"
    path.write_text(text)
    return path


def comments(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("#")]


def test_it_is_read_and_says_what_changed(tmp_path: Path) -> None:
    lines: list[str] = []
    settings = config.load(write(tmp_path, OLD), lines.append)
    (stream,) = settings.stream
    assert (stream.name, stream.schema, stream.privacy.epsilon) == ("features", 1, 4.8)
    (line,) = lines
    assert "written for 0.1.0" in line
    assert "init --upgrade" in line


def test_the_form_of_today_says_nothing(tmp_path: Path) -> None:
    lines: list[str] = []
    config.load(write(tmp_path, upgraded_text(OLD)), lines.append)
    assert lines == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("schema = 1", "schema = 1\nschemas = 1", "[stream] schemas: unknown key"),
        ("epsilon = 4.8", 'epsilon = "4.8"', "[privacy] epsilon: expected a number above 0, found"),
        ("epsilon = 4.8", "epsilon = nan", "[privacy] epsilon: expected a finite number"),
        ("epsilon = 4.8", "", "[privacy] epsilon: missing"),
        ("[privacy]", "[privatsphere]", "[privatsphere]: unknown key"),
        ('release = "on_row"', 'release = "sometimes"', "[stream] release: expected 'on_clock' or 'on_row'"),
        ('"rate_fixations", ', "7, ", "[stream] names[0]: expected a text without control characters, found 7"),
        ("rate_hz = 2.0 ", "rate_hz = -2.0 ", "[stream] rate_hz: expected a number above 0"),
    ],
)
def test_a_mistake_keeps_its_reason(tmp_path: Path, old: str, new: str, said: str) -> None:
    """In the words of the file: it knows no [[stream]]."""
    assert old in OLD
    with pytest.raises(ConfigError) as caught:
        config.load(write(tmp_path, OLD.replace(old, new, 1)))
    assert said in str(caught.value)


def test_without_privacy_it_is_missing(tmp_path: Path) -> None:
    text = re.sub(r"\[privacy\].*?(?=\n# Ceilings)", "", OLD, flags=re.DOTALL)
    with pytest.raises(ConfigError, match=r"\[privacy\]: missing"):
        config.load(write(tmp_path, text))


def privacy_first(text: str) -> str:
    """The same file with [privacy] above [stream]."""
    block = re.search(r"# How chunks are released.*?(?=# Ceilings)", text, flags=re.DOTALL)
    assert block is not None
    rest = text.replace(block[0], "")
    return rest.replace("# What the trackers send", block[0] + "# What the trackers send", 1)


@pytest.mark.parametrize(
    "text", [OLD, privacy_first(OLD), OLD.rstrip("\n"), OLD.replace("[stream]", "  [ stream ]  # t")]
)
def test_rewritten_it_says_the_same_and_keeps_its_comments(tmp_path: Path, text: str) -> None:
    before = config.load(write(tmp_path, text))
    new = upgraded_text(text)
    assert config.load(write(tmp_path, new)) == before
    assert sorted(comments(new)) == sorted(comments(text))


@pytest.mark.parametrize("text", ["", "[stream]\n", "[privacy]\n", upgraded_text(OLD)])
def test_what_is_none_of_that_version_is_not_rewritten(text: str) -> None:
    with pytest.raises(ConfigError, match=r"0\.1\.0"):
        upgraded_text(text)


def test_the_command_rewrites_and_keeps_what_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, OLD)
    path.chmod(0o600)
    settings = config.load(path)
    main(["init", "--upgrade", str(path)])
    assert config.load(path, pytest.fail) == settings
    assert path.with_name("sidecar.toml.0.1.0").read_text() == OLD
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(tmp_path.iterdir()) == [path, path.with_name("sidecar.toml.0.1.0")]
    assert str(path) in capsys.readouterr().out


def test_the_command_refuses_what_it_cannot_rewrite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, upgraded_text(OLD))
    with pytest.raises(SystemExit, match="2"):
        main(["init", "--upgrade", str(path)])
    assert "0.1.0" in capsys.readouterr().err
    assert path.read_text() == upgraded_text(OLD)
    with pytest.raises(SystemExit, match="2"):
        main(["init"])
    assert "expected a directory" in capsys.readouterr().err


def test_several_streams(tmp_path: Path) -> None:
    """Each with a mechanism of its own; a device may send some of them."""
    text = upgraded_text(OLD)
    second = """
[[stream]]
name = "coarse"
schema = 2
rate_hz = 2.0
window_s = 30.0
memory_s = 1.5
grace_s = 1.0
idle_s = 60.0
release = "on_clock"
names = ["a", "b"]
[stream.privacy]
calibration = "./mine.npz"
epsilon = 1.0
smooth = true
[stream.budget]
day_epsilon = 10.0
"""
    text += second + '\n[[device]]\nid = "two"\nstreams = ["coarse"]\n'
    settings = config.load(write(tmp_path, text))
    assert [stream.name for stream in settings.stream] == ["features", "coarse"]
    assert settings.stream[1].privacy.given == {"smooth": True}
    assert settings.stream[1].privacy.calibration == str(tmp_path / "mine.npz")
    assert [[s.name for s in settings.streams_of(d)] for d in settings.device] == [["features", "coarse"], ["coarse"]]


@pytest.mark.parametrize("client", ["own", "aiomqtt"])
def test_the_client_of_a_link_that_was_chosen_once_is_read_and_does_nothing(tmp_path: Path, client: str) -> None:
    chosen = upgraded_text(OLD).replace("[private]", f'[private]\nclient = "{client}"', 1)
    settings = config.load(write(tmp_path, chosen))
    assert settings.private.client == client
    plain = config.load(write(tmp_path, upgraded_text(OLD)))
    assert Endpoint.of(settings.private) == Endpoint.of(plain.private)
