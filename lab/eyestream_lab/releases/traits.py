"""Traits that released rows tell beside the name: the labels of a corpus, such as sex and age.

A label is of a person: it has one value in all of that person's lines. Numbers of more than four values are cut at
their median. The attacker learns from *released* recordings of other people, as many of each class, and gets recordings
of the person: raw ones, or released ones. One decision for a person, from the mean of the scores of all rows.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.corpora.corpus import Dataset
from eyestream_lab.releases.measures import People, right
from eyestream_lab.study.classifiers import window_scores

Array = NDArray[np.float64]
Classes = Mapping[str, str]
"""Class by person."""

TRAIT_ATTACKERS = ("RBF network", "random forest")
FOLDS = 8
_FEWEST, _MOST = 4, 4
"""People of each class, and classes of a label."""


def classes_of(corpus: Dataset[Any]) -> dict[str, Classes]:
    """The labels that can be judged, by name: two to four classes, each of at least four people.

    People for whom a label is empty or `n/a`, or differs between recordings, are left out of it.
    """
    found: dict[str, Classes] = {}
    for at, name in enumerate(corpus.label_names):
        pairs = {(part.person, part.labels[at]) for part in corpus.parts if part.labels[at] not in ("", "n/a")}
        lines = Counter(person for person, _ in pairs)
        own = {person: value for person, value in sorted(pairs) if lines[person] == 1}
        own = _cut(own) if len(set(own.values())) > _MOST else own
        counts = Counter(own.values())
        if 2 <= len(counts) <= _MOST and min(counts.values()) >= _FEWEST:
            found[name] = own
    return found


def _cut(own: Classes) -> dict[str, str]:
    """Numbers at their median; everything else as it is."""
    try:
        numbers = {person: float(value) for person, value in own.items()}
    except ValueError:
        return dict(own)
    middle = float(np.median(list(numbers.values())))
    return {person: f"above {middle:g}" if value > middle else f"to {middle:g}" for person, value in numbers.items()}


def told_of(attacker: str, classes: Classes, known: People, unknown: Sequence[People], seed: int) -> Array:
    """(u, N) 1 where the class of a person is named rightly from each of u `unknown`, learned from others in `known`.

    People in the order of their names. Each class counts as much as another: values are weighted by N / (C n) for n
    people of one of C classes, so that the mean over people is the mean of the classes' shares, and chance is 1 / C.
    """
    mixed = np.random.default_rng(seed).permutation(sorted(classes)).tolist()
    members = {name: [person for person in mixed if classes[person] == name] for name in sorted(set(classes.values()))}
    names, found = list(members), dict[str, Array]()
    for fold in range(FOLDS):
        others = {name: [person for i, person in enumerate(own) if i % FOLDS != fold] for name, own in members.items()}
        few = min(map(len, others.values()))
        train = [np.concatenate([_all_of(known[person]) for person in others[name][:few]]) for name in names]
        tested = [person for own in members.values() for person in own[fold::FOLDS]]
        scores = window_scores(attacker, train, [[_all_of(one[person]) for person in tested] for one in unknown], seed)
        means = [np.array([rows.mean(axis=0) for rows in one]) for one in scores]
        columns = [names.index(classes[person]) for person in tested]
        told = np.array([right(one, columns) for one in means])
        found |= dict(zip(tested, told.T, strict=True))
    weights = [len(classes) / (len(names) * len(members[classes[person]])) for person in sorted(classes)]
    return np.array([found[person] for person in sorted(classes)]).T * weights


def _all_of(tasks: Mapping[str, Array]) -> Array:
    return np.concatenate([tasks[task] for task in sorted(tasks)])
