"""A study from recordings to a report, to the tables of some parts, or to one table or figure."""

import json
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from eyestream.core.calibration import product
from eyestream.errors import ConfigError, meant
from eyestream.rim.files.recordings import Recording
from eyestream_lab.study import (
    asked,
    central,
    correlation,
    frontier,
    frontier_summary,
    linkage,
    pages,
    recovery,
    tables,
    utility,
)
from eyestream_lab.study.cells import Record, compute, how_far
from eyestream_lab.study.figures import to_png
from eyestream_lab.study.plan import QUICK, Plan
from eyestream_lab.study.population import Population
from eyestream_lab.study.prices import with_prices
from eyestream_lab.study.report import Section, markdown, write_report, write_summary, write_tables
from eyestream_lab.study.sections import opening, sections, sections_of
from eyestream_lab.study.sources import BASELINES, BEST_CALIBRATORS, CALIBRATORS, SOURCES, World, prepare
from eyestream_lab.study.verdict import verdict

PARTS: dict[str, Any] = {
    "frontier": frontier,
    "utility": utility,
    "correlation": correlation,
    "tables": tables,
    "linkage": linkage,
    "recovery": recovery,
    "central": central,
    asked.PART: asked,
}
"""Modules with `cells(plan, world)` and `measure(world, **settings)`."""

PAGES: dict[str, Callable[[Sequence[Record]], str]] = {
    "tables": pages.tables_page,
    "linkage": pages.linkage_page,
    "central": pages.central_page,
    asked.PART: asked.asked_page,
}
"""Parts that have a page of their own, in Markdown; they are computed when they are asked for."""

_NEEDS = {"tables": "labels", "linkage": "labels that are the same in all recordings of a person"}

ATTACKS = "attacks"
"""The name of the page of the attacks on people, which has options of its own."""

TABLES: dict[str, tuple[str, str]] = {
    "frontier": ("frontier", "table and figure: utility against identity at equal epsilon a minute"),
    "frontier-own": ("frontier", "the same figure with each person's own mean removed"),
    "limits": ("frontier", "what causal rate-distortion allows, under klt's model"),
    "features": ("frontier", "explained variance, correlations within people and NMSE of each feature"),
    "traces": ("frontier", "figure: raw rows and what was released of them, one person"),
    "utility": ("utility", "NMSE, its utility, and explained variance, as published and as they behave"),
    "error": ("utility", "figure: mean squared error over variance against epsilon"),
    "nmse": ("utility", "figure: |NMSE| against epsilon"),
    "published": ("utility", "figure: NMSE beside a paper's values (needs --published)"),
    "correlation": ("correlation", "table and figure: correlation within recordings against the lag"),
    "fifth": ("correlation", "correlation over recordings with the fifth row (Bozkir et al. 2021, figures 3 to 6)"),
    "leakage": ("correlation", "table and figure: temporal privacy leakage under a Markov chain"),
    "averaging": ("recovery", "figure: what averaging many releases recovers"),
    "filtering": ("recovery", "table and figure: what knowledge of the corpus recovers"),
    "tables": ("tables", "page: the papers' tables on --labels, every mechanism at equal epsilon a minute"),
    "linkage": ("linkage", "page: linkage of demographics and gaze"),
    "central": ("central", "page: what a trusted aggregator would release"),
    asked.PART: (asked.PART, "page: one to three asked features against all features, and who is recognised by them"),
    ATTACKS: (
        "",
        "page of all attackers on shipped calibrations (docs/attacks-figures.md); options: attacks on people",
    ),
}
"""For each name the part of the study that it needs, and what it is."""

_ELSEWHERE = {
    "docs/advice-figures.md": "eyestream advise --table (made again by tools/make/advice.py)",
    "docs/correlations-corpus.md": "tools/make/session_curves.py, tools/make/session_frontier.py",
    "eyestream/core/KLT.md, docs/figures.md": "tools/make/frontier.py, tools/make/alternatives.py",
    "benchmarks/RESULTS.md": "python -m benchmarks",
}
"""Tables of the documentation that other commands make."""


def listed() -> str:
    """All names and what they are."""
    width = max(map(len, TABLES)) + 2
    lines = [f"{name:<{width}}{said}" for name, (_, said) in TABLES.items()]
    return "\n".join([*lines, "", "made by other commands:", *(f"  {k}: {v}" for k, v in _ELSEWHERE.items())])


def check_labelled(names: Iterable[str], labelled: Container[str] = ()) -> None:
    """Raise ConfigError where one of these parts or tables needs labels, and is not in `labelled`."""
    for name in names:
        if name in _NEEDS and name not in labelled:
            raise ConfigError(f"part {name!r} of the study needs {_NEEDS[name]}: --labels FILE")


