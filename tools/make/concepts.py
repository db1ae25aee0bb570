"""The pictures of `docs/concepts.md`: `python -m tools.make.concepts [--out FOLDER]`. No recording is in them."""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eyestream.core.mechanisms import build
from eyestream.core.whole import release_rows
from eyestream.rim.config import load
from eyestream.rim.files import calibrations
from eyestream_lab.simulation.people import load_statistics, simulate
from eyestream_lab.testing.noise import SeededNoise

ROOT = Path(__file__).resolve().parents[2]
FEATURE, CALIBRATION, EPSILON = "rate_saccades", "everyday-klt-mapped-64", 9.6
BLUE, GREY = "#0b5cad", "#8a8f98"


def chunk(axes: Axes) -> None:
    """A raw feature, and what is released of it."""
    calibration = calibrations.load(CALIBRATION)
    [rows] = simulate(load_statistics(), 1, 320.0, 4)
    mechanism = build(calibration, EPSILON, noise=SeededNoise(4))
    column = calibration.names.index(FEATURE)
    private = release_rows(mechanism, rows.astype(np.float64))[:, column]
    t, error = np.arange(len(rows)) / calibration.rate_hz, mechanism.noise_sd[column]
    axes.plot(t, rows[:, column], color=GREY, linewidth=1, label="raw: stays inside")
    axes.plot(t, private, color=BLUE, label=f"private: {CALIBRATION}, epsilon {EPSILON} a chunk")
    axes.fill_between(t, private - error, private + error, color=BLUE, alpha=0.2, linewidth=0)
    for border in t[:: calibration.n]:
        axes.axvline(border, color=GREY, linewidth=0.5, alpha=0.5)
    axes.set(xlabel="seconds of the session (lines: borders of chunks)", ylabel=f"{FEATURE}, 1/s", xlim=(0, t[-1]))
    axes.legend(loc="upper right", frameon=False)


def epsilon(axes: Axes) -> None:
    """How often the better of two guesses is right at most."""
    at = np.linspace(0, 8, 200)
    axes.plot(at, 100 / (1 + np.exp(-at)), color=BLUE)
    for mark in (0.1, 1.0, 4.8):
        right = 100 / (1 + np.exp(-mark))
        axes.plot([mark], [right], "o", color=BLUE)
        axes.annotate(f"{mark:g}: {right:.0f} of 100", (mark, right), (8, -14), textcoords="offset points")
    axes.axhline(50, color=GREY, linewidth=0.8)
    axes.set(xlabel="epsilon of one chunk", ylabel="right guesses of 100, at most", xlim=(0, 8), ylim=(45, 102))


def session(axes: Axes) -> None:
    """The sum over the hours of a day, with the ceilings of the usual configuration."""
    settings = load(ROOT / "config" / "sidecar.toml")
    [stream], budget = settings.stream, settings.budget
    length = calibrations.load(stream.privacy.calibration)
    hour = 3600 * length.rate_hz / length.n * stream.privacy.epsilon
    day = budget.day_epsilon or 0.0
    axes.plot([0, day / hour, 6], [0, day, day], color=BLUE, label=f"two sessions, {stream.privacy.epsilon:g} a chunk")
    for height, word in ((budget.session_epsilon or 0.0, "ceiling of a session"), (day, "ceiling of a day")):
        axes.axhline(height, color=GREY, linestyle="--", linewidth=0.8)
        axes.annotate(word, (6, height), (-4, 4), textcoords="offset points", ha="right")
    axes.set(xlabel="hours of releases", ylabel="sum of epsilon", xlim=(0, 6), ylim=(0, 1.15 * day))
    axes.legend(loc="lower right", frameon=False)


PICTURES = {"concepts-chunk": chunk, "concepts-epsilon": epsilon, "concepts-session": session}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="folder to write to")
    options = parser.parse_args()
    mpl.rcParams |= {"svg.hashsalt": "eyestream", "svg.fonttype": "none", "font.size": 10}
    for name, draw in PICTURES.items():
        figure = Figure(figsize=(8, 3.2), layout="constrained")
        axes = figure.subplots()
        axes.spines[["top", "right"]].set_visible(False)
        draw(axes)
        figure.savefig(options.out / f"{name}.svg", metadata={"Date": None})
        print(options.out / f"{name}.svg")


if __name__ == "__main__":
    main()
