"""Figures of classification, re-identification, recovery and the baseline."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from eyestream_lab.study.cells import Record
from eyestream_lab.study.charts import distinct, points
from eyestream_lab.study.classifiers import CLASSIFIERS
from eyestream_lab.study.figures import DASHES, MARKERS, colour, legend_below, log_axis, panels, short
from eyestream_lab.study.identification import PROTOCOLS
from eyestream_lab.study.recovery import ATTACKS

__all__ = [
    "averaging_chart",
    "baseline_chart",
    "classification_chart",
    "filtering_chart",
    "identification_chart",
    "match_chart",
]

RATE = "share of people, rank 1"


def _raw_and_chance(axis: Axes, raw: Sequence[float], chance: float) -> None:
    axis.axhline(chance, color="#777777", linestyle=":", linewidth=1.2, label=f"chance, {chance:.3f}")
    if len(raw):
        axis.axhline(float(np.max(raw)), color=colour("raw"), linewidth=1.2, label="raw rows")
    axis.set_ylim(-0.02, 1.04)


def classification_chart(records: Sequence[Record], task: str, measure: str) -> Figure:
    """Accuracy against epsilon, a panel for each classifier; bars are 95 % confidence intervals over the seeds."""
    chosen = [r for r in records if r["task"] == task]
    epsilons = sorted({r["epsilon"] for r in chosen if r["epsilon"]})
    figure, axes = panels(len(CLASSIFIERS), columns=4)
    for axis, classifier in zip(axes, CLASSIFIERS, strict=True):
        own = [r for r in chosen if r["classifier"] == classifier]
        _raw_and_chance(axis, [r[measure] for r in own if r["source"] == "raw"], own[0]["chance"])
        for source, n in dict.fromkeys((r["source"], r["n"]) for r in own if r["source"] != "raw"):
            line = sorted((r for r in own if (r["source"], r["n"]) == (source, n)), key=lambda r: float(r["epsilon"]))
            _with_bars(axis, line, measure, f"{measure}_interval")
        axis.set_title(classifier, fontsize=9)
        log_axis(axis, epsilons, "total epsilon")
    axes[0].set_ylabel("accuracy" if measure == "per_window" else "accuracy, majority vote", fontsize=9)
    legend_below(figure, axes)
    return figure


def _with_bars(axis: Axes, line: Sequence[Record], measure: str, bar: str) -> None:
    source, n = line[0]["source"], line[0]["n"]
    chunked = "" if source == "FPA" or source.startswith("Steil") else f", n = {n}"
    axis.errorbar(
        [r["epsilon"] for r in line],
        [r[measure] for r in line],
        [r[bar] for r in line],
        color=colour(source),
        marker=MARKERS.get(n, "o"),
        markersize=4,
        linestyle="-" if n == 32 else "--",
        linewidth=1.1,
        elinewidth=0.8,
        capsize=2,
        label=source + chunked,
    )


def identification_chart(summary: Sequence[Record]) -> Figure:
    """Rank-1 rate of the strongest attacker against epsilon, a panel for each protocol; bars are 2 standard errors."""
    epsilons = sorted({r["epsilon"] for r in summary if r["epsilon"]})
    raw = [r["rate"] for r in summary if r["protocol"] == "raw"]
    figure, axes = panels(len(PROTOCOLS), columns=4)
    for axis, protocol in zip(axes, PROTOCOLS, strict=True):
        own = [r for r in summary if r["protocol"] == protocol]
        _raw_and_chance(axis, raw, own[0]["chance"])
        for source, n in dict.fromkeys((r["source"], r["n"]) for r in own):
            line = []
            for epsilon in epsilons:
                here = [r for r in own if (r["source"], r["n"], r["epsilon"]) == (source, n, epsilon)]
                line += [max(here, key=lambda r: float(r["rate"]))] if here else []
            doubled = [r | {"two": 2 * r["standard_error"]} for r in line]
            _with_bars(axis, doubled, "rate", "two")
        axis.set_title(protocol, fontsize=9)
        log_axis(axis, epsilons, "total epsilon")
    axes[0].set_ylabel(RATE, fontsize=9)
    legend_below(figure, axes)
    return figure


def match_chart(summary: Sequence[Record], attacker: str, epsilons: Sequence[float]) -> Figure:
    """Cumulative match curves of the white box, a panel for each epsilon, chunks of the first length."""
    n = min(r["n"] for r in summary)
    figure, axes = panels(len(epsilons), columns=4)
    for axis, epsilon in zip(axes, epsilons, strict=True):
        for record in summary:
            is_raw = record["source"] == "raw"
            wanted = is_raw or (record["epsilon"] == epsilon and record["protocol"] == "white box, anew")
            if wanted and record["attacker"] == attacker and record["n"] == n:
                ranks = np.arange(1, len(record["curve"]) + 1)
                axis.plot(ranks, record["curve"], color=colour(record["source"]), label=record["source"])
        people = len(summary[0]["curve"])
        axis.plot(ranks, ranks / people, color="#777777", linestyle=":", label="chance")
        axis.set_title(f"epsilon {short(epsilon)}", fontsize=9)
        axis.set_xlabel("rank", fontsize=9)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.set_ylim(0, 1.03)
    axes[0].set_ylabel("right person at this rank or before", fontsize=9)
    legend_below(figure, axes)
    return figure


def averaging_chart(records: Sequence[Record]) -> Figure:
    """Explained variance of the attacker's estimate against the number of releases of the same chunk."""
    sources = distinct(records, "source")
    figure, axes = panels(len(sources))
    for axis, source in zip(axes, sources, strict=True):
        own = [r for r in records if r["source"] == source]
        for dash, epsilon in zip(DASHES, sorted({r["epsilon"] for r in own}), strict=False):
            line = [r for r in own if r["epsilon"] == epsilon]
            x, y = points(line, "count", "explained_variance_median")
            axis.plot(x, y, color=colour(source), dashes=dash, marker="o", ms=3)
            axis.plot([], [], color="#000000", dashes=dash, marker="o", ms=3, label=f"epsilon {epsilon:g} a release")
        axis.axhline(0, color="#777777", linestyle=":", linewidth=1.2, label="corpus mean alone")
        axis.set_title(source, fontsize=9)
        axis.set_ylim(-0.25, 1.03)
        log_axis(axis, (1, 10, 100, 1000), "releases of the same chunk")
    axes[0].set_ylabel("explained variance, median feature", fontsize=9)
    legend_below(figure, axes)
    return figure