def made_quick(out: Path) -> bool:
    """Whether the report in `out` is that of a quick run; not so where there is none."""
    path = out / "summary.json"
    try:
        return bool(json.loads(path.read_text(encoding="utf-8"))["quick"])
    except FileNotFoundError:
        return False
    except (OSError, ValueError, KeyError):
        raise ConfigError(f"{path}: is not the summary of a study: expected another --out") from None


@dataclass(frozen=True)
class Study:
    """Recordings, and the folder in which they are studied.

    Calibrations lie in `out`/calibrations, finished cells in `out`/cells; neither is computed again. Every method
    raises ConfigError, RecordingError or CalibrationError when the recordings or the labels do not make a study, or
    `out` cannot be written.

    Attributes
    ----------
    plan : how much is done.
    labels : as of `read_labels`; None: each recording is a person of its own.
    jobs, cluster : processes, None: one for each core; or the URL of a Dask scheduler in their place.
    seed : of the noise of the mechanisms: the same seed gives the same tables, wherever cells are computed; None: there
        is none.
    progress : called with what is being done, in words.
    """

    recordings: Sequence[Recording]
    out: Path
    plan: Plan
    labels: dict[str, dict[str, str]] | None = None
    jobs: int | None = None
    cluster: str | None = None
    seed: int | None = None
    progress: Callable[[str], None] = lambda text: None

    def report(self, published: Path | None = None) -> Path:
        """Write the whole report, with a paper's NMSE values beside ours; the path of the page."""
        values = utility.published_values(published) if published is not None else []
        quick = self.plan == QUICK
        with self._writing():
            world, records = self._computed([name for name in PARTS if name not in PAGES])
            made = _tables_of(records, world) | ({"published": values} if values else {})
            write_tables(self.out / "csv", made)
            settings = self._settings(world)
            write_summary(self.out / "summary.json", _summary_of(made, self.plan), settings)
            self.progress("drawing the figures")
            said = self._in_words(settings)
            first = opening(records["frontier"], self.plan, world.population.rate_hz, said)
            return write_report(self.out, [*first, *sections(made, values)], settings, quick=quick)

    def parts(self, only: Sequence[str]) -> Path:
        """Compute some of `PARTS`, with the cells of the whole report, and write their tables; the tables' folder.

        Raises
        ------
        ConfigError
            There is no such part, or it needs labels.
        """
        unknown = [name for name in only if name not in PARTS]
        if unknown:
            raise ConfigError(f"the study has no part {unknown[0]!r}: {', '.join(PARTS)}")
        with self._writing():
            world, records = self._computed(only)
            write_tables(self.out / "csv", _tables_of(records, world))
            for name, page in PAGES.items():
                if records.get(name):
                    (self.out / f"{name}.md").write_text(page(records[name]), encoding="utf-8")
            (self.out / "csv" / "settings.json").write_text(json.dumps(self._settings(world), indent=1))
        return self.out / "csv"

    def table(self, name: str, *, target: Path | None = None, published: Path | None = None) -> Path:
        """Write one table (Markdown, and CSV beside it) or one figure (PNG), or both.

        Parameters
        ----------
        name
            Out of `TABLES`, but not `ATTACKS`.
        target
            Of the table; by default `out`/tables/NAME.md. Its figure has the same name and ends in .png.

        Returns
        -------
        The path of the table, or of the figure where there is no table.

        Raises
        ------
        ConfigError
            There is no such table, or these recordings have none.
        """
        if name not in TABLES or name == ATTACKS:
            raise ConfigError(f"there is no table {name!r}{meant(name, TABLES)}: eyestream study --table list")
        values = utility.published_values(published) if published is not None else []
        place, part = target if target is not None else self.out / "tables" / f"{name}.md", TABLES[name][0]
        with self._writing():
            world, records = self._computed([part])
            if name in PAGES:
                if not records[name]:
                    raise ConfigError(f"there is no table {name!r} of these recordings (--labels are missing?)")
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(PAGES[name](records[name]), encoding="utf-8")
                return place
            if part == "frontier":
                made = opening(records["frontier"], self.plan, world.population.rate_hz, {})
            else:
                made = sections_of(part, _tables_of(records, world), values)
            return _write_one(made, name, place)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ConfigError(f"{self.out}: cannot be written: {error.strerror}") from None

    def _computed(self, parts: Sequence[str]) -> tuple[World, dict[str, list[Record]]]:
        """The people, and the records of some parts."""
        chosen = {name: PARTS[name] for name in PARTS if name in parts}
        population = Population.of(self.recordings, self.labels)
        there = {"tables": population.labels, "linkage": linkage.demographics(population)}
        check_labelled(chosen, [name for name, labels in there.items() if labels])
        # parts that compare mechanisms at their best need those calibrations too
        calibrators = BEST_CALIBRATORS if set(parts) & set(_NEEDS) else CALIBRATORS
        lengths = self.plan.chunks
        if set(parts) == {asked.PART}:
            calibrators, lengths = {}, (asked.N,)
        with threadpool_limits(1):
            world = prepare(population, lengths, self.progress, self.out / "calibrations", calibrators)
        records = compute(
            world,
            [cell for part in chosen.values() for cell in part.cells(self.plan, world)],
            measures={name: part.measure for name, part in chosen.items()},
            folder=self.out / "cells",
            jobs=self.jobs,
            cluster=self.cluster,
            seed=self.seed,
            progress=lambda done, total, left: self.progress(how_far(done, total, left)),
        )
        return world, records

    def _in_words(self, settings: dict[str, Any]) -> dict[str, str]:
        """Record of the run."""
        recordings, quick = self.recordings, self.plan == QUICK
        rows = sum(len(recording.t) for recording in recordings)
        there = float(np.mean(np.concatenate([np.isfinite(recording.features).ravel() for recording in recordings])))
        minutes = rows / recordings[0].rate_hz / 60
        people = len(set(settings["people_calibrating"]) | set(settings["people_released"]))
        simulated = "; simulated, nobody in it exists" if settings["simulated"] else ""
        return {
            "Corpus": f"{len(recordings)} recordings of {people} people, {rows:,} rows of {len(recordings[0].names)} "
            f"features, {minutes:,.0f} minutes{simulated}. {there:.1%} of the values are there; no figure has the "
            "others.",
            "Kind of run": "QUICK: small, to see that everything works; its figures mean little" if quick else "full",
            "Version": str(settings["made_by"]),
            "Recordings": f"hash of all {settings['recordings_hash']}; those of each and of the calibrations stand "
            "below",
            "Seeds": "; ".join(f"{name}: {text}" for name, text in settings["seeds"].items()),
        }

    def _settings(self, world: World) -> dict[str, Any]:
        population = world.population
        return {
            "made_by": product(),
            "quick": self.plan == QUICK,
            "plan": asdict(self.plan),
            "simulated": any(recording.simulated for recording in self.recordings),
            "recordings": len(population.people),
            "people_calibrating": [population.people[i] for i in population.calibrating],
            "people_released": [population.people[i] for i in population.released],
            "recordings_hash": population.content_hash,
            "recording_hashes": list(population.hashes),
            "features": [population.names[i] for i in world.active],
            "calibrations": {f"{name}, {n} rows": c.content_hash for (name, n), c in world.calibrations.items()},
            "seeds": {
                "splits": "split s: numpy default_rng(s) draws who calibrates; attackers take s",
                "baselines of Steil et al.": "number of the seed",
                "noise of the mechanisms": "none: keyed by the operating system"
                if self.seed is None
                else f"{self.seed}, and a hash of each cell's settings",
            },
        }


