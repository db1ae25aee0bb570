"""What the demo shows: figures, a live table in a terminal, plain lines elsewhere, a summary."""

import contextlib
import math
import sys
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from eyestream.cli.demo_gaze import GazeSeen
from eyestream.errors import ConfigError
from eyestream.privacy.anchor import Anchor, Baseline
from eyestream.privacy.mechanism import Mechanism
from eyestream.rim.sdk.subscriber import Chunk
from eyestream.wire.messages import Meta, RawRows

__all__ = ["Figures", "View", "open_view", "summary"]

SHOWN = ("rate_fixations", "mean_saccade_amplitude", "mean_fixation_duration", "mean_mean_diameter", "blink_rate")
"""Features in the table."""


@dataclass
class Figures:
    """What happened so far. The raw side is known only because the demo has the tracker in its own process."""

    names: tuple[str, ...]
    n: int
    rows_total: int
    rival: Mechanism
    """Compared with the released mechanism. It sees the raw rows too; what it gives never leaves this process."""
    anchor: Anchor | None = None
    """Where the released mechanism takes a baseline off its session: what is public of it."""
    gaze: GazeSeen = field(default_factory=GazeSeen)
    rows: int = 0
    epsilon_session: float = 0.0
    latencies_ms: list[float] = field(default_factory=list)
    chunk: Chunk | None = None
    meta: Meta | None = None
    raw_mean: NDArray[np.float64] | None = None
    """(F,) mean over the rows of the chunk that came last."""
    moved_mean: NDArray[np.float64] | None = None
    """(F,) the same less the session's baseline, which is what the mechanism codes; without a baseline the same."""
    rival_mean: NDArray[np.float64] | None = None
    """(F,) mean of what the rival would have published of it."""
    _raw: dict[int, NDArray[np.float64]] = field(default_factory=dict)
    _complete_at: dict[int, float] = field(default_factory=dict)

    @property
    def withheld(self) -> int:
        """Chunks of the session that are its baseline."""
        return 0 if self.anchor is None else self.anchor.chunks

    @property
    def chunks_total(self) -> int:
        """Chunks that the gaze makes behind the baseline, the partial last one included; 0 where nobody knows."""
        return max(math.ceil(self.rows_total / self.n) - self.withheld, 0)

    def note(self, rows: RawRows) -> None:
        """Rows have left the front end. Of a session that ends, nothing more comes."""
        now = time.monotonic()
        self.rows += len(rows.rows)
        for number, row in enumerate(rows.rows, start=rows.seq):
            index = number // self.n
            chunk = self._raw.setdefault(index, np.full((len(self.names), self.n), np.nan))
            chunk[:, number % self.n] = row
            self._complete_at[index] = now

    def received(self, chunk: Chunk, meta: Meta, now: float) -> None:
        """The application has `chunk` in its hands at `now`."""
        self.chunk, self.meta = chunk, meta
        self.latencies_ms.append(1000.0 * (now - self._complete_at.pop(chunk.index, now)))
        raw = self._raw.pop(chunk.index, np.full((len(self.names), self.n), np.nan))
        self.raw_mean, self.moved_mean = _mean(raw), _mean(self._moved(raw))
        self.rival_mean = self.rival.release(raw).mean(axis=1)
        self.epsilon_session = chunk.epsilon * len(self.latencies_ms)

    def _moved(self, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        """The raw chunk (F, n) as the mechanism gets it."""
        if self.anchor is None:
            return raw
        baseline = Baseline(self.anchor)
        for index in range(self.withheld):
            baseline.take(self._raw.get(index, np.full_like(raw, np.nan)))
        return baseline.off(raw)

    def latency_ms(self, percent: float) -> float:
        """A percentile of the latencies."""
        return round(float(np.percentile(self.latencies_ms, percent)), 3)

    def as_json(self) -> dict[str, object]:
        """What ``--json`` prints."""
        none = self.chunk is None or self.meta is None
        return {
            "samples": self.gaze.samples,
            "rows": self.rows,
            "chunks": len(self.latencies_ms),
            "mechanism": None if self.meta is None else self.meta.mechanism,
            "epsilon_per_chunk": None if self.chunk is None else self.chunk.epsilon,
            "epsilon_session": self.epsilon_session,
            "latency_ms": None if none else {"p50": self.latency_ms(50), "p99": self.latency_ms(99)},
        }

    def line(self) -> str:
        """One line about where things stand."""
        assert self.chunk is not None
        return (
            f"chunk {len(self.latencies_ms)}{f' of {self.chunks_total}' if self.chunks_total else ''}   "
            f"{self.gaze.samples} samples, {self.rows} rows   "
            f"epsilon {self.chunk.epsilon:g} a chunk, {self.epsilon_session:g} this session   "
            f"latency {self.latencies_ms[-1]:.1f} ms"
        )


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
    """Where the eye looks, and a table that is redrawn with every chunk."""

    def __init__(self, live: Any, table: Any, group: Any) -> None:
        super().__init__()
        self._live, self._new_table, self._group = live, table, group
        self._table: Any = ""
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self._live)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def update(self, figures: Figures) -> None:
        table = self._new_table(title=figures.line(), caption=_claim(figures), expand=False)
        moved = () if figures.anchor is None else ("less first minute",)
        rival = f"{figures.rival.name} would say"
        table.add_column("mean of the chunk", no_wrap=True)
        for heading in ("raw: stays inside", *moved, "private: goes out", "error, +-", rival):
            table.add_column(heading, justify="right")
        for name, raw, less, *cells in _cells(figures):
            known = (raw,) if figures.anchor is None else (raw, less)
            table.add_row(name, *(f"{cell:.3g}" for cell in (*known, *cells)))  # fits into 80 columns
        self._table = table
        self.gaze(figures)

    def gaze(self, figures: Figures) -> None:
        parts = (f"raw gaze: stays inside   ({figures.gaze.samples} samples)", figures.gaze.picture(), self._table)
        self._live.update(self._group(*parts), refresh=True)


