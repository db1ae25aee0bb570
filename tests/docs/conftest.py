"""What the pages suppose that their readers have."""

import gzip
import shutil
from pathlib import Path

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.rim.files import calibrations, recordings
from eyestream.rim.files.recordings import Recording
from eyestream_lab.calibration import Corpus, calibrate
from tests.rigs.pages import ROOT


@pytest.fixture(scope="module")
def supposed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with gaze, rows, people at tasks, a deployment and the repository."""
    folder = tmp_path_factory.mktemp("supposed")
    for name in ("config", "examples", "tests", "tools"):
        (folder / name).symlink_to(ROOT / name)
    simulated(folder / "people", "--people 10 --seconds 100 --seed 1")
    lines = [f"P{at // 2}\tsim-00{at}.npz\t{('READ', 'PLAY')[at % 2]}" for at in range(10)]
    (folder / "people" / "participants.tsv").write_text("\n".join(["participant_id\trecording\ttask", *lines, ""]))
    shutil.copy(folder / "people" / "participants.tsv", folder / "who.tsv")
    shutil.copytree(folder / "people", folder / "recordings")
    simulated(folder / "wearers", "--people 3 --seconds 200 --seed 2")
    lines = [f"p1\tsim-00{at}.npz" for at in range(3)]
    (folder / "wearers.tsv").write_text("\n".join(["participant_id\trecording", *lines, ""]))
    for at, name in enumerate(("monday", "tuesday", "friday")):
        shutil.copy(folder / "wearers" / f"sim-00{at}.npz", folder / f"p1_{name}.npz")
    simulated(folder / "viewers", "--people 4 --seconds 200 --seed 1 --gaze --rate 60")
    lines = [f"V{at}\tsim-00{at}.csv\tREAD" for at in range(4)]
    (folder / "viewers" / "participants.tsv").write_text("\n".join(["participant_id\trecording\ttask", *lines, ""]))
    shutil.copy(folder / "viewers" / "sim-000.csv", folder / "GAZE.csv")
    hand = Recording(np.arange(400) / 50, np.random.default_rng(0).random((400, 3)), ("x", "y", "z"), "hand")
    calibrations.save(calibrate("cfpa", Corpus.of([hand], 32)), folder / "hand.npz")
    (folder / "slots").mkdir()
    recordings.save(Recording(np.arange(20.0), np.arange(20.0)[:, None] % 5, ("activity",)), folder / "slots" / "a.npz")
    main(["init", str(folder / "etc" / "eyestream")])
    (folder / "GAZE").mkdir()
    for person, at in (("P01", 0), ("P03", 1)):
        for place in (folder / "GAZE", folder):
            with gzip.open(place / f"{person}.csv.gz", "wt") as file:
                file.write(of_a_scene_camera((folder / "viewers" / f"sim-00{at}.csv").read_text()))
    return folder


def simulated(folder: Path, words: str) -> None:
    main(["simulate", *words.split(), "--out", str(folder)])


def of_a_scene_camera(table: str) -> str:
    """Degrees as the profile `smi-glasses` has them, where 60 by 46 of them fill the picture."""
    lines = ["t_s,x,y,pupil_right_mm,pupil_left_mm,event"]
    for line in table.splitlines()[1:]:
        t, x, y, pupil, label = line.split(",")
        place = f"{0.5 + float(x) / 60},{0.5 - float(y) / 46}" if x else ","
        lines.append(f"{t},{place},{pupil},{pupil},{label}")
    return "\n".join([*lines, ""])
