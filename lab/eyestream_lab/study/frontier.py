"""Utility against identity: what comes through, and who is found, of every way of releasing at equal epsilon a minute.

One cell is a way of releasing at a chunk length for one random split of the people: a half calibrates and the other
half is released, then the roles change. Utility is `eyestream_lab.study.fidelity` of a session of each whole
recording after its first 128 rows. Identity: all attackers of `eyestream_lab.study.people` but the deep one, on
halves of each recording that were released apart. Both are kept for each person, so that intervals are over people.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration, JointTables
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms.registry import names
from eyestream_lab.study.cells import Cell, Record
from eyestream_lab.study.fidelity import Yardstick, fidelity, spread_over_people
from eyestream_lab.study.limit import Target, causal_limit
from eyestream_lab.study.measures import mean_of_known, nmse
from eyestream_lab.study.people.attackers import USUAL, WHITE_BOX, applies, attack
from eyestream_lab.study.people.galleries import Gallery, Sight, gallery, recalibrated, roles
from eyestream_lab.study.people.inference import trial
from eyestream_lab.study.plan import Plan
from eyestream_lab.study.population import Population
from eyestream_lab.study.sessions import released_session
from eyestream_lab.study.sources import World
from eyestream_lab.study.ways import RAW_ROWS, Form, study_part, ways

Array = NDArray[np.float64]

VERSION = 3
"""Version of what these cells compute; those of traces have the next one."""

TRACED = ("rate_saccades", "blink_rate", "mean_fixation_duration", "mean_mean_diameter")
"""Features whose traces are drawn, where a recording has them."""


def cells(plan: Plan, world: World) -> list[Cell]:
    """One cell for each way, chunk length and split; raw rows, the limit and the traces beside them.

    All epsilons are tried at the chunk length of the verdict, and the verdict's epsilon at all lengths.
    """
    work, every = [], ways()
    for n in plan.frontier_chunks:
        minutes = plan.minutes if n == plan.verdict_chunk else (plan.verdict_minute,)
        base: dict[str, Any] = {"version": VERSION, "attackers": list(USUAL), "minutes": list(minutes)}
        for split in range(plan.frontier_splits):
            work.append(Cell("frontier", base | {"measured": "raw", "way": RAW_ROWS, "n": n, "split": split}))
            for name, way in every.items():
                settings = {"measured": "release", "way": name, "mechanism": way.mechanism, "n": n, "split": split}
                work.append(Cell("frontier", base | settings))
        work.append(Cell("frontier", base | {"measured": "limit", "way": "limit", "n": n, "split": 0}))
    for name in (name for name, way in every.items() if way.traced):
        settings = {"measured": "traces", "way": name, "n": plan.verdict_chunk, "split": 0}
        work.append(Cell("frontier", {"version": VERSION + 1, "minutes": [plan.verdict_minute]} | settings))
    return work


def measure(
    world: World, *, measured: str, way: str, n: int, split: int, minutes: Sequence[float], **settings: Any
) -> list[Record]:
    """Records of one cell; `settings` are for its key alone."""
    population = world.population
    if measured == "limit":
        return list(_limits(world, n, minutes))
    sights = roles(population, n, split)
    if measured == "raw":
        every = np.flatnonzero(population.rows.std(axis=0) > 0)
        raw = [gallery(population, s, None, n, reverse=bool(split % 2), active=every) for s in sights]
        return [{"label": RAW_ROWS, "minute": None, "epsilon": None, "trials": _trials({}, raw, split)}]
    chosen = ways()[way]
    made = [
        recalibrated(population, s.calibrating, n, chosen.mechanism, dict(chosen.calibration))
        for s in (sights if measured == "release" else sights[:1])
    ]
    if measured == "traces":
        return list(_traces(world, sights[0], made[0], chosen.forms, minutes[0]))
    yardstick = _yardstick(population, made[0])
    records: list[Record] = []
    for minute in minutes:
        epsilon = minute * n / (60 * population.rate_hz)
        scored: dict[str, Any] = {}
        for form in chosen.forms:
            mechanisms = [world.build(calibration, epsilon, **form.options) for calibration in made]
            galleries = [
                gallery(population, s, m, n, reverse=bool(split % 2), active=m.frame.active)
                for s, m in zip(sights, mechanisms, strict=True)
            ]
            scored = _trials(scored, galleries, split)
            told = _utility(population, yardstick, sights, mechanisms, n)
            records.append({"label": form.label, "minute": minute, "epsilon": epsilon, "trials": scored} | told)
    return records


def _yardstick(population: Population, calibration: Calibration) -> Yardstick:
    every = np.concatenate([population.as_recorded(i) for i in range(len(population.people))])
    return Yardstick.of(every, population.names, np.flatnonzero(~calibration.constant))


def _trials(plain: Mapping[str, Any], galleries: Sequence[Gallery], split: int) -> dict[str, Any]:
    """The trial of each attacker. White boxes have `plain` of a form that filters: it is made of the plain one, and
    whoever sees the plain one can make it."""
    found = {name: plain[name] for name in WHITE_BOX if name in plain}
    for name in USUAL:
        if name not in found and all(applies(name, one.mechanism) for one in galleries):
            scores = [(one.people, attack(name, one, seed=split)) for one in galleries]
            found[name] = asdict(trial(scores, split))
    return found


def _utility(
    population: Population, yardstick: Yardstick, sights: Sequence[Sight], mechanisms: Sequence[Mechanism], n: int
) -> Record:
    """Sums of every person, and figures of every feature, of sessions of whole recordings."""
    people: dict[str, list[list[float]]] = {}
    figures, values = [], []
    for sight, mechanism in zip(sights, mechanisms, strict=True):
        sessions = [released_session(mechanism, population.as_recorded(i), n)[:2] for i in sight.released]
        raw, released = [s[0] for s in sessions], [s[1] for s in sessions]
        figures.append(fidelity(yardstick, raw, released, n))
        sums = spread_over_people(yardstick, raw, released)
        for place, index in enumerate(sight.released):
            each = (sums.error, sums.base, sums.own_error, sums.own_base)
            people[population.people[index]] = [_short(table[place]) for table in each]
        for one, other in sessions:
            values.append(np.abs(nmse(_signals(one, n), _signals(other, n))))
    stacked = np.concatenate(values)  # (chunks of all people, F)
    return {
        "names": list(yardstick.names),
        "group": yardstick.group.tolist(),
        "people": people,
        "coverage": min(f.coverage for f in figures),
        "correlation": _short(mean_of_known([f.correlation for f in figures])),
        "partial": _short(mean_of_known([f.partial for f in figures])),
        "nmse": _short(np.array([np.median(v[np.isfinite(v)]) if np.isfinite(v).any() else np.nan for v in stacked.T])),
    }


def _signals(rows: Array, n: int) -> Array:
    return rows.reshape(-1, n, rows.shape[1]).transpose(0, 2, 1)


def _short(values: Array) -> list[float]:
    """Six digits: the cells of a study are many."""
    return [float(f"{value:.6g}") for value in values]


def _limits(world: World, n: int, minutes: Sequence[float]) -> Iterator[Record]:
    """Limits for the people at even positions, under klt's model of theirs; sessions as long as the mean recording."""
    population = world.population
    name, options = next((name, part.limit) for name in names() if (part := study_part(name)).limit is not None)
    calibration = recalibrated(population, population.calibrating, n, name, dict(options))
    tables = calibration.tables
    assert isinstance(tables, JointTables)
    active = np.flatnonzero(~calibration.constant)
    group = _yardstick(population, calibration).group[active]
    weights = 1 / np.bincount(group)[group] / len(np.unique(group))
    target = Target(weights, n, tables.residual[active])
    chunks = max(1, len(population.rows) // len(population.people) // n)
    for minute in minutes:
        epsilon = minute * n / (60 * population.rate_hz)
        explained = causal_limit(tables, target, epsilon, chunks)
        yield {"label": "limit", "minute": minute, "epsilon": epsilon, "explained": explained, "chunks": chunks}


def _traces(
    world: World, sight: Sight, calibration: Calibration, forms: Sequence[Form], minute: float
) -> Iterator[Record]:
    """One released person, who has most of the traced features; chosen before anything is released."""
    population, n = world.population, calibration.n
    columns = [population.names.index(name) for name in TRACED if name in population.names] or [0]
    index = max(sight.released, key=lambda i: float(np.isfinite(population.as_recorded(i)[:, columns]).mean()))
    epsilon = minute * n / (60 * population.rate_hz)
    mechanism = world.build(calibration, epsilon, **forms[-1].options)
    rows = population.as_recorded(index)
    raw, released, _ = released_session(mechanism, rows, n)
    start = len(rows) // n * n - len(raw)
    for column in columns:
        yield {
            "label": forms[-1].label,
            "minute": minute,
            "epsilon": epsilon,
            "feature": population.names[column],
            "error": float(mechanism.noise_sd[column]),
            "t": ((start + np.arange(len(raw))) / population.rate_hz).tolist(),
            "raw": [None if np.isnan(v) else float(v) for v in raw[:, column]],
            "released": [None if np.isnan(v) else float(v) for v in released[:, column]],
        }
