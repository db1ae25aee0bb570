"""Simulated people: who is hidden by residual rows, and each condition under which somebody is found again.

Areas are of 80 people, two pseudonyms each, against 400 pairs of two people: at chance, areas have a standard
deviation of 0.035. `HIDDEN` and `FOUND` lie 3 and more of these from one half: a false alarm in 700 seeds.
"""

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.errors import ConfigError
from eyestream_lab.testing.noise import SeededNoise
from eyestream_lab.words.history import Remembering
from tests.rigs.linking.galleries import GALLERY_ATTACKERS, name_pseudonyms
from tests.rigs.linking.pairs import area, furthest
from tests.rigs.linking.people import Parts, simulate_tasks, task_means
from tests.rigs.linking.pseudonyms import link_pseudonyms, residual_map
from tests.rigs.linking.release import Public, Sessions, Walk, kept_apart, learned, raw, residual
from tests.rigs.linking.sessions import SESSION_ATTACKERS, SeenSession, link_sessions
from tests.rigs.linking.words import link_words, worded

Array = NDArray[np.float64]

PEOPLE, SESSIONS, SEED = 80, 10, 5
HIDDEN, FOUND = 0.61, 0.64
BALANCED = Parts(person=1.0)


@cache
def known(parts: Parts, trust: float = 0.0) -> Public:
    return learned(parts, trust=trust, people=16)


def areas(parts: Parts, walk: Walk, trust: float = 0.0) -> dict[str, float]:
    return link_pseudonyms(known(parts, trust).seen(PEOPLE, SESSIONS, SEED, walk), parts)


def test_raw_levels_are_found_and_residuals_are_not() -> None:
    assert areas(BALANCED, raw)["contrasts"] > 0.95
    found = areas(BALANCED, residual)
    assert max(found.values()) < HIDDEN, found


def test_control_a_history_that_takes_nothing_off_is_seen() -> None:
    def wrong(sessions: Sessions, remembering: Remembering) -> tuple[list[Array], Array]:
        return [session.rows for session in sessions[1:]], residual(sessions, remembering)[1]

    assert areas(BALANCED, wrong)["matcher"] > 0.75


@pytest.mark.long
def test_a_persons_own_way_of_a_task_is_found_and_cancels_with_a_history_for_each_stated_task() -> None:
    parts = Parts(person=1.0, by_task=0.25)
    assert areas(parts, residual)["contrasts"] > 0.75
    assert areas(parts, kept_apart)["contrasts"] < HIDDEN


@pytest.mark.long
def test_a_persons_spread_is_found_unless_it_is_taken_off_too() -> None:
    parts = Parts(person=1.0, spread=0.1)
    assert areas(parts, residual, trust=np.inf)["spread"] > 0.7
    assert areas(parts, residual, trust=0.0)["spread"] < HIDDEN


def test_a_favourite_task_is_found_by_how_often_it_comes() -> None:
    found = areas(Parts(person=1.0, favourite=0.7), residual)
    assert found["habits"] > 0.7
    assert found["contrasts"] < HIDDEN  # who knows the tasks learns nothing more from rows


def test_a_history_that_goes_on_under_a_new_pseudonym_tells_the_old_ones_tasks() -> None:
    """What the old pseudonym's tasks took off is in the new one's residuals; stated tasks, or a new history, end it."""
    means = task_means(BALANCED, 6, 8)
    scores: dict[str, list[float]] = {"goes on": [], "begun again": [], "stated": []}
    same = []
    people = simulate_tasks(BALANCED, PEOPLE, 2 * SESSIONS, SEED)
    levels = [np.array([session.rows.mean(axis=0) for session in own]) for own in people]
    tasks = [means[[session.task for session in own]] for own in people]
    going_on, begun = residual_map(2 * SESSIONS)[SESSIONS - 1 :], residual_map(SESSIONS)
    for i in range(PEOPLE):
        for j in (i, *((i + k) % PEOPLE for k in range(1, 6))):
            same.append(i == j)
            new = tasks[j][SESSIONS:]
            carried = -tasks[i][:SESSIONS].mean(axis=0)
            told = {
                "goes on": going_on @ levels[j] - new,
                "begun again": begun @ levels[j][SESSIONS:] - new[1:],
                "stated": going_on @ (levels[j] - tasks[j]),
            }
            for way, residuals in told.items():
                scores[way].append(float(residuals[0] @ carried))
    found = {way: area(np.array(one), np.array(same)) for way, one in scores.items()}
    assert found["goes on"] > FOUND
    assert found["begun again"] < HIDDEN
    assert found["stated"] < HIDDEN


