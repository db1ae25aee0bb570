"""What the demo shows: figures, a live table in a terminal, plain lines elsewhere, a summary."""

import contextlib
import math
import sys
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError
from eyestream.privacy.mechanism import Mechanism
from eyestream.rim.sdk.subscriber import Chunk
from eyestream.wire.messages import Meta

__all__ = ["Figures", "View", "open_view", "summary"]

SHOWN = ("rate_fixations", "mean_saccade_amplitude", "mean_fixation_duration", "mean_mean_diameter", "blink_rate")
"""Features in the table."""


@dataclass
class Figures:
    """What happened so far. The raw side is known only because the demo plays the tracker too."""

    names: tuple[str, ...]
    n: int
    rows_total: int
    rival: Mechanism
    """Compared with the released mechanism. It sees the raw rows too; what it gives never leaves this process."""
    rows: int = 0
    epsilon_session: float = 0.0
    latencies_ms: list[float] = field(default_factory=list)
    chunk: Chunk | None = None
    meta: Meta | None = None
    raw_mean: NDArray[np.float64] | None = None
    """(F,) mean over the rows of the chunk that came last."""
    rival_mean: NDArray[np.float64] | None = None
    """(F,) mean of what the rival would have published of it."""
    _raw: dict[int, NDArray[np.float64]] = field(default_factory=dict)
    _complete_at: dict[int, float] = field(default_factory=dict)

    @property
    def chunks_total(self) -> int:
        """Chunks that the recording makes, the partial last one included."""
        return math.ceil(self.rows_total / self.n)

    def sent(self, rows: int) -> None:
        """`rows` rows have been handed over so far."""
        self.rows = rows

    def handed_over(self, rows: NDArray[np.float64], first: int, now: float) -> None:
        """The tracker hands rows (m, F) over, numbered from `first`, at `now`."""
        for number, row in enumerate(np.atleast_2d(rows), start=first):
            index = number // self.n
            chunk = self._raw.setdefault(index, np.full((len(self.names), self.n), np.nan))
            chunk[:, number % self.n] = row
            self._complete_at[index] = now

    def received(self, chunk: Chunk, meta: Meta, now: float) -> None:
        """The application has `chunk` in its hands at `now`."""
        self.chunk, self.meta = chunk, meta
        self.latencies_ms.append(1000.0 * (now - self._complete_at.pop(chunk.index)))
        raw = self._raw.pop(chunk.index)
        seen = np.isfinite(raw)
        sums, counts = np.where(seen, raw, 0.0).sum(axis=1), seen.sum(axis=1)
        self.raw_mean = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        self.rival_mean = self.rival.release(raw).mean(axis=1)
        self.epsilon_session = chunk.epsilon * len(self.latencies_ms)

    def latency_ms(self, percent: float) -> float:
        """A percentile of the latencies."""
        return round(float(np.percentile(self.latencies_ms, percent)), 3)

    def as_json(self) -> dict[str, object]:
        """What ``--json`` prints."""
        assert self.chunk is not None
        assert self.meta is not None
        return {
            "rows": self.rows,
            "chunks": len(self.latencies_ms),
            "mechanism": self.meta.mechanism,
            "epsilon_per_chunk": self.chunk.epsilon,
            "epsilon_session": self.epsilon_session,
            "latency_ms": {"p50": self.latency_ms(50), "p99": self.latency_ms(99)},
        }

    def line(self) -> str:
        """One line about where things stand."""
        assert self.chunk is not None
        return (
            f"chunk {len(self.latencies_ms)} of {self.chunks_total}   {self.rows} rows   "
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

    def update(self, figures: Figures) -> None:
        """A chunk has come."""


class _Lines(View):
    """One line a chunk, for a pipe or a file."""

    def announce(self, text: str) -> None:
        print(text, flush=True)

    def update(self, figures: Figures) -> None:
        print(figures.line(), flush=True)


class _Live(_Lines):
    """A table that is redrawn with every chunk."""

    def __init__(self, live: Any, table: Any) -> None:
        self._live, self._new_table = live, table
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
        rival = f"{figures.rival.name} would have said"
        for heading in ("feature (mean of the chunk)", "raw: stays inside", "private: published", "error, +-", rival):
            table.add_column(heading, justify="left" if heading.startswith("feature") else "right")
        for name, *cells in _cells(figures):
            table.add_row(name, *(f"{cell:.4g}" for cell in cells))
        self._live.update(table, refresh=True)


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
        from rich.live import Live  # noqa: PLC0415  an extra
        from rich.table import Table  # noqa: PLC0415
    except ImportError:
        raise ConfigError("the live view is not installed: pip install 'eyestream[demo]'") from None
    return _Live(Live(auto_refresh=False), Table)


def summary(figures: Figures) -> str:
    """What to take away from it."""
    assert figures.meta is not None
    assert figures.chunk is not None
    return "\n".join(
        [
            "",
            f"{figures.rows} rows of a simulated person went in, {len(figures.latencies_ms)} private chunks came out "
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
    lines = [f"last chunk, means: raw -> private (instead of {figures.rival.name} at the same epsilon)"]
    for name, raw, private, _, rival in _cells(figures):
        lines.append(f"  {name:24s} {raw:9.4g} -> {private:9.4g}   ({rival:.4g})")
    return lines


def _claim(figures: Figures) -> str:
    assert figures.chunk is not None
    return figures.chunk.guarantee.partition("\n")[0]


def _cells(figures: Figures) -> list[tuple[str, float, float, float, float]]:
    """(name, mean of the raw chunk, mean of the private one, its expected error, mean of the rival's)."""
    assert figures.chunk is not None
    assert figures.meta is not None
    assert figures.raw_mean is not None
    assert figures.rival_mean is not None
    means = figures.chunk.values.mean(axis=1)
    return [
        (
            name,
            float(figures.raw_mean[index]),
            float(means[index]),
            float(figures.meta.noise_sd[index]),
            float(figures.rival_mean[index]),
        )
        for index, name in enumerate(figures.names)
        if name in SHOWN
    ]
