"""`eyestream study --datasets` on a small corpus: every cell once, a page with tables, refusals in a line."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream_lab.corpora.registry import SYSTEMS
from eyestream_lab.releases import study
from eyestream_lab.releases.gaze import EVENTS
from eyestream_lab.releases.plans import key_of, systems
from eyestream_lab.releases.published import PUBLISHED
from tests.lab.releases.test_gaze import moved

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four people at two tasks, a minute each."""
    folder = tmp_path_factory.mktemp("people") / "in"
    folder.mkdir()
    lines = ["participant_id\trecording\ttask"]
    for person in range(4):
        for at, task in enumerate(("READ", "PLAY")):
            xy = moved(10 * person + at, 0.05 * (person + 1), 12 + 6 * person)
            table = [f"{i / 60:.6f},{x:.4f},{y:.4f}" for i, (x, y) in enumerate(xy)]
            name = f"P{person}_{task}.csv.gz"
            (folder / name).write_bytes(gzip.compress("\n".join(["t_s,x_deg,y_deg", *table]).encode()))
            lines.append(f"P{person}\t{name}\t{task}")
    (folder / "participants.tsv").write_text("\n".join(lines) + "\n")
    return folder


def test_a_page_and_cells_that_are_not_made_again(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["study", "--datasets", str(corpus), "--out", str(tmp_path), "--quick"]
    main([*words, "--only", "k-same-select", "saliency-gaussian", "gaussian"])
    page = (tmp_path / "datasets.md").read_text()
    assert "| raw |" in page
    assert "| k-same-select, k = 2 |" in page
    assert "| gaussian, sd_deg = 10 |" in page
    assert "give its folder, and its name (--corpus dgaze, ehtask, et-dk2," in page
    assert "| gaussian, sd_deg = 10 | person, networks on events | et-dk2 | 0.30 |" in page
    cells = {path.name: json.loads(path.read_text()) for path in (tmp_path / "cells").iterdir()}
    assert len(cells) == 4
    raw, noisy, maps = (
        next(cell for name, cell in cells.items() if name.startswith(n)) for n in ("raw", "gaussian", "saliency")
    )
    assert 0 < maps["kl"] < 5
    assert len(raw["recognised"][EVENTS]["raw"]) == 4
    assert np.mean(raw["recognised"][EVENTS]["raw"]) > np.mean(noisy["recognised"][EVENTS]["raw"])
    assert noisy["kl"] > raw["kl"] == 0.0

    def twice(*given: object) -> None:
        raise AssertionError

    monkeypatch.setattr(study, "_prepared", twice)
    main([*words, "--only", "k-same-select", "saliency-gaussian", "gaussian"])
    assert (tmp_path / "datasets.md").read_text() == page


def test_it_is_refused_in_one_line(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["study", "--datasets", str(corpus), "--out", str(tmp_path), "--only", "k-same"])
    assert "--only k-same: expected k-same-select" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["study", "--datasets", str(corpus), "--out", str(tmp_path), "--attack", "forest"])
    assert "--attack: with --datasets expected deep or nothing" in capsys.readouterr().err


def test_every_system_is_studied_and_every_published_line_is_a_cell() -> None:
    assert {name for name, _ in systems()} == set(SYSTEMS) - {"chunks", "temporal", "smoothing"}
    keys = {key_of(*one) for one in systems()}
    assert len(keys) == len(systems())
    assert {one.line for one in PUBLISHED} <= keys | {"raw"}
    names = [name for name, _ in systems()]
    assert len(set(names)) == len(set(names[: len(set(names))]))  # the first of each comes before the second of any
