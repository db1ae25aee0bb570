"""Task directions: what differs between tasks comes through, with klt's words and klt's price."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration, JointTables
from eyestream.core.mechanisms import KLT
from eyestream.errors import CalibrationError
from eyestream.rim.files.recordings import Recording
from eyestream_lab.files.books import shipped_books
from eyestream_lab.testing.noise import SeededNoise
from eyestream_lab.words.directions import (
    LabelledSession,
    calibrate_tasks,
    discriminants,
    remembering_of,
    residual_rows,
)
from eyestream_lab.words.history import History, Remembering, SessionLevel
from tests.rigs.linking.people import Parts, simulate_tasks

Array = NDArray[np.float64]
N, FEATURES, TASKS = 4, 8, 4
PARTS = Parts(person=4.0, task=3.0, spread=0.1)


def pseudonyms(people: int, seed: int) -> list[list[LabelledSession]]:
    """With a feature that is lost everywhere, one that is constant, and one of a far larger unit."""
    simulated = simulate_tasks(PARTS, people, 6, seed, tasks=TASKS, features=FEATURES)
    names = (*(f"feature {i}" for i in range(FEATURES)), "lost", "constant")
    found = []
    for own in simulated:
        sessions = []
        for session in own:
            rows = session.rows * np.where(np.arange(FEATURES) == 0, 1e6, 1.0)
            rows = np.column_stack([rows, np.full(len(rows), np.nan), np.full(len(rows), 7.0)])
            recording = Recording(8.0 * np.arange(len(rows)), rows, names)
            sessions.append(LabelledSession("abcd"[session.task], recording))
        found.append(sessions)
    return found


@pytest.fixture(scope="module")
def public() -> Remembering:
    return remembering_of([session.rows for own in pseudonyms(20, 1) for session in own], 7)


@pytest.fixture(scope="module")
def calibration(public: Remembering) -> Calibration:
    return calibrate_tasks(pseudonyms(20, 1), N, public)


def right(calibration: Calibration, public: Remembering, epsilon: float) -> float:
    """Share of other people's sessions whose nearest task, by released means, is theirs."""

    def released(seed: int) -> tuple[Array, NDArray[np.str_]]:
        mechanism, levels, tasks = KLT(calibration, epsilon, noise=SeededNoise(seed)), [], []
        for own in pseudonyms(20, seed):
            for residual in residual_rows(own, N, public):
                session = mechanism.session()
                chunks = residual.features.reshape(-1, N, residual.features.shape[1]).transpose(0, 2, 1)
                levels.append(np.mean([session.release(chunk).mean(axis=1) for chunk in chunks], axis=0))
                tasks.append(residual.task)
        return np.array(levels)[:, :FEATURES] / public.spread[:FEATURES], np.array(tasks)

    known, names = released(2)
    centres = {task: known[names == task].mean(axis=0) for task in "abcd"}
    unknown, truth = released(3)
    said = [min(centres, key=lambda task, own=own: ((own - centres[task]) ** 2).sum()) for own in unknown]
    return float(np.mean(np.array(said) == truth))


def test_tasks_come_through_at_a_usual_epsilon_and_not_at_a_tiny_one(
    calibration: Calibration, public: Remembering
) -> None:
    """100 sessions, chance 1/4: the limits lie 4 standard errors and more from what is found."""
    assert right(calibration, public, 9.6) > 0.7
    assert right(calibration, public, 0.01) < 0.45


def test_there_are_fewer_directions_than_tasks(calibration: Calibration) -> None:
    assert tables_of(calibration).basis.shape[1] == TASKS - 1
    assert calibration.mechanism == "klt"
    assert calibration.constant.tolist() == [False] * FEATURES + [True, True]


def test_books_for_more_directions_than_there_are_are_left_out(public: Remembering) -> None:
    books = shipped_books()
    assert min(book.end for book in books) > TASKS - 1
    assert tables_of(calibrate_tasks(pseudonyms(5, 1), N, public, books=books)).book_shapes is None


