"""Recognition in releases, on simulated people whose truth is known."""

import numpy as np
import pytest

from eyestream_lab.releases.measures import ATTACKERS, ROWS, activities, halves, matched, recognised, usable

TASKS = ("a", "b", "c", "d")


def world(people: int, person: float, task: float, seed: int, noise: float = 1.0) -> dict[str, dict[str, np.ndarray]]:
    """80 rows of 5 features a recording; `person` and `task` are standard deviations of what is constant of them."""
    rng = np.random.default_rng(seed)
    own = person * rng.standard_normal((people, 5))
    ways = task * rng.standard_normal((len(TASKS), 5))
    return {
        f"P{i}": {name: own[i] + ways[j] + noise * rng.standard_normal((80, 5)) for j, name in enumerate(TASKS)}
        for i in range(people)
    }


SPLITS = halves(TASKS, 6, 0)


@pytest.mark.parametrize("attacker", ATTACKERS)
def test_people_who_differ_are_recognised_and_others_by_chance(attacker: str) -> None:
    """Chance is 1/8. Of 48 decisions of a right measure more than 16 are right once in 4,000 seeds."""
    different, alike = world(8, 5.0, 0.1, 1), world(8, 0.0, 0.1, 1)
    assert np.mean(recognised(attacker, different, [different], SPLITS)) > 0.95
    assert np.mean(recognised(attacker, alike, [alike], SPLITS)) < 1 / 3


@pytest.mark.parametrize("attacker", ATTACKERS)
def test_what_is_tested_is_not_what_was_learned(attacker: str) -> None:
    """The planted fault would learn and test on the same rows: then noise alone recognises everybody."""
    alike = world(8, 0.0, 0.1, 2)
    same = [(list(TASKS), list(TASKS))]
    fault = recognised(attacker, alike, [alike], same)
    assert np.mean(recognised(attacker, alike, [alike], SPLITS)) < np.mean(fault)


def test_identical_releases_share_the_guess() -> None:
    """Two groups of three with one file each: an attacker who knows the group names one in three."""
    raw = world(6, 5.0, 0.0, 3, noise=0.01)
    groups = [("P0", "P1", "P2"), ("P3", "P4", "P5")]
    released = {
        person: {task: np.mean([raw[one][task] for one in group], axis=0) for task in TASKS}
        for group in groups
        for person in group
    }
    assert np.mean(recognised("mean matcher", released, [raw], SPLITS)) <= 1 / 3 + 1e-9


def test_a_constant_feature_decides_no_assignment() -> None:
    """Its deviation is one of rounding, not 0: divided by that, a released constant would outweigh everything."""
    raw = world(5, 5.0, 1.0, 6)
    rng = np.random.default_rng(7)
    known, found = (
        {name: {task: np.column_stack((rows, np.full(len(rows), value))) for task, rows in tasks.items()}
         for name, tasks in raw.items()}
        for value in (0.1, 0.7)
    )  # fmt: skip
    assert np.std(known["P0"]["a"][:, -1]) > 0
    for tasks in found.values():
        for rows in tasks.values():
            rows[:, :-1] += rng.standard_normal(rows[:, :-1].shape)
    assert matched(known, found, TASKS) == 1.0


def test_activities_are_learned_from_others() -> None:
    different, alike = world(6, 0.1, 5.0, 4), world(6, 5.0, 0.0, 4)
    assert activities(different, different, 0).mean() > 0.95
    assert activities(alike, alike, 0).mean() < 0.6  # chance 0.25, 24 decisions: 4 standard errors


def test_halves_are_different_and_cover_the_tasks() -> None:
    ways = halves(TASKS, 100, 1)
    assert len({tuple(half) for half, _ in ways}) == 6
    for half, rest in ways:
        assert sorted([*half, *rest]) == list(TASKS)
        assert len(half) == 2


def test_rows_are_thinned_and_filled() -> None:
    rows = np.arange(300.0).reshape(150, 2)
    rows[:, 1] = np.nan
    rows[0, 0] = np.nan
    found = usable({"P": {"a": rows}}, np.array([7.0, 8.0]))["P"]["a"]
    assert len(found) == ROWS
    np.testing.assert_array_equal(found[:, 1], 8.0)
    assert found[0, 0] == rows[1, 0]
    assert found[1, 0] == rows[3, 0]
