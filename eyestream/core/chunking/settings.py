"""Facts on a device that must be known before its first row."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from eyestream.errors import ConfigError
from eyestream.streams import MAX_RATE_HZ, StreamKey

MAX_IDLE_CHUNKS = 65_536

Release = Literal["on_row", "on_clock"]


@dataclass(frozen=True, slots=True)
class DeviceSettings:
    """One device and its stream; constant while the process runs.

    Attributes
    ----------
    id, stream
        Names in the topic.
    schema
        Number that tracker and sidecar agreed on for `names`, their units and order.
    names
        Names of the F features.
    rate_hz
        Nominal rows a second, at most `MAX_RATE_HZ`: a chunk's length must not vanish beside the time in a float.
    n
        Rows a chunk, a power of two.
    grace_s
        Seconds that a chunk waits beyond its due time.
    idle_s
        Seconds without a row after which the session stops; at most `MAX_IDLE_CHUNKS` chunks long, for so many chunks
        without a row can fall due at once.
    jump_chunks
        Most chunks by which row numbers may jump ahead within a session.
    release
        ``on_row``: a chunk is out as soon as it is closed, so the arrival of rows is public; ``on_clock``: at its due
        time plus grace, whatever closed it.
    apart
        Rows that are left out after the last chunk of a session that stopped, before the same session may begin again:
        as many as let no gaze into both, where each beginning takes a baseline (`eyestream.core.anchor`).
    units
        Units of the features; empty: not known.
    shared_s
        Seconds for which rows may hold gaze of before some moment: how long a row describes, and is on its way.

    Raises
    ------
    ConfigError
        A value is out of its range.
    """

    id: str
    stream: str
    schema: int
    names: tuple[str, ...]
    rate_hz: float
    n: int
    grace_s: float
    idle_s: float
    jump_chunks: int
    release: Release = "on_row"
    apart: int = 0
    units: tuple[str, ...] = ()
    shared_s: float = 0.0

    def __post_init__(self) -> None:
        fine = {
            "names: at least one": len(self.names) > 0,
            f"rate_hz: above 0, at most {MAX_RATE_HZ:g}": 0 < self.rate_hz <= MAX_RATE_HZ,
            "n: a power of two": self.n > 0 and self.n.bit_count() == 1,
            "grace_s: 0 or more": 0 <= self.grace_s < math.inf,
            f"idle_s: above 0, at most {MAX_IDLE_CHUNKS} chunks": (
                0 < self.idle_s * self.rate_hz <= MAX_IDLE_CHUNKS * self.n
            ),
            "jump_chunks: 1 or more": self.jump_chunks >= 1,
            f"release: one of {', '.join(get_args(Release))}": self.release in get_args(Release),
            "apart: 0 or more": self.apart >= 0,
        }
        wrong = [expected for expected, holds in fine.items() if not holds]
        if wrong:
            raise ConfigError(f"device {self.id!r}: expected {'; '.join(wrong)}")

    @property
    def key(self) -> StreamKey:
        """Device and stream."""
        return StreamKey(self.id, self.stream)

    @property
    def features(self) -> int:
        """F."""
        return len(self.names)

    @property
    def chunk_s(self) -> float:
        """Nominal seconds of one chunk."""
        return self.n / self.rate_hz
