"""Figures of utility, correlation, leakage over time, and the choice of k."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from eyestream_lab.study.cells import Record
from eyestream_lab.study.figures import DASHES, MARKERS, colour, legend_below, log_axis, log_values, panels, short

__all__ = [
    "choice_chart",
    "correlation_chart",
    "distinct",
    "error_chart",
    "leakage_chart",
    "points",
    "published_chart",
    "utility_chart",
]

_NMSE_LINES = {("nmse_abs", "ours, mean of |NMSE|"): "-", ("nmse_median", "ours, median"): "--"}


def distinct(records: Sequence[Record], name: str) -> list[Any]:
    """Distinct values of a column, in the order in which they come."""
    return list(dict.fromkeys(record[name] for record in records))


def points(records: Sequence[Record], x: str, y: str) -> tuple[list[float], list[float]]:
    """Two columns of the records that have both, ascending in the first."""
    pairs = sorted((record[x], record[y]) for record in records if record[y] is not None)
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def utility_chart(records: Sequence[Record], measure: str, label: str, *, logarithmic: bool = True) -> Figure:
    """One measure against epsilon, a panel for each chunk length; sources that do not chunk stand in all of them."""
    lengths, epsilons = distinct(records, "n"), sorted(set(distinct(records, "epsilon")))
    figure, axes = panels(len(lengths))
    for axis, n in zip(axes, lengths, strict=True):
        for source in distinct(records, "source"):
            own = [r for r in records if r["source"] == source]
            shown = [r for r in own if r["n"] == n] or [r for r in own if r["n"] == lengths[0]]
            shrunk = "shrunk" in source
            axis.plot(
                *points(shown, "epsilon", measure),
                color=colour(source),
                marker=MARKERS.get(n, "o"),
                markersize=4,
                linestyle="--" if shrunk else "-",
                markerfacecolor="none" if shrunk else colour(source),
                label=source,
            )
        log_axis(axis, epsilons, "total epsilon")
        axis.set_title(f"chunks of {n} rows", fontsize=9)
        if logarithmic:
            axis.set_yscale("log")
    axes[0].set_ylabel(label, fontsize=9)
    legend_below(figure, axes)
    return figure


def published_chart(records: Sequence[Record], published: Sequence[Record]) -> Figure:
    """Our NMSE beside published values: lines ours (modulus, mean and median), crosses and dots the published ones."""
    names = [name for name in ("LPA", "FPA", "CFPA", "DCFPA") if name in distinct(records, "source")]
    epsilons = sorted(set(distinct(records, "epsilon")))
    figure, axes = panels(len(names), columns=4)
    for axis, name in zip(axes, names, strict=True):
        own = [r for r in records if r["source"] == name and r["n"] == 32]
        for which, style in _NMSE_LINES.items():
            axis.plot(*points(own, "epsilon", which[0]), color=colour(name), marker="o", markersize=4, ls=style)
            axis.plot([], [], color="#000000", marker="o", markersize=4, ls=style, label=which[1])
        theirs = [r for r in published if r["source"] == name and r["n"] in (None, 32)]
        for dataset, mark in zip(distinct(theirs, "dataset"), "x+1", strict=False):
            x, y = points([r for r in theirs if r["dataset"] == dataset], "epsilon", "nmse")
            axis.plot(x, np.abs(y), mark, color="#555555", markersize=6, label=f"published, {dataset}")
        axis.set_yscale("log")
        axis.set_title(name if name in ("LPA", "FPA") else f"{name}, chunks of 32 rows", fontsize=9)
        log_axis(axis, epsilons, "total epsilon")
    axes[0].set_ylabel("|NMSE|, lower is better", fontsize=9)
    legend_below(figure, axes)
    return figure


def correlation_chart(records: Sequence[Record]) -> Figure:
    """Correlation coefficient against lag, of the signals and of their differences."""
    figure, axes = panels(2, columns=2)
    for axis, name in zip(axes, ("raw", "difference"), strict=True):
        own = [r for r in records if r["signal"] == name]
        lags = [r["lag_s"] for r in own]
        bands = [r["low"] for r in own], [r["high"] for r in own]
        axis.fill_between(lags, *bands, color="#000000", alpha=0.15, lw=0, label="10 % to 90 % of features and people")
        axis.plot(lags, [r["mean"] for r in own], color="#000000", marker="o", markersize=4, label="mean")
        axis.axhline(0, color="#777777", linewidth=0.8)
        axis.set_ylim(-0.6, 1.05)
        axis.set_title({"raw": "signal", "difference": "difference signal"}[name], fontsize=9)
        log_axis(axis, (0.5, 1, 2, 4, 8, 16, 32, 64, 128), "lag in seconds")
    axes[0].set_ylabel("correlation coefficient", fontsize=9)
    legend_below(figure, axes)
    return figure


def leakage_chart(records: Sequence[Record]) -> Figure:
    """Left: leakage at each time over epsilon. Right: supremum over epsilon against epsilon."""
    lengths, epsilons = distinct(records, "n"), sorted(set(distinct(records, "epsilon")))
    figure, axes = panels(2, columns=2, share_y=False)
    for index, epsilon in enumerate(epsilons):
        own = [r for r in records if r["t"] is not None and r["epsilon"] == epsilon and r["n"] == lengths[0]]
        shade = str(0.75 - 0.75 * index / max(len(epsilons) - 1, 1))
        x, y = points(own, "t", "leakage")
        axes[0].plot(x, np.array(y) / epsilon, color=shade, label=f"epsilon {epsilon:g}")
    axes[0].set(xlabel="chunk", ylabel="leakage of one chunk / epsilon", xlim=(1, None))
    axes[0].xaxis.set_major_locator(MaxNLocator(integer=True))
    axes[0].set_title(f"4 states, chunks of {lengths[0]} rows", fontsize=9)
    for n in lengths:
        for dash, states in zip(DASHES, distinct(records, "states"), strict=False):
            own = [r for r in records if r["t"] is None and r["n"] == n and r["states"] == states]
            x, y = points(own, "epsilon", "supremum")
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


def error_chart(records: Sequence[Record]) -> Figure:
    """Error over variance against k: lines in closed form, marks simulated; a panel for each epsilon."""
    epsilons = [e for e in sorted(set(distinct(records, "epsilon"))) if e >= 4.8]
    figure, axes = panels(len(epsilons), columns=4, share_y=False)
    for axis, epsilon in zip(axes, epsilons, strict=True):
        for mechanism in distinct(records, "mechanism"):
            own = [r for r in records if r["epsilon"] == epsilon and r["mechanism"] == mechanism]
            name = mechanism.upper()
            x, y = points(own, "k", "closed_form")
            axis.plot(x, y, color=colour(name), label=f"{name}, closed form")
            axis.plot(*points(own, "k", "simulated"), "x", color=colour(name), label=f"{name}, simulated")
            best = int(np.argmin(y))
            axis.plot(x[best], y[best], "o", color=colour(name), markersize=8, fillstyle="none", label="least")
        log_values(axis)
        axis.set_title(f"epsilon {short(epsilon)}", fontsize=9)
        log_axis(axis, (1, 2, 4, 8, 16), "coefficients kept, k")
    for axis in axes[::4]:
        axis.set_ylabel("squared error / variance", fontsize=9)
    legend_below(figure, axes)
    return figure


def choice_chart(records: Sequence[Record]) -> Figure:
    """Left: error of the public, the private and the chunk's own k. Right: what looking at the data tells."""
    figure, axes = panels(2, columns=2, share_y=False)
    epsilons = sorted(set(distinct(records, "epsilon")))
    names = {
        "public": "public k",
        "private": "private choice (a tenth of epsilon)",
        "own": "best k of each chunk (leaks)",
    }
    for dash, (which, label) in zip(DASHES, names.items(), strict=False):
        x, y = points(records, "epsilon", f"{which}_median")
        axes[0].plot(x, y, color=colour("CFPA"), marker="o", markersize=4, dashes=dash, label=label)
    axes[0].set_yscale("log")
    axes[0].set_ylabel("squared error / variance, median feature", fontsize=9)
    axes[0].legend(fontsize=7)
    axes[1].plot(
        *points(records, "epsilon", "bits"), color="#000000", marker="o", markersize=4, label="best k of the chunk"
    )
    axes[1].set_ylabel("bits about a chunk and feature in k", fontsize=9)
    axes[1].legend(fontsize=7)
    for axis in axes:
        log_axis(axis, epsilons, "total epsilon")
    return figure
