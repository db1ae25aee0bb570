"""The tables on labels: what they compare, what they say of it, and labels that are refused."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from eyestream.errors import ConfigError
from eyestream.rim.files.recordings import Recording
from eyestream_lab.study import tables
from eyestream_lab.study.classification import Outcome, label_folds, outcomes, person_folds
from eyestream_lab.study.pages import PUBLISHED, tables_page, verdict
from eyestream_lab.study.plan import QUICK
from eyestream_lab.study.population import Population
from eyestream_lab.study.sources import World


@pytest.fixture(scope="module")
def labelled(world):
    """The people of `world`; the label `pace`, of every second pair of people, can be seen in one feature."""
    population = world.population
    pace = tuple("fast" if i // 2 % 2 else "slow" for i in range(len(population.people)))
    site = tuple("here" if i < 5 else "there" for i in range(len(population.people)))
    rows = population.rows.copy()
    for i, value in enumerate(pace):
        rows[population.starts[i] : population.starts[i + 1], 14] += 50.0 if value == "fast" else 0.0
    return World(replace(population, rows=rows, labels={"pace": pace, "site": site}), world.calibrations)


def record(source, voted, *, per_minute=18.0, **told):
    """One classifier's, of document, on 20 people."""
    usual = {"task": "document", "n": 32, "epsilon": per_minute * 16 / 60, "where": "", "classes": 3, "chance": 1 / 3}
    usual |= {"largest": 1 / 3, "per_window": 0.5, "per_window_interval": 0.1, "voted_interval": 0.1, "people": 20}
    made = {"source": source, "per_minute": per_minute, "voted": voted, "recordings": 60} | usual | told
    return [made | {"classifier": name} for name in ("k-NN", "SVM", "decision tree", "random forest")]


def test_cells_compare_every_source_at_the_same_epsilon_a_minute(labelled, world):
    assert tables.cells(QUICK, world) == []  # nobody is labelled
    work = tables.cells(QUICK, labelled)
    assert {cell.settings["task"] for cell in work} == {"person", "person, another session", "pace", "site"}
    assert {cell.settings["source"] for cell in work} >= {"raw", "CFPA", "DCFPA", "KLT", "KLT, anchored"}
    assert tables.epsilon_of(labelled.population, 18.0, 32, chunked=True) == pytest.approx(4.8)
    assert tables.epsilon_of(labelled.population, 18.0, 128, chunked=True) == pytest.approx(19.2)
    assert tables.epsilon_of(labelled.population, 18.0, 32, chunked=False) == pytest.approx(90.0)  # 300 s


def test_raw_tells_a_label_that_a_private_release_hides(labelled):
    told = {"task": "pace", "n": 32, "stride": 40, "seed": 0}
    raw = tables.measure(labelled, source="raw", mechanism="raw", per_minute=0.0, **told)
    assert max(r["voted"] for r in raw if not r["where"]) == 1.0
    assert {r["where"] for r in raw} == {"", "site = here", "site = there"}
    label = "CFPA, shrunk, smoothed, clipped"
    private = tables.measure(labelled, source=label, mechanism="cfpa", per_minute=1.8, **told)
    assert np.mean([r["voted"] for r in private if not r["where"]]) < 0.9
    for where in ("", "site = here"):
        people = {r["people"] for r in raw if r["where"] == where}
        assert people == {5 if not where else 2}
    assert all(r["epsilon"] == pytest.approx(0.48) for r in private)


def test_people_are_recognised_by_their_noise_within_one_release_and_not_in_another(labelled):
    told = {"source": "FPA", "mechanism": "fpa", "n": 32, "per_minute": 0.5, "stride": 40, "seed": 0}
    found = {
        task: max(r["voted"] for r in tables.measure(labelled, task=task, **told) if not r["where"])
        for task in ("person", tables.PERSON_ANEW)
    }
    assert found["person"] == 1.0
    assert found[tables.PERSON_ANEW] < 0.9


class Shared:
    """A world whose releases carry what they share: one number for each release, and who the person is nowhere."""

    def __init__(self, world):
        self.population, self.active, self.rows = world.population, world.active, world.rows

    def releases(self, *_, **__):
        count = itertools.count()

        def release(recording, part=slice(None)):
            rows = np.random.default_rng(recording).normal(size=self.rows(recording, 32)[part].shape)
            return rows + 100.0 * np.random.default_rng(next(count)).normal(size=rows.shape[1])

        return release


