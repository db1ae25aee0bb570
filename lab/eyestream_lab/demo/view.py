"""How the demo shows its figures: a live table in a terminal, plain lines elsewhere, a summary, a picture."""

import contextlib
import shutil
import sys
import textwrap
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from eyestream.core.mechanism import Mechanism
from eyestream.errors import ConfigError
from eyestream_lab.demo.figures import Figures

__all__ = ["View", "check_picture", "draw", "frame", "open_view", "summary"]

_DOTS_PER_INCH = 150


class View:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def announce(self, text: str) -> None:
        """Say what is going to happen."""

    def gaze(self, figures: Figures) -> None:
        """Gaze has come in."""

    def update(self, figures: Figures) -> None:
        """A chunk has come."""


class _Lines(View):
    """One line a chunk, and one a second of gaze before the first, for a pipe or a file."""

    def __init__(self) -> None:
        self._next = 0.0

    def gaze(self, figures: Figures) -> None:
        if figures.chunk is None and time.monotonic() >= self._next:
            self._next = time.monotonic() + 1.0
            print(figures.gaze.line(), flush=True)

    def announce(self, text: str) -> None:
        print(text, flush=True)

    def update(self, figures: Figures) -> None:
        print(figures.line(), flush=True)


class _Live(_Lines):
    """A table that is redrawn with every chunk, and below it where the eye looks, in what room the terminal has."""

    def __init__(self, live: Any, text: Any) -> None:
        super().__init__()
        self._live, self._text = live, text
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self._live)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def announce(self, text: str) -> None:
        print(_wrapped(text, shutil.get_terminal_size().columns), flush=True)

    def update(self, figures: Figures) -> None:
        self.gaze(figures)

    def gaze(self, figures: Figures) -> None:
        size = shutil.get_terminal_size()
        self._live.update(self._text("\n".join(frame(figures, size.columns, size.lines)), no_wrap=True), refresh=True)


def frame(figures: Figures, width: int, height: int) -> list[str]:
    """What stands in a terminal of so many columns and lines: the table first, then where the eye looks.

    No line is cut within a word: at 80 columns and 24 lines everything fits.
    """
    lines: list[str] = []
    if figures.chunk is not None:
        lines += [*_wrapped(figures.line(), width).splitlines(), *_table(figures)]
        lines += [*_wrapped(figures.claim, width).splitlines(), ""]
    else:
        lines += [*_wrapped(figures.waits, width).splitlines(), ""]
    lines.append(f"raw gaze: stays inside   ({figures.gaze.samples} samples)")
    room = height - 1 - len(lines) - 2
    return lines + figures.gaze.picture(min(room, _HIGHEST)) if room >= _LOWEST else lines


_LOWEST, _HIGHEST = 5, 13


def _table(figures: Figures) -> list[str]:
    """Two lines of headings and one of each feature, 79 columns wide."""
    anchored = figures.anchor is not None
    rival = f"as {figures.rival.name}"
    change = ("moved to", "corpus") if anchored else ("", "")
    top = f"{'':<24}{'raw:':>11}{change[0]:>11}{'private:':>11}{'error':>11}{'instead':>11}"
    below = f"{'mean of the chunk':<24}{'inside':>11}{change[1]:>11}{'goes out':>11}{'+-':>11}{rival:>11}"
    rows = []
    for name, raw, less, private, error, other in figures.cells():
        moved = f"{less:.3g}" if anchored else ""
        rows.append(f"{name:<24}{raw:>11.3g}{moved:>11}{private:>11.3g}{error:>11.3g}{other:>11.3g}")
    return [top, below, *rows]


def _wrapped(text: str, width: int) -> str:
    """Lines of at most `width` - 1 columns, broken between words."""
    return "\n".join(
        textwrap.fill(line, width - 1, break_long_words=False, break_on_hyphens=False) for line in text.splitlines()
    )


def open_view() -> View:
    """The live table in a terminal, lines elsewhere."""
    if not sys.stdout.isatty():
        return _Lines()
    from rich.live import Live  # noqa: PLC0415  for a terminal
    from rich.text import Text  # noqa: PLC0415

    return _Live(Live(auto_refresh=False, vertical_overflow="crop"), Text)


def summary(figures: Figures) -> str:
    """What to take away from it, the table first; on a terminal no line is broken in the middle of a word."""
    assert figures.meta is not None
    assert figures.chunk is not None
    said = [
        f"{figures.gaze.samples} samples of gaze went in, {figures.rows} rows were made of them, "
        f"{len(figures.latencies_ms)} private chunks came out ({figures.meta.mechanism}, {figures.n} rows each).",
        f"epsilon {figures.chunk.epsilon:g} for each chunk, {figures.epsilon_session:g} for the session: losses "
        "add up. The ledger was a temporary one.",
        figures.claim,
        f"latency, last row of a chunk to the application: p50 {figures.latency_ms(50):.1f} ms, "
        f"p99 {figures.latency_ms(99):.1f} ms.",
    ]
    text = "\n".join(said)
    wrapped = _wrapped(text, shutil.get_terminal_size().columns) if sys.stdout.isatty() else text
    return "\n".join(["", *_comparison(figures), wrapped])


def _comparison(figures: Figures) -> list[str]:
    """The last chunk, raw, as published, and as the rival would have published it."""
    rival, anchored = f"{figures.rival.name} at the same epsilon", figures.anchor is not None
    steps = "raw -> less the first minute, plus the corpus mean -> private" if anchored else "raw -> private"
    lines = ["last chunk, means:", f"  {steps}  ({rival}{_error_words(figures.rival)})"]
    for name, raw, less, private, _, other in figures.cells():
        known = f"{raw:9.4g} -> {less:9.4g}" if anchored else f"{raw:9.4g}"
        lines.append(f"  {name:24s} {known} -> {private:9.4g}   ({other:.4g})")
    return lines


def _error_words(rival: Mechanism) -> str:
    """How wide the error of the rival is, where it is wider than a feature's range; else nothing."""
    width = np.asarray(rival.calibration.hi) - np.asarray(rival.calibration.lo)
    times = float(np.median(rival.noise_sd[width > 0] / width[width > 0]))
    return f": error {times:.0f} times a feature's range" if times > 1 else ""


def check_picture(path: Path) -> None:
    """Raise ConfigError where a picture cannot be drawn into `path`: before the demo, not after it."""
    if path.suffix.lower() != ".png":
        raise ConfigError(f"--picture {path}: expected a name that ends with .png")
    if not path.parent.is_dir():
        raise ConfigError(f"--picture {path}: no such directory")


def draw(figures: Figures, path: Path) -> None:
    """Write the picture; raises ConfigError where the file cannot be written."""
    from eyestream_lab.study.figures import legend_below, panels  # noqa: PLC0415  heavy

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
