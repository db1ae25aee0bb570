"""`eyestream study` knows whose recordings are whose, asks where names leave it open, and leaves short ones out."""

from pathlib import Path

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.errors import ConfigError
from eyestream_lab.cli import study
from eyestream_lab.study.named import check_one_person_each, people_of

NAMES = ["P01_read", "P01_write", "P02_read"]


def persons(answer: str) -> list[str]:
    return [row["person"] for row in people_of(NAMES, answer).values()]


def test_a_table_a_pattern_or_each(tmp_path: Path) -> None:
    table = tmp_path / "participants.tsv"
    table.write_text("participant_id\trecording\nA\tP01_read.csv.gz\nB\tP01_write.csv\nB\tP02_read\n")
    assert persons(str(table)) == ["A", "B", "B"]
    table.write_text("recording,person\nP01_read,x\nP01_write,x\nP02_read,y\n")
    assert persons(str(table)) == ["x", "x", "y"]
    assert persons("(P[0-9]+)_") == ["P01", "P01", "P02"]
    assert persons("each") == NAMES


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("(Q[0-9]+)_", "tells no person of recording P01_read"),
        ("P[0-9]+_", "one (group)"),
        ("(", "no regular expression"),
    ],
)
def test_an_answer_that_cannot_be_used_is_refused(answer: str, told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        persons(answer)
    assert told in str(refused.value)


def test_a_table_that_contradicts_itself_or_lacks_somebody_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "who.csv"
    table.write_text("recording,person\nP01_read,x\nP01_read,y\n")
    with pytest.raises(ConfigError, match="has two people"):
        persons(str(table))
    table.write_text("recording,person\nP01_read,x\nP01_write,\n")
    with pytest.raises(ConfigError, match="tells no person of recording P01_write"):
        persons(str(table))
    table.write_text("name,person\nP01_read,x\n")
    with pytest.raises(ConfigError, match="expected the columns recording, and participant_id or person"):
        persons(str(table))


@pytest.mark.parametrize("names", [NAMES, ["sub-1_a", "sub-1_b", "sub-2_a"], ["ann-1", "ann-2", "bob-1"]])
def test_names_that_may_be_of_one_person_are_asked_about(names: list[str]) -> None:
    with pytest.raises(ConfigError, match="may be of one person"):
        check_one_person_each(names)


@pytest.mark.parametrize(
    "names", [["P01", "P02"], ["user_1", "user_2"], ["P1_read", "P2_read"], ["sub-1_a", "sub-2_a"]]
)
def test_names_of_a_person_each_are_not(names: list[str]) -> None:
    check_one_person_each(names)


def gaze(path: Path, seconds: float) -> None:
    rng = np.random.default_rng(len(path.name))
    t = np.arange(0, seconds, 1 / 60)
    xy = np.repeat(rng.uniform(-9, 9, (len(t) // 20 + 1, 2)), 20, axis=0)[: len(t)]
    lines = [f"{a:.4f},{x:.3f},{y:.3f}" for a, (x, y) in zip(t, xy, strict=True)]
    path.write_text("\n".join(["t_s,x_deg,y_deg", *lines]) + "\n")


def test_short_recordings_are_left_out_counted_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, seconds in (("P1_a", 40.0), ("P1_b", 40.0), ("P2_a", 40.0), ("P3_a", 12.0), ("P4_a", 29.0)):
        gaze(tmp_path / f"{name}.csv", seconds)
    got = []

    def told(options: object, loaded: list[object], labels: object) -> Path:
        got.append((len(loaded), labels))
        return tmp_path

    monkeypatch.setattr(study, "_study", told)
    words = ["study", str(tmp_path), "--profile", "degrees", "--out", str(tmp_path / "out")]
    main([*words, "--people", "(P[0-9])_"])
    assert (
        "2 of 5 recordings are shorter than the 30 s of a row and left out: P3_a.csv, P4_a.csv"
        in capsys.readouterr().err
    )
    assert got == [(3, {"P1_a": {"person": "P1"}, "P1_b": {"person": "P1"}, "P2_a": {"person": "P2"}})]
    with pytest.raises(SystemExit):
        main(words)
    assert "P1_a and P1_b may be of one person" in capsys.readouterr().err
    assert len(got) == 1
