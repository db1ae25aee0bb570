"""A calibration for another tracker: the maps are its own, the model is between the base's and its own."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.cli.main import main
from eyestream.core.calibration import Calibration, JointTables
from eyestream.core.mechanisms import build
from eyestream.core.mechanisms.klt.books import books_of
from eyestream.errors import CalibrationError, ConfigError
from eyestream.rim.files import calibrations
from eyestream.rim.files import recordings as files
from eyestream.rim.files.recordings import Recording
from eyestream_lab.calibration import adapt
from eyestream_lab.calibration.adapt import adapt_joint
from eyestream_lab.calibration.corpus import Corpus, whole_chunks
from eyestream_lab.calibration.fingerprints import overlap
from eyestream_lab.calibration.joint import calibrate_joint
from eyestream_lab.files.books import shipped_books
from eyestream_lab.simulation.people import NAMES as FEATURES
from eyestream_lab.simulation.people import load_statistics, simulate
from eyestream_lab.testing.noise import SeededNoise
from tests.rigs.small_corpus import NAMES, ROWS, person, recordings

Array = NDArray[np.float64]
N = 32


@pytest.fixture(scope="module")
def base() -> Calibration:
    return calibrate_joint(Corpus.of(recordings(), N))


def elsewhere(rows: Array) -> Array:
    """What another tracker makes of the same behaviour: other units, offsets and laws."""
    level, walk, rare, zero, fast = rows.T
    return np.stack([400.0 + 25.0 * level, np.exp(walk / 2), 0.1 * rare, zero, 30.0 - 7.0 * fast], axis=1)


def other_tracker(count: int, seed: int) -> list[Recording]:
    t = np.arange(ROWS) / 2.0
    return [Recording(t, elsewhere(person(seed + i)), NAMES, f"there {i}") for i in range(count)]


def explained(calibration: Calibration, people: list[Recording]) -> Array:
    """(F,) around the people's own mean; clipped at their 0.5 % quantiles."""
    every = np.concatenate([p.features for p in people])
    lo, hi = np.quantile(every, (0.005, 0.995), axis=0)
    mean, error, base = np.clip(every, lo, hi).mean(axis=0)[:, None], np.zeros(5), np.zeros(5)
    mechanism = build(calibration, 9.6, noise=SeededNoise(2))
    for one in people:
        session = mechanism.session()
        for chunk in whole_chunks(one.features, N):
            wanted = np.clip(chunk, lo[:, None], hi[:, None])
            error += ((session.release(chunk) - wanted) ** 2).sum(axis=1)
            base += ((wanted - mean) ** 2).sum(axis=1)
    return np.asarray(1 - error / np.maximum(base, 1e-300))


def test_maps_of_a_few_people_make_a_calibration_useful_elsewhere(base: Calibration) -> None:
    there = other_tracker(10, 500)
    adapted, kept = adapt_joint(base, Corpus.of(other_tracker(5, 900), N))
    assert kept == ()
    before, after = explained(base, there), explained(adapted, there)
    assert before[0] < 0
    assert after[0] > 0.4
    assert after[[0, 1, 2, 4]].mean() > before[[0, 1, 2, 4]].mean() + 0.3
    few, _ = adapt_joint(base, Corpus.of(other_tracker(2, 900), N))
    assert isinstance(few.tables, JointTables)
    assert isinstance(base.tables, JointTables)
    np.testing.assert_array_equal(few.tables.basis, base.tables.basis)  # two recordings give maps alone


def other_behaviour(count: int, seed: int) -> list[Recording]:
    """People in whom a feature follows another one that it has nothing to do with in the base's people."""
    people = other_tracker(count, seed)
    for one in people:
        one.features[:, 4] = 30.0 - 7.0 * (one.features[:, 0] - 400.0) / 25.0
        one.features[:, 2] = one.features[:, 1]
    return people


def test_a_mixture_tells_no_less_than_the_base_or_the_recordings_alone(
    base: Calibration, monkeypatch: pytest.MonkeyPatch
) -> None:
    """People like the base's, and people unlike them, of whom the base knows nothing."""
    for make in (other_tracker, other_behaviour):
        corpus, there = Corpus.of(make(4, 900), N), make(12, 500)
        told = {}
        for name, tried in (("mixed", adapt.SHARES), ("base", (0.0,)), ("own", (1.0,))):
            monkeypatch.setattr(adapt, "SHARES", tried)
            told[name] = explained(adapt_joint(base, corpus)[0], there)[[0, 1, 2, 4]].mean()
            monkeypatch.undo()
        assert told["mixed"] > max(told["base"], told["own"]) - 0.01
    assert told["mixed"] > told["base"] + 0.02


