"""How quickly a ledger may open days: by the time that passes, which no setting of the host's clock changes."""

import time
from collections.abc import Callable

__all__ = ["SPARE_DAYS", "Pace", "passed"]

SPARE_DAYS = 3
"""Days that may be opened at once: today, tomorrow when it begins soon, and one after a clock that was wrong."""

_SECONDS_A_DAY = 86_400


def passed() -> float:
    """Seconds since the host was booted, those that it slept too where the system counts them."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class Pace:
    """Lets one day be opened for each day that passes, and at most `SPARE_DAYS` at once.

    So in any T days of one life at most SPARE_DAYS + T are opened, whatever the host's clock shows. A clock that is
    right opens one as the life begins, perhaps one soon after, and then one a day: it never waits.

    Parameters
    ----------
    passed
        Seconds from any beginning, which nobody sets.
    """

    def __init__(self, passed: Callable[[], float]) -> None:
        self._passed, self._at, self._spare = passed, passed(), float(SPARE_DAYS)

    def open_one(self) -> bool:
        """Whether one more may be opened now; then it counts as opened."""
        now = self._passed()
        self._spare = min(SPARE_DAYS, self._spare + (now - self._at) / _SECONDS_A_DAY)
        self._at = now
        if self._spare < 1:
            return False
        self._spare -= 1
        return True
