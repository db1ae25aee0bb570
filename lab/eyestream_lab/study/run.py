"""A study from recordings to report."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from eyestream.core.calibration import Calibration
from eyestream.core.calibration.calibration import product
from eyestream.core.calibration.corpus import Corpus
from eyestream.errors import ConfigError
from eyestream.rim.files.recordings import Recording
from eyestream_lab.study import (
    baseline,
    central,
    central_page,
    classification,
    coefficients,
    correlation,
    frontier,
    frontier_summary,
    identification,
    linkage,
    linkage_page,
    recovery,
    tables,
    tables_page,
    timing,
    utility,
)
from eyestream_lab.study.cells import Record, compute, how_far
from eyestream_lab.study.opening import opening
from eyestream_lab.study.plan import QUICK, Plan
from eyestream_lab.study.population import Population
from eyestream_lab.study.prices import with_prices
from eyestream_lab.study.report import write_report, write_summary, write_tables
from eyestream_lab.study.sections import sections
from eyestream_lab.study.sources import BASELINES, BEST_CALIBRATORS, CALIBRATORS, SOURCES, World, prepare
from eyestream_lab.study.verdict import verdict

__all__ = ["PAGES", "PARTS", "computed", "run", "run_only", "tables_of"]

PARTS: dict[str, Any] = {
    "frontier": frontier,
    "utility": utility,
    "correlation": correlation,
    "coefficients": coefficients,
    "classification": classification,
    "tables": tables,
    "linkage": linkage,
    "identification": identification,
    "recovery": recovery,
    "timing": timing,
    "baseline": baseline,
    "central": central,
}
"""Modules with `cells(plan, world)` and `measure(world, **settings)`."""

PAGES: dict[str, Callable[[Sequence[Record]], str]] = {
    "tables": tables_page.page,
    "linkage": linkage_page.page,
    "central": central_page.page,
}
"""Parts that have a page of their own, in Markdown; they are computed when they are asked for."""

_NEEDS = {"tables": "labels", "linkage": "labels that are the same in all recordings of a person"}


def run(
    recordings: Sequence[Recording],
    out: Path,
    plan: Plan,
    *,
    labels: dict[str, dict[str, str]] | None = None,
    published: Path | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Path:
    """Run a study and write its report.

    Calibrations lie in `out`/calibrations, finished cells in `out`/cells; neither is computed again.

    Parameters
    ----------
    jobs, cluster
        Processes, None: one for each core; or the URL of a Dask scheduler in their place.

    Returns
    -------
    The path of the page.

    Raises
    ------
    ConfigError, RecordingError, CalibrationError
        The recordings or the labels do not make a study, or `out` cannot be written.
    """
    values = utility.published_values(published) if published is not None else []
    try:
        world, records = computed(
            recordings, out, plan, _of_report(), labels=labels, jobs=jobs, cluster=cluster, progress=progress
        )
        tables = tables_of(records, world) | ({"published": values} if values else {})
        write_tables(out / "csv", tables)
        settings = _settings(plan, world, recordings)
        write_summary(out / "summary.json", summary_of(tables, plan), settings)
        progress("drawing the figures")
        first = opening(records["frontier"], plan, world.population.rate_hz, _said(settings, recordings, plan))
        return write_report(out, [*first, *sections(tables, values)], settings, quick=plan == QUICK)
    except OSError as error:
        raise ConfigError(f"{out}: cannot be written: {error.strerror}") from None


def run_only(
    recordings: Sequence[Recording],
    out: Path,
    plan: Plan,
    only: Sequence[str],
    *,
    labels: dict[str, dict[str, str]] | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Path:
    """Compute some parts of a study, as `run` does and with the same cells, and write their tables.

    Parameters
    ----------
    only
        Names out of `PARTS`.

    Returns
    -------
    The folder of the tables.

    Raises
    ------
    ConfigError, RecordingError, CalibrationError
        As `run`, or there is no such part, or it needs labels.
    """
    unknown = [name for name in only if name not in PARTS]
    if unknown:
        raise ConfigError(f"the study has no part {unknown[0]!r}: {', '.join(PARTS)}")
    try:
        world, records = computed(
            recordings, out, plan, only, labels=labels, jobs=jobs, cluster=cluster, progress=progress
        )
        write_tables(out / "csv", tables_of(records, world))
        _write_pages(out, records)
        (out / "csv" / "settings.json").write_text(json.dumps(_settings(plan, world, recordings), indent=1))
    except OSError as error:
        raise ConfigError(f"{out}: cannot be written: {error.strerror}") from None
    return out / "csv"


def _of_report() -> tuple[str, ...]:
    """The parts that the report is made of; those with pages of their own are computed when they are named."""
    return tuple(name for name in PARTS if name not in PAGES)


def _write_pages(out: Path, records: dict[str, list[Record]]) -> None:
    for name, page in PAGES.items():
        if records.get(name):
            (out / f"{name}.md").write_text(page(records[name]), encoding="utf-8")


def _calibrators(only: Sequence[str]) -> dict[str, Callable[[Corpus], Calibration]]:
    """The usual ones, and for the parts that compare mechanisms at their best those of the best forms too."""
    return BEST_CALIBRATORS if set(only) & set(_NEEDS) else CALIBRATORS


def computed(
    recordings: Sequence[Recording],
    out: Path,
    plan: Plan,
    parts: Sequence[str],
    *,
    labels: dict[str, dict[str, str]] | None,
    jobs: int | None,
    cluster: str | None,
    progress: Callable[[str], None],
) -> tuple[World, dict[str, list[Record]]]:
    """The people, and the records of some parts."""

    def count(done: int, total: int, left: float | None) -> None:
        progress(how_far(done, total, left))

    chosen = {name: PARTS[name] for name in PARTS if name in parts}
    population = Population.of(recordings, labels)
    there = {"tables": population.labels, "linkage": linkage.demographics(population)}
    for name in chosen:
        if name in _NEEDS and not there[name]:
            raise ConfigError(f"part {name!r} of the study needs {_NEEDS[name]}: --labels FILE")
    with threadpool_limits(1):
        world = prepare(population, plan.chunks, progress, out / "calibrations", _calibrators(parts))
    cells = [cell for part in chosen.values() for cell in part.cells(plan, world)]
    measures = {name: part.measure for name, part in chosen.items()}
    return world, compute(
        world, cells, measures=measures, folder=out / "cells", jobs=jobs, cluster=cluster, progress=count
    )


def tables_of(records: dict[str, list[Record]], world: World) -> dict[str, list[Record]]:
    """Tables of the parts that are there, and their summaries, every row with its price."""
    tables = {name: rows for name, rows in records.items() if name != "frontier"}
    if "identification" in records:
        tables["identification-summary"] = identification.summarise(records["identification"])
        tables["verdicts"] = identification.verdicts(tables["identification-summary"])
    if "classification" in records:
        tables["classification-summary"] = classification.summarise(records["classification"])
    whole = [source.label for source in (*SOURCES, *BASELINES) if not source.chunked]
    tables = {name: with_prices(rows, world.population, whole) for name, rows in tables.items()}
    if "frontier" in records:
        rows = records["frontier"]
        tables["frontier"] = frontier_summary.summarise(rows, world.population.rate_hz)
        tables["limits"] = frontier_summary.limits(rows)
        tables["features"] = [
            row
            for n, minute in dict.fromkeys((r["n"], r["minute"]) for r in rows if "people" in r)
            for row in frontier_summary.by_feature(rows, n, minute)
        ]
    return tables


def summary_of(tables: dict[str, list[Record]], plan: Plan) -> dict[str, Any]:
    """What the report opens with, for programs; of the tables of the part `frontier`."""
    rows, limits, n, minute = tables["frontier"], tables["limits"], plan.verdict_chunk, plan.verdict_minute
    return {
        "quick": plan == QUICK,
        "verdict": verdict(rows, limits, n, minute, quick=plan == QUICK),
        "frontier": rows,
        "limits": limits,
        "features": [row for row in tables["features"] if (row["n"], row["minute"]) == (n, minute)],
    }


def _said(settings: dict[str, Any], recordings: Sequence[Recording], plan: Plan) -> dict[str, str]:
    """What was run, in words."""
    rows = sum(len(recording.t) for recording in recordings)
    there = float(np.mean(np.concatenate([np.isfinite(recording.features).ravel() for recording in recordings])))
    minutes = rows / recordings[0].rate_hz / 60
    people = len(set(settings["people_calibrating"]) | set(settings["people_released"]))
    simulated = "; simulated, nobody in it exists" if settings["simulated"] else ""
    return {
        "Corpus": f"{len(recordings)} recordings of {people} people, {rows:,} rows of {len(recordings[0].names)} "
        f"features, {minutes:,.0f} minutes{simulated}. {there:.1%} of the values are there; no figure has the others.",
        "Kind of run": "QUICK: small, to see that everything works; its figures mean little"
        if plan == QUICK
        else "full",
        "Version": str(settings["made_by"]),
        "Recordings": f"hash of all {settings['recordings_hash']}; those of each and of the calibrations stand below",
        "Seeds": "; ".join(f"{name}: {text}" for name, text in settings["seeds"].items()),
    }


def _settings(plan: Plan, world: World, recordings: Sequence[Recording]) -> dict[str, Any]:
    population = world.population
    return {
        "made_by": product(),
        "quick": plan == QUICK,
        "plan": asdict(plan),
        "simulated": any(recording.simulated for recording in recordings),
        "recordings": len(population.people),
        "people_calibrating": [population.people[i] for i in population.calibrating],
        "people_released": [population.people[i] for i in population.released],
        "recordings_hash": population.content_hash,
        "recording_hashes": list(population.hashes),
        "features": [population.names[i] for i in world.active],
        "calibrations": {f"{name}, {n} rows": c.content_hash for (name, n), c in world.calibrations.items()},
        "seeds": {
            "splits": "numpy default_rng((split, recording)), split = 0 .. splits - 1",
            "classifiers": "the number of the split, or of the seed",
            "baselines of Steil et al.": "number of the seed, first split of the batch, or 1",
            "choice of k by the data": "numpy default_rng(rows a chunk)",
            "noise of the mechanisms": "none: keyed by the operating system",
        },
    }
