"""Linkage: gaze that was released without names, and people whose name, demographics and gaze are known elsewhere.

The attack that figure 1 of David-John, Butler and Jain (TVCG 2023) draws. Two data sets hold the same people. One tells
names, demographics and gaze: an account, a survey. The other one is published under pseudonyms. Whoever links them puts
a name to the published recordings, and learns of each whatever the first one tells.

*Demographics*: label columns that are the same in all recordings of a person. An attacker links by the published
demographics alone, by gaze alone, or by both, and is right when the best match is the person. By gaze alone he also
learns the demographics, rightly when the best match has the same ones. The known data set is raw or released as well
(anew); of a person with several recordings it holds the first half of them, else the first half of the recording, each
half a session of its own.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.study.cells import Cell, Record
from eyestream_lab.study.classifiers import ATTACKERS, attack
from eyestream_lab.study.measures import mean_and_error
from eyestream_lab.study.plan import Plan
from eyestream_lab.study.population import Population
from eyestream_lab.study.sources import RAW, Release, World
from eyestream_lab.study.splits import halves
from eyestream_lab.study.tables import TABLED, epsilon_of, without_lead

Array = NDArray[np.float64]

KNOWN = ("raw", "released anew")
"""Contents of the data set with names."""


def demographics(population: Population) -> tuple[str, ...]:
    """Label columns that say something of the person: one value each, and not the same for all."""
    found = []
    for column, values in population.labels.items():
        told = set(zip(population.people, values, strict=True))
        if len(told) == len(set(population.people)):
            found.append(column)
    return tuple(found)


def cells(plan: Plan, world: World) -> list[Cell]:
    """One cell for each source, chunk length and epsilon a minute; none without demographics."""
    if not demographics(world.population):
        return []
    work = []
    for source in TABLED:
        for n in plan.attack_chunks if source.chunked else plan.attack_chunks[:1]:
            for per_minute in plan.per_minute if source is not RAW else (0.0,):
                told = {"source": source.label, "mechanism": source.mechanism, "n": n, "per_minute": per_minute}
                work.append(Cell("linkage", {"stride": plan.stride, "seed": 0} | told))
    return work


def measure(
    world: World, *, source: str, mechanism: str, n: int, per_minute: float, stride: int, seed: int
) -> list[Record]:
    """Share of the published people that each attacker links rightly, with intervals over people."""
    population = world.population
    chunked = next(s for s in TABLED if s.label == source).chunked
    epsilon = epsilon_of(population, per_minute, n, chunked=chunked)
    release = world.releases(source, n, epsilon, seed=seed)
    known_raw, _ = _parts(world, n, world.releases(RAW.label, n, 0.0))
    known, _ = _parts(world, n, release)
    _, published = _parts(world, n, release)
    columns = demographics(population)
    groups = _groups(population, columns)
    base: Record = {"epsilon": epsilon, "demographics": ", ".join(columns), "people": len(published)}
    records = [
        base | {"known": "none", "attacker": "none"} | linked(np.zeros((len(groups),) * 2), groups, "demographics")
    ]
    for name, train in zip(KNOWN, (known_raw, known), strict=True):
        if source == RAW.label and name != RAW.label:
            continue
        for attacker in ATTACKERS:
            scores = attack(attacker, train, [published], stride=stride, block=n, seed=seed)[0]
            for uses in ("gaze", "both"):
                records.append(base | {"known": name, "attacker": attacker} | linked(scores, groups, uses))
    return records


def linked(scores: Array, groups: Sequence[tuple[str, ...]], uses: str) -> Record:
    """How often a link is right, and the demographics learned through it.

    Parameters
    ----------
    scores
        (P, P) of published people against known ones, larger is likelier, right ones on the diagonal.
    groups
        P demographics.
    uses
        "gaze", "demographics" or "both".

    Returns
    -------
    Means over people with half of their 95 % intervals: `right`, and `learned`, the share whose demographics are those
    of the best match. Of equal best matches one is taken at random: the share is the expected one. `chance` of both.
    """
    same = np.array([[one == other for other in groups] for one in groups])
    seen = np.zeros_like(scores) if uses == "demographics" else scores
    if uses != "gaze":
        seen = np.where(same, seen, -np.inf)
    best = seen == seen.max(axis=1, keepdims=True)
    right = np.diag(best) / best.sum(axis=1)
    learned = (best & same).sum(axis=1) / best.sum(axis=1)
    record: Record = {"uses": uses, "chance": 1 / len(groups), "chance_learned": float(same.mean())}
    for name, values in (("right", right), ("learned", learned)):
        mean, _, half = mean_and_error(values.tolist())
        record |= {name: mean, f"{name}_interval": half}
    return record


def _groups(population: Population, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Demographics of the released people, in the order of `_parts`."""
    of: Mapping[str, int] = {population.people[r]: r for r in population.released}
    return [tuple(population.labels[column][r] for column in columns) for r in of.values()]


def _parts(world: World, n: int, release: Release) -> tuple[list[Array], list[Array]]:
    """Known and published rows (m, F) of each released person, without the minute that a baseline takes."""
    population = world.population
    own: dict[str, list[int]] = {}
    for recording in population.released:
        own.setdefault(population.people[recording], []).append(recording)
    known: list[Array] = []
    published: list[Array] = []
    for recordings in own.values():
        if len(recordings) == 1:
            sides = [[(recordings[0], part)] for part in halves(len(world.rows(recordings[0], n)), n)]
        else:
            whole = [(recording, slice(None)) for recording in recordings]
            sides = [whole[: (len(whole) + 1) // 2], whole[(len(whole) + 1) // 2 :]]
        for side, held in zip(sides, (known, published), strict=True):
            rows = [without_lead(release(*one)[:, world.active], population.rate_hz, n) for one in side]
            held.append(np.concatenate(rows))
    return known, published
