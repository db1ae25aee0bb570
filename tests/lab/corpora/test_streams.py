"""The sidecar's mechanisms over corpora, and the synthesiser that codes one level for each recording."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyestream.core.kinds import DifferentialPrivacy
from eyestream.errors import CalibrationError, ConfigError
from eyestream.rim.files import recordings
from eyestream.rim.files.calibrations import load
from eyestream.streams import FrontEndMark
from eyestream_lab.calibration.fingerprints import row_fingerprints
from eyestream_lab.corpora import synthesiser
from eyestream_lab.corpora.claims import PERSON, exact
from eyestream_lab.corpora.run import release_with
from eyestream_lab.corpora.synthesiser import Course, mean_chunk
from eyestream_lab.datasets import ROWS, make_system, open_corpus, privatize_corpus
from tests.lab.corpora.worlds import rows_corpus, seeded

KLT = load("everyday-klt-32")


@pytest.mark.parametrize("name", ["lpa-32", "cfpa-32", "dcfpa-64", "klt-32", "klt-anchored-32"])
def test_chunks_of_every_recording_with_the_price_of_a_person(tmp_path: Path, name: str) -> None:
    corpus = rows_corpus(tmp_path / "in", people=2, rows=(180).__add__)
    calibration = load(f"everyday-{name}")
    system = make_system("chunks", calibration=calibration, epsilon=4.0)
    assert system.name == calibration.mechanism
    claim = privatize_corpus(system, corpus, tmp_path / "out")
    chunks = sum(-(-rows // calibration.n) for rows in (182, 183))  # the second person has more rows
    baseline = 0 if calibration.anchor is None else 2 * calibration.anchor.chunks
    assert claim.claim == DifferentialPrivacy(exact("person", 4.0 * (chunks - baseline)), PERSON)
    assert claim.parts == (exact("chunk", 4.0),)
    released = open_corpus(tmp_path / "out", ROWS)
    for part in corpus.parts:
        raw, made = corpus.load(part), released.load(part)
        assert made.features.shape == raw.features.shape
        assert not np.array_equal(made.features[-20:, 0], raw.features[-20:, 0])
        np.testing.assert_array_equal(made.t, np.arange(len(raw.t)) / 2)


@pytest.mark.parametrize("name", ["chunks", "fpa", "level-synth", "exponential-dp", "marginals-noised"])
def test_a_calibration_of_the_same_people_is_refused(tmp_path: Path, name: str) -> None:
    corpus = rows_corpus(tmp_path / "in")
    others: dict[str, Any] = {"delta": 1e-4} if name == "marginals-noised" else {}
    whole = np.concatenate([np.ones((500, 52)), corpus.load(corpus.parts[-1]).features])  # of which one is a part
    known = replace(KLT, fingerprints=np.unique(row_fingerprints(whole)))
    with pytest.raises(CalibrationError, match=r"P4_PLAY\.npz: the calibration was made from"):
        privatize_corpus(make_system(name, calibration=known, epsilon=4.0, **others), corpus, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_rows_of_another_detector_than_the_calibrations_are_refused(tmp_path: Path) -> None:
    corpus = rows_corpus(tmp_path / "in", people=2)
    last = corpus.path(corpus.parts[-1])
    mark = FrontEndMark("another", "0" * 32, "1" * 32)
    recordings.save(replace(recordings.load(last), front_end=mark), last)
    with pytest.raises(CalibrationError, match="front end"):
        privatize_corpus(make_system("klt", calibration=KLT, epsilon=4.0), corpus, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_whole_recordings_cost_epsilon_each(tmp_path: Path) -> None:
    corpus = rows_corpus(tmp_path / "in", people=2)
    system = make_system("fpa", calibration=load("everyday-cfpa-32"), epsilon=4.0)
    claim = privatize_corpus(system, corpus, tmp_path / "out")
    assert claim.claim == DifferentialPrivacy(exact("person", 8.0), PERSON)
    assert open_corpus(tmp_path / "out", ROWS).load(corpus.parts[0]).features.shape == (70, 52)


def test_a_mean_chunk_is_the_mean_of_what_is_there() -> None:
    rows = np.array([[1.0, np.nan, 4.0], [3.0, np.nan, np.inf]])
    found = mean_chunk(rows, 4)
    assert found.shape == (3, 4)
    np.testing.assert_array_equal(found[:, 0], [2.0, np.nan, 4.0])


def test_raw_rows_reach_the_release_through_one_chunk_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the mechanism's release fixed and the draws repeated, another recording of as many rows gives the same."""
    corpus = rows_corpus(tmp_path / "in", people=1)
    system = make_system("level-synth", calibration=KLT, epsilon=10.0)
    survey = corpus.survey()
    level = np.repeat(KLT.fill[:, None], KLT.n, axis=1)

    class Fixed:
        n = KLT.n
        taken = 0

        def release(self, chunk: np.ndarray) -> np.ndarray:
            assert chunk.shape == (52, 32)
            type(self).taken += 1
            return level

    monkeypatch.setattr(synthesiser, "built", lambda *given: Fixed())
    first, second = corpus.parts
    rows = {part: corpus.load(part) for part in corpus.parts}
    made = []
    for raw in (first, second):
        unit = system.units(corpus, survey)[0]._replace(parts=(first,))
        own = rows[raw]
        cut = type(own)(own.t[:70], own.features[:70], own.names)
        corpus_of = type("One", (), {"load": lambda self, part, cut=cut: cut})()
        ((_, found),) = system.release(corpus_of, survey, unit, seeded(5))
        made.append(found.features)
    np.testing.assert_array_equal(made[0], made[1])
    assert Fixed.taken == 2


