"""Whether the machine is quiet enough to measure tens of microseconds on it."""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = ["Noise", "measure_noise", "when_quiet"]

MOST_LATE_US, MOST_USED, MOST_STOLEN = 400.0, 0.15, 0.01


@dataclass(frozen=True)
class Noise:
    """What was measured for some seconds in which the tool itself did nothing.

    Attributes
    ----------
    late_us
        99 % of short sleeps ended at most so late.
    used, stolen
        Shares of all processors that others used, and that the hypervisor took.
    """

    late_us: float
    used: float
    stolen: float

    @property
    def why_not(self) -> str | None:
        """Why nothing can be judged here now; None: it can."""
        limits = (
            (self.late_us > MOST_LATE_US, f"1 % of short sleeps end {self.late_us:.0f} us late or more"),
            (self.used > MOST_USED, f"others use {self.used:.0%} of the processors"),
            (self.stolen > MOST_STOLEN, f"the hypervisor takes {self.stolen:.1%} of the processors"),
        )
        return "; ".join(words for wrong, words in limits if wrong) or None


def measure_noise(seconds: float = 4.0) -> Noise:
    """Sleep for a millisecond again and again; see how late that ends, and what the processors do."""
    before, late, end = _jiffies(), [], time.monotonic() + seconds
    while time.monotonic() < end:
        due = time.perf_counter_ns() + 1_000_000
        time.sleep(0.001)
        late.append((time.perf_counter_ns() - due) / 1000.0)
    passed = _jiffies() - before
    whole = max(1.0, float(passed[:8].sum()))
    idle, stolen = float(passed[3] + passed[4]), float(passed[7])
    return Noise(float(np.quantile(late, 0.99)), 1.0 - (idle + stolen) / whole, stolen / whole)


def when_quiet(seconds: float) -> Noise:
    """Measure until the machine is quiet, for so long at most; the last of the measurements."""
    end = time.monotonic() + seconds
    while (noise := measure_noise()).why_not is not None and time.monotonic() < end:
        pass
    return noise


def _jiffies() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Of all processors since the start: user, nice, system, idle, waiting, interrupts, soft interrupts, stolen, ..."""
    return np.array(Path("/proc/stat").read_text().splitlines()[0].split()[1:], dtype=np.int64)
