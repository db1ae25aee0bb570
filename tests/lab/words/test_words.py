"""The mechanism of task words: what it releases, at what price, and what it takes and refuses."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.claims.guarantee import guarantee_of, guarantee_of_recording
from eyestream.core.charge import Ceilings
from eyestream.core.mechanisms import build
from eyestream.core.scopes import Deployment
from eyestream.core.session import Session
from eyestream.core.session_bytes import packed
from eyestream.errors import CalibrationError, ConfigError, SnapshotError
from eyestream.rim.files import calibrations
from eyestream.streams import StreamSpec
from eyestream_lab.calibration import Corpus, calibrate
from eyestream_lab.recordings.privatize import privatize
from eyestream_lab.testing.noise import FixedNoise, SeededNoise
from eyestream_lab.words.calibrate import calibrate_words, held_out
from eyestream_lab.words.directions import LabelledSession
from eyestream_lab.words.history import Remembering
from tests.lab.words.people import NAMES, RATE_HZ, SESSIONS, TASKS, N, calibration, people
from tests.rigs.noise import any_noise_taken

Array = NDArray[np.float64]


def chunks_of(session: LabelledSession) -> list[Array]:
    rows = session.rows.features
    return [rows[i : i + N].T for i in range(0, len(rows) - N + 1, N)]


def second_session(epsilon: float, noise: object) -> Session:
    """A session that may be released, after one that was withheld."""
    mechanism = build(calibration(), epsilon, noise=noise)  # type: ignore[arg-type]
    first = mechanism.session()
    for chunk in chunks_of(people(1, 9)[0][0]):
        assert first.awaits_baseline
        first.anchor(chunk)
    return mechanism.session_after(first)


def test_words_tell_tasks_of_other_people() -> None:
    """Of 40 people whom the judge does not know, chance 1/3: the limits lie 5 standard errors and more away."""
    mechanism = build(calibration(), 4.0, noise=SeededNoise(1))
    tiny = build(calibration(), 0.01, noise=SeededNoise(1))
    for made, least, most in ((mechanism, 0.6, 1.0), (tiny, 0.2, 0.45)):
        right = []
        for own in people(40, 3):
            session = None
            for one in own:
                session = made.session_after(session)
                for chunk in chunks_of(one):
                    if session.awaits_baseline:
                        session.anchor(chunk)
                    else:
                        right.append(made.schema.names[int(session.release(chunk).argmax())] == one.task)
        assert least < np.mean(right) < most


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324])
def test_a_chunk_of_anything_has_one_of_the_words(value: float) -> None:
    session = second_session(2.0, SeededNoise(0))
    chunk = np.where(np.arange(N) % 2, value, -value) * np.ones((len(NAMES), 1))
    found = session.release(chunk)
    assert found.shape == (3, 1)
    assert found.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_a_release_is_the_chance_of_each_task_given_the_word(shift: int) -> None:
    epsilon = 2.0
    keep = math.exp(epsilon) / (math.exp(epsilon) + 2)
    released = second_session(epsilon, FixedNoise(shift)).release(chunks_of(people(1, 9)[0][1])[0])[:, 0]
    own = second_session(epsilon, FixedNoise(0)).release(chunks_of(people(1, 9)[0][1])[0])[:, 0]
    assert (int(released.argmax()) - int(own.argmax())) % 3 == shift
    assert sorted(released) == pytest.approx([(1 - keep) / 2, (1 - keep) / 2, keep])


def test_the_stated_error_is_that_of_the_law() -> None:
    """3,000 draws of each word; 5 % is above four standard errors. Seeded."""
    mechanism = build(calibration(), 1.0, noise=SeededNoise(5))
    law, chances = mechanism.core.law, mechanism.core.chances  # type: ignore[attr-defined]
    draws = [(i % 3, int(mechanism.noise.draw(law)[0])) for i in range(9_000)]
    errors = np.array([chances[(word + shift) % 3] - np.eye(3)[word] for word, shift in draws])
    np.testing.assert_allclose(np.sqrt((errors**2).mean(axis=0)), mechanism.noise_sd, rtol=0.05)


def test_constants_of_a_wearer_change_no_word() -> None:
    """Whole steps of the grid, added to every row of a pseudonym; a constant of one session alone is seen."""
    remembering = calibration().takes_off
    assert isinstance(remembering, Remembering)
    own = people(1, 9)[0][:3]
    step = remembering.values(np.full(len(NAMES), 2.0**21))

    def said(moves: list[float]) -> list[int]:
        mechanism, session, found = build(calibration(), 4.0, noise=FixedNoise(0)), None, []
        for one, move in zip(own, moves, strict=True):
            session = mechanism.session_after(session)
            for chunk in chunks_of(one):
                held = remembering.values(remembering.steps(chunk)) + move * step[:, None]
                if session.awaits_baseline:
                    session.anchor(held)
                else:
                    found.append(int(session.release(held).argmax()))
        return found

    assert said([0, 0, 0]) == said([8, 8, 8]) == said([-3, -3, -3])
    assert said([0, 0, 0]) != said([0, 8, -8])


def test_a_pseudonym_ends_by_count_and_begins_with_a_withheld_session() -> None:
    mechanism, session, withheld = build(calibration(), 4.0), None, []
    for one in [*people(1, 9)[0], *people(1, 10)[0]][:7]:
        session = mechanism.session_after(session)
        withheld.append(session.awaits_baseline)
        for chunk in chunks_of(one):
            (session.anchor if session.awaits_baseline else session.release)(chunk)
    assert withheld == [i % SESSIONS == 0 for i in range(7)]


def test_a_session_is_not_kept_and_an_erased_one_tells_nothing() -> None:
    mechanism = build(calibration(), 4.0)
    with pytest.raises(SnapshotError, match="not kept"):
        mechanism.session(packed(mechanism.identity, 0, None))
    session = second_session(4.0, FixedNoise(0))
    with pytest.raises(RuntimeError, match="no snapshot"):
        session.snapshot()
    with pytest.raises(ValueError, match="sessions alone"):
        mechanism.release(np.zeros((len(NAMES), N)))
    session.erase()
    known = {int(session.release(chunk).argmax()) for chunk in chunks_of(people(1, 9)[0][1])}
    assert len(known) == 1


def test_the_guarantee_says_what_is_proved() -> None:
    mechanism = build(calibration(), 9.6)
    stream = StreamSpec("features", 1, NAMES, ("1",) * 6, RATE_HZ, 30.0)
    made = guarantee_of(mechanism, Deployment(stream, Ceilings.of(20, 200.0, 100.0)))
    words = dict(made.sentences())
    assert made.statement.startswith(
        "9.6-differential privacy (pure) for one chunk, given the earlier sessions of its pseudonym, of 4 rows"
    )
    assert f"It ends after {SESSIONS} sessions" in words["pseudonym's history"]
    assert "Of its first session nothing is released" in words["pseudonym's history"]
    scopes = {scope.unit: scope for scope in made.scopes}
    assert scopes["pseudonym"].ceiling == scopes["gaze event"].ceiling == scopes["window"].ceiling == 200.0
    assert scopes["gaze event"].loss is None
    assert scopes["gaze event, in its own session"].chunks == 16
    assert made.claim()["pseudonyms"] == {
        "sessions": SESSIONS,
        "released": SESSIONS - 1,
        "kept": "in memory alone",
        "hidden": ["constant level of a pseudonym"],
        "not_hidden": ["tasks and how often", "a person's own way of a task", "slow change"],
    }
    other = guarantee_of_recording(
        build(calibrations.load("everyday-klt-32"), 1.0), calibrations.load("everyday-klt-32")
    )
    assert "pseudonym's history" not in dict(other.sentences())
    assert "pseudonyms" not in other.claim()


def test_a_calibration_comes_back_from_its_file(tmp_path: Path) -> None:
    calibrations.save(calibration(), tmp_path / "words.npz")
    again = calibrations.load(tmp_path / "words.npz")
    assert again.content_hash == calibration().content_hash
    assert build(again, 4.0).schema.names == TASKS
    assert again.constant.tolist() == [False] * 4 + [True, True]
    other = replace(again, takes_off=replace(again.takes_off, sessions=9))  # type: ignore[type-var]
    assert other.content_hash != again.content_hash


def test_what_makes_no_judge_is_refused() -> None:
    own = people(3, 1)
    with pytest.raises(CalibrationError, match="only session of its person"):
        calibrate_words([own[0], own[1][:1]], N)
    with pytest.raises(CalibrationError, match="at least two tasks"):
        calibrate_words([[LabelledSession("read", one.rows) for one in each] for each in own], N)
    with pytest.raises(CalibrationError, match="name of 1 to 64 letters"):
        calibrate_words([[LabelledSession(f"{one.task}\n", one.rows) for one in each] for each in own], N)
    with pytest.raises(CalibrationError, match="--labels --task"):
        calibrate("task-words", Corpus.of([own[0][0].rows], N))
    with pytest.raises(CalibrationError, match="judge and a history"):
        build(replace(calibration(), takes_off=None), 4.0)
    with pytest.raises(ConfigError, match="epsilon of a decision"):
        build(calibration(), 65.0)
    assert held_out(own[:2], N, calibration())[1] == 0


def test_recordings_of_a_person_are_sessions_in_order() -> None:
    """Offline: the first of each person and of each pseudonym is withheld, and one word a chunk is released."""
    mechanism = build(calibration(), 4.0, noise=FixedNoise(0))
    one, other = people(2, 9)
    given = [one[0], other[0], one[1], one[2], other[1], one[3], one[4]]
    names = ["a", "b", "a", "a", "b", "a", "a"]
    with any_noise_taken():
        found = list(privatize([s.rows for s in given], calibration(), mechanism, people=names))
    chunks = len(chunks_of(one[0]))
    assert [released.chunks for released in found] == [0, 0, chunks, chunks, chunks, 0, chunks]
    assert [released.epsilon for released in found] == [4.0 * released.chunks for released in found]
    assert all(np.isnan(released.recording.features).all() == (released.chunks == 0) for released in found)
    assert found[2].recording.names == TASKS
    assert found[2].recording.features.shape == (chunks, 3)
    np.testing.assert_array_equal(found[2].recording.t, np.arange(chunks) * N / RATE_HZ)
    live = second_session(4.0, FixedNoise(0))
    np.testing.assert_array_equal(
        found[2].recording.features, [live.release(chunk)[:, 0] for chunk in chunks_of(one[1])]
    )


def test_a_lifetime_that_fades_goes_on_with_the_same_history() -> None:
    session = second_session(4.0, FixedNoise(0))
    half = build(calibration(), 4.0, noise=FixedNoise(0)).faded(1)
    moved = half.continue_session(session)
    chunk = chunks_of(people(1, 9)[0][1])[0]
    keep = math.exp(2.0) / (math.exp(2.0) + 2)
    assert moved.taken_off is session.taken_off
    assert float(moved.release(chunk).max()) == pytest.approx(keep)
    assert half.noise_sd[0] > build(calibration(), 4.0).noise_sd[0]
