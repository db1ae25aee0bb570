"""k-same-select on sequences of feature rows (Gross et al. 2005; David-John, Butler, Jain, ETRA 2022).

People are divided at random into groups of k to 2k - 1. Every member of a group is released as the same sequence: row
by row the mean of the group, after each sequence was padded to the longest of its task by repeating its last row. So
the files of a group are identical, and who holds every raw recording of one task still guesses the owner of a released
one with probability at most 1 / k.

**One partition for each task (`k-same-select`, as published) promises this for a single task only.** The released
recordings carry `participant_id`, so an attacker who holds raw recordings of two tasks intersects the two groups, and
is often left with one person. `k-same-select-one-partition` takes one partition for all tasks: groups meet in
themselves, and 1 / k holds for all recordings of a person together.

Neither is differential privacy: who knows the other k - 1 members subtracts them from the mean.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError
from eyestream.offline.corpora.claims import Promise
from eyestream.offline.corpora.corpus import Corpus, Part, Survey
from eyestream.offline.corpora.draws import Draws
from eyestream.offline.corpora.system import Unit, tasks_of
from eyestream.privacy.claims.kinds import KAnonymity
from eyestream.rim.files.recordings import Recording

__all__ = ["KSameOnePartition", "KSameSelect", "OfGroups", "filled", "groups_of"]

Array = NDArray[np.float64]
Data = TypeVar("Data")
Member = TypeVar("Member")

AMONG, KNOWS = "the people at each task by itself", "all raw recordings of that task"
NOT_PROMISED = (
    "Who knows k - 1 members of a group computes the last one from the mean.",
    "Labels, participant ids and who did which task are released as they are.",
    "The longest recording of a task decides how long all of them are.",
)
ACROSS = "Nothing across tasks: recordings of two tasks with one participant id intersect two groups."


def groups_of(members: Sequence[Member], k: int, draws: Draws) -> list[list[Member]]:
    """A random partition into groups of k to 2k - 1; the members that are left over join groups, never form one."""
    shuffled = [members[i] for i in draws.permutation(len(members))]
    count = len(members) // k
    edges = [round(i * len(members) / count) for i in range(count + 1)]
    return [shuffled[a:b] for a, b in pairwise(edges)]


def filled(rows: Array) -> Array:
    """Rows (m, F) in which a missing value is the last one before it, or the first one after; NaN where there is
    none."""
    there = np.isfinite(rows)
    index = np.where(there, np.arange(len(rows))[:, None], -1)
    last = np.maximum.accumulate(index, axis=0)
    first = np.argmax(there, axis=0)
    chosen = np.where(last >= 0, last, first[None, :])
    return np.asarray(np.where(there.any(axis=0), np.take_along_axis(rows, chosen, axis=0), np.nan))


def _padded(rows: Array, length: int) -> Array:
    return np.concatenate((rows, np.repeat(rows[-1:], length - len(rows), axis=0)))


def group_mean(corpus: Corpus[Recording], survey: Survey, group: Sequence[Part], length: int) -> Recording:
    """The one recording that stands for all of a group; one member is in memory at a time.

    A feature that a member does not have at all is missing for the group: a mean of fewer than k would be told apart.
    """
    total = np.zeros((length, len(survey.names)))
    for part in group:
        total += _padded(filled(corpus.load(part).features), length)
    t = np.arange(length) / survey.rate_hz
    return Recording(t, total / len(group), survey.names)


@dataclass(frozen=True)
class OfGroups(Generic[Data]):
    """What systems that release groups of k to 2k - 1 people have in common.

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
        """As given."""
        return {"k": self.k}

    def units(self, corpus: Corpus[Data], survey: Survey) -> list[Unit]:
        """A task each."""
        corpus.check_cohort(self.k)
        return tasks_of(corpus)


@dataclass(frozen=True)
class KSameSelect(OfGroups[Recording]):
    """One partition for each task, as published."""

    name = "k-same-select"

    def promise(self, corpus: Corpus[Recording], survey: Survey) -> Promise:
        """k-anonymity of each task by itself."""
        many = (ACROSS,) if len(corpus.tasks) > 1 else ()
        return Promise(KAnonymity(self.k, AMONG, KNOWS), (*NOT_PROMISED, *many))

    def release(
        self, corpus: Corpus[Recording], survey: Survey, unit: Unit, draws: Draws
    ) -> Iterator[tuple[Part, Recording]]:
        """Every member as its group."""
        length = survey.longest(unit.parts)
        for group in groups_of(unit.parts, self.k, draws):
            mean = group_mean(corpus, survey, group, length)
            yield from ((part, mean) for part in group)


@dataclass(frozen=True)
class KSameOnePartition(OfGroups[Recording]):
    """One partition for all tasks."""

    name = "k-same-select-one-partition"

    def units(self, corpus: Corpus[Recording], survey: Survey) -> list[Unit]:
        """The whole corpus: a partition must not be drawn twice."""
        corpus.check_cohort(self.k)
        return [Unit("all tasks", corpus.parts)]

    def promise(self, corpus: Corpus[Recording], survey: Survey) -> Promise:
        """k-anonymity of all of a person's recordings together."""
        return Promise(KAnonymity(self.k, "the people of the corpus", "all raw recordings of all tasks"), NOT_PROMISED)

    def release(
        self, corpus: Corpus[Recording], survey: Survey, unit: Unit, draws: Draws
    ) -> Iterator[tuple[Part, Recording]]:
        """Every member as its group, at every task."""
        for people in groups_of(corpus.people, self.k, draws):
            for task in corpus.tasks:
                group = [part for part in corpus.of_task(task) if part.person in people]
                mean = group_mean(corpus, survey, group, survey.longest(corpus.of_task(task)))
                yield from ((part, mean) for part in group)
