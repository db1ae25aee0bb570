"""Kaleido, the tile response and the baselines over corpora: what a person pays, and what reaches the release."""

import gzip
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.kinds import DifferentialPrivacy
from eyestream.core.mechanisms.tile.tables import tiles_of
from eyestream.rim.files import calibrations
from eyestream.rim.files.gaze import GazeRecording
from eyestream_lab.corpora.claims import PERSON
from eyestream_lab.corpora.draws import Draws
from eyestream_lab.datasets import Unit, make_system
from eyestream_lab.kaleido import Kaleido, Settings
from eyestream_lab.samples.baselines import published_kaleido
from tests.lab.corpora.worlds import RATE_HZ, gaze_corpus, gaze_of, seeded

TILES = calibrations.load("everyday-tile")
SLOT_US = tiles_of(TILES).slot_us


def test_a_person_pays_kaleidos_worst_case_for_every_window_of_every_recording(tmp_path: Path) -> None:
    corpus = gaze_corpus(tmp_path / "in", people=2, tasks=("READ", "PLAY"), seconds=lambda person: 8.5 + person)
    promise = make_system("kaleido", epsilon=2.0, w=40).promise(corpus, corpus.survey())
    one = Kaleido(2.0, Settings(w=40))
    windows = 2 * -(-round(9.5 * RATE_HZ) // 40)  # the second person has more samples, and two recordings
    assert promise.claim == DifferentialPrivacy(one.worst.of("person", windows), PERSON)
    assert promise.parts == (one.loss, one.worst)
    assert promise.claim.loss.epsilon > 30 * windows * 2  # not (epsilon, w, r), which moves by r at most


def test_a_person_pays_for_every_slot(tmp_path: Path) -> None:
    corpus = gaze_corpus(tmp_path / "in", people=2, tasks=("READ", "PLAY"))
    promise = make_system("tile", calibration=TILES, epsilon=0.5).promise(corpus, corpus.survey())
    slots = 2 * -(-9_000_000 // SLOT_US)  # 9 s of the second person, twice
    assert isinstance(promise.claim, DifferentialPrivacy)
    assert promise.claim.loss.epsilon == Fraction(1, 2) * slots


def test_slots_are_counted_at_the_declared_rate_and_so_are_those_that_are_released(tmp_path: Path) -> None:
    """Recordings may be 1 % from it. Slots of a slower recording, counted by its own rate, would be more."""
    corpus = gaze_corpus(tmp_path / "in", people=2)
    survey = corpus.survey()
    first, second = corpus.parts
    slower = replace(survey.extents[second], rows=60_000, rate_hz=59.5)
    system = make_system("tile", calibration=TILES, epsilon=0.5)
    promise = system.promise(corpus, replace(survey, extents={first: survey.extents[first], second: slower}))
    assert isinstance(promise.claim, DifferentialPrivacy)
    assert promise.claim.loss.epsilon == Fraction(1, 2) * 1000  # at 60 Hz; 1009 at 59.5
    seen: list[float] = []

    def treat(recording: GazeRecording, draws: Draws) -> NDArray[np.float64]:
        seen.append(recording.profile.fixed_rate_hz)
        return np.zeros((1, 2))

    load, kind = corpus.kind.load, corpus.kind
    slow = replace(kind, load=lambda path: replace(load(path), profile=load(path).profile.at_rate(59.5)))
    open_kind = replace(corpus, kind=slow)
    list(replace(system, treat=treat).release(open_kind, survey, Unit("", corpus.parts[:1]), seeded(1)))
    assert seen == [60.0]


def test_tiles_are_released_by_words_alone(tmp_path: Path) -> None:
    """With noise that replaces every word, the same draws release the same gaze of two different recordings."""
    corpus = gaze_corpus(tmp_path / "in", people=2, seconds=lambda person: 9.0)
    system, survey = make_system("tile", calibration=TILES, epsilon=0.01), corpus.survey()
    first, second = (
        next(iter(system.release(corpus, survey, unit, seeded(3))))[1].samples for unit in system.units(corpus, survey)
    )
    np.testing.assert_array_equal(first.x, second.x)  # epsilon 0.01: all words of these draws are replaced
    slot = np.arange(len(first)) * 1_000_000 // round(RATE_HZ * SLOT_US)
    for own in range(slot[-1] + 1):
        assert len(np.unique(first.x[slot == own])) == 1


def test_tiles_at_a_large_epsilon_follow_the_eye(tmp_path: Path) -> None:
    corpus = gaze_corpus(tmp_path / "in", people=1, seconds=lambda person: 30.0)
    system, survey = make_system("tile", calibration=TILES, epsilon=20.0), corpus.survey()
    ((_, released),) = system.release(corpus, survey, system.units(corpus, survey)[0], seeded(4))
    raw = corpus.load(corpus.parts[0]).samples
    apart = np.hypot(raw.x - released.samples.x, raw.y - released.samples.y)
    assert np.median(apart) < 8.0  # 5.8; 12 or more when slots are off by one; seeded


@pytest.fixture(scope="module")
def walk() -> np.ndarray:
    return gaze_of(np.random.default_rng(1), 60.0, 0.1, np.zeros(2))


def test_the_published_kaleido_never_gets_its_budget_back(walk: np.ndarray) -> None:
    """Late in a recording it releases noise of the whole field; the corrected one still follows the eye."""
    settings = Settings(w=30, skip=3, r_deg=2.0)
    steps = Kaleido(20.0, settings, noise=seeded(2)).session().release(walk[:, 0], walk[:, 1], np.full(len(walk), True))
    corrected = np.array([(step.x_deg, step.y_deg) for step in steps])
    printed = published_kaleido(np.arange(len(walk)), walk, 20.0, settings, np.random.default_rng(2))
    late = slice(len(walk) // 2, None)
    errors = [float(np.median(np.hypot(*(one - walk)[late].T))) for one in (corrected, printed)]
    assert errors[1] > 2 * errors[0]


def test_the_published_kaleido_tests_more_often_when_the_clock_jumps(walk: np.ndarray) -> None:
    """Outputs change at most once in `skip` samples, unless the tracker's clock says that time has passed."""
    settings = Settings(w=30, skip=10, threshold_deg=0.0)
    changes = []
    for moments in (np.arange(len(walk)), np.arange(len(walk)) * 10):
        out = published_kaleido(moments, walk, 1000.0, settings, np.random.default_rng(3))
        changes.append(int((np.abs(np.diff(out, axis=0)) > 0).any(axis=1).sum()))
    assert changes[0] <= len(walk) // 10
    assert changes[1] > 2 * changes[0]


def test_lost_samples_stay_lost_in_baselines(tmp_path: Path) -> None:
    corpus = gaze_corpus(tmp_path / "in", people=1)
    lines = [f"{i / RATE_HZ:.6f},{'' if i % 7 == 3 else i % 30},1" for i in range(120)]
    table = gzip.compress("\n".join(["t_s,x_deg,y_deg", *lines]).encode())
    (corpus.folder / corpus.parts[0].recording).write_bytes(table)
    system, survey = make_system("gaussian", sd_deg=3.0), corpus.survey()
    ((_, released),) = system.release(corpus, survey, system.units(corpus, survey)[0], seeded(5))
    np.testing.assert_array_equal(released.samples.valid, np.arange(120) % 7 != 3)
    assert 2.0 < np.nanstd(released.samples.y - 1.0) < 4.0  # 103 draws; less than one seed in 10^4 fails
