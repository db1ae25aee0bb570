"""A release of a corpus: refused before anything is written, whole or not there, resumed, and described truly."""

import csv
import hashlib
import json
import pickle
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyestream.errors import ConfigError, OperatorError, RecordingError
from eyestream.rim.files import recordings
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.files.recordings import Recording
from eyestream_lab.corpora.kinds import MAPS, rows_of_gaze
from eyestream_lab.corpora.ksame import KSameSelect
from eyestream_lab.corpora.run import release_with
from eyestream_lab.datasets import ROWS, Part, make_system, open_corpus, privatize_corpus
from eyestream_lab.releases.plans import systems
from eyestream_lab.simulation.people import NAMES
from eyestream_lab.workshop import workshop
from tests.lab.corpora.worlds import gaze_corpus, participants, rows_corpus, seeded


def test_the_same_layout_with_a_claim_beside_it(tmp_path: Path) -> None:
    corpus = rows_corpus(tmp_path / "in")
    told: list[tuple[int, int, str]] = []
    claim = privatize_corpus(
        make_system("k-same-select", k=2), corpus, tmp_path / "out", progress=lambda *step: told.append(step)
    )
    assert told == [(0, 2, "READ"), (1, 2, "PLAY"), (2, 2, "")]
    released = open_corpus(tmp_path / "out", ROWS)
    assert set(released.parts) == set(corpus.parts)  # people, tasks, names of files and labels
    assert released.label_names == ("sex",)
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == {*(part.recording for part in corpus.parts), "participants.tsv", "claim.json", "CLAIM.md"}
    machine = json.loads((tmp_path / "out" / "claim.json").read_text())
    assert machine["claim"]["kind"] == claim.claim.kind == "k-anonymity"
    assert machine["mechanism"] == "k-same-select"
    assert machine["options"] == {"k": 2}
    own = {part.recording for part in corpus.parts}
    assert machine["files_sha256"] == {
        name: hashlib.sha256((tmp_path / "out" / name).read_bytes()).hexdigest() for name in own
    }
    page = (tmp_path / "out" / "CLAIM.md").read_text()
    assert "The claim of this release: not differential privacy: k-anonymity with k = 2" in page
    assert not list(tmp_path.glob(".*partial*"))


def test_the_lines_come_in_the_order_of_the_corpus(tmp_path: Path) -> None:
    """Another order would tell who is in a group with whom, also where the recordings do not."""
    corpus = rows_corpus(tmp_path / "in")
    release_with(seeded(1), make_system("k-same-select", k=2), corpus, tmp_path / "out")
    assert open_corpus(tmp_path / "out", ROWS).parts == corpus.parts
    assert len({path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.npz")}) == 1


def test_the_claim_is_no_function_of_the_raw_rows(tmp_path: Path) -> None:
    """The figures are, of the released files alone: a hash of a raw recording would confirm a guess of it."""
    corpus = rows_corpus(tmp_path / "in")
    privatize_corpus(make_system("k-same-select", k=5), corpus, tmp_path / "one")
    first, second = (part for part in corpus.parts[:2])
    raw = {part.recording: (tmp_path / "in" / part.recording).read_bytes() for part in corpus.parts}
    text = (tmp_path / "one" / "claim.json").read_text() + (tmp_path / "one" / "CLAIM.md").read_text()
    for data in raw.values():
        assert hashlib.sha256(data).hexdigest() not in text
    changed = recordings.load(tmp_path / "in" / first.recording)
    recordings.save(
        Recording(changed.t, changed.features[::-1].copy(), changed.names), tmp_path / "in" / first.recording
    )
    privatize_corpus(make_system("k-same-select", k=5), open_corpus(tmp_path / "in", ROWS), tmp_path / "two")
    claims = [json.loads((tmp_path / name / "claim.json").read_text()) for name in ("one", "two")]
    for claim in claims:
        claim.pop("files_sha256")
    assert claims[0] == claims[1]
    assert second is not first


BAD_LINES = [
    ([("P1", "../secret.npz", "A")], "line 2: recording: expected a name"),
    ([("P1", "a/b.npz", "A")], "line 2: recording: expected a name"),
    ([("P/1", "a.npz", "A")], "line 2: participant_id: expected a name"),
    ([("..", "a.npz", "A")], "line 2: participant_id: expected a name"),
    ([("P1", "a.npz", "")], "line 2: task: expected a name"),
    ([("P1", "a.npz", "A"), ("P1", "b.npz", "A")], "line 3: P1 has a recording of task A already"),
    ([("P1", "a.npz", "A"), ("P2", "a.npz", "A")], "line 3: a second recording would be released as a.npz"),
    ([("P1", "a.npz", "A"), ("P2", "A.npz", "A")], "line 3: a second recording would be released as a.npz"),
    ([("P1", "claim.json", "A")], "line 2: a second recording would be released as claim.json"),
    ([("P1", "c.npz", "A")], "line 2: there is no file c.npz beside it"),
    ([("P1", "a.npz")], "line 2: expected 3 cells, found 2"),
    ([], "names no recording"),
]


@pytest.mark.parametrize(("lines", "said"), BAD_LINES)
def test_bad_lines_are_refused_by_name(tmp_path: Path, lines: list[tuple[str, ...]], said: str) -> None:
    for name in ("a.npz", "b.npz", "A.npz", "claim.json"):
        (tmp_path / name).write_bytes(b"")
    participants(tmp_path, lines)
    with pytest.raises(RecordingError, match=said):
        open_corpus(tmp_path, ROWS)


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (("participant_id", "recording"), "'task', with tabs between columns; there are 'participant_id', 'recording'"),
        (
            ("participant_id", "recording", "task", "task"),
            "'task', with tabs between columns; two columns are called so",
        ),
        (("participant_id,recording,task",), "with tabs between columns; there are 'participant_id,recording,task'"),
    ],
)
def test_a_table_without_its_columns_is_refused(tmp_path: Path, header: tuple[str, ...], found: str) -> None:
    participants(tmp_path, [], header)
    with pytest.raises(RecordingError, match=f"line 1: expected a column .*{found}"):
        open_corpus(tmp_path, ROWS)