def _tables_of(records: dict[str, list[Record]], world: World) -> dict[str, list[Record]]:
    """Tables of the parts that are there, and their summaries, every row with its price."""
    made = {name: rows for name, rows in records.items() if name != "frontier"}
    whole = [source.label for source in (*SOURCES, *BASELINES) if not source.chunked]
    made = {name: with_prices(rows, world.population, whole) for name, rows in made.items()}
    if asked.PART in records:
        made[asked.PART] = asked.summarise(records[asked.PART])
    if "frontier" in records:
        rows = records["frontier"]
        made["frontier"] = frontier_summary.summarise(rows, world.population.rate_hz)
        made["limits"] = frontier_summary.limits(rows)
        made["features"] = [
            row
            for n, minute in dict.fromkeys((r["n"], r["minute"]) for r in rows if "people" in r)
            for row in frontier_summary.by_feature(rows, n, minute)
        ]
    return made


def _summary_of(made: dict[str, list[Record]], plan: Plan) -> dict[str, Any]:
    """Opening of the report, for programs; of the tables of the part `frontier`."""
    rows, limits, n, minute = made["frontier"], made["limits"], plan.verdict_chunk, plan.verdict_minute
    return {
        "quick": plan == QUICK,
        "verdict": verdict(rows, limits, n, minute, quick=plan == QUICK),
        "frontier": rows,
        "limits": limits,
        "features": [row for row in made["features"] if (row["n"], row["minute"]) == (n, minute)],
    }


def _write_one(made: Sequence[Section], name: str, target: Path) -> Path:
    figures = [figure for section in made for key, (_, figure) in section.figures.items() if key == name]
    found = [table for section in made for table in section.tables if table.name == name]
    if not figures and not found:
        raise ConfigError(f"there is no table {name!r} of these recordings (labels, or --published, are missing?)")
    target.parent.mkdir(parents=True, exist_ok=True)
    for figure in figures:
        target.with_suffix(".png").write_bytes(to_png(figure))
    if not found:
        return target.with_suffix(".png")
    command = f"<!-- eyestream study RECORDINGS --out DIR --table {name} -->\n\n"
    target.write_text(command + "\n".join(map(markdown, found)), encoding="utf-8")
    rows: list[Record] = [{"table": table.caption} | dict(row) for table in found for row in table.records]
    write_tables(target.parent, {target.stem: rows})
    return target
