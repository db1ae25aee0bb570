"""Corpora in folders of BIDS, of GazeBase and of fixations, and what is released read by a peer."""

import gzip
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from eyestream.errors import RecordingError
from eyestream.rim.files.profiles import load_profile
from eyestream_lab.corpora.run import release_with
from eyestream_lab.datasets import FIXATIONS, MAPS, gaze_kind, make_system, open_corpus, open_folder, privatize_corpus
from tests.lab.corpora.worlds import RATE_HZ, gaze_corpus, gaze_of, participants, seeded

GAZE = gaze_kind(load_profile("degrees"))


def gaze_lines(seed: int, first: str = "") -> str:
    xy = gaze_of(np.random.default_rng(seed), 8.0, 0.1, np.zeros(2))
    return first + "".join(f"{i / RATE_HZ:.6f}\t{x:.4f}\t{y:.4f}\n" for i, (x, y) in enumerate(xy))


def bids(folder: Path) -> None:
    """Two people, two sessions of a task, both eyes, and a heart that is no gaze."""
    folder.mkdir()
    (folder / "dataset_description.json").write_text("{}")
    (folder / "participants.tsv").write_text("participant_id\tage\nsub-1\t30\nsub-2\t40\n")
    told: dict[str, object] = {"PhysioType": "eyetrack", "Columns": ["t_s", "x_deg", "y_deg"]}
    told |= {"t_s": {"Units": "s"}, "x_deg": {"Units": "deg"}, "y_deg": {"Units": "deg"}}
    for person in ("sub-1", "sub-2"):
        for session in ("ses-a", "ses-b"):
            (beh := folder / person / session / "beh").mkdir(parents=True)
            (beh / f"{person}_{session}_task-rest_physio.tsv.bak").write_text("")
            for eye in ("eye1", "eye2"):
                name = f"{person}_{session}_task-read_recording-{eye}_physio"
                seed = hash_of(person, session, eye)
                (beh / f"{name}.tsv.gz").write_bytes(gzip.compress(gaze_lines(seed).encode()))
                (beh / f"{name}.json").write_text(json.dumps(told))


def hash_of(*words: str) -> int:
    return sum(ord(letter) for word in words for letter in word)


def test_bids_in_and_our_layout_out(tmp_path: Path) -> None:
    bids(tmp_path / "in")
    corpus = open_folder(tmp_path / "in", gaze_kind(load_profile("degrees").at_rate(60.0)))
    assert [(part.person, part.task, part.labels) for part in corpus.parts] == [
        (person, f"read_{session}", (age,))
        for person, age in (("sub-1", "30"), ("sub-2", "40"))
        for session in ("ses-a", "ses-b")
    ]
    assert all("eye1" in part.recording for part in corpus.parts)
    release_with(seeded(1), make_system("k-same-synth", k=2), corpus, tmp_path / "out")
    released = open_folder(tmp_path / "out", GAZE)
    assert [(part.person, part.task, part.labels) for part in released.parts] == [
        (part.person, part.task, part.labels) for part in corpus.parts
    ]
    assert released.label_names == ("age",)
    assert all(len(released.load(part).samples) > 100 for part in released.parts)


def test_gazebase_by_the_names_of_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "Round_1" / "Subject_1001" / "S1" / "S1_Reading"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(2)
    xy = np.repeat(rng.uniform(-10, 10, (20, 2)), 100, axis=0)
    table = "".join(f"{i},{x:.3f},{y:.3f},{int(i % 50 == 7)},0,0,0,0\n" for i, (x, y) in enumerate(xy))
    (folder / "S_1001_S1_TEX.csv").write_text("n,x,y,val,xT,yT,dP,lab\n" + table)
    corpus = open_folder(tmp_path, gaze_kind(load_profile("gazebase")))
    assert [(part.person, part.recording, part.task) for part in corpus.parts] == [
        ("001", "S_1001_S1_TEX.csv", "TEX_S1_R1")
    ]
    samples = corpus.load(corpus.parts[0]).samples
    np.testing.assert_array_equal(samples.valid, np.arange(2000) % 50 != 7)
    assert corpus.survey().rate_hz == 1000.0


def test_folders_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    (tmp_path / "Round_1").mkdir()
    with pytest.raises(RecordingError, match="holds no recording of its layout"):
        open_folder(tmp_path, GAZE)
    for place in ("a", "b"):
        (tmp_path / "Round_1" / place).mkdir()
        (tmp_path / "Round_1" / place / "S_1001_S1_TEX.csv").write_text("")
    with pytest.raises(RecordingError, match="a second recording of this name"):
        open_folder(tmp_path, GAZE)


def test_tables_of_fixations_make_the_map_of_their_places(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    lines = []
    for person in range(6):
        rows = [f"{i},{-7.5 if i % 2 else 12.5},3.5,0.2" for i in range(10)]
        (tmp_path / "in" / f"P{person}.csv").write_text("\n".join(["start_s,x_deg,y_deg,duration_s", *rows, "99,,,"]))
        lines.append((f"P{person}", f"P{person}.csv", "photo"))
    participants(tmp_path / "in", lines)
    corpus = open_corpus(tmp_path / "in", FIXATIONS)
    system = make_system("saliency-gaussian", epsilon=40.0, delta=1e-3, clip=8.0, kernel_deg=0.0)
    release_with(seeded(6), system, corpus, tmp_path / "out")
    released = open_corpus(tmp_path / "out", MAPS)
    found = released.load(released.parts[0])
    top = np.argsort(found.density, axis=None)[-2:]
    row, column = np.unravel_index(top, found.density.shape)
    edges = set(zip(found.x_deg[column].tolist(), found.y_deg[row].tolist(), strict=True))
    assert edges == {(-8.0, 4.0), (12.0, 4.0)}  # left and upper ones


@pytest.mark.slow
def test_a_peer_reads_what_is_released(tmp_path: Path, peer: str) -> None:
    """pymovements 0.28: as many samples, the same degrees, the same rate and the same labels."""
    corpus = gaze_corpus(tmp_path / "in", people=2)
    privatize_corpus(make_system("gaussian", sd_deg=1.0), corpus, tmp_path / "out")
    script = (
        "import json, sys, pymovements as pm; from pathlib import Path; import polars as pl\n"
        "out = Path(sys.argv[1]); table = pl.read_csv(out / 'participants.tsv', separator='\\t')\n"
        "read = lambda name: pm.gaze.from_csv(out / name, time_column='t_s', time_unit='s', "
        "position_columns=['x_deg', 'y_deg'], experiment=pm.Experiment(sampling_rate=60.0))\n"
        "told = {row['participant_id']: read(row['recording']) for row in table.to_dicts()}\n"
        "print(json.dumps({name: [one.samples['time'].to_list(), one.samples['position'].to_list()] "
        "for name, one in told.items()}))\n"
    )
    done = subprocess.run([peer, "-c", script, str(tmp_path / "out")], capture_output=True, text=True, check=True)
    released = open_corpus(tmp_path / "out", GAZE)
    for part in released.parts:
        time_ms, position = json.loads(done.stdout.splitlines()[-1])[part.person]
        samples = released.load(part).samples
        np.testing.assert_allclose(np.array(time_ms) / 1000.0, samples.t, atol=1e-6)
        np.testing.assert_allclose(np.array(position).T, (samples.x, samples.y), atol=1e-4)