def test_the_halves_of_another_session_share_no_release(labelled):
    told = {
        "source": "KLT, anchored",
        "mechanism": "klt-anchored",
        "n": 32,
        "per_minute": 18.0,
        "stride": 40,
        "seed": 0,
    }
    world = Shared(labelled)
    within = tables.measure(world, task="person", **told)
    apart = tables.measure(world, task=tables.PERSON_ANEW, **told)
    assert max(r["voted"] for r in within if not r["where"]) == 1.0
    assert max(r["voted"] for r in apart if not r["where"]) < 0.7


def test_withheld_rows_are_neither_learned_nor_tested():
    rows = {r: np.arange(80.0).reshape(40, 2) + r for r in range(4)}
    rows[0][:10] = np.nan
    rows[3][:] = np.nan
    _, [(train, test)] = person_folds(("a", "b", "c", "d"), rows, 10, 1)
    assert [len(part) for _, _, part in train] == [10, 20, 20, 0]
    found = outcomes("k-NN", [(train, test)], 0)
    assert [outcome.recording for outcome in found] == [0, 1, 2]
    values, folds = label_folds(("a", "b", "c", "d"), ("x", "y", "x", "y"), rows, 10)
    assert values == ["x", "y"]
    assert all(np.isfinite(part).all() for train, test in folds for _, _, part in (*train, *test))
    assert found[0] == Outcome(0, 20, found[0].right, found[0].vote)


def test_the_page_says_what_is_kept_what_was_published_and_who_is_recognised():
    records = record("raw", 0.97, per_minute=0.0, epsilon=0.0)
    records += record("CFPA", 0.4) + record("KLT", 0.85) + record("KLT", 0.75, per_minute=1.8)
    person = {"task": "person, another session", "chance": 0.05, "largest": 0.05, "classes": 20}
    records += record("raw", 0.9, per_minute=0.0, epsilon=0.0, **person)
    records += (
        record("CFPA", 0.12, **person) + record("KLT", 0.3, **person) + record("KLT", 0.05, per_minute=1.8, **person)
    )
    records += record("raw", 0.9, per_minute=0.0, where="gender = f") + record("CFPA", 0.3, where="gender = f")
    text = tables_page(records)
    assert "| CFPA | 32 | 18 | 0.40 ± 0.10 | 0.12 ± 0.10 | keeps no task; people at chance |" in text
    assert "| KLT | 32 | 18 | 0.85 ± 0.10 | 0.30 ± 0.10 | keeps document; people recognised |" in text
    assert "| KLT | 32 | 1.8 | 0.75 ± 0.10 | 0.05 ± 0.10 | keeps no task; people at chance |" in text
    assert "0.40/0.44/0.46/0.44 | at chance, 57 points below raw |" in text
    assert "| CFPA | 32 | 18 | 0.30 ± 0.10 |" in text.split("gender = f")[1]
    assert set(PUBLISHED) >= {("document", "CFPA", 32, 4.8), ("person", "DCFPA", 128, 48.0)}


def test_a_verdict_goes_by_the_larger_of_chance_and_the_largest_class():
    [one, *_] = record("CFPA", 0.6)
    assert verdict(one, 0.9) == "above chance, 30 points below raw"
    assert verdict(one | {"largest": 0.55}, 0.9) == "at chance, 30 points below raw"
    assert verdict(one, 0.5) == "above chance, no less than raw"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda labels: labels.pop("r2"), "no line for recording r2"),
        (lambda labels: labels.update(r9={"person": "i", "kind": "x"}), "not there: r9"),
        (lambda labels: labels["r1"].update(kind=" "), "recording r1: kind is empty"),
        (lambda labels: [row.update(kind="same") for row in labels.values()], "kind is 'same' for all recordings"),
    ],
)
def test_labels_that_do_not_match_are_refused_by_name(change, said):
    recordings = [Recording(np.arange(4.0), np.zeros((4, 1)), ("x",), f"r{i}.npz") for i in range(5)]
    labels = {f"r{i}": {"person": f"p{i}", "kind": "odd" if i % 2 else "even"} for i in range(5)}
    assert Population.of(recordings, labels).labels == {"kind": ("even", "odd", "even", "odd", "even")}
    change(labels)
    with pytest.raises(ConfigError, match=said):
        Population.of(recordings, labels)
