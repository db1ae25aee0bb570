"""Any one table or figure of the report, from saved cells; what is not there yet is computed first."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from eyestream.errors import ConfigError, meant
from eyestream.rim.files.recordings import Recording
from eyestream_lab.study import utility
from eyestream_lab.study.cells import Record
from eyestream_lab.study.figures import to_png
from eyestream_lab.study.opening import opening
from eyestream_lab.study.plan import Plan
from eyestream_lab.study.report import figure_text, write_tables
from eyestream_lab.study.run import PAGES, computed, tables_of
from eyestream_lab.study.section import Section, Table
from eyestream_lab.study.sections import sections_of

__all__ = ["ATTACKS", "ELSEWHERE", "TABLES", "known", "listed", "made_quick", "make_table", "markdown"]

ATTACKS = "attacks"
"""The name of the page of the attacks on people, which has options of its own."""

TABLES: dict[str, tuple[tuple[str, ...], str]] = {
    "frontier": (("frontier",), "table and figure: utility against identity at equal epsilon a minute"),
    "frontier-own": (("frontier",), "the same figure with each person's own mean removed"),
    "limits": (("frontier",), "what causal rate-distortion allows, under klt's model"),
    "features": (("frontier",), "explained variance, correlations within people and NMSE of each feature"),
    "traces": (("frontier",), "figure: raw rows and what was released of them, one person"),
    "utility": (("utility",), "NMSE, its utility, and explained variance, as published and as they behave"),
    "error": (("utility",), "figure: mean squared error over variance against epsilon"),
    "nmse": (("utility",), "figure: |NMSE| against epsilon"),
    "published": (("utility",), "figure: NMSE beside a paper's values (needs --published)"),
    "correlation": (("correlation",), "table and figure: correlation within recordings against the lag"),
    "fifth": (("correlation",), "correlation over recordings with the fifth row (Bozkir et al. 2021, figures 3 to 6)"),
    "leakage": (("correlation",), "table and figure: temporal privacy leakage under a Markov chain"),
    "error-k": (("coefficients",), "figure: error against the number of coefficients"),
    "choice": (("coefficients",), "table and figure: ways to choose k, and what they leak"),
    "classification-person": (("classification",), "accuracy of the published classifiers: who it is"),
    "classification-person-voted": (("classification",), "figure of it, by majority vote"),
    "classification-person-per_window": (("classification",), "figure of it, a window at a time"),
    "recognised": (("identification",), "who is recognised by the published classifiers, all protocols"),
    "identification": (("identification",), "figure of it"),
    "match": (("identification",), "figure: cumulative match curves"),
    "averaging": (("recovery", "timing"), "figure: what averaging many releases recovers"),
    "filtering": (("recovery", "timing"), "table and figure: what knowledge of the corpus recovers"),
    "timing": (("recovery", "timing"), "what timing and metadata tell"),
    "baseline": (("baseline",), "table and figure: the noise of Steil et al. as printed, and repaired"),
    "tables": (("tables",), "page: the papers' tables on --labels, every mechanism at equal epsilon a minute"),
    "linkage": (("linkage",), "page: linkage of demographics and gaze"),
    "central": (("central",), "page: what a trusted aggregator would release"),
    ATTACKS: (
        (),
        "page of all attackers on shipped calibrations (docs/attacks-figures.md); options: attacks on people",
    ),
}
"""For each name the parts of the study that it needs, and what it is. With labels also classification-LABEL."""

ELSEWHERE = {
    "docs/advice.md": "eyestream advise --table (made again by tools/make/advice.py)",
    "docs/correlations-corpus.md": "tools/make/session_curves.py, tools/make/session_frontier.py",
    "eyestream/core/KLT.md, docs/mechanisms.md": "tools/make/frontier.py, tools/make/alternatives.py",
    "benchmarks/RESULTS.md": "python -m benchmarks",
}
"""Tables of the documentation that other commands make."""


def known(name: str) -> bool:
    """Whether there is such a table; those of labels are known by their beginning."""
    return name in TABLES or name.startswith("classification-")


def listed() -> str:
    """All names and what they are."""
    width = max(map(len, TABLES)) + 2
    lines = [f"{name:<{width}}{said}" for name, (_, said) in TABLES.items()]
    lines += [f"{'classification-LABEL':<{width}}accuracy for a column of --labels"]
    return "\n".join([*lines, "", "made by other commands:", *(f"  {k}: {v}" for k, v in ELSEWHERE.items())])


def made_quick(out: Path) -> bool:
    """Whether the report in `out` is that of a quick run; not so where there is none."""
    path = out / "summary.json"
    try:
        return bool(json.loads(path.read_text(encoding="utf-8"))["quick"])
    except FileNotFoundError:
        return False
    except (OSError, ValueError, KeyError):
        raise ConfigError(f"{path}: is not the summary of a study: expected another --out") from None


def make_table(
    recordings: Sequence[Recording],
    out: Path,
    plan: Plan,
    name: str,
    *,
    target: Path | None = None,
    labels: dict[str, dict[str, str]] | None = None,
    published: Path | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Path:
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
    ConfigError, RecordingError, CalibrationError
        As `run`, or there is no such table.
    """
    if not known(name) or name == ATTACKS:
        raise ConfigError(f"there is no table {name!r}{meant(name, TABLES)}: eyestream study --table list")
    parts = TABLES[name][0] if name in TABLES else ("classification",)
    values = utility.published_values(published) if published is not None else []
    try:
        world, records = computed(
            recordings, out, plan, parts, labels=labels, jobs=jobs, cluster=cluster, progress=progress
        )
        rate, place = world.population.rate_hz, target if target is not None else out / "tables" / f"{name}.md"
        if name in PAGES:
            return _page(records[name], name, place)
        if "frontier" in parts:
            made = opening(records["frontier"], plan, rate, {})
        else:
            made = sections_of(parts[0], tables_of(records, world), values)
        return _written(made, name, place)
    except OSError as error:
        raise ConfigError(f"{out}: cannot be written: {error.strerror}") from None


def _page(records: Sequence[Record], name: str, target: Path) -> Path:
    if not records:
        raise ConfigError(f"there is no table {name!r} of these recordings (--labels are missing?)")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(PAGES[name](records), encoding="utf-8")
    return target


def _written(sections: Sequence[Section], name: str, target: Path) -> Path:
    figures = [figure for section in sections for key, (_, figure) in section.figures.items() if key == name]
    tables = [table for section in sections for table in section.tables if table.name == name]
    if not figures and not tables:
        raise ConfigError(f"there is no table {name!r} of these recordings (labels, or --published, are missing?)")
    target.parent.mkdir(parents=True, exist_ok=True)
    for figure in figures:
        target.with_suffix(".png").write_bytes(to_png(figure))
    if not tables:
        return target.with_suffix(".png")
    command = f"<!-- eyestream study RECORDINGS --out DIR --table {name} -->\n\n"
    target.write_text(command + "\n".join(map(markdown, tables)), encoding="utf-8")
    rows: list[Record] = [{"table": table.caption} | dict(row) for table in tables for row in table.records]
    write_tables(target.parent, {target.stem: rows})
    return target


def markdown(table: Table) -> str:
    """The columns of a table."""
    lines = [f"**{table.caption}**", "", "| " + " | ".join(heading for _, heading in table.columns) + " |"]
    lines.append("|" + "---|" * len(table.columns))
    for record in table.records:
        lines.append("| " + " | ".join(figure_text(record.get(key)) for key, _ in table.columns) + " |")
    return "\n".join(lines) + "\n"
