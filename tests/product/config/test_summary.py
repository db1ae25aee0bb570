"""`init` and `guarantee` say in few lines what one gets; every measured figure is a saved one."""

import argparse
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from eyestream.cli.main import main
from eyestream.cli.options import add_broker
from eyestream.core.purposes import PURPOSES, choose, measured
from eyestream.rim import config
from eyestream.rim.config.purposes import load_table
from eyestream.rim.plan import load
from eyestream.rim.plan.summary import summary
from eyestream.rim.plan.words import MOST_IN_SHORT

COMMAND = [sys.executable, "-c", "from eyestream.cli.main import main; main()"]


def summarised(folder: Path, *pairs: tuple[str, str]) -> dict[str, str]:
    main(["init", str(folder)])
    path = folder / "sidecar.toml"
    text = path.read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    path.write_text(text)
    return dict(summary(load(path).streams["features"]))


def test_ten_lines_come_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = summarised(tmp_path / "a")
    assert len(lines) == 10
    capsys.readouterr()
    main(["guarantee", "--config", str(tmp_path / "a" / "sidecar.toml")])
    short, _, full = capsys.readouterr().out.partition("\nThe full text")
    assert [line.split("  ")[0] for line in short.splitlines() if line[0] != " "] == list(lines)
    assert "4.8-differential privacy (pure)" in full
    row = next(
        row for row in load_table()["rows"] if row["calibration"] == "everyday-klt-anchored-64" and row["minute"] == 9.0
    )
    assert lines["first chunk"].startswith("96 s after the first row")
    assert lines["signal"].startswith(
        f"R squared of a stranger's changes over time: {row['middle_own']:.2f} in the median"
    )
    assert f"mean {row['distinct_own']:.2f} " in lines["signal"]
    assert f"blinks {row['features']['blink_rate']['correlation']:.2f}" in lines["correlations"]
    assert lines["recognised"].startswith(f"{row['rate']:.0%} of 15 strangers")
    assert f"area under the ROC curve {row['area']:.2f} [" in lines["recognised"]
    assert lines["levels"].startswith("not released")
    assert "a blink in the first 64 s, which enters all later chunks, with up to 1152." in lines["protects"]
    assert lines["protects"].endswith("to at most 1152 a session and 2304 a day")
    for said in ("in use", "head motion, voice and scene", "who somebody is", "losses of many add up"):
        assert said in lines["not protected"]


def in_short(path: Path) -> str:
    """What applications read of it, in the words of `meta`."""
    words = load(path / "sidecar.toml").streams["features"].meta.guarantee.splitlines()
    assert words[0].startswith("claim: ")
    return words[1].removeprefix("in short: ")


@pytest.mark.parametrize("purpose", [None, *PURPOSES])
def test_meta_says_in_a_line_what_a_stream_gives(purpose: str | None, tmp_path: Path) -> None:
    main(["init", *([] if purpose is None else ["--purpose", purpose]), str(tmp_path / "a")])
    said, wish = in_short(tmp_path / "a"), PURPOSES[purpose or "unrecognised"]
    expected = choose(wish, load_table()["rows"]).expected
    assert said.startswith(f"measured, not promised: {expected['middle_own']:.2f} of the variance of a stranger's")
    assert f"(mean {expected['distinct_own']:.2f}, 1: all)" in said
    assert ("no levels" in said) == wish.hide_identity
    assert said.endswith(" a day")
    assert len(said.encode()) <= MOST_IN_SHORT


def test_meta_says_that_nothing_was_measured(tmp_path: Path) -> None:
    main(["init", "--mechanism", "cfpa", str(tmp_path / "a")])
    assert in_short(tmp_path / "a").startswith("the signal was not measured")


@pytest.mark.parametrize(
    "pairs",
    [
        [("epsilon = 4.8", "epsilon = 0.48")],
        [("everyday-klt-anchored-64", "everyday-cfpa-32")],
    ],
    ids=["price", "calibration"],
)
def test_nothing_is_said_of_what_was_not_measured(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    lines = summarised(tmp_path / "a", *pairs)
    assert lines["signal"].startswith("not measured")
    assert not {"correlations", "recognised", "measured on"} & lines.keys()


def test_a_figure_between_two_measured_ones_is_between_them() -> None:
    rows = load_table()["rows"]
    low, middle, high = (measured(rows, "everyday-klt-mapped-32", minute) for minute in (9.0, 12.0, 18.0))
    assert low is not None
    assert middle is not None
    assert high is not None
    assert low[0]["distinct_own"] < middle[0]["distinct_own"] < high[0]["distinct_own"]
    assert middle[1] is high[1]
    assert measured(rows, "everyday-klt-mapped-32", 8.9) is None


def test_without_a_terminal_the_default_is_taken_and_said(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "init", str(tmp_path / "a")], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    assert "there is no terminal to ask: this is the default, `unrecognised`." in done.stdout
    for purpose, wish in PURPOSES.items():
        choice = choose(wish, load_table()["rows"])
        (line,) = [line for line in done.stdout.splitlines() if line.startswith(f"{purpose} ") and "%" in line]
        assert f" {choice.epsilon:g} " in line
        assert f" {wish.epsilon_per_minute:g} " in line
        assert f" {choice.expected['middle_own']:.2f} " in line
        assert line.endswith(f"{choice.above['rate']:.0%}")
    privacy = config.load(tmp_path / "a" / "sidecar.toml").stream[0].privacy
    usual = choose(PURPOSES["unrecognised"], load_table()["rows"])
    assert (privacy.purpose, privacy.calibration, privacy.epsilon) == (None, usual.calibration, usual.epsilon)


@pytest.mark.parametrize(("answer", "purpose"), [("trends", "trends"), ("trend\nadapt", "adapt"), ("", None)])
def test_at_a_terminal_the_purpose_is_asked_for(answer: str, purpose: str | None, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "init", str(tmp_path / "a")], stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True
    )
    os.close(theirs)
    os.write(ours, f"{answer}\n".encode())
    said = b""
    while b"next  " not in said:
        said += os.read(ours, 4096)
    assert process.wait(timeout=60) == 0
    os.close(ours)
    assert b"purpose (adapt, trends, unrecognised; Enter: unrecognised): " in said
    assert (b"did you mean trends?" in said) == (answer == "trend\nadapt")
    assert config.load(tmp_path / "a" / "sidecar.toml").stream[0].privacy.purpose == purpose


def test_init_takes_a_broker_and_commands_go_where_it_goes_by_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = argparse.ArgumentParser()
    add_broker(parser)
    main(["init", str(tmp_path / "a")])
    assert config.load(tmp_path / "a" / "sidecar.toml").private.url == parser.parse_args([]).broker
    for more in ([], ["--purpose", "trends"], ["--mechanism", "cfpa"]):
        folder = tmp_path / "-".join(["b", *more])
        main(["init", "--broker", "mqtt://localhost:1884", *more, str(folder)])
        assert config.load(folder / "sidecar.toml").private.url == "mqtt://localhost:1884"
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["init", "--broker", "http://localhost", str(tmp_path / "c")])
    assert "--broker http://localhost: expected mqtt://host[:port]" in capsys.readouterr().err
    assert not (tmp_path / "c").exists()