def test_levels_survive_and_courses_do_not(tmp_path: Path) -> None:
    corpus = rows_corpus(tmp_path / "in", people=6, rows=(150).__add__)
    system = make_system("level-synth", calibration=KLT, epsilon=20.0)
    release_with(seeded(2), system, corpus, tmp_path / "out")
    claim = system.promise(corpus, corpus.survey())
    assert claim.claim == DifferentialPrivacy(exact("person", 40.0), PERSON)
    assert claim.parts == (exact("recording", 20.0),)
    released = open_corpus(tmp_path / "out", ROWS)
    raw, made = (
        np.array([mean_chunk(one.load(part).features, 1)[~KLT.constant, 0] for part in corpus.parts])
        for one in (corpus, released)
    )
    agreement = [
        np.corrcoef(a, b)[0, 1] for a, b in zip(raw.T, made.T, strict=True) if np.nanstd(a) > 0 and np.isfinite(a).all()
    ]
    assert np.mean(agreement) > 0.2  # 0 if levels did not survive; seeded
    feature = 0
    for part in corpus.parts:
        rows = released.load(part).features
        assert np.isfinite(rows).all()
        assert (rows[:, KLT.constant] == KLT.fill[KLT.constant].astype(np.float32)).all()
        assert 0.2 < rows[:, feature].std() / corpus.load(part).features[:, feature].std() < 5


def test_the_course_is_the_public_one() -> None:
    """Around one level, values vary as the calibration says: neighbouring rows alike, far ones less."""
    rows = Course(KLT).rows(KLT.fill, 4000, seeded(3))[:, 0]
    centred = rows - rows.mean()
    near, far = ((centred[lag:] * centred[:-lag]).mean() / centred.var() for lag in (1, 400))
    assert near > 0.3
    assert abs(far) < 0.3


def test_other_calibrations_are_refused() -> None:
    for name in ("everyday-cfpa-32", "everyday-klt-anchored-32"):
        with pytest.raises(CalibrationError, match="needs a joint calibration without a baseline"):
            make_system("level-synth", calibration=load(name), epsilon=10.0)
    with pytest.raises(ConfigError, match="epsilon"):
        make_system("level-synth", calibration=KLT, epsilon=-1.0)
