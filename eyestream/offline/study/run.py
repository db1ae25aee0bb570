"""A study from recordings to report."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from eyestream.errors import ConfigError
from eyestream.offline.study import (
    baseline,
    central,
    central_page,
    classification,
    coefficients,
    correlation,
    identification,
    linkage,
    linkage_page,
    recovery,
    tables,
    tables_page,
    timing,
    utility,
)
from eyestream.offline.study.cells import Record, compute
from eyestream.offline.study.plan import Plan
from eyestream.offline.study.population import Population
from eyestream.offline.study.report import write_report, write_tables
from eyestream.offline.study.sections import sections
from eyestream.offline.study.sources import ANCHORED, CALIBRATORS, World, prepare
from eyestream.privacy.calibration import Calibration
from eyestream.privacy.calibration.calibration import product
from eyestream.privacy.calibration.corpus import Corpus
from eyestream.rim.files.recordings import Recording

__all__ = ["PARTS", "run", "run_only"]

PARTS: dict[str, Any] = {
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
"""Parts that have a page of their own, in Markdown."""


def run(
    recordings: Sequence[Recording],
    out: Path,
    plan: Plan,
    *,
    labels: dict[str, dict[str, str]] | None = None,
    published: Path | None = None,
    jobs: int | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Path:
    """Run a study and write its report.

    Calibrations lie in `out`/calibrations, finished cells in `out`/cells; neither is computed again. To spread the
    cells over a cluster, call this inside `joblib.parallel_config(backend=...)` with `jobs` None.

    Returns
    -------
    The path of the page.

    Raises
    ------
    ConfigError, RecordingError, CalibrationError
        The recordings or the labels do not make a study, or `out` cannot be written.
    """
    population = Population.of(recordings, labels)
    values = utility.published_values(published) if published is not None else []
    measures = {name: part.measure for name, part in PARTS.items()}

    def count(done: int, total: int) -> None:
        progress(f"{done} of {total} cells done")

    try:
        world = prepare(population, plan.chunks, progress, out / "calibrations", _calibrators(population))
        cells = [cell for part in PARTS.values() for cell in part.cells(plan, world)]
        records = compute(world, cells, measures=measures, folder=out / "cells", jobs=jobs, progress=count)
        _write_pages(out, records)
        write_tables(out / "csv", records | _summaries(records) | ({"published": values} if values else {}))
        progress("drawing the figures")
        return write_report(out, sections(records, values), _settings(plan, world, recordings))
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
        As `run`, or there is no such part.
    """
    unknown = [name for name in only if name not in PARTS]
    if unknown:
        raise ConfigError(f"the study has no part {unknown[0]!r}: {', '.join(PARTS)}")
    population = Population.of(recordings, labels)
    chosen = {name: PARTS[name] for name in PARTS if name in only}

    def count(done: int, total: int) -> None:
        progress(f"{done} of {total} cells done")

    try:
        world = prepare(population, plan.chunks, progress, out / "calibrations", _calibrators(population))
        cells = [cell for part in chosen.values() for cell in part.cells(plan, world)]
        measures = {name: part.measure for name, part in chosen.items()}
        records = compute(world, cells, measures=measures, folder=out / "cells", jobs=jobs, progress=count)
        write_tables(out / "csv", records)
        _write_pages(out, records)
        (out / "csv" / "settings.json").write_text(json.dumps(_settings(plan, world, recordings), indent=1))
    except OSError as error:
        raise ConfigError(f"{out}: cannot be written: {error.strerror}") from None
    return out / "csv"


def _write_pages(out: Path, records: dict[str, list[Record]]) -> None:
    for name, page in PAGES.items():
        if records.get(name):
            (out / f"{name}.md").write_text(page(records[name]), encoding="utf-8")


def _calibrators(population: Population) -> dict[str, Callable[[Corpus], Calibration]]:
    """Those of the tables on labels beside the usual ones, where there are labels."""
    return CALIBRATORS | (dict([ANCHORED]) if population.labels else {})


def _summaries(records: dict[str, list[Record]]) -> dict[str, list[Record]]:
    summary = identification.summarise(records["identification"])
    return {
        "identification-summary": summary,
        "verdicts": identification.verdicts(summary),
        "classification-summary": classification.summarise(records["classification"]),
    }


def _settings(plan: Plan, world: World, recordings: Sequence[Recording]) -> dict[str, Any]:
    population = world.population
    return {
        "made_by": product(),
        "plan": asdict(plan),
        "simulated": any(recording.simulated for recording in recordings),
        "recordings": len(population.people),
        "people_calibrating": [population.people[i] for i in population.calibrating],
        "people_released": [population.people[i] for i in population.released],
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
