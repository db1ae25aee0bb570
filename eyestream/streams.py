"""Description of a stream: device, features, rate, the reach of a second of gaze, and what made its rows."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from eyestream.errors import ConfigError


class StreamKey(NamedTuple):
    """A device and one of its streams.

    Attributes
    ----------
    device
        Pseudonym of the device; all its streams spend from one budget.
    stream
        Name of the stream: ``features``, ``gaze``, ...
    """

    device: str
    stream: str

    def __str__(self) -> str:
        return f"{self.device}/{self.stream}"


GAZE = {"gaze_x": "deg", "gaze_y": "deg"}
"""Names and units of released gaze: azimuth and elevation, to the right and up."""

MAX_RATE_HZ = 100_000.0
"""A chunk's length must not vanish beside the time in a float."""


def check_names(names: tuple[str, ...]) -> None:
    """Raise ConfigError unless there are feature names, each once."""
    if not names or len(set(names)) != len(names):
        raise ConfigError("expected the names of the features, each once")


def same_rate(rate_hz: float, expected_hz: float) -> bool:
    """Whether a rate is the expected one, within 1 % of it: trackers' clocks are not ours."""
    return abs(rate_hz - expected_hz) <= 0.01 * expected_hz


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """One kind of rows, the same for every device that sends it.

    Attributes
    ----------
    name
        Of the stream, in topics and in the ledger.
    schema
        Number that tracker and sidecar agreed on for `names`, their units and order.
    names, units
        Of the F features, one each.
    rate_hz
        Nominal rows a second, at most `MAX_RATE_HZ`.
    window_s
        Seconds of gaze that one row describes; 0 for a sample of its own moment.
    memory_s
        Seconds before its window that a row may depend on as well: the memory of the front end that makes the rows.

    Raises
    ------
    ConfigError
        A value is out of its range.
    """

    name: str
    schema: int
    names: tuple[str, ...]
    units: tuple[str, ...]
    rate_hz: float
    window_s: float = 0.0
    memory_s: float = 0.0

    def __post_init__(self) -> None:
        check_names(self.names)
        fine = {
            "units: one for each name": len(self.units) == len(self.names),
            f"rate_hz: above 0, at most {MAX_RATE_HZ:g}": 0 < self.rate_hz <= MAX_RATE_HZ,
            "window_s: 0 or more": 0 <= self.window_s < math.inf,
            "memory_s: 0 or more": 0 <= self.memory_s < math.inf,
        }
        wrong = [expected for expected, holds in fine.items() if not holds]
        if wrong:
            raise ConfigError(f"stream {self.name!r}: expected {'; '.join(wrong)}")

    @property
    def features(self) -> int:
        """F."""
        return len(self.names)

    def rows_touched(self, seconds: float = 0.0) -> int:
        """Most consecutive rows that `seconds` of gaze enter: ceil(rate (window + seconds + memory)), at least 1."""
        return max(1, math.ceil(self.rate_hz * (self.window_s + seconds + self.memory_s)))

    def chunks_touched(self, n: int, seconds: float = 0.0) -> int:
        """Most chunks of `n` rows that `seconds` of gaze can enter.

        L >= 2 consecutive rows lie in at most (L - 2) // n + 2 chunks: one row in the first, the rest after it.

        >>> rows = StreamSpec("features", 1, ("blink_rate",), ("1/s",), rate_hz=2.0, window_s=30.0)
        >>> rows.rows_touched(1.0), rows.chunks_touched(64, 1.0), rows.chunks_touched(32, 1.0)
        (62, 2, 3)
        """
        rows = self.rows_touched(seconds)
        return (rows - 2) // n + 2 if rows >= 2 else 1


@dataclass(frozen=True, slots=True)
class FrontEndMark:
    """The hashes by which rows of one front end are known.

    Attributes
    ----------
    profile
        Name of the tracker's profile, for messages.
    front_end
        Hash of the profile, the features and the version of the algorithm.
    detector
        The same without what is the tracker's own: equal where rows in degrees mean the same on two trackers.
    """

    profile: str
    front_end: str
    detector: str