def tables_of(calibration: Calibration) -> JointTables:
    assert isinstance(calibration.tables, JointTables)
    return calibration.tables


def test_the_words_know_nothing_but_the_residual_chunk(calibration: Calibration, public: Remembering) -> None:
    """Two wearers with other levels, whose residual rows are the same, release the same under the same noise."""
    own = pseudonyms(1, 9)[0]
    other = [LabelledSession(one.task, replace(one.rows, features=_on_grid(one.rows.features, public))) for one in own]
    moved = [
        LabelledSession(one.task, replace(one.rows, features=one.rows.features + public.values(np.full(10, 5e6))))
        for one in other
    ]

    def out(sessions: list[LabelledSession]) -> Array:
        mechanism = KLT(calibration, 9.6, noise=SeededNoise(4))
        return np.array([mechanism.release(r.features[:N].T) for r in residual_rows(sessions, N, public)])

    np.testing.assert_array_equal(out(other), out(moved))


def _on_grid(rows: Array, public: Remembering) -> Array:
    return np.where(np.isfinite(rows), public.values(public.steps(rows.T)).T, np.nan)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308, -1e308])
def test_any_session_and_any_history_can_be_released(
    value: float, calibration: Calibration, public: Remembering
) -> None:
    """The word's law is that of the response, whatever history and chunk hold: so they must have a word."""
    level = SessionLevel(public)
    level.take(np.full((10, N), value))
    for history in (History.begun(public).after(level), History.begun(public).after(SessionLevel(public))):
        for chunk in (np.full((10, N), value), np.ones((10, N))):
            released = KLT(calibration, 9.6, noise=SeededNoise(5)).release(history.off(chunk))
            assert np.isfinite(released).all()


def test_discriminants_are_fishers(public: Remembering) -> None:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    rng = np.random.default_rng(6)
    mix = rng.standard_normal((5, 5))
    tasks = np.repeat(np.array(["a", "b", "c"]), 200)
    rows = (np.repeat(2 * rng.standard_normal((3, 5)), 200, axis=0) + rng.standard_normal((600, 5))) @ mix
    found = discriminants(rows, tasks, 0.0)
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(rows, tasks).scalings_[:, :2]
    angles = np.linalg.svd(np.linalg.qr(found)[0].T @ np.linalg.qr(theirs)[0])[1]
    np.testing.assert_allclose(angles, 1.0, atol=1e-8)
    within = np.mean([np.cov((rows @ found)[tasks == name].T, bias=True) for name in "abc"], axis=0)
    np.testing.assert_allclose(within, np.eye(2), atol=1e-8)


def test_control_directions_of_persons_are_others() -> None:
    rng = np.random.default_rng(7)
    person, task = np.zeros((2, 4, 6))
    person[:, 0], task[:, 1] = 3 * rng.standard_normal(4), 3 * rng.standard_normal(4)
    who, what = np.repeat(np.arange(4), 100), np.tile(np.arange(4), 100)
    rows = person[who] + task[what] + rng.standard_normal((400, 6))
    by_task, by_person = (discriminants(rows, np.char.mod("%d", labels), 0.5)[:, 0] for labels in (what, who))
    assert abs(by_task[1]) > 5 * abs(by_task[0])
    assert abs(by_person[0]) > 5 * abs(by_person[1])


def test_too_little_is_refused(public: Remembering) -> None:
    own = pseudonyms(2, 1)
    alike = [[LabelledSession("a", session.rows) for session in one] for one in own]
    with pytest.raises(CalibrationError, match="at least two tasks"):
        calibrate_tasks(alike, N, public)
    with pytest.raises(CalibrationError, match="at least two tasks"):
        calibrate_tasks([one[:1] for one in own], N, public)
    with pytest.raises(CalibrationError, match="at least one public recording"):
        remembering_of([], 7)
