"""The papers' tables on any labels: every mechanism beside raw at equal epsilon a minute, a window and voted.

Every label column is learned from all other people (leave one person out), and who a person is from the first half of
each recording. That is tested on the second half of the same release, as the papers do, and on the second half as a
session of its own: within one release a mechanism that filters over a session, spreads one draw of noise over a
recording or takes one baseline off both halves is recognised by that, which tells nothing of anybody's eyes.

The minute that a session's baseline takes is left out of every source. Accuracy is of windows (single rows, every
stride-th) and of recordings by majority; both also within each value of every other label column, so that there is a
table for each stimulus. Intervals are over people.
"""

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from statistics import median

import numpy as np
from numpy.typing import NDArray

from eyestream.core.anchor import BASELINE_S
from eyestream_lab.study.cells import Cell, Record
from eyestream_lab.study.classification import PERSON, Outcome, label_folds, outcomes, person_folds, session_folds
from eyestream_lab.study.classifiers import CLASSIFIERS
from eyestream_lab.study.measures import mean_and_error
from eyestream_lab.study.plan import Plan
from eyestream_lab.study.population import Population
from eyestream_lab.study.sources import BEST_FORMS, RAW, SOURCES, World
from eyestream_lab.study.splits import halves

Array = NDArray[np.float64]

PERSON_ANEW = "person, another session"
"""Key of a person, where the two halves of a recording are sessions of their own."""

TABLED = (RAW, *(source for source in SOURCES if source.attacked), *BEST_FORMS)
"""Raw, the plain forms and the best ones."""


def cells(plan: Plan, world: World) -> list[Cell]:
    """One cell for each task, source, chunk length and epsilon a minute; none where nobody is labelled."""
    if not world.population.labels:
        return []
    work = []
    for task in (PERSON, PERSON_ANEW, *world.population.labels):
        for source in TABLED:
            for n in plan.attack_chunks if source.chunked else plan.attack_chunks[:1]:
                for per_minute in plan.per_minute if source is not RAW else (0.0,):
                    told = {"source": source.label, "mechanism": source.mechanism, "n": n, "per_minute": per_minute}
                    work.append(Cell("tables", {"task": task, "stride": plan.stride, "seed": 0} | told))
    return work


def epsilon_of(population: Population, per_minute: float, n: int, *, chunked: bool) -> float:
    """Epsilon of a chunk of `n` rows, or of a recording of middle length, when a minute may cost `per_minute`."""
    rows = n if chunked else median(np.diff(population.starts).tolist())
    return float(per_minute * rows / population.rate_hz / 60)


def without_lead(rows: Array, rate_hz: float, n: int) -> Array:
    """Rows (m, F) of a recording without the chunks that a session's baseline takes, withheld or not."""
    return rows[ceil(BASELINE_S * rate_hz / n) * n :]


def measure(
    world: World, *, task: str, source: str, mechanism: str, n: int, per_minute: float, stride: int, seed: int
) -> list[Record]:
    """Accuracy of each classifier on one private release, of all recordings and within each value of other labels."""
    population = world.population
    chunked = next(s for s in TABLED if s.label == source).chunked
    apart = task == PERSON_ANEW
    epsilon = epsilon_of(population, per_minute, n, chunked=chunked) / (2 if apart and not chunked else 1)
    release = world.releases(source, n, epsilon, seed=seed)

    def released(recording: int, *part: slice) -> Array:
        return without_lead(release(recording, *part)[:, world.active], population.rate_hz, n)

    thinned = max(stride // 2, 1)
    if apart:
        cuts = {r: halves(len(world.rows(r, n)), n) for r in population.released}
        sessions = {r: (released(r, known), released(r, unknown)) for r, (known, unknown) in cuts.items()}
        classes, folds = session_folds(population.people, sessions, thinned)
    else:
        rows = {r: released(r) for r in population.released}
        if task == PERSON:
            classes, folds = person_folds(population.people, rows, n, thinned)
        else:
            classes, folds = label_folds(population.people, population.labels[task], rows, stride)
    own = population.people if apart or task == PERSON else population.labels[task]
    shares = [sum(own[r] == value for r in population.released) / len(population.released) for value in classes]
    base: Record = {"epsilon": epsilon, "classes": len(classes), "chance": 1 / len(classes), "largest": max(shares)}
    others = {column: values for column, values in population.labels.items() if column != task}
    return [
        {"classifier": name} | base | record
        for name in CLASSIFIERS
        for record in _records(population, others, outcomes(name, folds, seed))
    ]


def _records(population: Population, others: Mapping[str, Sequence[str]], found: Sequence[Outcome]) -> list[Record]:
    records = [{"where": ""} | _accuracy(population, found)]
    for column, values in others.items():
        for value in sorted({values[outcome.recording] for outcome in found}):
            part = [outcome for outcome in found if values[outcome.recording] == value]
            records.append({"where": f"{column} = {value}"} | _accuracy(population, part))
    return records


def _accuracy(population: Population, found: Sequence[Outcome]) -> Record:
    """Means over people, with half the width of their 95 % intervals."""
    people = sorted({population.people[outcome.recording] for outcome in found})

    def each(value: Callable[[Sequence[Outcome]], float]) -> list[float]:
        return [value([o for o in found if population.people[o.recording] == person]) for person in people]

    window, _, window_half = mean_and_error(each(lambda own: sum(o.right for o in own) / sum(o.windows for o in own)))
    voted, _, voted_half = mean_and_error(each(lambda own: float(np.mean([o.vote for o in own]))))
    accuracy: Record = {"per_window": window, "per_window_interval": window_half}
    return accuracy | {"voted": voted, "voted_interval": voted_half, "people": len(people), "recordings": len(found)}
