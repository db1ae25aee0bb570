"""The figures of a study: what each draws of which records, and what to conclude from it."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from eyestream.gaze.features import NAMES, UNITS
from eyestream_lab.study.cells import Record
from eyestream_lab.study.figures import DASHES, MARKERS, colour, legend_below, log_axis, log_values, panels
from eyestream_lab.study.recovery import ATTACKS
from eyestream_lab.study.ways import RAW_ROWS, ways

CAPTIONS = {
    "frontier": (
        "Utility against identity, at equal epsilon a minute. Higher is more useful, and further left is harder to "
        "recognise: what you want lies in the upper left. Utility is explained variance around the common mean, with "
        "features that follow from each other counted once. Identity is the area under the ROC curve of the strongest "
        "attacker that was tried. Two ways differ where their bars (95 % over people) do not overlap. Dashed: the most "
        "that a release of this epsilon could explain under klt's model (causal rate-distortion). Open marks: shrunk, "
        "smoothed and clipped. An arrow at the lower edge: it explains less than is drawn. A way without levels, such "
        "as the default of `eyestream init`, is to be judged by the picture 'Own means removed'."
    ),
    "frontier-own": (
        "Own means removed: the same with each person's own mean removed from both sides. It shows what comes "
        "through of behaviour alone, and is the fair picture of a way without levels. A mark above 0 tells an "
        "application more than somebody's average does."
    ),
    "error": (
        "Mean squared error / corpus variance, median feature. Lower is better. At 1 the release is as wrong as the "
        "corpus' mean, which costs no epsilon. Above 1 it is of no use."
    ),
    "nmse": (
        "Median of |NMSE| over chunks, features, recordings and runs. Lower is better. It ranks mechanisms as the "
        "papers do. No value of it says that a release is useful."
    ),
    "published": (
        "NMSE beside published values. People and recordings are others, so compare orders of magnitude and slopes. "
        "Where they agree, the mechanism here is the published one."
    ),
    "correlation": (
        "Correlation coefficient against lag. Where the signal's line is high, rows at this distance repeat each "
        "other. Noise that is drawn for each row averages out over them, so rows are released in chunks."
    ),
    "leakage": (
        "Temporal privacy leakage relative to epsilon. 1 is what the release of the chunk alone tells. A line above "
        "1 says by how much the other releases of a session raise it, under this model."
    ),
    "averaging": (
        "What averaging recovers. A line that rises shows that several releases of one chunk tell more than one "
        "does, so each of them costs."
    ),
    "filtering": (
        "What knowledge of the corpus recovers. The highest line of a mechanism is what its releases tell whoever "
        "knows the corpus."
    ),
}
"""Captions of figures by their names; `eyestream_lab.study.sections` has that of the traces."""

_CHANCE: dict[str, Any] = {"color": "#777777", "linestyle": ":", "linewidth": 1.2}
_NMSE_LINES = {("nmse_abs", "ours, mean of |NMSE|"): "-", ("nmse_median", "ours, median"): "--"}
_FORMS = {form.label: form for way in ways().values() for form in way.forms}
_UNITS = dict(zip(NAMES, UNITS, strict=True))
_LOWEST = -0.35
"""Utility below which a point is drawn at the lower edge of the frontier, as an arrow."""


def _chart(
    panes: Mapping[str, Callable[[Axes], None]],
    y_label: str,
    *,
    columns: int = 3,
    x_label: str = "",
    ticks: Sequence[float] = (),
) -> Figure:
    """A panel for each title, by what draws it; with `ticks` over a logarithmic axis, and one legend below."""
    figure, axes = panels(len(panes), columns=columns)
    for axis, (title, draw) in zip(axes, panes.items(), strict=True):
        draw(axis)
        axis.set_title(title, fontsize=9)
        if ticks:
            log_axis(axis, ticks, x_label)
    axes[0].set_ylabel(y_label, fontsize=9)
    legend_below(figure, axes)
    return figure


def _distinct(records: Sequence[Record], name: str) -> list[Any]:
    """Distinct values of a column, in the order in which they come."""
    return list(dict.fromkeys(record[name] for record in records))


def _points(records: Sequence[Record], x: str, y: str) -> tuple[list[float], list[float]]:
    """Two columns of the records that have both, ascending in the first."""
    pairs = sorted((record[x], record[y]) for record in records if record[y] is not None)
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def utility_chart(records: Sequence[Record], measure: str, label: str) -> Figure:
    """One measure against epsilon, a panel for each chunk length; sources that do not chunk stand in all of them."""
    lengths = _distinct(records, "n")

    def drawn(axis: Axes, n: int) -> None:
        for source in _distinct(records, "source"):
            own = [r for r in records if r["source"] == source]
            shown = [r for r in own if r["n"] == n] or [r for r in own if r["n"] == lengths[0]]
            shrunk = "shrunk" in source
            axis.plot(
                *_points(shown, "epsilon", measure),
                color=colour(source),
                marker=MARKERS.get(n, "o"),
                markersize=4,
                linestyle="--" if shrunk else "-",
                markerfacecolor="none" if shrunk else colour(source),
                label=source,
            )
        axis.set_yscale("log")

    panes = {f"chunks of {n} rows": partial(drawn, n=n) for n in lengths}
    return _chart(panes, label, x_label="total epsilon", ticks=sorted(set(_distinct(records, "epsilon"))))


def published_chart(records: Sequence[Record], published: Sequence[Record]) -> Figure:
    """Our NMSE beside published values: lines ours (modulus, mean and median), crosses and dots the published ones."""
    names = [name for name in ("LPA", "FPA", "CFPA", "DCFPA") if name in _distinct(records, "source")]

    def drawn(axis: Axes, name: str) -> None:
        own = [r for r in records if r["source"] == name and r["n"] == 32]
        for which, style in _NMSE_LINES.items():
            axis.plot(*_points(own, "epsilon", which[0]), color=colour(name), marker="o", markersize=4, ls=style)
            axis.plot([], [], color="#000000", marker="o", markersize=4, ls=style, label=which[1])
        theirs = [r for r in published if r["source"] == name and r["n"] in (None, 32)]
        for dataset, mark in zip(_distinct(theirs, "dataset"), "x+1", strict=False):
            x, y = _points([r for r in theirs if r["dataset"] == dataset], "epsilon", "nmse")
            axis.plot(x, np.abs(y), mark, color="#555555", markersize=6, label=f"published, {dataset}")
        axis.set_yscale("log")

    panes = {
        name if name in ("LPA", "FPA") else f"{name}, chunks of 32 rows": partial(drawn, name=name) for name in names
    }
    ticks = sorted(set(_distinct(records, "epsilon")))
    return _chart(panes, "|NMSE|, lower is better", columns=4, x_label="total epsilon", ticks=ticks)


def correlation_chart(records: Sequence[Record]) -> Figure:
    """Correlation coefficient against lag, of the signals and of their differences."""

    def drawn(axis: Axes, name: str) -> None:
        own = [r for r in records if r["signal"] == name]
        lags = [r["lag_s"] for r in own]
        bands = [r["low"] for r in own], [r["high"] for r in own]
        axis.fill_between(lags, *bands, color="#000000", alpha=0.15, lw=0, label="10 % to 90 % of features and people")
        axis.plot(lags, [r["mean"] for r in own], color="#000000", marker="o", markersize=4, label="mean")
        axis.axhline(0, color="#777777", linewidth=0.8)
        axis.set_ylim(-0.6, 1.05)

    panes = {"signal": partial(drawn, name="raw"), "difference signal": partial(drawn, name="difference")}
    ticks = (0.5, 1, 2, 4, 8, 16, 32, 64, 128)
    return _chart(panes, "correlation coefficient", columns=2, x_label="lag in seconds", ticks=ticks)


def leakage_chart(records: Sequence[Record]) -> Figure:
    """Left: leakage at each time over epsilon. Right: supremum over epsilon against epsilon."""
    lengths, epsilons = _distinct(records, "n"), sorted(set(_distinct(records, "epsilon")))
    figure, axes = panels(2, columns=2, share_y=False)
    for index, epsilon in enumerate(epsilons):
        own = [r for r in records if r["t"] is not None and r["epsilon"] == epsilon and r["n"] == lengths[0]]
        shade = str(0.75 - 0.75 * index / max(len(epsilons) - 1, 1))
        x, y = _points(own, "t", "leakage")
        axes[0].plot(x, np.array(y) / epsilon, color=shade, label=f"epsilon {epsilon:g}")
    axes[0].set(xlabel="chunk", ylabel="leakage of one chunk / epsilon", xlim=(1, None))
    axes[0].xaxis.set_major_locator(MaxNLocator(integer=True))
    axes[0].set_title(f"4 states, chunks of {lengths[0]} rows", fontsize=9)
    for n in lengths:
        for dash, states in zip(DASHES, _distinct(records, "states"), strict=False):
            own = [r for r in records if r["t"] is None and r["n"] == n and r["states"] == states]
            x, y = _points(own, "epsilon", "supremum")
            label, mark = f"n = {n}, {states} states", MARKERS.get(n, "o")
            axes[1].plot(x, np.array(y) / x, marker=mark, markersize=4, dashes=dash, color="#000000", label=label)
    axes[1].set_title("supremum for time without end", fontsize=9)
    axes[1].set_ylabel("supremum / epsilon", fontsize=9)
    log_axis(axes[1], epsilons, "epsilon of a chunk")
    log_values(axes[1])
    legend_below(figure, axes)
    for axis in axes:
        axis.xaxis.label.set_fontsize(9)
        axis.yaxis.label.set_fontsize(9)
    return figure


def recovery_chart(records: Sequence[Record], *, averaging: bool) -> Figure:
    """Explained variance of the attacker's estimate, a panel for each source.

    Averaging: against the number of releases of the same chunk, a line for each epsilon. Else against epsilon, a line
    for what the attacker makes use of.
    """
    x_name, line_name, x_label, ticks, lines = (
        ("count", "epsilon", "releases of the same chunk", (1, 10, 100, 1000), sorted({r["epsilon"] for r in records}))
        if averaging
        else ("epsilon", "attack", "total epsilon of a chunk", sorted({r["epsilon"] for r in records}), list(ATTACKS))
    )

    def drawn(axis: Axes, source: str) -> None:
        for dash, line in zip(DASHES, lines, strict=False):
            own = [r for r in records if r["source"] == source and r[line_name] == line]
            if own:
                label = f"epsilon {line:g} a release" if averaging else line
                x, y = _points(own, x_name, "explained_variance_median")
                axis.plot(x, y, color=colour(source), dashes=dash, marker="o", ms=3)
                axis.plot([], [], color="#000000", dashes=dash, marker="o", ms=3, label=label)
        axis.axhline(0, **_CHANCE, label="corpus mean alone")
        axis.set_ylim(-0.25, 1.03)

    panes = {source: partial(drawn, source=source) for source in _distinct(records, "source")}
    return _chart(panes, "explained variance, median feature", x_label=x_label, ticks=ticks)


def frontier_chart(rows: Sequence[Record], limits: Sequence[Record], n: int, which: str = "explained") -> Figure:
    """Utility against the area of the strongest attacker, a panel for each epsilon a minute, with 95 % over people.

    Open marks are the forms that are shrunk, smoothed and clipped. The dashed line is the limit of `limit`; below
    `_LOWEST` marks stand at the edge.
    """
    own = [row for row in rows if row["n"] == n]
    raw = next(row for row in own if row["label"] == RAW_ROWS)
    minutes = sorted({row["minute"] for row in own if row["minute"] is not None})
    figure, axes = panels(len(minutes), columns=4, height=3.6)
    for axis, minute in zip(axes, minutes, strict=True):
        here = [row for row in own if row["minute"] == minute]
        for row in here:
            _mark(axis, row, which)
        star: dict[str, Any] = {"color": "#000000", "marker": "*", "markersize": 9, "capsize": 2, "label": "raw rows"}
        axis.errorbar(raw["area"], 1.0, xerr=_bars(raw, "area"), **star)
        limit = [r["explained"] for r in limits if (r["n"], r["minute"]) == (n, minute)]
        if limit and which == "explained":
            dashed: dict[str, Any] = {"color": "#555555", "linestyle": "--", "linewidth": 1.2}
            axis.axhline(limit[0], **dashed, label="rate-distortion limit, klt's model")
        axis.axhline(0, color="#777777", linewidth=0.8)
        axis.axvline(0.5, **_CHANCE, label="chance")
        axis.set(xlim=(0.35, 1.02), ylim=(_LOWEST - 0.05, 1.08))
        axis.set_title(f"{minute:g} a minute, {here[0]['epsilon']:g} a chunk of {n} rows", fontsize=9)
        axis.set_xlabel("who it is: area of the strongest attacker", fontsize=9)
    what = "explained variance" if which == "explained" else "explained variance, own means removed"
    axes[0].set_ylabel(what, fontsize=9)
    legend_below(figure, axes)
    return figure


def _mark(axis: Axes, row: Record, which: str) -> None:
    form = _FORMS[row["label"]]
    low = row[which] < _LOWEST
    axis.errorbar(
        row["area"],
        _LOWEST if low else row[which],
        xerr=_bars(row, "area"),
        yerr=None if low else _bars(row, which),
        color=form.colour,
        marker=form.mark,
        markersize=6,
        markerfacecolor="none" if form.options else form.colour,
        elinewidth=0.8,
        capsize=2,
        linestyle="none",
        label=form.label,
    )
    if low:
        ends = (row["area"], _LOWEST - 0.05), (row["area"], _LOWEST)
        axis.annotate("", *ends, arrowprops={"arrowstyle": "->", "color": form.colour})


def _bars(row: Record, name: str) -> list[list[float]]:
    """Lengths below and above; an interval by resampling need not hold its figure."""
    below, above = row[name] - row[f"{name}_low"], row[f"{name}_high"] - row[name]
    return [[max(below, 0.0)], [max(above, 0.0)]]


def trace_chart(records: Sequence[Record]) -> Figure:
    """Raw rows and what was released of them, a panel for each feature; one person.

    Bands: one standard deviation of the expected error to each side. Vertical lines: where chunks begin.
    """
    features = _distinct(records, "feature")
    figure, axes = panels(len(features), columns=2, height=2.4, share_y=False)
    for axis, feature in zip(axes, features, strict=True):
        own = [r for r in records if r["feature"] == feature]
        longest = max(own, key=lambda r: len(r["t"]))
        axis.plot(longest["t"], _numbers(longest["raw"]), color="#000000", linewidth=1.0, label="raw rows")
        for record in own:
            form, t, released = _FORMS[record["label"]], record["t"], np.array(_numbers(record["released"]))
            axis.plot(t, released, color=form.colour, linewidth=1.1, label=form.label)
            band = released - record["error"], released + record["error"]
            axis.fill_between(t, *band, color=form.colour, alpha=0.12, linewidth=0)
        for begin in longest["t"][:: longest["n"]]:
            axis.axvline(begin, color="0.8", linewidth=0.6, zorder=0)
        axis.set_title(feature, fontsize=9)
        axis.set_ylabel(_UNITS.get(feature, ""), fontsize=9)
        axis.set_xlabel("seconds of the recording", fontsize=9)
    legend_below(figure, axes)
    return figure


def _numbers(values: Sequence[float | None]) -> list[float]:
    return [float("nan") if value is None else value for value in values]
