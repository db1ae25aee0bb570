"""k-same-select: the bound 1 / k by exhaustive matching, and what breaks it."""

import hashlib
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.datasets import ROWS, Corpus, make_system, open_corpus, privatize_corpus
from eyestream.lab.releases.measures import matched
from eyestream.offline.corpora import ksame
from eyestream.offline.corpora.draws import Draws
from eyestream.offline.corpora.ksame import filled, groups_of
from eyestream.rim.files import recordings
from eyestream.rim.files.recordings import Recording
from tests.corpora.worlds import rows_corpus, seeded

Array = NDArray[np.float64]


def digests(folder: Path, task: str, people: int) -> list[bytes]:
    return [hashlib.sha256((folder / f"P{i}_{task}.npz").read_bytes()).digest() for i in range(people)]


def right_matches(raw: Corpus[Recording], out: Corpus[Recording], tasks: Sequence[str]) -> float:
    """What an attacker finds who knows all raw recordings of the tasks, and tries every assignment of all rows."""
    known, found = (as_people(one) for one in (raw, out))
    return matched(known, found, tasks)


def as_people(corpus: Corpus[Recording]) -> dict[str, dict[str, Array]]:
    people: dict[str, dict[str, Array]] = {person: {} for person in corpus.people}
    for part in corpus.parts:
        people[part.person][part.task] = np.nan_to_num(filled(corpus.load(part).features))
    return people


def released(tmp_path: Path, name: str, **options: Any) -> tuple[Corpus[Recording], Corpus[Recording]]:
    raw = rows_corpus(tmp_path / "in", people=6)
    privatize_corpus(make_system(name, **options), raw, tmp_path / "out", draws=seeded(4))
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
    privatize_corpus(make_system("k-same-select", k=3), raw, tmp_path / "out", draws=seeded(4))
    for task in raw.tasks:
        found = digests(tmp_path / "out", task, 7)
        assert min(map(found.count, found)) >= 3
        assert max(map(found.count, found)) <= 5


def test_the_files_of_a_group_are_identical(tmp_path: Path) -> None:
    one_release_in_groups_of_k(tmp_path)


def leftovers_alone(members: Sequence[Any], k: int, draws: Draws) -> list[list[Any]]:
    shuffled = [members[i] for i in draws.permutation(len(members))]
    return [shuffled[i : i + k] for i in range(0, len(shuffled), k)]


def own_length(right: Callable[..., Recording]) -> Callable[..., Recording]:
    calls: list[int] = []

    def mean(corpus: Any, survey: Any, group: Any, length: int) -> Recording:
        calls.append(length)
        return right(corpus, survey, group, max(survey.extents[part].rows for part in group))

    return mean


@pytest.mark.parametrize("fault", ["leftovers form a smaller group", "a partition a row", "the member's own length"])
def test_plausible_faults_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    if fault == "leftovers form a smaller group":
        monkeypatch.setattr(ksame, "groups_of", leftovers_alone)
    elif fault == "a partition a row":

        def release(self: Any, corpus: Any, survey: Any, unit: Any, draws: Draws) -> Any:
            longest = survey.longest(unit.parts)
            rows = [ksame._padded(filled(corpus.load(part).features), longest) for part in unit.parts]
            made = np.stack(rows)
            for i in range(longest):
                for group in groups_of(range(len(rows)), self.k, draws):
                    made[group, i] = np.mean([rows[member][i] for member in group], axis=0)
            for part, own in zip(unit.parts, made, strict=True):
                yield part, Recording(np.arange(longest) / 2, own, survey.names)

        monkeypatch.setattr(ksame.KSameSelect, "release", release)
    else:

        def release(self: Any, corpus: Any, survey: Any, unit: Any, draws: Draws) -> Any:
            for group in groups_of(unit.parts, self.k, draws):
                mean = ksame.group_mean(corpus, survey, group, survey.longest(unit.parts))
                for part in group:
                    rows = survey.extents[part].rows
                    yield part, Recording(mean.t[:rows], mean.features[:rows], mean.names)

        monkeypatch.setattr(ksame.KSameSelect, "release", release)
    with pytest.raises(AssertionError):
        one_release_in_groups_of_k(tmp_path)


def test_a_partition_a_task_is_undone_by_two_tasks_and_one_partition_is_not(tmp_path: Path) -> None:
    """Six people in three pairs: the pairs of two tasks meet in one person, and one partition's in themselves."""
    raw, out = released(tmp_path, "k-same-select", k=2)
    assert right_matches(raw, out, raw.tasks) > 0.5 + 0.1
    claim = make_system("k-same-select", k=2).promise(raw, raw.survey())
    assert any("Nothing across tasks" in said for said in claim.not_promised)
    privatize_corpus(make_system("k-same-select-one-partition", k=2), raw, tmp_path / "one", draws=seeded(4))
    whole = open_corpus(tmp_path / "one", ROWS)
    assert right_matches(raw, whole, raw.tasks) <= 0.5 + 1e-9
    sets = [tuple(digests(tmp_path / "one", task, 6)[i] for task in raw.tasks) for i in range(6)]
    assert min(map(sets.count, sets)) >= 2


def test_groups_are_of_k_to_two_k_less_one_and_random() -> None:
    for people in range(2, 30):
        for k in range(2, people + 1):
            groups = groups_of(range(people), k, seeded(people))
            assert sorted(itertools.chain(*groups)) == list(range(people))
            assert all(k <= len(group) <= 2 * k - 1 for group in groups)
    together = sum(0 in group and 1 in group for i in range(400) for group in groups_of(range(4), 2, seeded(i)))
    assert abs(together - 400 / 3) < 4 * np.sqrt(400 * 2 / 9)  # a right partition fails once in 16,000 seeds


def test_the_mean_is_of_padded_sequences_and_a_missing_feature_stays_missing(tmp_path: Path) -> None:
    raw = rows_corpus(tmp_path / "in", people=2, tasks=("READ",))
    first = raw.load(raw.parts[0])
    rows = first.features.copy()
    rows[:, 5] = np.nan
    rows[10:20, 6] = np.nan
    recordings.save(Recording(first.t, rows, first.names), tmp_path / "in" / raw.parts[0].recording)
    privatize_corpus(make_system("k-same-select", k=2), raw, tmp_path / "out")
    a, b = (raw.load(part).features for part in raw.parts)
    made = recordings.load(tmp_path / "out" / raw.parts[0].recording).features
    assert len(a) == 70
    assert len(made) == len(b) == 71
    assert np.isnan(made[:, 5]).all()  # a mean of one would be the other one's value
    np.testing.assert_allclose(made[15, 6], (a[9, 6] + b[15, 6]) / 2, rtol=1e-6)
    np.testing.assert_allclose(made[70, 0], (a[69, 0] + b[70, 0]) / 2, rtol=1e-6)


def test_filled_takes_the_last_value_and_first_of_all_the_next() -> None:
    nan = np.nan
    rows = np.array([[nan, 1, nan], [2, nan, nan], [nan, np.inf, nan], [3, 4, nan]])
    np.testing.assert_array_equal(filled(rows), [[2, 1, nan], [2, 1, nan], [2, 1, nan], [3, 4, nan]])