def open_view() -> View:
    """The live table in a terminal, lines elsewhere.

    Raises
    ------
    ConfigError
        rich is not installed.
    """
    if not sys.stdout.isatty():
        return _Lines()
    try:
        from rich.console import Group  # noqa: PLC0415  an extra
        from rich.live import Live  # noqa: PLC0415  an extra
        from rich.table import Table  # noqa: PLC0415
    except ImportError:
        raise ConfigError("the live view is not installed: pip install 'eyestream[demo]'") from None
    return _Live(Live(auto_refresh=False), Table, Group)


def summary(figures: Figures) -> str:
    """What to take away from it."""
    assert figures.meta is not None
    assert figures.chunk is not None
    return "\n".join(
        [
            "",
            f"{figures.gaze.samples} samples of gaze went in, {figures.rows} rows were made of them, "
            f"{len(figures.latencies_ms)} private chunks came out "
            f"({figures.meta.mechanism}, {figures.n} rows each).",
            f"epsilon {figures.chunk.epsilon:g} for each chunk, {figures.epsilon_session:g} for the session: losses "
            "add up. The ledger was a temporary one.",
            _claim(figures),
            *_comparison(figures),
            f"latency, last row of a chunk to the application: p50 {figures.latency_ms(50):.1f} ms, "
            f"p99 {figures.latency_ms(99):.1f} ms.",
        ]
    )


def _comparison(figures: Figures) -> list[str]:
    """The last chunk, raw, as published, and as the rival would have published it."""
    rival, anchored = f"instead of {figures.rival.name} at the same epsilon", figures.anchor is not None
    steps = "raw -> less the session's first minute -> private" if anchored else "raw -> private"
    lines = [f"last chunk, means: {steps} ({rival})"]
    for name, raw, less, private, _, other in _cells(figures):
        known = f"{raw:9.4g} -> {less:9.4g}" if anchored else f"{raw:9.4g}"
        lines.append(f"  {name:24s} {known} -> {private:9.4g}   ({other:.4g})")
    return lines


def _claim(figures: Figures) -> str:
    assert figures.chunk is not None
    return figures.chunk.guarantee.partition("\n")[0]


def _cells(figures: Figures) -> list[tuple[str, float, float, float, float, float]]:
    """(name, mean of the raw chunk, the same less its baseline, the private mean, its error, the rival's mean)."""
    assert figures.chunk is not None
    assert figures.meta is not None
    assert figures.raw_mean is not None
    assert figures.moved_mean is not None
    assert figures.rival_mean is not None
    means = figures.chunk.values.mean(axis=1)
    return [
        (
            name,
            float(figures.raw_mean[index]),
            float(figures.moved_mean[index]),
            float(means[index]),
            float(figures.meta.noise_sd[index]),
            float(figures.rival_mean[index]),
        )
        for index, name in enumerate(figures.names)
        if name in SHOWN
    ]


def _mean(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """(F,) mean of what is there in (F, n); NaN where nothing is."""
    seen = np.isfinite(rows)
    sums, counts = np.where(seen, rows, 0.0).sum(axis=1), seen.sum(axis=1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
