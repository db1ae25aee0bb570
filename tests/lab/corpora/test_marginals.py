"""Marginals: what the published test is worth, and the guarantee of noised histograms."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eyestream.core.kinds import DifferentialPrivacy
from eyestream.rim.files.calibrations import load
from eyestream_lab.corpora import marginals
from eyestream_lab.corpora.claims import PERSON, exact
from eyestream_lab.corpora.deniability import records_alike
from eyestream_lab.corpora.marginals import BUCKETS, sampled_rows, shares_of
from eyestream_lab.corpora.rounded_gaussian import SIGMA, gaussian_delta
from eyestream_lab.corpora.run import release_with
from eyestream_lab.datasets import ROWS, make_system, open_corpus, privatize_corpus
from tests.lab.corpora.worlds import rows_corpus, seeded

CALIBRATION = load("everyday-lpa-32")


def test_the_published_test_passes_whatever_is_drawn() -> None:
    """Seedless: Pr[y | d] is one number for all d. So k' is the number of records, for every y, k and gamma."""
    rng = np.random.default_rng(0)
    for log_p in -rng.uniform(0, 500, 50):
        for gamma in (1.0001, 2.0, 100.0):
            assert records_alike(log_p, np.full(19, log_p), gamma) == 20


def test_the_published_system_claims_nothing(tmp_path: Path) -> None:
    corpus = rows_corpus(tmp_path / "in")
    system = make_system("marginals-pd", k=2)
    release_with(seeded(1), system, corpus, tmp_path / "out")
    claim = system.promise(corpus, corpus.survey())
    assert claim.claim.kind == "none"
    assert "passes for every draw" in claim.claim.statement
    assert "The claim of this release: none: " in (tmp_path / "out" / "CLAIM.md").read_text()
    released = open_corpus(tmp_path / "out", ROWS)
    for part in corpus.parts:
        assert len(released.load(part).t) == len(corpus.load(part).t)
    raw = np.concatenate([corpus.load(part).features for part in corpus.of_task("READ")])
    made = np.concatenate([released.load(part).features for part in released.of_task("READ")])
    assert (made.min(axis=0) >= np.nanmin(raw, axis=0) - 1e-3).all()
    np.testing.assert_allclose(made[:, 0].mean(), raw[:, 0].mean(), atol=0.15)  # 5 sd of the mean of 365 rows


def test_a_task_with_fewer_rows_than_k_is_refused(tmp_path: Path) -> None:
    corpus = rows_corpus(tmp_path / "in")
    with pytest.raises(Exception, match="fewer than 1000 rows"):
        privatize_corpus(make_system("marginals-pd", k=1000), corpus, tmp_path / "out")


def test_shares_are_a_law_whatever_the_rows_are() -> None:
    lo, hi = np.zeros(3), np.array([1.0, 2.0, 0.0])
    rows = np.array([[0.0, 5.0, 1.0], [np.nan, -1e308, np.inf], [1.0, np.nan, 0.0]])
    found = shares_of(rows, lo, hi)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert found[0, 0] == found[0, -1] == found[1, 0] == found[1, -1] == 0.5
    assert (shares_of(np.full((4, 3), np.nan), lo, hi) == 1 / BUCKETS).all()
    assert np.isfinite(shares_of(np.full((2, 3), 1e308), lo, hi)).all()


def test_samples_have_the_law_of_the_histogram() -> None:
    histograms = np.zeros((2, BUCKETS))
    histograms[0, [3, 7]] = 1.0, 3.0
    histograms[1, 4] = -1.0  # noise may leave nothing above 0: then all buckets are alike
    rows = sampled_rows(histograms, np.zeros(2), np.full(2, 30.0), 4000, seeded(2))
    bucket = np.floor(rows).astype(int)
    assert set(bucket[:, 0]) == {3, 7}
    assert abs((bucket[:, 0] == 7).mean() - 0.75) < 5 * math.sqrt(0.75 * 0.25 / 4000)
    assert len(set(bucket[:, 1])) == BUCKETS


