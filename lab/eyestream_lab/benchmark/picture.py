"""A picture of usefulness against recognition: one panel for gaze, one for rows of features."""

from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes

from eyestream_lab.benchmark.run import RAW, Run
from eyestream_lab.benchmark.verdict import worst
from eyestream_lab.study.figures import panels

__all__ = ["draw"]

_PANELS = (
    ("degrees from the raw gaze", "degrees from the raw gaze (median), fewer is more useful"),
    ("correlation of changes of rows", "correlation of changes of rows, more is more useful"),
)
_OURS = ("tile", "klt")


def draw(run: Run, target: Path) -> None:
    """Write the picture of a run as SVG: the same run gives the same file."""
    with rc_context({"svg.hashsalt": "benchmark", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure, axes = panels(2, columns=2, height=3.6)
        figure.set_figwidth(9.0)
        for axis, (name, label) in zip(axes, _PANELS, strict=True):
            _points(axis, run, name)
            axis.set_xlabel(label, fontsize=8)
            axis.axhline(0.5, color="0.6", linewidth=0.8, linestyle="--")
            axis.set_ylim(0.45, 1.02)
        axes[0].set_ylabel("area of the strongest attacker (0.5: a guess)", fontsize=8)
        axes[0].set_xscale("symlog", linthresh=1.0)
        axes[0].set_xlim(left=-0.1)
        axes[0].set_xticks([0, 1, 2, 5, 10, 20], ["0", "1", "2", "5", "10", "20"])
        corpus = run.corpus
        figure.suptitle(f"{corpus.name}: {corpus.people} people; bars hold 95 % of draws of people", fontsize=9)
        figure.savefig(target, format="svg", metadata={"Date": None})


def _points(axis: Axes, run: Run, name: str) -> None:
    for number, one in enumerate(run.systems):
        found = worst(one)
        if found is None or name not in one.useful:
            continue
        x, area = one.useful[name].value, found.figures.auc
        colour = "#0b6fb8" if one.name.startswith(_OURS) else "0.3"
        error = [[max(area.value - area.low, 0.0)], [max(area.high - area.value, 0.0)]]
        axis.errorbar(x, area.value, yerr=error, fmt="s" if one.name == RAW else "o", color=colour, markersize=4)
        short = one.name.partition(",calibration")[0].replace(":", " ", 1)
        place = (4, (4, -9)[number % 2])
        axis.annotate(short, (x, area.value), xytext=place, textcoords="offset points", fontsize=6, color=colour)
