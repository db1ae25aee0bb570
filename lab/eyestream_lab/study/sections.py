"""Sections of the report: text, figures and tables of every part, made from its records.

It opens with the verdict, the one picture, traces, and the tables that they come from.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from eyestream.core.purposes import ANCHORED
from eyestream_lab.study import charts, frontier_summary
from eyestream_lab.study.cells import Record
from eyestream_lab.study.people.attackers import USUAL
from eyestream_lab.study.plan import QUICK, Plan
from eyestream_lab.study.report import Columns, Section, Table
from eyestream_lab.study.verdict import MEANING, comes_through, no_verdict, verdict, who_is_found

Records = dict[str, list[Record]]

_KEY: Columns = (
    ("source", "mechanism"),
    ("n", "rows a chunk"),
    ("epsilon", "epsilon"),
    ("minute", "epsilon a minute"),
    ("second", "loss of any second of gaze"),
)
_PRICE: Columns = (("minute", "epsilon a minute"), ("epsilon", "of a chunk"), ("n", "rows a chunk"))

COLUMNS: dict[str, Columns] = {
    "frontier": (
        ("label", "released by"),
        *_PRICE,
        ("second", "loss of any second of gaze"),
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
    ),
    "limits": (*_PRICE, ("explained", "explained, at most")),
    "features": (
        ("feature", "feature"),
        ("group", "group"),
        ("explained", "explained"),
        ("own", "own means removed"),
        ("correlation", "correlation within people"),
        ("partial", "the same, saccade rate held fixed"),
        ("nmse", "NMSE, median"),
    ),
    "utility": (
        *_KEY,
        ("nmse", "NMSE"),
        ("utility", "utility 1/|NMSE|"),
        ("nmse_abs", "mean |NMSE|"),
        ("nmse_median", "median |NMSE|"),
        ("error_over_variance", "MSE / variance"),
        ("error_over_variance_median", "the same, median feature"),
        ("explained_variance", "explained variance"),
        ("explained_variance_median", "the same, median feature"),
        ("coverage", "covered"),
    ),
    "leakage": (
        ("n", "rows a chunk"),
        ("states", "states"),
        ("epsilon", "epsilon"),
        ("length", "chunks"),
        ("leakage", "largest leakage of a chunk"),
        ("supremum", "supremum"),
        ("sum", "sum over the chunks"),
    ),
    **{
        table: (
            ("signal", "signal"),
            (name, name),
            (f"{name}_s", "seconds"),
            ("median", "median"),
            ("low", "10 %"),
            ("high", "90 %"),
        )
        for table, name in (("fifth", "row"), ("correlation", "lag"))
    },
    "filtering": (
        *_KEY,
        ("attack", "attacker uses"),
        ("explained_variance", "explained variance"),
        ("explained_variance_median", "median feature"),
    ),
}
"""Columns of every table, by its name."""


def _table(name: str, caption: str, records: Sequence[Record], keys: int = 1) -> Table:
    return Table(name, caption, COLUMNS[name], records, keys)


def _captioned(**drawn: Figure) -> dict[str, tuple[str, Figure]]:
    return {name: (charts.CAPTIONS[name], figure) for name, figure in drawn.items()}


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
    return [
        Section("Verdict", tuple(sentences), _captioned(frontier=charts.frontier_chart(rows, limits, n))),
        Section("What was run", tuple(f"{name}: {text}" for name, text in said.items())),
        _traces([record for record in records if record["measured"] == "traces"]),
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
        {"traces": (_priced(records), charts.trace_chart(records))},
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
        _captioned(**{"frontier-own": charts.frontier_chart(rows, limits, n, "own")}),
        (
            _table("frontier", "Utility against identity", [row | _in_words(row) for row in rows], keys=4),
            _table("limits", "Limit of utility: causal rate-distortion under klt's model", limits),
            *_features(frontier_summary.by_feature(records, n, minute), n, minute),
        ),
    )


def _features(rows: Sequence[Record], n: int, minute: float) -> list[Table]:
    """A table for each way of releasing."""
    return [
        _table("features", f"Features, {label}, {minute:g} epsilon a minute, chunks of {n} rows", own)
        for label in dict.fromkeys(row["label"] for row in rows)
        if (own := [row for row in rows if row["label"] == label])
    ]


def _in_words(row: Record) -> Record:
    made: Record = {}
    for name in ("explained", "own", "area", "rate"):
        inside = f" [{row[name + '_low']:.2f}, {row[name + '_high']:.2f}]" if f"{name}_low" in row else ""
        made[f"{name}_range"] = f"{row[name]:.2f}{inside}" if abs(row[name]) < 100 else f"{row[name]:.2g}"
    if row["minute"] is None:
        return made | {"in_words": who_is_found(row)}
    words = (
        "no verdict"
        if no_verdict(row)
        else f"{comes_through(row)} of everything, {comes_through(row, 'own')} of behaviour; {who_is_found(row)}"
    )
    return made | {"in_words": words}


def _utility(records: list[Record], published: Sequence[Record]) -> Section:
    mse = "mean squared error / corpus variance"
    drawn = {
        "error": charts.utility_chart(records, "error_over_variance_median", mse),
        "nmse": charts.utility_chart(records, "nmse_median", "|NMSE|, median"),
    }
    if published:
        drawn["published"] = charts.published_chart(records, published)
    return Section(
        "Utility: the published measure",
        (
            "NMSE and utility = 1/|NMSE| as published (Bozkir et al. 2021, equations 4 to 6): the denominator holds "
            "the noisy mean, each chunk, feature and recording is averaged over the noisy runs, then over all. The "
            "mean is governed by the few runs in which the noisy mean comes out near zero, so the median is shown "
            "beside it, and two measures that behave: mean squared error over the corpus' variance, and explained "
            "variance, 1 - mean over features of squared error / squared distance to the calibration's mean. 0 is "
            "what releasing the corpus' mean would give.",
        ),
        _captioned(**drawn),
        (_table("utility", "Utility", records, len(_KEY)),),
    )


def _correlation(records: list[Record]) -> Section:
    lags = [r for r in records if r["measured"] == "correlation"]
    leaks = [r for r in records if r["measured"] == "leakage"]
    fifths = [r for r in records if r["measured"] == "fifth" and r["row"] in (6, 9, 21, 37, 65, 129, 256)]
    return Section(
        "Correlation over time",
        (
            "Correlation of each feature with itself. Rows half a second apart share 29.5 of 30 seconds of gaze.",
            "Epsilon of a chunk under correlation: temporal privacy leakage (Cao et al. 2017) for a Markov chain "
            "fitted on the calibrating people, the states being quantiles of the leading principal component of the "
            "chunk means. It is what the whole series of releases tells about one chunk to an adversary who knows "
            "that chain: the figure the papers call epsilon' and leave open. It holds for this model; the sum over "
            "the chunks holds for any.",
        ),
        _captioned(correlation=charts.correlation_chart(lags), leakage=charts.leakage_chart(leaks)),
        (
            _table("leakage", "Temporal privacy leakage", [r for r in leaks if r["t"] is None]),
            _table("fifth", "Over recordings, each row with the fifth one", fifths),
            _table("correlation", "Within recordings, against the lag", lags),
        ),
    )


def _mechanism(recovery: list[Record]) -> Section:
    averaging, filtering = ([r for r in recovery if r["measured"] == name] for name in ("averaging", "filtering"))
    return Section(
        "Attacks on the mechanism",
        (
            "Averaging: the same chunk, released again and again; the spends add up, and so does what is learned.",
            "Filtering: one release of every chunk, estimated with the corpus' covariance between features, between "
            "people and over time (Wiener filter, Kalman filter, smoother). 0 is what the corpus' mean alone gives.",
        ),
        _captioned(
            averaging=charts.recovery_chart(averaging, averaging=True),
            filtering=charts.recovery_chart(filtering, averaging=False),
        ),
        (_table("filtering", "Filtering", filtering, len(_KEY)),),
    )


_MADE: dict[str, Callable[[Records, Sequence[Record]], list[Section]]] = {
    "utility": lambda records, published: [_utility(records["utility"], published)],
    "correlation": lambda records, published: [_correlation(records["correlation"])],
    "recovery": lambda records, published: [_mechanism(records["recovery"])],
}
"""Sections of each part of the study, in the order of the report."""


def sections(records: Records, published: Sequence[Record]) -> list[Section]:
    """All but those that the report opens with; `records` hold the summaries too, with prices."""
    return [section for made in _MADE.values() for section in made(records, published)]


def sections_of(part: str, records: Records, published: Sequence[Record]) -> list[Section]:
    """Those of one part of the study."""
    return _MADE[part](records, published)
