"""`eyestream privatize --mechanism NAME CORPUS` as a person uses it: folder to folder, or a line that says why not."""

import json
from pathlib import Path

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.rim.files import recordings
from eyestream.rim.files.profiles import load_profile
from eyestream_lab.datasets import ROWS, gaze_kind, open_corpus
from tests.lab.corpora.worlds import gaze_corpus, rows_corpus

GAZE = gaze_kind(load_profile("degrees"))


def privatize(corpus: Path, out: Path, *options: str) -> None:
    main(["privatize", str(corpus), "--out", str(out), *options])


def refused(capsys: pytest.CaptureFixture[str], corpus: Path, out: Path, *options: str) -> str:
    with pytest.raises(SystemExit) as ended:
        privatize(corpus, out, *options)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert not out.exists()
    assert not list(out.parent.glob(".*"))
    return said


def test_a_corpus_in_and_the_same_layout_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = rows_corpus(tmp_path / "in", 5)
    privatize(raw.folder, tmp_path / "out", "--mechanism", "k-same-select", "--k", "4")
    released = open_corpus(tmp_path / "out", ROWS)
    assert released.parts == raw.parts
    assert released.label_names == ("sex",)
    assert (tmp_path / "out" / "participants.tsv").read_text() == (raw.folder / "participants.tsv").read_text()
    machine = json.loads((tmp_path / "out" / "claim.json").read_text())
    assert (machine["mechanism"], machine["options"]) == ("k-same-select", {"k": 4})
    assert (machine["claim"]["kind"], machine["claim"]["k"]) == ("k-anonymity", 4)
    assert "k-anonymity with k = 4" in (tmp_path / "out" / "CLAIM.md").read_text()
    said = capsys.readouterr().out
    assert "5 people, 2 tasks, 10 recordings" in said
    assert "not differential privacy: k-anonymity with k = 4" in said


def cell(study: Path, name: str, **own: object) -> None:
    """As `eyestream study --datasets` keeps them, as far as it matters."""
    (study / "cells").mkdir(parents=True, exist_ok=True)
    both = {"raw": [1.0, 0.0, 0.5, 0.0], "released": [1.0, 1.0, 1.0, 0.0]}
    told = {"corpus": "gazegraph", "people": 4, "made_on": "2026-11-23", "chance_person": 0.25, "splits": 2}
    told |= {"mechanism": "k-same-select", "options": {"k": 4}}
    told |= {"recognised": {"mean matcher": both, "random forest": both}}
    (study / "cells" / f"{name}-v3.json").write_text(json.dumps(told | own))


