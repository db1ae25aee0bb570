"""Re-identification: who is it, given rows of everybody?"""

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.study.cells import Cell, Record
from eyestream_lab.study.classifiers import ATTACKERS, match_means, window_scores
from eyestream_lab.study.measures import mean_and_error
from eyestream_lab.study.plan import Plan
from eyestream_lab.study.sources import BASELINES, RAW, SOURCES, Release, Source, World
from eyestream_lab.study.splits import contiguous_split

__all__ = ["PROTOCOLS", "attack", "cells", "measure", "ranks_of", "summarise", "verdicts"]

Array = NDArray[np.float64]

PROTOCOLS = ("private to raw", "white box", "white box, anew", "raw to private")
"""What the attacker learns from, and what is attributed. *White box*: both of one private release. *Anew*: what is
attributed was released once more, as in another session: without it a mechanism whose noise spans both parts of a
recording is recognised by its noise."""


def cells(plan: Plan, world: World) -> list[Cell]:
    """One cell for each source, chunk length, epsilon and batch of splits."""
    work = []
    for source in (RAW, *SOURCES, *BASELINES):
        if not source.attacked:
            continue
        for n in plan.attack_chunks if source.chunked else plan.attack_chunks[:1]:
            for epsilon in _epsilons(plan, source, n):
                for first in range(0, plan.splits, plan.split_batch):
                    settings = {"source": source.label, "mechanism": source.mechanism, "n": n, "epsilon": epsilon}
                    batch = {"first": first, "last": min(first + plan.split_batch, plan.splits)}
                    work.append(Cell("identification", settings | batch | {"stride": plan.stride}))
    return work


def _epsilons(plan: Plan, source: Source, n: int) -> tuple[float, ...]:
    """The larger ones only where the question is open at which of them people are found: not of what finds them at the
    published ones already, and not of baselines without a guarantee."""
    if source is RAW:
        return (0.0,)
    asked = n == plan.attack_chunks[0] and not source.estimate and source not in BASELINES
    return (*plan.epsilons, *plan.wall) if asked else plan.epsilons


def measure(
    world: World, *, source: str, mechanism: str, n: int, epsilon: float, first: int, last: int, stride: int
) -> list[Record]:
    """Ranks of the right person in every attack, for the splits `first` .. `last` - 1, fresh releases in each."""
    release = world.releases(source, n, epsilon, seed=first)
    records = []
    for split in range(first, last):
        known_raw, raw = _parts(world, n, split, world.releases(RAW.label, n, 0.0))
        if source == RAW.label:
            attacks = [(known_raw, {"raw": raw})]
        else:
            known, private = _parts(world, n, split, release)
            again = _parts(world, n, split, release)[1]
            tests = dict(zip(PROTOCOLS, (raw, private, again), strict=False))
            attacks = [(known, tests), (known_raw, {PROTOCOLS[3]: private})]
        for train, tests in attacks:
            for attacker in ATTACKERS:
                found = attack(attacker, train, list(tests.values()), stride=stride, block=n, seed=split)
                for protocol, scores in zip(tests, found, strict=True):
                    ranks = ranks_of(scores, np.random.default_rng(split))
                    record = {"split": split, "protocol": protocol, "attacker": attacker, "people": len(ranks)}
                    records.append(record | {"ranks": " ".join(map(str, ranks))})
    return records


def _parts(world: World, n: int, split: int, release: Release) -> tuple[list[Array], list[Array]]:
    """Known and unknown rows of each released person, all features that are not constant."""
    population = world.population
    known: dict[str, list[Array]] = {}
    unknown: dict[str, list[Array]] = {}
    for recording in population.released:
        rows = release(recording)[:, world.active]
        rng = np.random.default_rng((split, recording))
        train, test = contiguous_split(len(rows), n, population.rate_hz, rng)
        person = population.people[recording]
        known.setdefault(person, []).extend(rows[part] for part in train)
        unknown.setdefault(person, []).extend(rows[part] for part in test)
    return [np.concatenate(rows) for rows in known.values()], [np.concatenate(rows) for rows in unknown.values()]


