"""Coarse gaze from the command line: a new configuration, and the demo with raw gaze beside what is released."""

import json
from pathlib import Path

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.gaze.samples import Samples
from eyestream.rim.plan import load
from eyestream.sdk.subscriber import Chunk
from eyestream_lab.demo.slots import GazeShown


def test_a_new_configuration_of_coarse_gaze_is_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["init", str(tmp_path / "s"), "--mechanism", "tile"])
    said = capsys.readouterr().out
    assert "mechanism      tile" in said
    assert "lasts          a session 4 h 00 min, a day 8 h 00 min of releases\n" in said
    assert "expect         half of the released gaze within 9.6 degrees of the eye" in said
    plan = load(path := tmp_path / "s" / "sidecar.toml")
    assert [(name, stream.mechanism.name) for name, stream in plan.streams.items()] == [("gaze", "tile")]
    stream = plan.streams["gaze"]
    assert "withholds" not in stream.lasting
    text = path.read_text()
    assert 'streams = ["gaze"]' in text
    assert "rate_fixations" not in text
    assert text.count("[budget]") == 1
    source = '[source]\nkind = "neon"\n[source.options]\nhost = "10.0.0.1"\n'
    path.write_text(f"{text}\n{source}")
    with_source = load(path)
    assert len(with_source.sources()) == 1
    touched = with_source.streams["gaze"].spec.chunks_touched(1, 2.0)
    assert touched == with_source.settings.budget.window_chunks  # of 2 s of live gaze nothing is withheld


def test_the_demo_releases_slots_and_says_what_they_cost(capsys: pytest.CaptureFixture[str]) -> None:
    main(["demo", "--stream", "gaze", "--seconds", "2", "--speed", "4", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert 4 <= told["slots"] <= 9
    assert told["epsilon_session"] == pytest.approx(told["slots"] * 10 / 3)
    assert told["median_deg_from_raw"] > 0


def test_the_demo_of_gaze_takes_no_tracker(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["demo", "--stream", "gaze", "--source", "lsl:x"])
    assert "the demo of gaze plays a simulated person" in capsys.readouterr().err


def test_raw_and_private_gaze_stand_in_one_field() -> None:
    shown = GazeShown()
    assert shown.line() == "private: no slot yet"
    assert "X" not in "".join(shown.gaze.picture(13))
    shown.gaze.watch(Samples.of([0.0], [-20.0], [12.0]))
    values = np.array([[10.0], [-6.0], [4.0]], np.float32)
    names = ("gaze_x", "gaze_y", "gaze_error")
    shown.received(Chunk(1, 0, names, np.zeros(1), values, 3.0, 0.0, "claim: none"))
    lines = shown.picture().splitlines()
    assert "10.0 deg right, 6.0 deg down, +- 4.0 deg   epsilon 3 so far" in shown.line()
    assert lines[2][1] == "@"
    rows = [row for row, line in enumerate(lines[2:-3]) if "X" in line]
    assert len(rows) == 1
    assert sum(line.count("+") for line in lines[2:-3]) == 4
