"""A picture of usefulness against recognition: one panel for gaze, one for rows of features."""

from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes

from eyestream_lab.benchmark.neighbours import short_name
from eyestream_lab.benchmark.run import RAW, Run
from eyestream_lab.benchmark.verdict import worst
from eyestream_lab.study.figures import panels

_PANELS = (
    ("degrees from the raw gaze", "degrees from the raw gaze (median), fewer is more useful"),
    ("correlation of changes of rows", "correlation of changes of rows, more is more useful"),
)
_OURS = ("tile", "klt")
_LETTER, _LINE, _RIGHT = 0.0125, 0.03, 0.6  # of a panel: width of a letter, height of a label, where labels turn left


def draw(run: Run, target: Path) -> None:
    """Write the picture of a run as SVG: the same run gives the same file."""
    with rc_context({"svg.hashsalt": "benchmark", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure, axes = panels(2, columns=2, height=3.6)
        figure.set_figwidth(9.0)
        axes[0].set_xscale("symlog", linthresh=1.0)
        axes[0].set_xlim(-0.1, 25.0)
        axes[1].set_xlim(-0.1, 1.05)
        for axis, (name, label) in zip(axes, _PANELS, strict=True):
            axis.set_ylim(0.45, 1.02)
            _points(axis, run, name)
            axis.set_xlabel(label, fontsize=8)
            axis.axhline(0.5, color="0.6", linewidth=0.8, linestyle="--")
        axes[0].set_ylabel("area of the strongest attacker (0.5: a guess)", fontsize=8)
        axes[0].set_xticks([0, 1, 2, 5, 10, 20], ["0", "1", "2", "5", "10", "20"])
        corpus = run.corpus
        figure.suptitle(f"{corpus.name}: {corpus.people} people; bars hold 95 % of draws of people", fontsize=9)
        figure.savefig(target, format="svg", metadata={"Date": None})


def _points(axis: Axes, run: Run, name: str) -> None:
    """Points from the top; a label stands below those that are in its way, and left of its point at the right."""
    shown = [(one, found.figures.auc) for one in run.systems if name in one.useful and (found := worst(one))]
    taken: list[tuple[float, float, float]] = []
    for one, area in sorted(shown, key=lambda pair: -pair[1].value):
        x = one.useful[name].value
        colour = "#0b6fb8" if one.name.startswith(_OURS) else "0.3"
        error = [[max(area.value - area.low, 0.0)], [max(area.high - area.value, 0.0)]]
        axis.errorbar(x, area.value, yerr=error, fmt="s" if one.name == RAW else "o", color=colour, markersize=4)
        text = short_name(one.name)
        across, up = axis.transAxes.inverted().transform(axis.transData.transform((x, area.value)))
        left = across > _RIGHT
        start = across - _LETTER * len(text) if left else across
        while any(abs(up - y) < _LINE and start < end and x0 < start + _LETTER * len(text) for x0, end, y in taken):
            up -= _LINE / 4
        taken.append((start, start + _LETTER * len(text), up))
        axis.annotate(
            text, (across, up), xycoords="axes fraction", xytext=(-5 if left else 5, 0), textcoords="offset points",
            fontsize=6, color=colour, ha="right" if left else "left", va="center",
        )  # fmt: skip
