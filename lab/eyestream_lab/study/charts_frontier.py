"""Figures that the report opens with: utility against identity, and raw and released traces."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eyestream.gaze.features import NAMES, UNITS
from eyestream_lab.study.cells import Record
from eyestream_lab.study.charts import distinct
from eyestream_lab.study.figures import legend_below, panels
from eyestream_lab.study.ways import RAW_ROWS, ways

__all__ = ["frontier_chart", "trace_chart"]

_FORMS = {form.label: form for way in ways().values() for form in way.forms}
_UNITS = dict(zip(NAMES, UNITS, strict=True))
_LOWEST = -0.35
"""What explains less is drawn at the lower edge, as an arrow."""


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
        for row in own:
            if row["minute"] == minute:
                _mark(axis, row, which)
        axis.errorbar(
            raw["area"],
            1.0,
            xerr=_bars(raw, "area"),
            color="#000000",
            marker="*",
            markersize=9,
            capsize=2,
            label="raw rows",
        )
        limit = [r["explained"] for r in limits if (r["n"], r["minute"]) == (n, minute)]
        if limit and which == "explained":
            axis.axhline(
                limit[0], color="#555555", linestyle="--", linewidth=1.2, label="rate-distortion limit, klt's model"
            )
        axis.axhline(0, color="#777777", linewidth=0.8)
        axis.axvline(0.5, color="#777777", linestyle=":", linewidth=1.2, label="chance")
        axis.set(xlim=(0.35, 1.02), ylim=(_LOWEST - 0.05, 1.08))
        axis.set_title(f"{minute:g} a minute, {minute_chunk(own, minute):g} a chunk of {n} rows", fontsize=9)
        axis.set_xlabel("who it is: area of the strongest attacker", fontsize=9)
    what = "explained variance" if which == "explained" else "explained variance, own means removed"
    axes[0].set_ylabel(what, fontsize=9)
    legend_below(figure, axes)
    return figure


def minute_chunk(rows: Sequence[Record], minute: float) -> float:
    """Epsilon of a chunk at this price a minute."""
    return next(float(row["epsilon"]) for row in rows if row["minute"] == minute)


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
        axis.annotate(
            "",
            (row["area"], _LOWEST - 0.05),
            (row["area"], _LOWEST),
            arrowprops={"arrowstyle": "->", "color": form.colour},
        )


def _bars(row: Record, name: str) -> list[list[float]]:
    """Lengths below and above; an interval by resampling need not hold its figure."""
    below, above = row[name] - row[f"{name}_low"], row[f"{name}_high"] - row[name]
    return [[max(below, 0.0)], [max(above, 0.0)]]


def trace_chart(records: Sequence[Record]) -> Figure:
    """Raw rows and what was released of them, a panel for each feature; one person.

    Bands: one standard deviation of the expected error to each side. Vertical lines: where chunks begin.
    """
    features = distinct(records, "feature")
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
