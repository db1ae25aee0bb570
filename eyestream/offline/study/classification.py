"""Classification of private features: who a person is, and whatever the labels say."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eyestream.offline.study.cells import Cell, Record
from eyestream.offline.study.classifiers import CLASSIFIERS, scorer
from eyestream.offline.study.measures import mean_and_error
from eyestream.offline.study.plan import Plan
from eyestream.offline.study.sources import BASELINES, RAW, SOURCES, World
from eyestream.offline.study.splits import halves

__all__ = ["PERSON", "cells", "measure", "summarise", "vote"]

Array = NDArray[np.float64]

PERSON = "person"
"""The task that needs no labels: first half of each recording against its second half."""


def cells(plan: Plan, world: World) -> list[Cell]:
    """One cell for each task, source, chunk length, epsilon and seed."""
    work = []
    for task in (PERSON, *world.population.labels):
        for source in (RAW, *SOURCES, *BASELINES):
            if not source.attacked:
                continue
            for n in plan.attack_chunks if source.chunked else plan.attack_chunks[:1]:
                for epsilon in plan.epsilons if source is not RAW else (0.0,):
                    for seed in range(plan.seeds):
                        settings = {"source": source.label, "mechanism": source.mechanism, "n": n, "epsilon": epsilon}
                        work.append(
                            Cell("classification", {"task": task, "seed": seed, "stride": plan.stride} | settings)
                        )
    return work


def measure(
    world: World, *, task: str, source: str, mechanism: str, n: int, epsilon: float, seed: int, stride: int
) -> list[Record]:
    """Accuracy of each classifier on one private release, trained and tested on private rows."""
    release = world.releases(source, n, epsilon, seed=seed)
    population = world.population
    rows = {r: release(r)[:, world.active] for r in population.released}
    if task == PERSON:
        return _person(world, rows, n, seed, max(stride // 2, 1))
    return _label(world, rows, task, seed, stride)


def _person(world: World, rows: dict[int, Array], n: int, seed: int, stride: int) -> list[Record]:
    people = sorted({world.population.people[r] for r in rows})
    train, test = [], []
    for recording, own in rows.items():
        known, unknown = halves(len(own), n)
        person = people.index(world.population.people[recording])
        train += [(person, recording, own[part][::stride]) for part in known]
        test += [(person, recording, own[part][::stride]) for part in unknown]
    return [
        {"classifier": name, "classes": len(people), "chance": 1 / len(people)} | _result(name, [(train, test)], seed)
        for name in CLASSIFIERS
    ]


def _label(world: World, rows: dict[int, Array], task: str, seed: int, stride: int) -> list[Record]:
    """Leave one person out: every person is classified by what was learned of all others."""
    population = world.population
    values = sorted({population.labels[task][r] for r in rows})
    parts = {r: (values.index(population.labels[task][r]), r, own[::stride]) for r, own in rows.items()}
    folds = []
    for person in sorted({population.people[r] for r in rows}):
        train = [part for r, part in parts.items() if population.people[r] != person]
        if len({label for label, _, _ in train}) > 1:
            folds.append((train, [part for r, part in parts.items() if population.people[r] == person]))
    shares = np.bincount([label for label, _, _ in parts.values()]) / len(parts)
    base = {"classes": len(values), "chance": 1 / len(values), "largest_class": float(shares.max())}
    if not folds:
        return []
    return [{"classifier": name} | base | _result(name, folds, seed) for name in CLASSIFIERS]


_Part = tuple[int, int, Array]
_Fold = tuple[Sequence[_Part], Sequence[_Part]]


def _result(name: str, folds: Sequence[_Fold], seed: int) -> Record:
    windows, votes = [], []
    for train, test in folds:
        classes = np.concatenate([np.full(len(rows), label) for label, _, rows in train])
        present, renamed = np.unique(classes, return_inverse=True)
        learned = scorer(name, seed, len(classes))
        learned.fit(np.concatenate([rows for _, _, rows in train]), renamed)
        for label, _, rows in test:
            predicted = present[np.argmax(learned.scores(rows), axis=1)]
            windows.append(predicted == label)
            votes.append(vote(predicted, label))
    return {"per_window": float(np.concatenate(windows).mean()), "voted": float(np.mean(votes))}


def vote(predicted: NDArray[np.intp], label: int) -> float:
    """1 when the majority of the windows says `label`, else 0; a tie of m is right with probability 1 / m."""
    counts = np.bincount(predicted, minlength=label + 1)
    leading = np.flatnonzero(counts == counts.max())
    return float(label in leading) / len(leading)


def summarise(records: Sequence[Record]) -> list[Record]:
    """Mean over the seeds with half the width of the 95 % confidence interval."""
    groups: dict[tuple[str | float, ...], list[Record]] = {}
    for record in records:
        key = tuple(record[name] for name in ("task", "source", "n", "epsilon", "classifier"))
        groups.setdefault(key, []).append(record)
    summary = []
    for (task, source, n, epsilon, classifier), group in groups.items():
        row: Record = {"task": task, "source": source, "n": n, "epsilon": epsilon, "classifier": classifier}
        for name in ("per_window", "voted"):
            mean, _, half = mean_and_error([record[name] for record in group])
            row |= {name: mean, f"{name}_interval": half}
        row |= {name: group[0].get(name) for name in ("classes", "chance", "largest_class")}
        summary.append(row | {"seeds": len(group)})
    return summary
