"""Utility against identity, summed up: one row for each way, chunk length and epsilon, with intervals over people."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.study.cells import Record
from eyestream_lab.study.fidelity import Yardstick
from eyestream_lab.study.measures import mean_of_known
from eyestream_lab.study.people.inference import AttackTrial, figures
from eyestream_lab.study.prices import price
from eyestream_lab.study.ways import RAW_ROWS

Array = NDArray[np.float64]

_DRAWS = 1000
_INTERVALS = ("area", "area_low", "area_high", "rate", "rate_low", "rate_high")
_IDENTITY = (*_INTERVALS, "mean_rank", "gallery", "chance", "p", "least_area", "least_rate", "people")


def summarise(records: Sequence[Record], rate_hz: float) -> list[Record]:
    """Rows for every way, chunk length and epsilon a minute; raw rows first.

    `explained`, `own` and `every`: of the variance around the common mean, of features that follow from each other
    counted once; the same with each person's own mean removed; the first, each of the released features counted. The
    first two are means over features, with `_middle` they are medians. With
    `_low` and `_high`, 95 % over people (percentile bootstrap; all splits of a person go together). Identity is that of
    the attacker with the largest area, which flatters the attacker; `attackers` of them were tried.
    """
    groups: dict[tuple[str, int, float | None], list[Record]] = {}
    for record in records:
        if "trials" in record:
            groups.setdefault((record["label"], record["n"], record["minute"]), []).append(record)
    rows = [_row(key, group, rate_hz) for key, group in groups.items()]
    return sorted(rows, key=lambda row: (row["label"] != RAW_ROWS, row["n"], row["minute"] or 0.0))


def _row(key: tuple[str, int, float | None], group: Sequence[Record], rate_hz: float) -> Record:
    label, n, minute = key
    epsilon = group[0]["epsilon"]
    row: Record = {"label": label, "n": n, "minute": minute, "epsilon": epsilon, "splits": len(group)}
    row["second"] = None if epsilon is None else price(epsilon, n, rate_hz).second
    if epsilon is None:
        row |= dict.fromkeys(("explained", "explained_middle", "own", "own_middle", "every", "coverage"), 1.0)
        row |= {"nmse": 0.0}
    else:
        row |= _utility(group)
    attacks = _attacks(group)
    best = max(attacks, key=lambda one: float(one["area"]))
    return row | best | {"attackers": len(attacks), "p_all": min(1.0, len(attacks) * min(a["p"] for a in attacks))}


def _attacks(group: Sequence[Record]) -> list[Record]:
    """Figures of each attacker over the splits."""
    found = []
    for attacker in group[0]["trials"]:
        trials = [_trial(record["trials"][attacker]) for record in group]
        told = asdict(figures(trials, len(trials[0].people) // 2))
        found.append({"attacker": attacker} | {key: told[key] for key in _IDENTITY})
    return found


def _trial(kept: dict[str, Any]) -> AttackTrial:
    told: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in kept.items()}
    return AttackTrial(**told)


def _utility(group: Sequence[Record]) -> Record:
    sums = _sums(group)
    people = len(sums[0])
    drawn = np.random.default_rng(0).integers(0, people, (_DRAWS, people))
    yardstick = _yardstick(group[0])
    row: Record = {}
    for name, error, base in (("explained", sums[0], sums[1]), ("own", sums[2], sums[3])):
        share = _share(error.sum(axis=0), base.sum(axis=0))
        row[name], row[f"{name}_middle"] = yardstick.distinct(share), yardstick.middle(share)
        several = row[name] - _influence(yardstick, error, base)[drawn].sum(axis=1)
        row[f"{name}_low"], row[f"{name}_high"] = (float(v) for v in np.quantile(several, (0.025, 0.975)))
    active = yardstick.group >= 0
    row["every"] = float(np.nanmean(_share(sums[0].sum(axis=0), sums[1].sum(axis=0))[active]))
    nmse = mean_of_known([record["nmse"] for record in group])[active]
    return row | {"nmse": float(np.nanmedian(nmse)), "coverage": min(record["coverage"] for record in group)}


def _influence(yardstick: Yardstick, error: Array, base: Array) -> Array:
    """(P,) what each person takes from the explained share, to first order: (e_p - (E / B) b_p) / B of every feature.

    People drawn anew are summed over this, not over e and b: where one person has most of a feature's variance, B of a
    draw without that person is next to nothing, and the ratio no figure of anything.
    """
    whole, against = error.sum(axis=0), base.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        each = np.where(against > 0, (error - whole / against * base) / against, np.nan)
    return np.array([yardstick.distinct(own) for own in each])


def _sums(group: Sequence[Record]) -> Array:
    """(4, P, F) errors and bases of every person, over all splits."""
    people: dict[str, list[Array]] = {}
    for record in group:
        for name, tables in record["people"].items():
            people.setdefault(name, []).append(np.array(tables, np.float64))
    return np.array([np.sum(tables, axis=0) for tables in people.values()]).transpose(1, 0, 2)


def _yardstick(record: Record) -> Yardstick:
    nothing = np.zeros(len(record["names"]))
    return Yardstick(tuple(record["names"]), nothing, nothing, np.array(record["group"], np.intp))


def _share(error: Array, base: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(base > 0, 1 - error / base, np.nan)


def by_feature(records: Sequence[Record], n: int, minute: float) -> list[Record]:
    """For every way and released feature: explained variance, correlations within people, NMSE; over all splits."""
    chosen: dict[str, list[Record]] = {}
    for record in records:
        if "people" in record and (record["n"], record["minute"]) == (n, minute):
            chosen.setdefault(record["label"], []).append(record)
    rows = []
    for label, group in chosen.items():
        error, base, own_error, own_base = _sums(group).sum(axis=1)
        columns: dict[str, Any] = {"explained": _share(error, base), "own": _share(own_error, own_base)}
        for name in ("correlation", "partial", "nmse"):
            columns[name] = mean_of_known([record[name] for record in group])
        for place, feature in enumerate(group[0]["names"]):
            if group[0]["group"][place] >= 0:
                told = {name: _known(column[place]) for name, column in columns.items()}
                row = {"label": label, "n": n, "minute": minute, "feature": feature, "group": group[0]["group"][place]}
                rows.append(row | told)
    return rows


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def limits(records: Sequence[Record]) -> list[Record]:
    """Limit by the model's causal rate-distortion."""
    names = ("n", "minute", "epsilon", "explained", "chunks")
    return [{name: record[name] for name in names} for record in records if record["measured"] == "limit"]