def filtering_chart(records: Sequence[Record]) -> Figure:
    """Explained variance of the attacker's estimate against epsilon, for what the attacker makes use of."""
    sources, epsilons = distinct(records, "source"), sorted({r["epsilon"] for r in records})
    figure, axes = panels(len(sources))
    for axis, source in zip(axes, sources, strict=True):
        for dash, attack in zip(DASHES, ATTACKS, strict=False):
            own = [r for r in records if r["source"] == source and r["attack"] == attack]
            if not own:
                continue
            x, y = points(own, "epsilon", "explained_variance_median")
            axis.plot(x, y, color=colour(source), dashes=dash, marker="o", ms=3)
            axis.plot([], [], color="#000000", dashes=dash, marker="o", ms=3, label=attack)
        axis.axhline(0, color="#777777", linestyle=":", linewidth=1.2, label="corpus mean alone")
        axis.set_title(source, fontsize=9)
        axis.set_ylim(-0.25, 1.03)
        log_axis(axis, epsilons, "total epsilon of a chunk")
    axes[0].set_ylabel("explained variance, median feature", fontsize=9)
    legend_below(figure, axes)
    return figure


def baseline_chart(records: Sequence[Record]) -> Figure:
    """Loss of one value under the printed noise and its repair, beside what is claimed for it."""
    figure, axes = panels(1, columns=1)
    names = {"published": "Steil as published", "repaired": "Steil repaired"}
    for form, source in names.items():
        own = [r for r in records if r["form"] == form]
        x, y = points(own, "epsilon", "loss_99_9")
        axes[0].plot(x, y, color=colour(source), marker="o", markersize=4, label=f"{source}, 99.9 % quantile")
        x, y = points(own, "epsilon", "mean_loss")
        axes[0].plot(x, y, color=colour(source), marker="o", markersize=4, ls="--", label=f"{source}, mean")
    axes[0].plot(*points(records, "epsilon", "claimed"), color="#777777", ls=":", label="claimed: epsilon / 600")
    axes[0].set_yscale("log")
    axes[0].set_ylabel("privacy loss of one value", fontsize=9)
    log_axis(axes[0], (0.1, 1, 10, 100), "epsilon of one feature of a recording")
    legend_below(figure, axes)
    return figure
