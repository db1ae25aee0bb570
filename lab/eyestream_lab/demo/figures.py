"""What happens in the demo: the figures that are shown, and how they come about."""

import math
import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from eyestream.core.anchor import Anchor, Baseline
from eyestream.core.calibration import Calibration
from eyestream.core.mechanism import Mechanism
from eyestream.sdk.subscriber import Chunk
from eyestream.wire.messages import Meta, RawRows
from eyestream_lab.demo.gaze import GazeSeen

__all__ = ["Figures"]

SHOWN = ("rate_fixations", "mean_saccade_amplitude", "mean_fixation_duration", "mean_mean_diameter", "blink_rate")
"""Features in the table."""


@dataclass
class Figures:
    """What happened so far. The raw side is known only because the demo has the tracker in its own process."""

    calibration: Calibration
    """The calibration of the released mechanism."""
    rival: Mechanism
    """Compared with the released mechanism. It sees the raw rows too; what it gives never leaves this process."""
    rows_total: int = 0
    """Rows that the gaze makes; 0 where nobody knows."""
    gaze: GazeSeen = field(default_factory=GazeSeen)
    rows: int = 0
    waits: str = ""
    """What is said until the first chunk is there."""
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
    traces: list[tuple[int, NDArray[np.float64], NDArray[np.float64]]] = field(default_factory=list)
    """Each chunk that came: its index, and (5, n) of the shown features: as the mechanism got them, and private."""
    _raw: dict[int, NDArray[np.float64]] = field(default_factory=dict)
    _complete_at: dict[int, float] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """F names of features."""
        return self.calibration.names

    @property
    def n(self) -> int:
        """Rows of a chunk."""
        return self.calibration.n

    @property
    def chunk_s(self) -> float:
        """Seconds of gaze that a chunk describes."""
        return self.n / self.calibration.rate_hz

    @property
    def anchor(self) -> Anchor | None:
        """Where the released mechanism takes a baseline off its session: what is public of it."""
        return self.calibration.anchor

    @property
    def withheld(self) -> int:
        """Chunks of the session that are its baseline."""
        return 0 if self.anchor is None else self.anchor.chunks

    @property
    def chunks_total(self) -> int:
        """Chunks that the gaze makes after the baseline, the partial last one included; 0 where nobody knows."""
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
        rows = [self.names.index(name) for name in SHOWN]
        self.traces.append((chunk.index, self._moved(raw)[rows], chunk.values[rows].astype(np.float64)))

    @property
    def shown(self) -> list[tuple[str, str]]:
        """Name and unit of each feature that is shown."""
        assert self.meta is not None
        return [(name, self.meta.units[self.names.index(name)]) for name in SHOWN]

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

    @property
    def claim(self) -> str:
        """What is claimed of the chunk that came last, in one sentence."""
        assert self.chunk is not None
        return self.chunk.guarantee.partition("\n")[0]

    def cells(self) -> list[tuple[str, float, float, float, float, float]]:
        """(name, mean of the raw chunk, the same less its baseline, the private mean, its error, the rival's mean)."""
        assert self.chunk is not None
        assert self.meta is not None
        assert self.raw_mean is not None
        assert self.moved_mean is not None
        assert self.rival_mean is not None
        means = self.chunk.values.mean(axis=1)
        return [
            (
                name,
                float(self.raw_mean[index]),
                float(self.moved_mean[index]),
                float(means[index]),
                float(self.meta.noise_sd[index]),
                float(self.rival_mean[index]),
            )
            for index, name in enumerate(self.names)
            if name in SHOWN
        ]


def _mean(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """(F,) mean of what is there in (F, n); NaN where nothing is."""
    seen = np.isfinite(rows)
    sums, counts = np.where(seen, rows, 0.0).sum(axis=1), seen.sum(axis=1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
