"""Figures that the demo shows, and how they come about."""

import math
import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.sdk.subscriber import Chunk
from eyestream.wire.raw import RawRows
from eyestream.wire.release import Meta
from eyestream_lab.demo.gaze import GazeSeen

Array = NDArray[np.float64]

SHOWN = ("rate_saccades", "blink_rate", "mean_fixation_duration")
"""Features that are shown where all are released."""

_LEAST_CHUNKS = 4
"""For a correlation to be said."""


@dataclass(frozen=True)
class Pair:
    """One chunk of the d features that are shown, as changes since the first minute where the mechanism has one.

    Attributes
    ----------
    index : of the chunk.
    inside : (d, n) raw rows, which stay inside.
    truth, released : (d,) means of the chunk, raw and as it went out.
    """

    index: int
    inside: Array
    truth: Array
    released: Array


@dataclass
class DemoState:
    """State of the demo. The raw side is known only because the demo has the tracker in its own process."""

    calibration: Calibration
    """The calibration of the released mechanism."""
    shown: tuple[str, ...] = SHOWN
    """Names of the d features that are shown."""
    rows_total: int = 0
    """Rows that the gaze makes; 0 where nobody knows."""
    gaze: GazeSeen = field(default_factory=GazeSeen)
    rows: int = 0
    waits: str = ""
    """The line until the first chunk is there."""
    epsilon_session: float = 0.0
    latencies_ms: list[float] = field(default_factory=list)
    chunk: Chunk | None = None
    meta: Meta | None = None
    pairs: list[Pair] = field(default_factory=list)
    """Every chunk that came."""
    _raw: dict[int, Array] = field(default_factory=dict)
    _complete_at: dict[int, float] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Rows of a chunk."""
        return self.calibration.n

    @property
    def chunk_s(self) -> float:
        """Seconds of gaze that a chunk describes."""
        return self.n / self.calibration.rate_hz

    @property
    def withheld(self) -> int:
        """Chunks of the session that are its baseline."""
        return 0 if self.calibration.anchor is None else self.calibration.anchor.chunks

    @property
    def chunks_total(self) -> int:
        """Chunks that the gaze makes after the baseline, the partial last one included; 0 where nobody knows."""
        return max(math.ceil(self.rows_total / self.n) - self.withheld, 0)

    @property
    def units(self) -> tuple[str, ...]:
        """Unit of each feature that is shown."""
        return tuple(self.calibration.units[i] for i in self._rows)

    @property
    def errors(self) -> Array:
        """(d,) error that was announced of each feature that is shown."""
        assert self.meta is not None
        return np.array([self.meta.noise_sd[self.meta.names.index(name)] for name in self.shown])

    @property
    def _rows(self) -> list[int]:
        """Where the features that are shown stand in raw rows."""
        return [self.calibration.names.index(name) for name in self.shown]

    def note(self, rows: RawRows) -> None:
        """Rows have left the front end. Of a session that ends, nothing more comes."""
        now = time.monotonic()
        self.rows += len(rows.rows)
        for number, row in enumerate(rows.rows, start=rows.seq):
            index = number // self.n
            chunk = self._raw.setdefault(index, np.full((len(self.shown), self.n), np.nan))
            chunk[:, number % self.n] = np.asarray(row)[self._rows]
            self._complete_at[index] = now

    def received(self, chunk: Chunk, meta: Meta, now: float) -> None:
        """The application has `chunk` in its hands at `now`."""
        self.chunk, self.meta = chunk, meta
        self.latencies_ms.append(1000.0 * (now - self._complete_at.pop(chunk.index, now)))
        self.epsilon_session = chunk.epsilon * len(self.latencies_ms)
        none = np.full((len(self.shown), self.n), np.nan)
        inside = self._raw.pop(chunk.index, none) - self._baseline()[:, None]
        out = chunk.values[[chunk.names.index(name) for name in self.shown]].astype(np.float64)
        self.pairs.append(Pair(chunk.index, inside, _mean(inside), out.mean(axis=1) - self._centre()))

    def _baseline(self) -> Array:
        """(d,) mean of the first minute, which changes are from; 0 where levels are released."""
        first = [self._raw[index] for index in range(self.withheld) if index in self._raw]
        return _mean(np.concatenate(first, axis=1)) if first else np.zeros(len(self.shown))

    def _centre(self) -> Array:
        """(d,) what a released value has in the place of its baseline."""
        anchor = self.calibration.anchor
        return np.zeros(len(self.shown)) if anchor is None else np.ldexp(anchor.centre, -anchor.shift)[self._rows]

    def latency_ms(self, percent: float) -> float:
        """A percentile of the latencies."""
        return round(float(np.percentile(self.latencies_ms, percent)), 3)

    def as_json(self) -> dict[str, object]:
        """Output of ``--json``."""
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
        """The claim about the chunk that came last, in one sentence."""
        assert self.chunk is not None
        return self.chunk.guarantee.partition("\n")[0]

    def found(self) -> list[str]:
        """How well the released values follow the truth, feature by feature, in words."""
        lines = []
        for feature, (name, error) in enumerate(zip(self.shown, self.errors, strict=True)):
            truth, released = (np.array([getattr(p, k)[feature] for p in self.pairs]) for k in ("truth", "released"))
            known = np.isfinite(truth)
            truth, released = truth[known], released[known]
            within = f"true value within the error in {int((np.abs(truth - released) <= error).sum())} of {len(truth)}"
            if len(truth) >= _LEAST_CHUNKS and truth.std() > 0 and released.std() > 0:
                within = f"correlation {np.corrcoef(truth, released)[0, 1]:.2f}; {within}"
            lines.append(f"{name}: {within} chunks")
        return lines


def _mean(rows: Array) -> Array:
    """(d,) mean of what is there in (d, n); NaN where nothing is."""
    seen = np.isfinite(rows)
    sums, counts = np.where(seen, rows, 0.0).sum(axis=1), seen.sum(axis=1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