def other(kind: str, recording: Recording) -> Recording:
    t, rows, names = recording.t, recording.features, recording.names
    if kind == "rate":
        return Recording(t * 3.0, rows, names)
    if kind == "columns":
        return Recording(t, rows, (*names[:-1], "another"))
    return Recording(t, np.full_like(rows, np.nan), names)


@pytest.mark.parametrize(
    ("kind", "said"),
    [("rate", "has 0.666667 rows a second, P0_READ.npz 2"), ("columns", "other columns"), ("nan", "no valid row")],
)
def test_bad_recordings_are_refused_before_anything_is_written(tmp_path: Path, kind: str, said: str) -> None:
    corpus = rows_corpus(tmp_path / "in")
    path = tmp_path / "in" / "P3_PLAY.npz"
    recordings.save(other(kind, recordings.load(path)), path)
    with pytest.raises(RecordingError, match=said):
        privatize_corpus(make_system("k-same-select", k=2), corpus, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_an_empty_recording_is_refused(tmp_path: Path) -> None:
    corpus = rows_corpus(tmp_path / "in")
    np.savez(tmp_path / "in" / "P3_PLAY.npz", t=np.zeros(0), features=np.zeros((0, 52)), names=np.array(NAMES))
    with pytest.raises(RecordingError, match=r"P3_PLAY\.npz: holds no rows"):
        privatize_corpus(make_system("k-same-select", k=2), corpus, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_too_few_people_and_a_missing_task_are_refused(tmp_path: Path) -> None:
    corpus = rows_corpus(tmp_path / "in")
    with pytest.raises(ConfigError, match="task READ has 5 people, 6 are needed"):
        privatize_corpus(make_system("k-same-select", k=6), corpus, tmp_path / "out")
    participants(tmp_path / "in", [(p.person, p.recording, p.task) for p in corpus.parts[:-1]])
    with pytest.raises(ConfigError, match="P4 has no recording of task PLAY"):
        privatize_corpus(make_system("k-same-select", k=2), open_corpus(tmp_path / "in", ROWS), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_folder_that_is_there_or_inside_the_corpus_is_refused(tmp_path: Path) -> None:
    corpus = rows_corpus(tmp_path / "in")
    (tmp_path / "out").mkdir()
    for out, said in ((tmp_path / "out", "is there already"), (tmp_path / "in" / "out", "lies in the corpus")):
        with pytest.raises(ConfigError, match=said):
            privatize_corpus(make_system("k-same-select", k=2), corpus, out)


class _StopError(Exception):
    """The power fails."""


class Interrupted(KSameSelect):
    """Stops after the first recording of the second task, once."""

    stops = True
    started: list[str]

    def release(self, corpus: Any, survey: Any, unit: Any, draws: Any) -> Iterator[tuple[Part, Any]]:
        self.started.append(unit.name)
        for number, pair in enumerate(super().release(corpus, survey, unit, draws)):
            if type(self).stops and unit.name == "PLAY" and number == 1:
                type(self).stops = False
                raise _StopError
            yield pair


def test_an_interrupted_run_leaves_nothing_that_looks_whole_and_goes_on(tmp_path: Path) -> None:
    Interrupted.stops, Interrupted.started = True, []
    corpus = rows_corpus(tmp_path / "in")
    with pytest.raises(_StopError):
        privatize_corpus(Interrupted(2), corpus, tmp_path / "out")
    partial = tmp_path / ".out.partial"
    assert not (tmp_path / "out").exists()
    assert stat.S_IMODE(partial.stat().st_mode) == 0o700
    assert not (partial / "whole" / "participants.tsv").exists()
    finished = {path.name: path.read_bytes() for path in (partial / "whole").glob("*_READ.npz")}
    assert len(finished) == 5
    privatize_corpus(Interrupted(2), corpus, tmp_path / "out")
    assert Interrupted.started == ["READ", "PLAY", "PLAY"]  # a finished unit is not released a second time
    assert {name: (tmp_path / "out" / name).read_bytes() for name in finished} == finished
    groups = [hashlib.sha256((tmp_path / "out" / f"P{i}_PLAY.npz").read_bytes()).digest() for i in range(5)]
    assert min(map(groups.count, groups)) >= 2  # no file of the first partition is among those of the second
    assert not partial.exists()


@pytest.mark.parametrize("change", ["options", "data"])
def test_an_interrupted_run_does_not_go_on_as_another(tmp_path: Path, change: str) -> None:
    Interrupted.stops, Interrupted.started = True, []
    corpus = rows_corpus(tmp_path / "in")
    with pytest.raises(_StopError):
        privatize_corpus(Interrupted(2), corpus, tmp_path / "out")
    if change == "data":
        (tmp_path / "in" / "P0_READ.npz").write_bytes((tmp_path / "in" / "P1_READ.npz").read_bytes())
    with pytest.raises(ConfigError, match="holds another run that was interrupted"):
        privatize_corpus(Interrupted(3 if change == "options" else 2), corpus, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_two_runs_at_once_are_refused(tmp_path: Path) -> None:
    corpus = rows_corpus(tmp_path / "in")
    with workshop(tmp_path / "out", ""), pytest.raises(ConfigError, match="another run is at work"):
        privatize_corpus(make_system("k-same-select", k=2), corpus, tmp_path / "out")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    corpus = rows_corpus(tmp_path / "in")
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written: Not a directory"):
        privatize_corpus(make_system("k-same-select", k=2), corpus, tmp_path / "file" / "out")


def test_a_release_of_test_numbers_claims_nothing(tmp_path: Path) -> None:
    corpus = rows_corpus(tmp_path / "in")
    claim = release_with(seeded(1), make_system("k-same-select", k=2), corpus, tmp_path / "out")
    assert (claim.claim.kind, claim.parts) == ("none", ())
    assert "came from a test source" in (tmp_path / "out" / "CLAIM.md").read_text()


def test_labels_are_text_of_a_table(tmp_path: Path) -> None:
    corpus = rows_corpus(tmp_path / "in")
    privatize_corpus(make_system("k-same-select", k=2), corpus, tmp_path / "out")
    with (tmp_path / "out" / "participants.tsv").open(newline="") as file:
        lines = list(csv.DictReader(file, delimiter="\t"))
    assert {line["participant_id"]: line["sex"] for line in lines} == {f"P{i}": "f" if i % 2 else "m" for i in range(5)}


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("k-same-selekt", {}, "did you mean k-same-select"),
        ("k-same-select", {}, "k-same-select: needs k"),
        ("k-same-select", {"k": 1}, "k must be 2 or more"),
        ("k-same-select", {"k": 2, "gama": 2}, "takes no gama"),
        ("marginals-pd", {"k": 2, "gamma": 1.0}, "gamma must be more than 1"),
        ("event-synth-pd", {"k": 2, "gamma": 0.5}, "gamma must be more than 1"),
        ("event-synth-pd", {"k": 2, "gamma": float("inf")}, "gamma must be more than 1"),
        ("exponential-dp-as-printed", {"epsilon": 1.0}, "is not differentially private for any epsilon"),
        ("saliency-gaussian", {"epsilon": 1.0, "delta": 0.0}, "delta in"),
        ("saliency-gaussian", {"epsilon": -1.0, "delta": 1e-6}, "epsilon must lie"),
    ],
)
def test_systems_refuse_what_they_cannot_do(name: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(OperatorError, match=said):
        make_system(name, **options)


def test_units_that_processes_release_are_each_there_once(tmp_path: Path) -> None:
    """And a run that was interrupted before they were all there goes on with them."""
    corpus = rows_corpus(tmp_path / "in")
    system = make_system("k-same-select", k=2)
    claim = privatize_corpus(system, corpus, tmp_path / "out", jobs=2)
    alone = privatize_corpus(system, corpus, tmp_path / "alone")
    assert claim == alone
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        path.name for path in (tmp_path / "alone").iterdir()
    }
    told = [(tmp_path / name / "participants.tsv").read_text() for name in ("out", "alone")]
    assert told[0] == told[1]


def test_gaze_of_a_corpus_is_released_by_processes(tmp_path: Path) -> None:
    corpus = gaze_corpus(tmp_path / "in", 2, seconds=lambda person: 20.0)
    told: list[int] = []
    system = make_system("gaussian", sd_deg=1.0)
    privatize_corpus(system, corpus, tmp_path / "out", jobs=2, progress=lambda done, units, name: told.append(done))
    assert open_corpus(tmp_path / "out", corpus.kind).parts == corpus.parts
    assert told == [1, 2, 2]


def test_every_system_can_be_given_to_a_process() -> None:
    """With what reads the recordings."""
    for name, options in dict(reversed(systems())).items():
        if name != "event-synth-pd-vae":  # needs an extra
            sent = pickle.loads(
                pickle.dumps((make_system(name, **options), rows_of_gaze(load_profile("degrees")), MAPS))
            )
            assert sent[0].name == name
