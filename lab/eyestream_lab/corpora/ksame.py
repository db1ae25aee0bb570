"""k-same-select on sequences of feature rows (Gross et al. 2005; David-John, Butler, Jain, ETRA 2022).

People are divided into groups of k to 2k - 1. Every member of a group is released as the same sequence: row by row the
mean of the group. So the files of a group are identical, and who holds every raw recording of one task still guesses
the owner of a released one with probability at most 1 / k.

**Each released value is a mean of k members or more.** The paper pads every sequence to the longest by repeating its
last row. Where the others are only repeated, the mean moves as the longest member does, and the release shows that
member's own course. The same happens where the others miss a value. Here a value that fewer than k members have is
missing, and a release ends where fewer than k members have a row.

**The same people are always divided in the same way.** The partition is a function of the task, the participant ids and
k. If each release had a partition of its own, an attacker would intersect the groups of two releases. It needs no
secret: the files of a group are identical, so a release shows its groups anyway. The order of the ids' hashes has
nothing to do with the recordings. A release of other people beside these, or with another k, has other groups.

**One partition for each task (`k-same-select`, as published) promises this for a single task only.** The released
recordings carry `participant_id`, so an attacker who holds raw recordings of two tasks intersects the two groups, and
is often left with one person. `k-same-select-one-partition` takes one partition for all tasks: groups meet in
themselves, and 1 / k holds for all recordings of a person together.

Neither is differential privacy: who knows the other k - 1 members subtracts them from the mean.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError
from eyestream.rim.files.recordings import Recording
from eyestream_lab.corpora.claims import WHO, KAnonymity, Promise
from eyestream_lab.corpora.corpus import Dataset, Part, Survey
from eyestream_lab.corpora.draws import Draws
from eyestream_lab.corpora.system import Unit, tasks_of

Array = NDArray[np.float64]
Data = TypeVar("Data")

AMONG, KNOWS = "the people at each task by itself", "all raw recordings of that task"
NOT_PROMISED = (
    "Who knows k - 1 members of a group computes the last one from the mean.",
    "In each group the k-th longest recording decides how long the release is.",
    "A gap in a release says that fewer than k members of the group have this value.",
)
ACROSS = "Nothing across tasks: recordings of two tasks with one participant id intersect two groups."
AGAIN = (
    "The same people with the same k have the same groups in every release. Nothing is promised across releases with "
    "another k, with other people beside these or under other participant ids: who holds both intersects the groups."
)


def groups_of(people: Sequence[str], k: int, task: str) -> list[list[str]]:
    """The partition into groups of k to 2k - 1; people who are left over join groups, never form one.

    A function of its arguments, whatever the order of `people` is.

    Examples
    --------
    >>> sorted(map(len, groups_of(["ann", "bob", "cid", "dee", "eve"], 2, "reading")))
    [2, 3]
    """
    ordered = sorted(people, key=lambda person: hashlib.sha256(f"{task}\0{person}".encode()).digest())
    count = len(ordered) // k
    edges = [round(i * len(ordered) / count) for i in range(count + 1)]
    return [ordered[a:b] for a, b in pairwise(edges)]


def parts_of_groups(parts: Sequence[Part], k: int) -> list[list[Part]]:
    """The parts of one task, by groups."""
    own = {part.person: part for part in parts}
    return [[own[person] for person in group] for group in groups_of(tuple(own), k, parts[0].task)]


def filled(rows: Array) -> Array:
    """Rows (m, F) in which a missing value is the last one before it, or the first one after; NaN where there is
    none."""
    there = np.isfinite(rows)
    index = np.where(there, np.arange(len(rows))[:, None], -1)
    last = np.maximum.accumulate(index, axis=0)
    first = np.argmax(there, axis=0)
    chosen = np.where(last >= 0, last, first[None, :])
    return np.asarray(np.where(there.any(axis=0), np.take_along_axis(rows, chosen, axis=0), np.nan))


def group_mean(corpus: Dataset[Recording], survey: Survey, group: Sequence[Part], k: int) -> Recording:
    """The one recording that stands for all of a group; one member is in memory at a time.

    Row by row and feature by feature the mean of the members who have a value; NaN where fewer than k have one. The
    group has as many rows as its k-th longest member.
    """
    length = sorted((survey.extents[part].rows for part in group), reverse=True)[k - 1]
    total, members = np.zeros((length, len(survey.names))), np.zeros((length, len(survey.names)))
    for part in group:
        rows = corpus.load(part).features[:length]
        there = np.isfinite(rows)
        total[: len(rows)] += np.where(there, rows, 0.0)
        members[: len(rows)] += there
    mean = np.where(members >= k, total / np.maximum(members, 1.0), np.nan)
    return Recording(np.arange(length) / survey.rate_hz, mean, survey.names)


@dataclass(frozen=True)
class OfGroups(Generic[Data]):
    """Common part of systems that release groups of k to 2k - 1 people.

    Attributes
    ----------
    k
        2 or more.
    """

    k: int
    name: ClassVar[str]
    released_kind: ClassVar[None] = None

    def __post_init__(self) -> None:
        if self.k < 2:
            raise ConfigError(f"{self.name}: k must be 2 or more, not {self.k}")

    @property
    def options(self) -> dict[str, object]:
        """Options as given."""
        return {"k": self.k}

    def units(self, corpus: Dataset[Data], survey: Survey) -> list[Unit]:
        """A task each."""
        survey.check_rate()
        corpus.check_cohort(self.k)
        return tasks_of(corpus)


@dataclass(frozen=True)
class KSameSelect(OfGroups[Recording]):
    """One partition for each task, as published."""

    name = "k-same-select"

    def promise(self, corpus: Dataset[Recording], survey: Survey) -> Promise:
        """k-anonymity of each task by itself."""
        many = (ACROSS,) if len(corpus.tasks) > 1 else ()
        return Promise(KAnonymity(self.k, AMONG, KNOWS), (*NOT_PROMISED, *many, AGAIN), (WHO,))

    def release(
        self, corpus: Dataset[Recording], survey: Survey, unit: Unit, draws: Draws
    ) -> Iterator[tuple[Part, Recording]]:
        """Every member as its group."""
        for group in parts_of_groups(unit.parts, self.k):
            mean = group_mean(corpus, survey, group, self.k)
            yield from ((part, mean) for part in group)


@dataclass(frozen=True)
class KSameOnePartition(OfGroups[Recording]):
    """One partition for all tasks."""

    name = "k-same-select-one-partition"

    def units(self, corpus: Dataset[Recording], survey: Survey) -> list[Unit]:
        """The whole corpus, whose tasks have one partition."""
        survey.check_rate()
        corpus.check_cohort(self.k)
        return [Unit("all tasks", corpus.parts)]

    def promise(self, corpus: Dataset[Recording], survey: Survey) -> Promise:
        """k-anonymity of all of a person's recordings together."""
        claim = KAnonymity(self.k, "the people of the corpus", "all raw recordings of all tasks")
        return Promise(claim, (*NOT_PROMISED, AGAIN), (WHO,))

    def release(
        self, corpus: Dataset[Recording], survey: Survey, unit: Unit, draws: Draws
    ) -> Iterator[tuple[Part, Recording]]:
        """Every member as its group, at every task."""
        for people in groups_of(corpus.people, self.k, ""):
            for task in corpus.tasks:
                group = [part for part in corpus.of_task(task) if part.person in people]
                mean = group_mean(corpus, survey, group, self.k)
                yield from ((part, mean) for part in group)
