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

from eyestream.errors import ConfigError
from eyestream.sdk.chunk import Chunk
from eyestream_lab.demo.figures import DemoState

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

    def gaze(self, figures: DemoState) -> None:
        """Gaze has come in."""

    def update(self, figures: DemoState) -> None:
        """A chunk has come."""


class _Lines(View):
    """One line a chunk, and one a second of gaze before the first, for a pipe or a file."""

    def __init__(self) -> None:
        self._next = 0.0

    def gaze(self, figures: DemoState) -> None:
        if figures.chunk is None and time.monotonic() >= self._next:
            self._next = time.monotonic() + 1.0
            print(figures.gaze.line(), flush=True)

    def announce(self, text: str) -> None:
        print(text, flush=True)

    def update(self, figures: DemoState) -> None:
        _, head, *rows = table(figures, _NARROWEST, 0)
        print(figures.line(), *([head] if len(rows) > 1 else []), *rows, sep="\n", flush=True)


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
        print("\n".join(_wrapped(text, shutil.get_terminal_size().columns)), flush=True)

    def update(self, figures: DemoState) -> None:
        self.gaze(figures)

    def gaze(self, figures: DemoState) -> None:
        size = shutil.get_terminal_size()
        self._live.update(self._text("\n".join(frame(figures, size.columns, size.lines)), no_wrap=True), refresh=True)


def frame(figures: DemoState, width: int, height: int) -> list[str]:
    """Text for a terminal of so many columns and lines: the table first, then where the eye looks.

    No line is cut within a word: at 80 columns and 24 lines everything fits.
    """
    if figures.chunk is None:
        lines = _wrapped(figures.waits, width)
    else:
        lines, claim = _wrapped(figures.line(), width), _wrapped(figures.claim, width)
        lines += table(figures, width, min(_TABLE, height - 1 - len(lines)))
        lines += claim if len(lines) + len(claim) < height else []
    room = min(height - 1 - len(lines) - 4, _HIGHEST)
    if room < _LOWEST:
        return lines
    return [*lines, "", f"raw gaze: stays inside   ({figures.gaze.samples} samples)", *figures.gaze.picture(room)]


_TABLE, _LOWEST, _HIGHEST = 9, 5, 13


