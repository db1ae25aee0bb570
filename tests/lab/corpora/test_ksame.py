"""k-same-select: the bound 1 / k by exhaustive matching, and what breaks it."""

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.rim.files import recordings
from eyestream.rim.files.recordings import Recording
from eyestream_lab.corpora import ksame
from eyestream_lab.corpora.draws import Draws
from eyestream_lab.corpora.ksame import filled, groups_of, parts_of_groups
from eyestream_lab.corpora.run import release_with
from eyestream_lab.datasets import ROWS, Dataset, make_system, open_corpus, privatize_corpus
from eyestream_lab.releases.measures import matched
from tests.lab.corpora.worlds import participants, rows_corpus, seeded

Array = NDArray[np.float64]


def digests(folder: Path, task: str, people: int) -> list[bytes]:
    return [hashlib.sha256((folder / f"P{i}_{task}.npz").read_bytes()).digest() for i in range(people)]


def right_matches(raw: Dataset[Recording], out: Dataset[Recording], tasks: Sequence[str]) -> float:
    """What an attacker finds who knows all raw recordings of the tasks, and tries every assignment of all rows."""
    known, found = (as_people(one) for one in (raw, out))
    return matched(known, found, tasks)


def as_people(corpus: Dataset[Recording]) -> dict[str, dict[str, Array]]:
    people: dict[str, dict[str, Array]] = {person: {} for person in corpus.people}
    for part in corpus.parts:
        people[part.person][part.task] = np.nan_to_num(filled(corpus.load(part).features))
    return people


def released(tmp_path: Path, name: str, **options: Any) -> tuple[Dataset[Recording], Dataset[Recording]]:
    raw = rows_corpus(tmp_path / "in", people=6)
    release_with(seeded(4), make_system(name, **options), raw, tmp_path / "out")
    return raw, open_corpus(tmp_path / "out", ROWS)


@pytest.mark.parametrize("k", [2, 3, 4, 6])
@pytest.mark.parametrize("name", ["k-same-select", "k-same-select-one-partition"])
def test_exhaustive_matching_finds_one_in_k_at_most(tmp_path: Path, name: str, k: int) -> None:
    raw, out = released(tmp_path, name, k=k)
    for task in raw.tasks:
        assert right_matches(raw, out, [task]) <= 1 / k + 1e-9
    assert right_matches(raw, raw, ["READ"]) == 1.0  # the attacker can do it where nothing is done


def one_release_in_groups_of_k(tmp_path: Path) -> None:
    """Every file of a task is the same as those of k - 1 others at least: length, times and values."""
    raw = rows_corpus(tmp_path / "in", people=7)
    release_with(seeded(4), make_system("k-same-select", k=3), raw, tmp_path / "out")
    for task in raw.tasks:
        found = digests(tmp_path / "out", task, 7)
        assert min(map(found.count, found)) >= 3
        assert max(map(found.count, found)) <= 5


def test_the_files_of_a_group_are_identical(tmp_path: Path) -> None:
    one_release_in_groups_of_k(tmp_path)


def leftovers_alone(people: Sequence[str], k: int, task: str) -> list[list[str]]:
    return [list(people[i : i + k]) for i in range(0, len(people), k)]


@pytest.mark.parametrize("fault", ["leftovers form a smaller group", "a partition a row", "the member's own length"])
def test_plausible_faults_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    if fault == "leftovers form a smaller group":
        monkeypatch.setattr(ksame, "groups_of", leftovers_alone)
    elif fault == "a partition a row":

        def release(self: Any, corpus: Any, survey: Any, unit: Any, draws: Draws) -> Any:
            shortest = min(survey.extents[part].rows for part in unit.parts)
            rows = {part.person: corpus.load(part).features[:shortest] for part in unit.parts}
            made = {person: own.copy() for person, own in rows.items()}
            for i in range(shortest):
                for group in groups_of(tuple(rows), self.k, f"{unit.name} {i}"):
                    for person in group:
                        made[person][i] = np.mean([rows[member][i] for member in group], axis=0)
            for part in unit.parts:
                yield part, Recording(np.arange(shortest) / 2, made[part.person], survey.names)

        monkeypatch.setattr(ksame.KSameSelect, "release", release)
    else:

        def release(self: Any, corpus: Any, survey: Any, unit: Any, draws: Draws) -> Any:
            for group in parts_of_groups(unit.parts, self.k):
                mean = ksame.group_mean(corpus, survey, group, self.k)
                for part in group:
                    rows = survey.extents[part].rows
                    yield part, Recording(mean.t[:rows], mean.features[:rows], mean.names)

        monkeypatch.setattr(ksame.KSameSelect, "release", release)
    with pytest.raises((AssertionError, IndexError)):  # a smaller group has no k-th longest member
        one_release_in_groups_of_k(tmp_path)


def test_a_partition_a_task_is_undone_by_two_tasks_and_one_partition_is_not(tmp_path: Path) -> None:
    """Six people in three pairs: the pairs of two tasks meet in one person, and one partition's in themselves."""
    raw, out = released(tmp_path, "k-same-select", k=2)
    assert right_matches(raw, out, raw.tasks) > 0.5 + 0.1
    claim = make_system("k-same-select", k=2).promise(raw, raw.survey())
    assert any("Nothing across tasks" in said for said in claim.not_promised)
    release_with(seeded(4), make_system("k-same-select-one-partition", k=2), raw, tmp_path / "one")
    whole = open_corpus(tmp_path / "one", ROWS)
    assert right_matches(raw, whole, raw.tasks) <= 0.5 + 1e-9
    sets = [tuple(digests(tmp_path / "one", task, 6)[i] for task in raw.tasks) for i in range(6)]
    assert min(map(sets.count, sets)) >= 2


