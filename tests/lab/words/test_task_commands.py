"""Task words by commands: a judge from labelled recordings, and recordings of people who are sessions."""

import json
from pathlib import Path

import numpy as np
import pytest

from eyestream.cli import main as command
from eyestream.rim.files import calibrations, recordings
from tests.lab.words.people import TASKS, people


def run(*words: object) -> None:
    command.main([str(word) for word in words])


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Of six people, three recordings each, and `who.tsv` beside them."""
    found, lines = [], ["participant_id\trecording\tage\ttask"]
    for i, own in enumerate(people(6, 1, sessions=4)):
        for j, one in enumerate(own):
            found.append(tmp_path / f"p{i}-{j}.npz")
            recordings.save(one.rows, found[-1])
            lines.append(f"p{i}\t{found[-1].name}\t30\t{one.task}")
    (tmp_path / "who.tsv").write_text("\n".join(lines) + "\n")
    return found


def test_labels_make_a_judge_and_recordings_are_sessions(
    files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    who, made, out = tmp_path / "who.tsv", tmp_path / "words.npz", tmp_path / "out"
    run("calibrate", *files[8:], "--labels", who, "--task", "task", "--chunk", 4, "--pseudonym", 3, "--out", made)
    said = capsys.readouterr().out
    assert "task-words, chunks of 4 rows, 3 words (browse, play, read), 16 recordings of 4 people" in said
    assert "of 64 chunks have the right word, 0.33 by chance" in said
    remembering = calibrations.load(made).takes_off
    assert remembering is not None
    assert remembering.sessions == 3
    run("privatize", *files[:8], "--participants", who, "--calibration", made, "--epsilon", 4, "--out", out)
    claims = [json.loads((out / f"{path.name}.claim.json").read_text()) for path in files[:8]]
    assert [claim["chunks"] for claim in claims] == [0, 8, 8, 0] * 2
    first, second = (recordings.load(out / path.name) for path in files[:2])
    assert np.isnan(first.features).all()
    assert second.names == TASKS
    np.testing.assert_allclose(second.features.sum(axis=1), 1.0, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("--task tsk", "has no column 'tsk'; did you mean task?"),
        ("--chunk 5", "--chunk must be a power of two, not 5"),
        ("--pseudonym 1", "a pseudonym needs at least 2 sessions, not 1"),
        ("--mechanism klt", "--mechanism is not for --labels"),
        ("--linear", "--linear is not for --labels"),
        ("--labels nowhere.tsv", "nowhere.tsv: cannot be read: No such file or directory"),
    ],
)
def test_what_makes_no_judge_is_one_line(
    change: str, said: str, files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["calibrate", *files, "--labels", tmp_path / "who.tsv", "--task", "task", "--chunk", 4]
    with pytest.raises(SystemExit):
        run(*words, "--out", tmp_path / "no.npz", *change.split())
    assert said in capsys.readouterr().err
    assert not (tmp_path / "no.npz").exists()


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("participant_id\ttask\np0\tread\n", "line 1: expected one column 'recording'"),
        ("participant_id\trecording\ttask\np0\tp0-0.npz\n", "line 2: expected 3 cells, and each recording once"),
        ("participant_id\trecording\ttask\np0\tp0-0.npz\tread\n", "has no line for the recording p0-1.npz"),
    ],
)
def test_a_table_that_cannot_be_used_is_one_line(
    table: str, said: str, files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "who.tsv").write_text(table)
    with pytest.raises(SystemExit):
        run(
            *("calibrate", *files, "--labels", tmp_path / "who.tsv", "--task", "task", "--chunk", 4),
            *("--out", tmp_path / "no.npz"),
        )
    assert said in capsys.readouterr().err


def test_options_that_do_not_fit_are_one_line(
    files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, out = tmp_path / "words.npz", tmp_path / "out"
    who = ("--labels", tmp_path / "who.tsv")
    run("calibrate", *files[2:], *who, "--task", "task", "--chunk", 4, "--out", made)
    for words, said in (
        (("--whole",), "--whole: not for a calibration with a history"),
        (("--epsilon-prime", 1), "of a calibration with a pseudonym's history the class says nothing"),
    ):
        with pytest.raises(SystemExit):
            run("privatize", *files[:2], "--calibration", made, "--epsilon", 4, "--out", out, *words)
        assert said in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run("fit", files[0], "--calibration", made)
    assert "the calibration takes a history off" in capsys.readouterr().err