def table(figures: DemoState, width: int, lines: int) -> list[str]:
    """The latest chunks of each feature: the truth, what was released and its error, in figures and drawn."""
    each = max((lines - 1) // len(figures.shown) - 1, 1)
    what = "change since the first minute" if figures.withheld else "mean of a chunk"
    found = [
        f"x true: stays inside   [--o--] private, with its error: goes out   | {'no change' if figures.withheld else 0}"
    ]
    for feature, (name, unit, error) in enumerate(zip(figures.shown, figures.units, figures.errors, strict=True)):
        found.append(f"{name}{'' if unit == '1' else f', {unit}'}: {what}")
        latest = [(pair.index, pair.truth[feature], pair.released[feature]) for pair in figures.pairs[-each:]]
        ends = np.array([[truth, out - error, out + error, 0.0] for _, truth, out in latest])
        scale = float(np.nanmin(ends)), float(np.nanmax(ends))
        for index, truth, out in latest:
            cells = f"chunk {index:>3}  true {truth:>+8.3g}  private {out:>+8.3g} +-{error:>7.2g}  "
            found.append(cells + _bar(truth, (out - error, out, out + error), scale, width - 1 - len(cells)))
    return found


def _bar(truth: float, band: tuple[float, float, float], scale: tuple[float, float], width: int) -> str:
    """A line of `width` characters from one end of the scale to the other."""
    low, high = scale

    def column(value: float) -> int:
        return round((value - low) / max(high - low, 1e-300) * (width - 1))

    cells = [" "] * width
    begin, middle, end = map(column, band)
    cells[begin:end] = "-" * (end - begin)
    for place, mark in ((column(0.0), "|"), (begin, "["), (end, "]"), (middle, "o")):
        cells[place] = mark
    if np.isfinite(truth):
        cells[column(truth)] = "x"
    return "".join(cells).rstrip()


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of at most `width` - 1 columns, broken between words."""
    return textwrap.wrap(text, width - 1, break_long_words=False, break_on_hyphens=False)


def open_view() -> View:
    """The live table in a terminal, lines elsewhere."""
    if not sys.stdout.isatty():
        return _Lines()
    from rich.live import Live  # noqa: PLC0415  for a terminal
    from rich.text import Text  # noqa: PLC0415

    return _Live(Live(auto_refresh=False, vertical_overflow="crop"), Text)


def summary(figures: DemoState) -> str:
    """Conclusion of the demo, the table first; on a terminal no line is broken in the middle of a word."""
    assert figures.meta is not None
    assert figures.chunk is not None
    said = [
        ("went in", f"{figures.gaze.samples} samples of gaze: {figures.rows} rows of features"),
        ("came out", f"{len(figures.latencies_ms)} private chunks of {figures.n} rows ({figures.meta.mechanism})"),
        *(("how sure", text) for text in figures.found()),
        (
            "cost",
            f"epsilon {figures.chunk.epsilon:g} a chunk, {figures.epsilon_session:g} in this session: losses add up",
        ),
        (
            "how late",
            f"newest gaze {figures.latency_ms(50):.1f} ms (p99 {figures.latency_ms(99):.1f}){_oldest(figures.chunk)}",
        ),
        ("claim", figures.claim.removeprefix("claim: ")),
    ]
    width = shutil.get_terminal_size().columns
    fitting = width if sys.stdout.isatty() else 10_000
    lines = [line for label, text in said for line in _row(label, text, fitting)]
    return "\n".join(["", *table(figures, max(width, _NARROWEST), _TABLE), *lines])


_NARROWEST = 80


def _row(label: str, text: str, width: int) -> list[str]:
    """A row of the table at the end, in lines of at most `width` - 1 columns."""
    first, *others = textwrap.wrap(text, width - 11, break_long_words=False, break_on_hyphens=False)
    return [f"{label:10}{first}", *(f"{'':10}{line}" for line in others)]


def _oldest(chunk: Chunk) -> str:
    """How much older the oldest gaze of a chunk is than its newest, in words; nothing where that is not known."""
    oldest = chunk.oldest_gaze_s
    return "" if oldest is None else f", oldest up to {oldest - chunk.latency_s:.0f} s more"


def check_picture(path: Path) -> None:
    """Raise ConfigError where a picture cannot be drawn into `path`: before the demo, not after it."""
    if path.suffix.lower() != ".png":
        raise ConfigError(f"--picture {path}: expected a name that ends with .png")
    if not path.parent.is_dir():
        raise ConfigError(f"--picture {path}: no such directory")


def draw(figures: DemoState, path: Path) -> None:
    """Write the picture; raises ConfigError where the file cannot be written."""
    from eyestream_lab.study.figures import legend_below, panels  # noqa: PLC0415  heavy

    assert figures.meta is not None
    assert figures.chunk is not None
    rate, n = figures.calibration.rate_hz, figures.n
    inside = np.concatenate([pair.inside for pair in figures.pairs], axis=1)
    t = np.concatenate([np.arange(pair.index * n, (pair.index + 1) * n) for pair in figures.pairs]) / rate
    figure, axes = panels(len(figures.shown), columns=1, height=1.8, share_y=False)
    what = "change since the first minute" if figures.withheld else "mean of a chunk"
    for number, (axis, name, unit, error) in enumerate(
        zip(axes, figures.shown, figures.units, figures.errors, strict=True)
    ):
        out = np.repeat([pair.released[number] for pair in figures.pairs], n)
        truth = np.repeat([pair.truth[number] for pair in figures.pairs], n)
        axis.plot(t, inside[number], color="0.8", linewidth=0.8, label="raw rows: stay inside")
        axis.plot(t, truth, color="0.35", linewidth=1.2, label="their mean in a chunk: stays inside")
        axis.plot(t, out, color="C0", linewidth=1.6, label="private: goes out")
        axis.fill_between(t, out - error, out + error, color="C0", alpha=0.15, linewidth=0, label="its error")
        axis.set_ylabel(unit, fontsize=8)
        axis.set_title(f"{name}: {what}", fontsize=9, loc="left")
    axes[-1].set_xlabel("seconds of the session", fontsize=9)
    figure.suptitle(
        f"{figures.meta.mechanism}, epsilon {figures.chunk.epsilon:g} for each chunk of {n} rows", fontsize=10
    )
    legend_below(figure, axes)
    try:
        figure.savefig(path, dpi=_DOTS_PER_INCH)
    except OSError as error:
        raise ConfigError(f"--picture {path}: cannot be written: {error.strerror}") from None