def attack(
    attacker: str, known: Sequence[Array], tests: Sequence[Sequence[Array]], *, stride: int, block: int, seed: int
) -> list[Array]:
    """Scores (P, P) of unknown against known people, for each set of unknown rows (m_p, F).

    Classifiers see every `stride`-th row and average their scores over a person's rows; the mean matcher sees all.
    """
    if attacker == "mean matcher":
        return [match_means(known, test, block) for test in tests]
    thinned = [[rows[::stride] for rows in test] for test in tests]
    scored = window_scores(attacker, [rows[::stride] for rows in known], thinned, seed)
    return [np.array([scores.mean(axis=0) for scores in people]) for people in scored]


def ranks_of(scores: Array, rng: np.random.Generator) -> NDArray[np.intp]:
    """Rank of the right person, 1 for the first, for scores (P, P) with the right ones on the diagonal.

    Equal scores are put in random order: an attacker who cannot tell has to guess.
    """
    order = rng.permutation(scores.shape[1])
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    right = np.diag(scores)[:, None]
    before = (scores > right) | ((scores == right) & (place[None, :] < place[np.arange(len(scores))][:, None]))
    ranks: NDArray[np.intp] = before.sum(axis=1) + 1
    return ranks


def summarise(records: Sequence[Record]) -> list[Record]:
    """For every attack the rank-1 rate with its standard error over the splits, and the cumulative match curve."""
    groups: dict[tuple[str | float, ...], list[Record]] = {}
    for record in records:
        key = tuple(record[name] for name in ("source", "n", "epsilon", "protocol", "attacker"))
        groups.setdefault(key, []).append(record)
    summary = []
    for (source, n, epsilon, protocol, attacker), group in groups.items():
        people = group[0]["people"]
        ranks = np.array([[int(rank) for rank in record["ranks"].split()] for record in group])
        rate, error, _ = mean_and_error((ranks == 1).mean(axis=1))
        curve = [float((ranks <= r).mean()) for r in range(1, people + 1)]
        chance = 1 / people
        passes = rate <= chance + 2 * error + 1e-12
        record = {"source": source, "n": n, "epsilon": epsilon, "protocol": protocol, "attacker": attacker}
        record |= {"rate": rate, "standard_error": error, "chance": chance, "splits": len(group), "passes": passes}
        summary.append(record | {"curve": curve})
    return summary


def verdicts(summary: Sequence[Record]) -> list[Record]:
    """For every source, chunk length and epsilon: how many attacks stay within 2 standard errors of chance, and the
    strongest one.

    A source is *near chance* when the strongest attack stays within the limit that takes the number of attacks into
    account: the one-sided level of 2 standard errors, shared among them (Bonferroni). That proves nothing: with few
    people a real effect stays within it.
    """
    groups: dict[tuple[str, int, float], list[Record]] = {}
    for record in summary:
        groups.setdefault((record["source"], record["n"], record["epsilon"]), []).append(record)
    table = []
    for (source, n, epsilon), group in groups.items():
        width = NormalDist().inv_cdf(1 - NormalDist().cdf(-2) / len(group))
        best = max(group, key=lambda record: record["rate"])
        near_chance = all(r["rate"] <= r["chance"] + width * r["standard_error"] + 1e-12 for r in group)
        row = {"source": source, "n": n, "epsilon": epsilon, "attacks": len(group)}
        row |= {"passed": sum(r["passes"] for r in group), "near_chance": near_chance, "strongest": best["attacker"]}
        row |= {name: best[name] for name in ("protocol", "rate", "standard_error", "chance")}
        for protocol in (*PROTOCOLS, "raw"):
            rates = [r["rate"] for r in group if r["protocol"] == protocol]
            row[f"best, {protocol}"] = max(rates) if rates else None
        table.append(row)
    return table