def test_the_stated_error_is_honest_there_too(base: Calibration) -> None:
    adapted, _ = adapt_joint(base, Corpus.of(other_tracker(6, 900), N))
    mechanism, squares = build(adapted, 9.6, noise=SeededNoise(3)), []
    for one in other_tracker(12, 500):
        session = mechanism.session()
        pieces = [
            session.release(c) - np.clip(c, adapted.lo[:, None], adapted.hi[:, None])
            for c in whole_chunks(one.features, N)
        ]
        squares.append(np.mean(np.square(pieces[4:]), axis=(0, 2)))
    ratio = (np.sqrt(np.mean(squares, axis=0)) / np.maximum(mechanism.noise_sd, 1e-12))[~adapted.constant]
    assert 1 / 1.5 < np.median(ratio) < 1.5


def test_what_was_not_recorded_keeps_the_map_of_the_base(base: Calibration) -> None:
    there = other_tracker(4, 900)
    there[0].features[:, 0] = there[1].features[:, 0] = there[2].features[:, 0] = there[3].features[:, 0] = np.nan
    for one in there:
        one.features[:, 2] = 3.0
    adapted, kept = adapt_joint(base, Corpus.of(there, N))
    assert kept == ("level", "rare")
    for f in (0, 2):
        assert (adapted.lo[f], adapted.hi[f], adapted.fill[f]) == (base.lo[f], base.hi[f], base.fill[f])
    assert adapted.lo[1] != base.lo[1]
    assert np.isfinite(build(adapted, 4.8).session().release(there[0].features[:N].T)).all()


def test_both_corpora_are_known_again_and_the_baseline_goes_along(base: Calibration) -> None:
    there = other_tracker(4, 900)
    own = calibrate_joint(Corpus.of(recordings(), N), anchored=True, books=shipped_books())
    anchored, _ = adapt_joint(own, Corpus.of(there, N))
    assert anchored.anchor is not None
    assert isinstance(own.tables, JointTables)
    assert isinstance(anchored.tables, JointTables)
    assert len(books_of(anchored.tables)) == len(shipped_books()) == len(books_of(own.tables))
    np.testing.assert_array_equal(anchored.tables.book_points, own.tables.book_points)
    assert anchored.anchor.centre[0] > 400.0 * 2.0 ** anchored.anchor.shift[0] - 1e3 * 2.0 ** anchored.anchor.shift[0]
    adapted, _ = adapt_joint(base, Corpus.of(there, N))
    assert overlap(adapted, there[0].features) > 0
    assert overlap(adapted, recordings()[0].features) > 0


def test_a_base_without_maps_or_of_other_rows_is_refused(base: Calibration) -> None:
    corpus = Corpus.of(other_tracker(4, 900), N)
    with pytest.raises(CalibrationError, match="has no maps"):
        adapt_joint(calibrate_joint(Corpus.of(recordings(), N), ranks=False), corpus)
    with pytest.raises(CalibrationError, match="cut into chunks of 64 rows"):
        adapt_joint(base, Corpus.of(other_tracker(4, 900), 64))
    with pytest.raises(CalibrationError, match="feature 0 is"):
        adapt_joint(replace(base, names=("other", *NAMES[1:])), corpus)


def test_the_command(base: Calibration, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calibrations.save(base, tmp_path / "base.npz")
    paths = []
    for i, one in enumerate(other_tracker(3, 900)):
        paths.append(str(tmp_path / f"{i}.npz"))
        files.save(one, Path(paths[-1]))
    out = tmp_path / "mine.npz"
    main(["calibrate", *paths, "--adapt", str(tmp_path / "base.npz"), "--out", str(out)])
    assert "to 3 recordings" in capsys.readouterr().out
    assert calibrations.load(out).provenance.people == 3
    for words, said in (
        (["--adapt", str(tmp_path / "base.npz"), "--chunk", "32"], "--chunk is not for --adapt"),
        (["--adapt", str(tmp_path / "base.npz"), "--linear"], "--linear is not for --adapt"),
        (["--chunk", "32"], "expected --mechanism and --chunk, or --adapt BASE"),
    ):
        with pytest.raises(SystemExit):
            main(["calibrate", *paths, *words, "--out", str(tmp_path / "no.npz")])
        assert said in capsys.readouterr().err


def test_the_command_says_what_nobody_can_ask_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = []
    for i, rows in enumerate(simulate(load_statistics(), 3, 400.0, 5)):
        features = rows.astype(np.float64)
        features[:, FEATURES.index("mean_mean_diameter")] = np.nan
        paths.append(str(tmp_path / f"{i}.npz"))
        files.save(Recording(np.arange(len(rows)) / 2.0, features, FEATURES), Path(paths[-1]))
    main(["calibrate", *paths, "--adapt", "everyday-asked-64", "--out", str(tmp_path / "mine.npz")])
    said = capsys.readouterr().out
    assert "features that did not vary or were not there, so nobody can ask for them: mean_mean_diameter" in said
    with pytest.raises(ConfigError, match="mean_mean_diameter does not vary in the recordings"):
        build(calibrations.load(tmp_path / "mine.npz"), 4.8, features=["mean_mean_diameter"])