def test_the_claim_says_what_attackers_achieved_in_a_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the system and options of the release; the cell of another k beside it says something else."""
    raw, study = rows_corpus(tmp_path / "in", 5), tmp_path / "study"
    cell(study, "a-other", options={"k": 2}, corpus="of another k")
    cell(study, "b-few", splits=1, corpus="of fewer splits")
    one = {"mean matcher": {"raw": [0.0] * 4, "released": [0.0] * 4}}
    cell(study, "b-latest", recognised=one, made_on="2026-11-24", corpus="of one attacker")
    cell(study, "c-own")
    cell(study, "raw", mechanism="", options={})
    (study / "cells" / "c-own-2-v1.json").write_text('{"chance_person": 0.25}')  # of 0.2.0
    options = ("--mechanism", "k-same-select", "--k", "4", "--study", str(study))
    privatize(raw.folder, tmp_path / "out", *options)
    page = (tmp_path / "out" / "CLAIM.md").read_text()
    assert "a study of gazegraph (4 people, 2026-11-23)" in page
    assert "| mean matcher | 0.38 | 0.75 |" in page
    assert "the claim does not cover them" in page
    told = json.loads((tmp_path / "out" / "claim.json").read_text())["attackers"]
    assert told["named_rightly"] == {
        name: {"raw": 0.375, "released": 0.75} for name in ("mean matcher", "random forest")
    }
    assert (told["corpus"], told["made_on"], told["chance"]) == ("gazegraph", "2026-11-23", 0.25)

    privatize(raw.folder, tmp_path / "unstudied", "--mechanism", "k-same-select", "--k", "4")
    assert "Attackers: no study of this system was named" in (tmp_path / "unstudied" / "CLAIM.md").read_text()
    assert json.loads((tmp_path / "unstudied" / "claim.json").read_text())["attackers"] is None

    capsys.readouterr()
    said = refused(capsys, raw.folder, tmp_path / "refused", *options[:3], "3", *options[4:])
    assert "has no cell of k-same-select with k = 3; expected one of eyestream study --datasets" in said
    (study / "cells" / "d-broken-v3.json").write_text("{")
    assert "d-broken-v3.json: is no cell of a study" in refused(capsys, raw.folder, tmp_path / "broken", *options)


def test_two_runs_are_two_releases(tmp_path: Path) -> None:
    raw = rows_corpus(tmp_path / "in", 3)
    for name in ("one", "two"):
        privatize(raw.folder, tmp_path / name, "--mechanism", "marginals-pd", "--k", "2")
    name = raw.parts[0].recording
    assert (tmp_path / "one" / name).read_bytes() != (tmp_path / "two" / name).read_bytes()


@pytest.mark.parametrize(
    ("name", "options", "kind"),
    [
        ("k-same-synth", ("--k", "2"), "none"),
        ("event-synth-pd-centred", ("--k", "2", "--gamma", "3"), "plausible deniability"),
        ("kaleido", ("--epsilon", "10", "--option", "r_deg=10.0"), "differential privacy"),
        ("kaleido", ("--epsilon", "10", "--as-published"), "none"),
        ("tile", ("--epsilon", "4", "--calibration", "everyday-tile"), "differential privacy"),
        ("gaussian", ("--option", "sd_deg=2.0"), "none"),
        ("temporal", ("--k", "2"), "none"),
        ("temporal-held", ("--k", "3"), "none"),
        ("spatial", ("--option", "level=64"), "none"),
        ("smoothing", ("--option", "b=20"), "none"),
        ("smoothing-twice", ("--option", "first=10", "--option", "second=50"), "none"),
        ("kalman", ("--option", "sd_deg=1.0", "--option", "push=500"), "none"),
    ],
)
def test_gaze_in_and_gaze_out(tmp_path: Path, name: str, options: tuple[str, ...], kind: str) -> None:
    raw = gaze_corpus(tmp_path / "in", 3)
    privatize(raw.folder, tmp_path / "out", "--mechanism", name, *options, "--rate-hz", "60")
    released = open_corpus(tmp_path / "out", GAZE)
    assert [(p.person, p.task) for p in released.parts] == [(p.person, p.task) for p in raw.parts]
    assert json.loads((tmp_path / "out" / "claim.json").read_text())["claim"]["kind"] == kind
    for before, after in zip(raw.parts, released.parts, strict=True):
        first, second = raw.load(before).samples, released.load(after).samples
        every = 2 if name == "temporal" else 1
        assert len(second) == -(-len(first) // every)
        assert second.t[0] == 0.0
        assert np.array_equal(first.x[::every], second.x) is (name == "temporal")


def test_rows_are_made_of_gaze_with_a_profile(tmp_path: Path) -> None:
    raw = gaze_corpus(tmp_path / "in", 2, seconds=lambda person: 60.0)
    options = ("--profile", "degrees", "--calibration", "everyday-klt-32", "--epsilon", "4")
    privatize(raw.folder, tmp_path / "out", "--mechanism", "klt", *options)
    released = open_corpus(tmp_path / "out", ROWS)
    assert [part.recording for part in released.parts] == ["P0_READ.npz", "P1_READ.npz"]
    assert released.load(released.parts[0]).features.shape[1] == 52
    claim = json.loads((tmp_path / "out" / "claim.json").read_text())["claim"]
    chunks = -(-len(released.load(released.parts[0]).t) // 32)
    assert (claim["parts"][0]["unit"], claim["parts"][0]["epsilon"]) == ("chunk", 4.0)
    assert claim["loss"]["epsilon"] == 4.0 * chunks


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--mechanism", "k-same-selct", "--k", "2"), "did you mean k-same-select?"),
        (("--mechanism", "k-same-select"), "k-same-select: needs k"),
        (("--mechanism", "level-synth", "--epsilon", "1"), "level-synth: needs calibration, such as everyday-klt-32"),
        (("--mechanism", "cfpa", "--epsilon", "1"), "cfpa: needs calibration, such as everyday-cfpa-32"),
        (("--mechanism", "k-same-select", "--k", "9"), "task READ has 3 people, 9 are needed"),
        (("--mechanism", "k-same-select", "--k", "2", "--gamma", "2"), "k-same-select: takes no gamma"),
        (("--mechanism", "k-same-select", "--option", "k=2.5"), "k: expected a whole number, not 2.5"),
        (("--mechanism", "k-same-select", "--option", "k='a'"), "k: expected a whole number, not 'a'"),
        (("--mechanism", "exponential-dp-as-printed", "--epsilon", "1"), "is not differentially private"),
        (("--mechanism", "kaleido-as-published", "--epsilon", "1"), "spends more than epsilon"),
        (("--mechanism", "kaleido", "--epsilon", "1", "--option", "skip=90"), "kaleido: expected skip: 1 to w"),
        (("--mechanism", "gaussian", "--option", "sd_deg=-1"), "gaussian: sd_deg: expected a number above 0"),
        (("--mechanism", "gaussian", "--option", "sd_deg='x'"), "sd_deg: expected a number, not 'x'"),
        (("--mechanism", "lpa", "--epsilon", "1", "--calibration", "everyday-klt-32"), "the calibration is of klt"),
        (
            ("--mechanism", "tile", "--epsilon", "1", "--calibration", "everyday-klt-32"),
            "expected a calibration of tiles",
        ),
        (("--mechanism", "k-same-select", "--k", "2", "--whole"), "--whole is for recordings"),
        (("--mechanism", "k-same-select", "--k", "2", "--device", "d"), "--device is for recordings"),
        (("--mechanism", "k-same-synth", "--k", "2", "--fixations"), "--fixations is of saliency-gaussian"),
        (("--calibration", "everyday-klt-32", "--epsilon", "1"), "is a folder; expected recordings, or --mechanism"),
    ],
)
def test_it_is_refused_in_one_line_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], said: str
) -> None:
    raw = rows_corpus(tmp_path / "in", 3)
    assert said in refused(capsys, raw.folder, tmp_path / "out", *options)


def test_a_rate_that_no_reader_takes_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = gaze_corpus(tmp_path / "in", 2)
    options = ("--mechanism", "temporal", "--k", "4", "--rate-hz", "60")
    assert "temporal: keeps 15 samples a second, and recordings of gaze need 20" in refused(
        capsys, raw.folder, tmp_path / "out", *options
    )


def test_a_rate_is_declared_or_nothing_is_released(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw, out = gaze_corpus(tmp_path / "in", 2), tmp_path / "out"
    said = refused(capsys, raw.folder, out, "--mechanism", "gaussian", "--option", "sd_deg=1.0")
    assert "expected --rate-hz, such as --rate-hz 60" in said
    options = ("--mechanism", "gaussian", "--option", "sd_deg=1.0", "--profile", "smi-glasses", "--rate-hz", "50")
    assert "--rate-hz 50: profile smi-glasses declares 60" in refused(capsys, raw.folder, out, *options)
    rows = rows_corpus(tmp_path / "rows", 2)
    said = refused(capsys, rows.folder, out, "--mechanism", "k-same-select", "--k", "2", "--rate-hz", "4")
    assert "P0_READ.npz: has 2 rows a second, expected 4" in said


def test_options_of_a_corpus_are_refused_for_recordings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = rows_corpus(tmp_path / "in", 1)
    one = raw.folder / raw.parts[0].recording
    usual = ("--calibration", "everyday-klt-32", "--epsilon", "1")
    assert "--k is for a corpus" in refused(capsys, one, tmp_path / "out", *usual, "--k", "2")
    assert "need both --calibration and --epsilon" in refused(
        capsys, one, tmp_path / "out", "--calibration", "everyday-klt-32"
    )
    assert "expected one folder" in refused(capsys, one, tmp_path / "out", "--mechanism", "k-same-select", "--k", "2")


def test_a_corpus_hears_of_another_tracker_and_of_what_is_missing_as_a_recording_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = rows_corpus(tmp_path / "in", 2)
    for part in raw.parts:
        rows = raw.load(part)
        rows.features[:, rows.names.index("mean_mean_diameter")] = np.nan
        recordings.save(rows, raw.path(part))
    privatize(raw.folder, tmp_path / "out", "--mechanism", "klt", "--calibration", "everyday-klt-32", "--epsilon", "4")
    said = capsys.readouterr().out
    assert f"{raw.parts[0].recording}: the rows do not say which tracker made them" in said
    assert f"{raw.parts[0].recording}: no value of mean_mean_diameter: released as if at the corpus' mean" in said
