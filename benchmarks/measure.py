"""Time several things in one run, by turns, so that whatever the machine does it does to all of them."""

import gc
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Case", "Timing", "interleaved", "of_samples", "quiet"]

_CACHE_BYTES = 8 * 2**20  # more than the second-level cache of one core


@dataclass(frozen=True)
class Case:
    """Something to time, and what to do before each time without timing it."""

    run: Callable[[], object]
    before: Callable[[], object] | None = None


@dataclass(frozen=True, eq=False)
class Timing:
    """Durations of one case in nanoseconds, and the median of each of its turns."""

    samples: NDArray[np.int64]
    turns: NDArray[np.float64]
    disturbed: NDArray[np.bool_] | None = None
    """Samples of turns in which the system took the core away for another process."""

    @property
    def alone_p99_us(self) -> float:
        """p99 over the turns in which nobody else had the core."""
        if self.disturbed is None or self.disturbed.all():
            return self.p99_us
        return float(np.quantile(self.samples[~self.disturbed], 0.99)) / 1e3

    @property
    def median_us(self) -> float:
        return self._quantile(0.5)

    @property
    def p99_us(self) -> float:
        return self._quantile(0.99)

    @property
    def p999_us(self) -> float:
        return self._quantile(0.999)

    @property
    def spread_us(self) -> float:
        """Distance of the quartiles."""
        return self._quantile(0.75) - self._quantile(0.25)

    def over(self, other: "Timing") -> float:
        """Median over the turns of how much longer this took than `other` in the same turn."""
        return float(np.median(self.turns / other.turns))

    def record(self) -> dict[str, Any]:
        """The figures for JSON, with a hundred quantiles to draw."""
        return {
            "median_us": self.median_us,
            "p99_us": self.p99_us,
            "p99_alone_us": self.alone_p99_us,
            "p999_us": self.p999_us,
            "spread_us": self.spread_us,
            "samples": len(self.samples),
            "quantiles_us": np.round(np.quantile(self.samples, np.linspace(0, 1, 101)) / 1e3, 2).tolist(),
        }

    def _quantile(self, q: float) -> float:
        return float(np.quantile(self.samples, q)) / 1e3


def of_samples(nanoseconds: NDArray[np.int64]) -> Timing:
    """A timing of something that was timed elsewhere, each sample a turn of its own."""
    return Timing(nanoseconds, nanoseconds.astype(np.float64))


@contextmanager
def quiet() -> Iterator[None]:
    """No garbage collection while it lasts; what exists is not looked at again."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


def interleaved(
    cases: Mapping[str, Callable[[], object] | Case], seconds: float, *, cold: bool = False, most: int = 20
) -> dict[str, Timing]:
    """Time all `cases` by turns (A B C A B C ...) for about `seconds`.

    Parameters
    ----------
    cold
        Before every single run, fill the caches with something else.
    most
        Runs of a case in one turn; fewer for what takes long. One more before them is not counted.
    """
    asked = {name: case if isinstance(case, Case) else Case(case) for name, case in cases.items()}
    evict = np.zeros(_CACHE_BYTES // 8) if cold else None
    runs = {name: _runs(case, 1 if cold else most) for name, case in asked.items()}
    samples: dict[str, list[int]] = {name: [] for name in asked}
    turns: dict[str, list[float]] = {name: [] for name in asked}
    disturbed: dict[str, list[bool]] = {name: [] for name in asked}
    with quiet():
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(turns[next(iter(asked))]) < 3:
            for name, case in asked.items():
                switches = _switches()
                taken = _turn(case, runs[name], evict)
                disturbed[name] += [_switches() > switches] * len(taken)
                samples[name] += taken
                turns[name].append(float(np.median(taken)))
    return {name: Timing(np.array(samples[name]), np.array(turns[name]), np.array(disturbed[name])) for name in asked}


def _switches() -> int:
    """How often this process lost its core so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def _runs(case: Case, most: int) -> int:
    """Runs a turn, so that a turn of a slow case takes about 2 ms."""
    if most == 1:
        return 1
    once = min(_turn(case, 3, None))
    return int(np.clip(2_000_000 // max(once, 1), 1, most))


def _turn(case: Case, runs: int, evict: NDArray[np.float64] | None) -> list[int]:
    clock, run, before = time.perf_counter_ns, case.run, case.before
    if before:
        before()
    run()
    taken = []
    for _ in range(runs):
        if before:
            before()
        if evict is not None:
            evict += 1.0
        start = clock()
        run()
        taken.append(clock() - start)
    return taken