def test_a_person_who_drifts_is_found_by_a_history_that_never_forgets() -> None:
    """Two released sessions of one pseudonym: their residuals share what the history lags behind by."""
    parts = Parts(person=1.0, drift=0.7)
    people = simulate_tasks(parts, 300, SESSIONS, SEED)
    means = task_means(parts, 6, 8)
    levels = np.array([[s.rows.mean(axis=0) - means[s.task] for s in own] for own in people])

    def shared(drift: float) -> float:
        residuals = np.einsum("ts,psf->ptf", residual_map(SESSIONS, drift), levels)
        one, other = residuals[:, -2].ravel(), residuals[:, -1].ravel()
        return float(np.corrcoef(one, other)[0, 1])

    assert shared(0.0) > 0.4
    assert abs(shared(0.7**2 / (1 + 1 / 8))) < 0.08  # 2,400 pairs: 0.08 is 4 standard deviations


@pytest.mark.long
def test_one_decision_word_a_session_is_useful_and_says_less_than_directions() -> None:
    parts = Parts(person=0.3, by_task=0.25, spread=0.1)
    words = worded(known(parts), 4.0, SeededNoise(3))
    assert words.right(60, 8, 77) > 0.55
    found = link_words(words, PEOPLE, SESSIONS, SEED)
    assert furthest(list(found.values())) < 0.65
    assert areas(parts, residual)["contrasts"] > found["contrasts"] + 0.1


@pytest.mark.long
def test_directions_tell_a_persons_own_way_of_a_task_over_ten_sessions() -> None:
    """What the claim has to say: the words of every chunk hide the constant level, and not this."""
    parts = Parts(person=0.3, by_task=0.25, spread=0.1)
    coded = learned(parts, 9.6, SeededNoise(1))
    found = link_pseudonyms(coded.seen(PEOPLE, SESSIONS, SEED, residual), parts)
    assert found["spread"] < HIDDEN
    assert found["contrasts"] > FOUND
    balanced = Parts(person=0.3)
    hidden = learned(balanced, 9.6, SeededNoise(1)).seen(PEOPLE, SESSIONS, SEED, residual)
    assert max(link_pseudonyms(hidden, balanced).values()) < HIDDEN


# Attackers of two sessions


def seen(rng: np.random.Generator, people: int, apart: float, name: str) -> list[SeenSession]:
    """Four sessions of each, of four tasks, whose levels differ between persons by `apart`."""
    found = []
    for person in range(people):
        level = apart * rng.standard_normal((1, 5, 1))
        spread = np.exp(0.3 * apart * rng.standard_normal((1, 5, 1)))
        for task in "abcd":
            chunks = level + 0.5 * rng.standard_normal((1, 5, 1)) + spread * rng.standard_normal((6, 5, 3))
            found.append(SeenSession(f"{name}{person}", task, chunks))
    return found


def test_attackers_of_two_sessions_find_persons_where_there_are_any() -> None:
    rng = np.random.default_rng(1)
    found = link_sessions([seen(rng, 20, 1.5, "x")], seen(rng, 20, 1.5, "y"))
    assert set(found) == set(SESSION_ATTACKERS)
    assert min(value for name, value in found.items() if name != "spread") > 0.8
    assert found["spread"] > 0.6


def test_and_none_where_there_are_none() -> None:
    rng = np.random.default_rng(2)
    found = link_sessions([seen(rng, 15, 0.0, "x") for _ in range(3)], seen(rng, 10, 0.0, "y"))
    assert max(abs(value - 0.5) for value in found.values()) < 0.1


def test_an_attacker_below_one_half_is_turned_round() -> None:
    assert furthest([0.45, 0.3, 0.6]) == pytest.approx(0.7)
    assert area(np.array([1.0, 1.0, 2.0, 0.0]), np.array([True, False, True, False])) == pytest.approx(0.875)


def test_a_simulation_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="two tasks or more"):
        simulate_tasks(BALANCED, 0, 3, 1)
    with pytest.raises(ConfigError, match="two tasks or more"):
        simulate_tasks(Parts(favourite=1.5), 3, 3, 1)


def test_attackers_with_names_find_persons_where_there_are_any_and_none_where_there_are_none() -> None:
    def areas_of(apart: float) -> dict[str, float]:
        rng = np.random.default_rng(3)
        every = [seen(rng, 20, apart, "x") for _ in range(3)]
        return name_pseudonyms([(group[::4], group[1::4]) for group in every])

    found = areas_of(1.5)
    assert set(found) == set(GALLERY_ATTACKERS)
    assert min(found.values()) > 0.8
    assert max(abs(value - 0.5) for value in areas_of(0.0).values()) < 0.12  # 60 people: 3 standard deviations
