"""What the report opens with: verdict, the one picture, traces, and the tables that they come from."""

from collections.abc import Mapping, Sequence
from typing import Any

from eyestream.core.purposes import ANCHORED
from eyestream_lab.study import frontier_summary
from eyestream_lab.study.captions import CAPTIONS, FRONTIER
from eyestream_lab.study.cells import Record
from eyestream_lab.study.charts_frontier import frontier_chart, trace_chart
from eyestream_lab.study.people.attackers import USUAL
from eyestream_lab.study.plan import QUICK, Plan
from eyestream_lab.study.section import Section, Table
from eyestream_lab.study.verdict import MEANING, found, no_verdict, told, verdict

__all__ = ["FEATURE_COLUMNS", "FRONTIER_COLUMNS", "features_table", "frontier_table", "opening"]

PRICE = (
    ("minute", "epsilon a minute"),
    ("epsilon", "of a chunk"),
    ("n", "rows a chunk"),
    ("second", "loss of any second of gaze"),
)
FRONTIER_COLUMNS = (
    ("label", "released by"),
    *PRICE,
    ("explained_range", "explained"),
    ("explained_middle", "explained, median feature"),
    ("own_range", "own means removed"),
    ("own_middle", "own means removed, median feature"),
    ("every", "all features counted"),
    ("nmse", "NMSE, median"),
    ("coverage", "covered"),
    ("attacker", "strongest attacker"),
    ("attackers", "of"),
    ("area_range", "area under ROC"),
    ("rate_range", "right names"),
    ("chance", "chance"),
    ("p_all", "p, all attackers"),
    ("least_area", "area that could be seen"),
    ("in_words", "in words"),
)
FEATURE_COLUMNS = (
    ("feature", "feature"),
    ("group", "group"),
    ("explained", "explained"),
    ("own", "own means removed"),
    ("correlation", "correlation within people"),
    ("partial", "the same, saccade rate held fixed"),
    ("nmse", "NMSE, median"),
)


def opening(records: Sequence[Record], plan: Plan, rate_hz: float, said: Mapping[str, Any]) -> list[Section]:
    """The first sections.

    Parameters
    ----------
    records
        Of the part `frontier`.
    said
        What was run, in words, by heading.
    """
    rows, limits = frontier_summary.summarise(records, rate_hz), frontier_summary.limits(records)
    n, minute = plan.verdict_chunk, plan.verdict_minute
    sentences = [*verdict(rows, limits, n, minute, quick=plan == QUICK), *_without_levels(rows, n), MEANING]
    pictured = {"frontier": (FRONTIER, frontier_chart(rows, limits, n))}
    traced = frontier_summary.traces(records)
    return [
        Section("Verdict", tuple(sentences), pictured),
        Section("What was run", tuple(f"{name}: {text}" for name, text in said.items())),
        _traces(traced),
        _frontier(rows, limits, plan, records),
    ]


def _without_levels(rows: Sequence[Record], n: int) -> list[str]:
    """Why a way that takes a baseline can explain less than the common mean does, and what it tells all the same."""
    own = [row for row in rows if row["n"] == n and ANCHORED in row["label"] and row["explained"] < 0]
    if not own:
        return []
    figures = "; ".join(
        f"at {row['minute']:g} a minute {row['explained']:.2f} around the common mean, {row['own']:.2f} around each "
        "person's own"
        for row in own
    )
    return [
        f"Why {own[0]['label']} lies below zero: it subtracts the first minute of a session, and releases how the "
        "wearer changes after it. Whoever reads these values as levels is wrong by all that this minute differs from "
        f"the common mean. Judge it by what it explains around each person's own mean: {figures}."
    ]


def _traces(records: Sequence[Record]) -> Section:
    return Section(
        "Raw and private traces",
        (
            "One person who calibrated nothing, chosen before anything was released: the one with most of these "
            "values. The page shows this person's raw rows: it is as private as the recording.",
        ),
        {"traces": (_priced(records), trace_chart(records))},
    )


def _priced(records: Sequence[Record]) -> str:
    first = records[0]
    return (
        f"One person's rows, and what was released of them at {first['minute']:g} epsilon a minute "
        f"({first['epsilon']:g} a chunk of {first['n']} rows). Vertical lines: a chunk begins. Bands: the error "
        "that applications are given, one standard deviation to each side. A released line that follows the raw one "
        "tells what the person does at that moment. One that stays flat, or moves within its band, tells nothing. A "
        "way without levels follows the changes of the raw line, at another height."
    )


def _frontier(rows: Sequence[Record], limits: Sequence[Record], plan: Plan, records: Sequence[Record]) -> Section:
    n, minute = plan.verdict_chunk, plan.verdict_minute
    power = next(row for row in rows if row["minute"] is None and row["n"] == n)
    return Section(
        "Utility against identity",
        (
            f"Random halves of the people calibrate and the other half is released, then the roles change. "
            f"Splits: {plan.frontier_splits}. Explained: of the variance of rows that are clipped at the 0.5 % "
            "quantiles; a value that was there and was not released counts as the mean, so that nothing missing "
            "raises a score. Mean over features, with 95 % over people in brackets, and median: one feature that "
            "hardly moves can sink the mean.",
            f"Attackers: {', '.join(USUAL)}. The largest of several areas flatters the attacker a little; p is "
            "the smallest permutation p times their number. Forms that filter are attacked as released, and by the "
            "white boxes before they are filtered.",
            f"Power: {power['people']} people, galleries of {power['gallery']}, one split. An area below "
            f"{power['least_area']:.2f} and right names below {power['least_rate']:.2f} (chance {power['chance']:.2f}) "
            "would often, in one of five cases or more, not have been seen.",
        ),
        {"frontier-own": (CAPTIONS["frontier-own"], frontier_chart(rows, limits, n, "own"))},
        (frontier_table(rows), limits_table(limits), *features_table(records, n, minute)),
    )


def frontier_table(rows: Sequence[Record]) -> Table:
    """Every way, length and epsilon."""
    return Table(
        "frontier", "Utility against identity", FRONTIER_COLUMNS, [row | _in_words(row) for row in rows], keys=4
    )


def limits_table(limits: Sequence[Record]) -> Table:
    """What the model allows."""
    columns = (
        ("minute", "epsilon a minute"),
        ("epsilon", "of a chunk"),
        ("n", "rows a chunk"),
        ("explained", "explained, at most"),
    )
    return Table("limits", "Limit of utility: causal rate-distortion under klt's model", columns, limits)


def features_table(records: Sequence[Record], n: int, minute: float) -> list[Table]:
    """One for each way, at one price."""
    rows = frontier_summary.by_feature(records, n, minute)
    return [
        Table("features", f"Features, {label}, {minute:g} epsilon a minute, chunks of {n} rows", FEATURE_COLUMNS, own)
        for label in dict.fromkeys(row["label"] for row in rows)
        if (own := [row for row in rows if row["label"] == label])
    ]


def _in_words(row: Record) -> Record:
    made: Record = {}
    for name in ("explained", "own", "area", "rate"):
        inside = f" [{row[name + '_low']:.2f}, {row[name + '_high']:.2f}]" if f"{name}_low" in row else ""
        made[f"{name}_range"] = f"{row[name]:.2f}{inside}" if abs(row[name]) < 100 else f"{row[name]:.2g}"
    if row["minute"] is None:
        return made | {"in_words": found(row)}
    words = (
        "no verdict" if no_verdict(row) else f"{told(row)} of everything, {told(row, 'own')} of behaviour; {found(row)}"
    )
    return made | {"in_words": words}
