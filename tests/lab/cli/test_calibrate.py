"""`eyestream calibrate` as a person uses it."""

from pathlib import Path

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.core.calibration import JointTables, PerFeatureTables
from eyestream.core.mechanisms.klt.books import books_of
from eyestream.rim.files import calibrations, recordings
from eyestream.rim.files.recordings import Recording
from eyestream_lab.calibration.fingerprints import overlap
from eyestream_lab.files.books import shipped_books
from eyestream_lab.simulation.people import NAMES, load_statistics, simulate


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two simulated people, one of them as .csv.gz."""
    folder = tmp_path_factory.mktemp("people")
    paths = []
    for i, features in enumerate(simulate(load_statistics(), 2, 150.0, 7)):
        path = folder / ("a.npz" if i == 0 else "b.csv.gz")
        rows = features.astype(np.float64)
        recordings.save(Recording(np.arange(len(rows)) / 2.0, rows, NAMES, simulated=True), path)
        paths.append(str(path))
    return paths


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a person sees; checks the exit code."""
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return captured.err


@pytest.mark.parametrize("mechanism", ["lpa", "cfpa", "dcfpa"])
def test_writes_exactly_the_file_asked_for(
    people: list[str], mechanism: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "my.calibration"
    main(["calibrate", *people, "--mechanism", mechanism, "--chunk", "32", "--about", "two", "--out", str(out)])
    assert [p.name for p in tmp_path.iterdir()] == ["my.calibration"]
    made = calibrations.load(out)
    assert (made.mechanism, made.n, made.k, made.names) == (mechanism, 32, None, NAMES)
    assert made.provenance.corpus == "two"
    assert (made.provenance.people, made.provenance.coverage) == (2, 0.95)
    assert all(overlap(made, recordings.load(path).features) == 1 for path in people)
    printed = capsys.readouterr().out
    assert made.content_hash in printed
    assert f"{(~made.constant).sum()} of 52 features" in printed


def four_people(folder: Path) -> list[str]:
    """Paths of their recordings."""
    paths = []
    for i, features in enumerate(simulate(load_statistics(), 4, 300.0, 7)):
        paths.append(str(folder / f"{i}.npz"))
        rows = Recording(np.arange(len(features)) / 2.0, features.astype(np.float64), NAMES, f"{i}", simulated=True)
        recordings.save(rows, paths[-1])
    return paths


def test_klt_is_given_the_shipped_books_and_what_is_linear_is_not(tmp_path: Path) -> None:
    paths = four_people(tmp_path)
    for name, words, count in (("usual", [], len(shipped_books())), ("linear", ["--linear"], 0)):
        main(["calibrate", *paths, "--mechanism", "klt", "--chunk", "32", *words, "--out", str(tmp_path / name)])
        tables = calibrations.load(tmp_path / name).tables
        assert isinstance(tables, JointTables)
        assert len(books_of(tables)) == count


def test_one_score_by_its_name_and_by_that_of_0_1_0(tmp_path: Path) -> None:
    paths, hashes = four_people(tmp_path), []
    for option in ("--one-score", "--shed-identity"):
        words = ["--mechanism", "klt", "--chunk", "32", option, "1", "--out", str(tmp_path / option)]
        main(["calibrate", *paths, *words])
        made = calibrations.load(tmp_path / option)
        assert isinstance(made.tables, JointTables)
        assert made.tables.basis.shape[1] == 1
        hashes.append(made.content_hash)
    assert hashes[0] == hashes[1]


def test_options_reach_the_calibration(people: list[str], tmp_path: Path) -> None:
    base = ["calibrate", *people, "--mechanism", "cfpa", "--chunk", "64"]
    main([*base, "--k", "3", "--coverage", "1", "--constant", "wb1_max", "--out", str(tmp_path / "a")])
    made = calibrations.load(tmp_path / "a")
    assert (made.k, made.n, made.provenance.coverage) == (3, 64, 1.0)
    assert [name for name, declared in zip(NAMES, made.declared, strict=True) if declared] == ["wb1_max"]
    main([*base, "--range", "--out", str(tmp_path / "b")])
    ranged = calibrations.load(tmp_path / "b")
    assert isinstance(ranged.tables, PerFeatureTables)
    active = ~ranged.constant
    np.testing.assert_allclose(ranged.tables.radius[active], 4 * (ranged.hi - ranged.lo)[active])  # sqrt(64) R / 2


def test_the_same_recordings_give_the_same_calibration(people: list[str], tmp_path: Path) -> None:
    for name in ("a", "b"):
        main(["calibrate", *people, "--mechanism", "dcfpa", "--chunk", "32", "--out", str(tmp_path / name)])
    assert calibrations.load(tmp_path / "a").content_hash == calibrations.load(tmp_path / "b").content_hash


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"--chunk": "33"}, "--chunk must be a power of two, not 33"),
        ({"--chunk": "1"}, "power of two"),
        ({"--chunk": "x"}, "--chunk"),
        ({"--chunk": "1024"}, "no recording holds a whole chunk"),
        ({"--coverage": "1.5"}, "coverage"),
        ({"--coverage": "nan"}, "coverage"),
        ({"--k": "18"}, "k must lie between 1 and 17"),
        ({"--k": "0"}, "k must lie between 1 and 17"),
        ({"--mechanism": "fpa"}, "--mechanism"),
        ({"--mechanism": "lpa", "--k": "2"}, "--k is not for lpa"),
        ({"--constant": "nothing"}, "--constant nothing"),
        ({"--out": "/nowhere/at/all"}, "/nowhere/at/all: cannot be written"),
    ],
)
def test_what_a_person_gets_wrong_is_one_line(
    people: list[str],
    change: dict[str, str],
    complaint: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = {"--mechanism": "cfpa", "--chunk": "32", "--out": str(tmp_path / "a")} | change
    assert complaint in refused(["calibrate", *people, *[word for pair in options.items() for word in pair]], capsys)
    assert not (tmp_path / "a").exists()


def test_recordings_that_do_not_fit_are_one_line(
    people: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.csv").write_text("t,a\n0,1\n0.5,2\n0.5,3\n")
    (tmp_path / "d.csv").write_text("t,a\n0,1\n0.5,2\n")
    rest = ["--mechanism", "cfpa", "--chunk", "32", "--out", str(tmp_path / "out")]
    assert "c.csv: line 4: time does not increase" in refused(["calibrate", str(tmp_path / "c.csv"), *rest], capsys)
    assert "other features" in refused(["calibrate", people[0], str(tmp_path / "d.csv"), *rest], capsys)
    assert "no such file" in refused(["calibrate", str(tmp_path / "e.csv"), *rest], capsys)


def test_a_recording_that_comes_twice_is_refused(
    people: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By its rows, whatever it is called and however it is written; where nothing varies two people may be alike."""
    rows, still = tmp_path / "again.csv", recordings.load(people[0])
    recordings.save(still, rows)
    copy = tmp_path / "link.npz"
    copy.symlink_to(people[0])
    rest = ["--mechanism", "cfpa", "--chunk", "32", "--out", str(tmp_path / "out")]
    for second in (people[0], rows, copy):
        said = refused(["calibrate", *people, str(second), *rest], capsys)
        assert f"{people[0]} and {second} hold the same rows: give each recording once" in said
    assert not (tmp_path / "out").exists()
    alike = []
    for name in ("c.npz", "d.npz"):
        alike.append(str(tmp_path / name))
        recordings.save(Recording(still.t, np.ones_like(still.features), NAMES), Path(alike[-1]))
    main(["calibrate", *people, *alike, *rest])
    assert calibrations.load(tmp_path / "out").provenance.people == 4


def test_what_is_there_is_never_overwritten(
    people: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (out := tmp_path / "mine.npz").write_text("a year of work")
    for words in (["--mechanism", "cfpa", "--chunk", "32"], ["--adapt", "everyday-klt-mapped-32"]):
        said = refused(["calibrate", *people, *words, "--out", str(out)], capsys)
        assert f"{out}: exists already; nothing was written" in said
    assert out.read_text() == "a year of work"
