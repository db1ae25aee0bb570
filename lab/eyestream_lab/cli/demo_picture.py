"""The demo as a picture: what stays inside and what goes out, feature by feature, over the same time."""

from pathlib import Path

import numpy as np

from eyestream.errors import ConfigError
from eyestream_lab.cli.demo_figures import Figures

__all__ = ["check_picture", "draw"]

_DOTS_PER_INCH = 150


def check_picture(path: Path) -> None:
    """Raise ConfigError where a picture cannot be drawn into `path`: before the demo, not after it."""
    if path.suffix.lower() != ".png":
        raise ConfigError(f"--picture {path}: expected a name that ends with .png")
    if not path.parent.is_dir():
        raise ConfigError(f"--picture {path}: no such directory")
    try:
        import matplotlib  # noqa: F401, PLC0415  an extra
    except ImportError:
        raise ConfigError("--picture is not installed: pip install eyestream-lab") from None


def draw(figures: Figures, path: Path) -> None:
    """Write the picture; raises ConfigError where the file cannot be written."""
    from eyestream_lab.study.figures import legend_below, panels  # noqa: PLC0415  an extra

    assert figures.meta is not None
    assert figures.chunk is not None
    dt, n = 1.0 / figures.meta.rate_hz, figures.n
    inside = np.concatenate([inside for _, inside, _ in figures.traces], axis=1)
    outside = np.concatenate([outside for _, _, outside in figures.traces], axis=1)
    t = dt * np.concatenate([np.arange(index * n, (index + 1) * n) for index, _, _ in figures.traces])
    figure, axes = panels(len(figures.shown), columns=1, height=1.4, share_y=False)
    changes = "" if figures.anchor is None else ", less the mean of the first minute"
    for number, (axis, (name, unit)) in enumerate(zip(axes, figures.shown, strict=True)):
        axis.plot(t, inside[number], color="0.55", linewidth=1.0, label=f"raw: stays inside{changes}")
        axis.plot(t, outside[number], color="C0", linewidth=1.4, label="private: goes out")
        for begin in t[::n]:
            axis.axvline(begin, color="0.85", linewidth=0.6, zorder=0)
        axis.set_ylabel(unit, fontsize=8)
        axis.set_title(name, fontsize=9, loc="left")
    axes[-1].set_xlabel("seconds of the session; a vertical line where a chunk begins", fontsize=9)
    figure.suptitle(
        f"{figures.meta.mechanism}, epsilon {figures.chunk.epsilon:g} for each chunk of {n} rows", fontsize=10
    )
    legend_below(figure, axes)
    try:
        figure.savefig(path, dpi=_DOTS_PER_INCH)
    except OSError as error:
        raise ConfigError(f"--picture {path}: cannot be written: {error.strerror}") from None
