"""Figures that are readable in print: one look for all of them."""

import base64
import io
import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from eyestream_lab.study.sources import COLOURS

MARKERS = {32: "o", 64: "s", 128: "^"}
"""Marker for each chunk length."""

DASHES = ((), (5, 2), (1, 1.5), (5, 1.5, 1, 1.5), (8, 2), (2, 2))
"""Line styles, for what is told apart besides the mechanism."""


def colour(source: str) -> str:
    """The colour of a source, the same in every figure."""
    return COLOURS[source]


def panels(count: int, *, columns: int = 3, height: float = 3.0, share_y: bool = True) -> tuple[Figure, list[Axes]]:
    """A figure of `count` panels side by side, `columns` a row."""
    columns = min(count, columns)
    rows = -(-count // columns)
    figure = Figure(figsize=(max(3.4 * columns, 4.8), height * rows + 0.7), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, sharey=share_y, squeeze=False).ravel()
    for spare in axes[count:]:
        spare.set_visible(False)
    for axis in axes[:count]:
        axis.grid(True, which="major", linewidth=0.4, alpha=0.5)
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, list(axes[:count])


def log_axis(axis: Axes, ticks: Sequence[float], label: str) -> None:
    """A logarithmic horizontal axis with exactly these ascending ticks; labels that would touch are left out."""
    least = math.log(ticks[-1] / ticks[0]) / 12 if len(ticks) > 1 else 0.0
    labels, last = [], -math.inf
    for tick in ticks:
        labels.append(short(tick) if math.log(tick) - last >= least else "")
        last = math.log(tick) if labels[-1] else last
    axis.set_xscale("log")
    axis.set_xticks(list(ticks), labels)
    axis.tick_params(axis="x", labelrotation=45 if len(ticks) > 4 else 0)
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xlabel(label, fontsize=9)


def log_values(axis: Axes) -> None:
    """A logarithmic vertical axis that has labels also where the values span less than two decades."""
    axis.set_yscale("log")
    low, high = axis.get_ylim()
    if high < 100 * low:
        axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def short(number: float) -> str:
    """A number for an axis, with few digits.

    Examples
    --------
    >>> short(4800), short(48_000), short(4_800_000)
    ('4800', '48k', '4.8M')
    """
    for unit, size in (("M", 1e6), ("k", 1e4)):
        if number >= size:
            return f"{number / (1e6 if unit == 'M' else 1e3):g}{unit}"
    return f"{number:g}"


def legend_below(figure: Figure, axes: Sequence[Axes]) -> None:
    """One legend under all panels, each label once."""
    found: dict[str, Any] = {}
    for axis in axes:
        handles, labels = axis.get_legend_handles_labels()
        found |= {label: handle for handle, label in zip(handles, labels, strict=True) if label not in found}
    columns = max(2, min(len(found), int(figure.get_figwidth() / 2.2)))
    place: dict[str, Any] = {"loc": "outside lower center", "ncols": columns, "fontsize": 8}
    figure.legend(list(found.values()), list(found), **place)


def to_png(figure: Figure, dpi: int = 170) -> bytes:
    """The figure as a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    return buffer.getvalue()


def to_data_url(png: bytes) -> str:
    """A PNG file as an address that holds it."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")