def test_groups_are_of_k_to_two_k_less_one_and_as_if_drawn() -> None:
    for people in range(2, 30):
        names = [f"P{i}" for i in range(people)]
        for k in range(2, people + 1):
            groups = groups_of(names, k, "READ")
            assert sorted(itertools.chain(*groups)) == sorted(names)
            assert all(k <= len(group) <= 2 * k - 1 for group in groups)
    together = sum(
        "a" in group and "b" in group for i in range(400) for group in groups_of(("a", "b", "c", "d"), 2, f"task {i}")
    )
    assert abs(together - 400 / 3) < 4 * np.sqrt(400 * 2 / 9)  # a right partition fails once in 16,000 choices of names


@pytest.mark.parametrize("name", ["k-same-select", "k-same-select-one-partition"])
def test_a_second_release_has_the_same_groups(tmp_path: Path, name: str) -> None:
    """Else an attacker who holds all raw recordings intersects the groups of both: pairs leave one person."""
    raw = rows_corpus(tmp_path / "in", people=7)
    for number in (1, 2):
        privatize_corpus(make_system(name, k=2), raw, tmp_path / f"out-{number}")
    for task in raw.tasks:
        assert digests(tmp_path / "out-1", task, 7) == digests(tmp_path / "out-2", task, 7)
    assert groups_of(("a", "b", "c", "d"), 2, "t") == groups_of(("d", "b", "a", "c"), 2, "t")  # lines in another order
    promise = make_system(name, k=2).promise(raw, raw.survey())
    assert any("with other people beside these" in said for said in promise.not_promised)


def shares_its_course(raw: Array, released: Array) -> bool:
    """Whether a stretch of 8 rows of some feature moves as the raw one does, to rounding."""
    count = min(len(raw), len(released))
    for start in range(0, count - 8, 4):
        a, b = (np.diff(rows[start : start + 8], axis=0) for rows in (raw, released))
        for own, made in zip(a.T, b.T, strict=True):
            if np.ptp(own) > 0 and np.ptp(made) > 0 and abs(np.corrcoef(own, made)[0, 1]) > 1 - 1e-6:
                return True
    return False


def long_member(folder: Path, lost: bool) -> Dataset[Recording]:
    """Two people with values that are all different: one has 30 rows, or values in 30 rows, the other one 70."""
    rng, lines = np.random.default_rng(2), []
    folder.mkdir()
    for person, rows in (("P0", 70), ("P1", 70 if lost else 30)):
        values = rng.standard_normal((rows, 3))
        if lost and person == "P1":
            values[30:, 1] = np.nan
        recordings.save(Recording(np.arange(rows) / 2, values, ("a", "b", "c")), folder / f"{person}.npz")
        lines.append((person, f"{person}.npz", "READ"))
    participants(folder, lines)
    return open_corpus(folder, replace(ROWS, rate_hz=2.0))


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("name", ["k-same-select", "k-same-select-one-partition"])
def test_no_stretch_of_a_release_is_the_course_of_one_member(tmp_path: Path, name: str, lost: bool) -> None:
    """Neither after the shorter one ended, nor where the other one misses a feature."""
    raw = long_member(tmp_path / "in", lost)
    privatize_corpus(make_system(name, k=2), raw, tmp_path / "out")
    for part in raw.parts:
        made = recordings.load(tmp_path / "out" / part.recording).features
        assert not shares_its_course(np.nan_to_num(filled(raw.load(part).features)), np.nan_to_num(made))
    padded = np.concatenate([raw.load(part).features[:30] for part in raw.parts] + [raw.load(raw.parts[0]).features])
    assert shares_its_course(padded, padded / 2 + 1)  # the attacker can do it


def test_the_mean_is_of_those_who_have_a_value_and_missing_where_fewer_than_k_have(tmp_path: Path) -> None:
    raw = rows_corpus(tmp_path / "in", people=3, tasks=("READ",))
    loaded = [raw.load(part) for part in raw.parts]
    first = loaded[0].features.copy()
    first[:, 5] = np.nan
    first[10:20, 6] = np.nan
    recordings.save(Recording(loaded[0].t, first, loaded[0].names), tmp_path / "in" / raw.parts[0].recording)
    privatize_corpus(make_system("k-same-select", k=2), raw, tmp_path / "out")
    own = [first, *(recording.features for recording in loaded[1:])]
    made = recordings.load(tmp_path / "out" / raw.parts[0].recording).features
    assert [len(rows) for rows in (*own, made)] == [70, 71, 72, 71]  # as many as the second longest of the three
    np.testing.assert_allclose(made[:70, 5], (own[1][:70, 5] + own[2][:70, 5]) / 2, rtol=1e-6)
    np.testing.assert_allclose(made[15, 6], (own[1][15, 6] + own[2][15, 6]) / 2, rtol=1e-6)
    np.testing.assert_allclose(made[25, 6], sum(rows[25, 6] for rows in own) / 3, rtol=1e-6)
    privatize_corpus(make_system("k-same-select", k=3), raw, tmp_path / "three")
    of_three = recordings.load(tmp_path / "three" / raw.parts[0].recording).features
    assert len(of_three) == 70
    assert np.isnan(of_three[:, 5]).all()
    assert np.isnan(of_three[10:20, 6]).all()


def test_filled_takes_the_last_value_and_first_of_all_the_next() -> None:
    nan = np.nan
    rows = np.array([[nan, 1, nan], [2, nan, nan], [nan, np.inf, nan], [3, 4, nan]])
    np.testing.assert_array_equal(filled(rows), [[2, 1, nan], [2, 1, nan], [2, 1, nan], [3, 4, nan]])
