"""`eyestream guarantee CLAIM`: what is claimed of a recording that somebody has released."""

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.rim.files import recordings
from eyestream.rim.files.recordings import Recording
from eyestream_lab.simulation.people import NAMES, load_statistics, simulate

PRIVATIZE = ["privatize", "--calibration", "everyday-klt-anchored-64", "--epsilon", "4.8"]


@pytest.fixture(scope="module")
def claim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a release."""
    folder = tmp_path_factory.mktemp("released")
    (rows,) = simulate(load_statistics(), 1, 200.0, 7)
    one = Recording(np.arange(len(rows)) / 2.0, rows.astype(np.float64), NAMES, simulated=True)
    recordings.save(one, folder / "a.npz")
    main([*PRIVATIZE, "--out", str(folder / "out"), str(folder / "a.npz")])
    return folder / "out" / "a.npz.claim.json"


def said(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line of a refusal."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        main(["guarantee", *words])
    error = capsys.readouterr().err
    assert (end.value.code, error.count("\n")) == (2, 1)
    return error


def test_it_says_all_that_is_claimed(claim: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told: dict[str, Any] = json.loads(claim.read_text())
    main(["guarantee", str(claim)])
    text = " ".join(capsys.readouterr().out.split())
    chunks, epsilon = told["chunks"], told["epsilon"]
    assert f"chunks released: {chunks}. Together they cost epsilon {epsilon:g}. Another release" in text
    made = told["claim"]
    for sentence in (told["t"], made["statement"], made["law"], made["attacker"], *made["trusted"]):
        assert sentence in text
    for sentence in made["not_protected"]:
        assert f"not protected {sentence}" in text
    assert "sidecar" not in text, "it is of a file"
    assert "another release of the same recording" in text


def test_the_last_line_of_a_release_is_the_command_that_says_it(
    claim: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([*PRIVATIZE, "--out", str(claim.parent / "its own"), str(claim.parents[1] / "a.npz")])
    said, command = capsys.readouterr().out.splitlines()[-1].split(": ")
    assert said == "What is claimed of a release, in words for who receives it"
    program, *words = shlex.split(command)
    main(words)
    assert program == "eyestream"
    assert "Another release of the same recording adds to that" in " ".join(capsys.readouterr().out.split())


def test_a_claim_without_differential_privacy_names_no_epsilon(
    claim: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = json.loads(claim.read_text())
    made = {key: told["claim"][key] for key in ("claim", "version", "mechanism", "calibration", "statement")}
    (path := tmp_path / "b.claim.json").write_text(json.dumps(told | {"epsilon": None, "delta": None, "claim": made}))
    main(["guarantee", str(path)])
    text = capsys.readouterr().out
    assert "No differential privacy is claimed" in text
    assert "cost epsilon" not in text


def test_what_is_no_claim_is_one_line(claim: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither is one that would write to the terminal what no claim has, or one of a version to come."""
    told, path = json.loads(claim.read_text()), tmp_path / "c.claim.json"
    made = told["claim"]
    for text in (
        "",
        "[]",
        json.dumps({"claim": made}),
        json.dumps(told | {"chunks": -1}),
        json.dumps(told)[:-1] + ', "more": ' + "[" * 100_000,
        json.dumps(told | {"claim": made | {"claim": 2}}),
        json.dumps(told | {"claim": made | {"statement": "all is well\x1b[2J"}}),
    ):
        path.write_text(text)
        assert f"{path}: is no claim of a released recording: expected NAME.claim.json" in said([str(path)], capsys)
    assert f"{tmp_path}: is a folder" in said([str(tmp_path)], capsys)
    assert "is no claim of a released recording" in said([str(claim).removesuffix(".claim.json")], capsys)
    for words in ([], [str(claim), "--config", "x.toml"]):
        assert "expected --config FILE, or the CLAIM of a released recording" in said(words, capsys)
    assert "--json goes with --config" in said([str(claim), "--json"], capsys)
