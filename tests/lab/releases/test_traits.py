"""Labels of people, learned from others, on simulated people whose truth is known."""

from pathlib import Path

import numpy as np
import pytest

from eyestream_lab.corpora.corpus import Dataset, Part
from eyestream_lab.corpora.kinds import ROWS
from eyestream_lab.releases.page import page
from eyestream_lab.releases.traits import TRAIT_ATTACKERS, classes_of, told_of

People = dict[str, dict[str, np.ndarray]]


def world(people: int, trait: float, person: float, seed: int) -> tuple[People, dict[str, str]]:
    """40 rows of 5 features at two tasks; every third one is "f"; standard deviations of what is constant of both."""
    rng = np.random.default_rng(seed)
    way, own = trait * rng.standard_normal(5), person * rng.standard_normal((people, 5))
    classes = {f"P{i:02}": "f" if i % 3 == 0 else "m" for i in range(people)}
    rows = {
        name: {task: own[i] + way * (classes[name] == "f") + rng.standard_normal((40, 5)) for task in "ab"}
        for i, name in enumerate(classes)
    }
    return rows, classes


@pytest.mark.parametrize("attacker", TRAIT_ATTACKERS)
def test_what_classes_differ_in_is_told_and_nothing_else(attacker: str) -> None:
    """Chance is 1/2. The plausible fault would learn from the person who is judged: people who differ are then told."""
    different, classes = world(24, 3.0, 0.1, 1)
    assert told_of(attacker, classes, different, [different], 0).mean() > 0.95
    shares = []
    for seed in range(8):
        alike, classes = world(24, 0.0, 5.0, seed)
        shares.append(told_of(attacker, classes, alike, [alike], 0).mean())
    assert np.mean(shares) < 0.65  # 8 x 24 decisions, of which 64 count double: standard error at most .04


def test_each_class_counts_as_much_as_another() -> None:
    """Whoever always says the larger class has a half, and not two thirds."""
    _, classes = world(24, 0.0, 0.0, 1)
    flat = {name: {task: np.zeros((5, 3)) for task in "ab"} for name in classes}
    found = told_of("random forest", classes, flat, [flat, flat], 0)
    assert found.shape == (2, 24)
    assert found.mean() == pytest.approx(0.5)
    assert set(found[0].round(3)) <= {0.0, 0.75, 1.5, 0.375}


def corpus_of(**labels: list[str]) -> Dataset[object]:
    """One person a place; the first one has two recordings."""
    count = len(next(iter(labels.values())))
    parts = [Part(f"P{i:02}", f"P{i:02}.npz", "a", tuple(own[i] for own in labels.values())) for i in range(count)]
    parts.append(Part("P00", "P00_b.npz", "b", tuple(own[1] for own in labels.values())))
    return Dataset(Path(), ROWS, tuple(parts), tuple(labels))


def test_labels_that_can_be_judged() -> None:
    found = classes_of(
        corpus_of(
            sex=["f", "f", "m", "m"] * 3,
            age=["20", "20", *(str(30 + i) for i in range(10))],
            glasses=["yes", "yes", *["no"] * 10],
            name=[f"n{i}" for i in range(12)],
            told=["n/a", "", *["yes", "no"] * 5],
            varies=["x", "y", *["x", "y"] * 5],
        )
    )
    assert set(found) == {"sex", "age", "told", "varies"}, "glasses has two of one class, name twelve classes"
    assert sorted(set(found["age"].values())) == ["above 33.5", "to 33.5"]
    assert set(found["told"]) == {f"P{i:02}" for i in range(2, 12)}
    assert set(found["varies"]) == {f"P{i:02}" for i in range(1, 12)}, "the first person has both values"


def test_the_page_names_the_stronger_attacker_and_the_chance() -> None:
    raw = {
        "corpus": "c",
        "people": 8,
        "tasks": 2,
        "splits": 1,
        "made_on": "2026-01-01",
        "line": "raw",
        "recognised": {},
    }
    raw |= {"chance_person": 0.125, "chance_task": 0.5, "chance_traits": {"sex": 0.5}}
    weak, strong = {"raw": [0.0, 1.0], "released": [0.0, 0.0]}, {"raw": [0.5, 1.0], "released": [1.0, 0.0]}
    text = page({"raw": raw | {"traits": {"sex": {"a": weak, "b": strong}}}})
    assert "Chance is 0.50 for sex." in text
    assert "| raw | 0.75 ± 0.25 | 0.50 ± 0.50 |" in text
    assert "within two standard errors of chance for sex." in text
    told = {"raw": [1.0] * 8, "released": [0.0, 1.0] * 4}
    assert "two standard errors of chance" not in page({"raw": raw | {"traits": {"sex": {"a": told}}}})
    without = page({"raw": raw | {"chance_traits": {}, "traits": {}}})
    assert "What is told of people" not in without