def noised(tmp_path: Path) -> np.ndarray:
    """What a person's worst exchange moves the summed histograms by, in steps, all tasks together."""
    corpus = rows_corpus(tmp_path / "in", people=2)
    system = make_system("marginals-noised", calibration=CALIBRATION, epsilon=1.0, delta=1e-4)
    seen: list[np.ndarray] = []

    def extreme(rows: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
        found = np.zeros((len(lo), BUCKETS))
        found[:, extreme.bucket] = 1.0  # type: ignore[attr-defined]
        return found

    class Watched:
        def __init__(self, count: int) -> None:
            self.count = count

        def sample(self, bits: object) -> np.ndarray:
            return np.zeros(self.count, dtype=np.int64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(marginals, "shares_of", extreme)
        patch.setattr(marginals, "RoundedGaussian", Watched)
        patch.setattr(
            marginals, "_drawn", lambda survey, parts, bounds, histograms, draws: seen.append(histograms) or iter(())
        )
        survey = corpus.survey()
        for bucket in (0, 29):
            extreme.bucket = bucket  # type: ignore[attr-defined]
            for unit in system.units(corpus, survey):
                alone = unit._replace(parts=unit.parts[:1])
                assert list(system.release(corpus, survey, alone, seeded(0))) == []
    return np.concatenate(seen[2:]) - np.concatenate(seen[:2])


def test_the_worst_exchange_of_a_person_is_what_the_noise_is_for(tmp_path: Path) -> None:
    """Two tasks, every active feature from one bucket to another: the L2 distance is sqrt(2 F T) of the shares."""
    apart = noised(tmp_path)
    active = int((~CALIBRATION.constant).sum())
    assert np.sqrt((apart**2).sum()) == pytest.approx(
        math.sqrt(2 * active * 2), rel=0.02
    )  # less what is cut to whole steps
    sigma = SIGMA * _step(tmp_path)
    assert gaussian_delta(1.0, sigma / math.sqrt(2 * active * 2)) <= 1e-4
    assert gaussian_delta(1.0, sigma / math.sqrt(2 * active * 2) / 1.01) > 1e-4


def _step(tmp_path: Path) -> float:
    """Of the integers that noise is added to: noise of 1 in every place moves a histogram by one."""
    corpus = rows_corpus(tmp_path / "in", people=2)
    survey = corpus.survey()
    seen: list[np.ndarray] = []
    system = make_system("marginals-noised", calibration=CALIBRATION, epsilon=1.0, delta=1e-4)
    for value in (0, 1):

        class Fixed:
            def __init__(self, count: int, value: int = value) -> None:
                self.values = np.full(count, value, dtype=np.int64)

            def sample(self, bits: object) -> np.ndarray:
                return self.values

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(marginals, "RoundedGaussian", Fixed)
            patch.setattr(marginals, "_drawn", lambda s, p, b, histograms, d: seen.append(histograms) or iter(()))
            assert list(system.release(corpus, survey, system.units(corpus, survey)[0], seeded(0))) == []
    moved = (seen[1] - seen[0])[~CALIBRATION.constant]
    assert np.ptp(moved) < 1e-9
    return float(moved.flat[0])


def test_noised_rows_are_in_the_public_range_and_constants_are_public(tmp_path: Path) -> None:
    corpus = rows_corpus(tmp_path / "in")
    system = make_system("marginals-noised", calibration=CALIBRATION, epsilon=5.0, delta=1e-4)
    claim = privatize_corpus(system, corpus, tmp_path / "out")
    assert claim.claim == DifferentialPrivacy(exact("person", 5.0, 1e-4), PERSON)
    for part in corpus.parts:
        rows = open_corpus(tmp_path / "out", ROWS).load(part).features
        assert (rows >= np.float32(CALIBRATION.lo) - 1e-3).all()
        assert (rows <= np.float32(CALIBRATION.hi) * (1 + 1e-6) + 1e-3).all()
        fixed = CALIBRATION.constant
        np.testing.assert_allclose(rows[:, fixed], np.broadcast_to(CALIBRATION.fill[fixed], rows[:, fixed].shape))


def test_a_calibration_of_other_rows_is_refused(tmp_path: Path) -> None:
    corpus = rows_corpus(tmp_path / "in")
    other = replace(CALIBRATION, rate_hz=4.0)
    for name in ("marginals-noised", "exponential-dp"):
        options = {"delta": 1e-4} if name == "marginals-noised" else {}
        with pytest.raises(Exception, match="2 rows a second, the calibration 4"):
            privatize_corpus(make_system(name, calibration=other, epsilon=1.0, **options), corpus, tmp_path / "out")
    assert not list(tmp_path.glob("*out*"))
