"""What a publisher holds until it goes as one message: rows of a chunk, samples of some milliseconds. Pure."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["Gaze", "Rows"]


@dataclass(eq=False, slots=True)
class Rows:
    """Rows with consecutive numbers that wait, and their times, if they have any."""

    first: int = 0
    blocks: list[NDArray[np.float32]] = field(default_factory=list)
    times: list[NDArray[np.float64]] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(map(len, self.blocks))

    def fits(self, first: int, times: NDArray[np.float64] | None) -> bool:
        """Whether rows from number `first` on, with or without times, go into one message with those that wait."""
        return not self.blocks or (first == self.first + len(self) and (times is None) == (not self.times))

    def add(self, first: int, block: NDArray[np.float32], times: NDArray[np.float64] | None) -> None:
        """Let them wait too."""
        if not self.blocks:
            self.first = first
        self.blocks.append(block)
        if times is not None:
            self.times.append(times)

    def take(self, count: int) -> tuple[int, NDArray[np.float32], NDArray[np.float64] | None]:
        """The first `count`; the others wait on."""
        first, block = self.first, np.concatenate(self.blocks)
        times = np.concatenate(self.times) if self.times else None
        self.first, self.blocks, self.times = first + count, [], []
        if count < len(block):
            self.add(self.first, block[count:], None if times is None else times[count:])
        return first, block[:count], None if times is None else times[:count]


@dataclass(eq=False, slots=True)
class Gaze:
    """Samples that wait, with their times."""

    blocks: list[NDArray[np.float32]] = field(default_factory=list)
    times: list[NDArray[np.float64]] = field(default_factory=list)

    @property
    def held(self) -> bool:
        """Whether some wait."""
        return bool(self.blocks)

    @property
    def span(self) -> float:
        """Seconds from the first to the last; infinite where the clock went back or is none."""
        t = np.concatenate(self.times)
        seconds = float(t[-1] - t[0]) if len(t) else np.inf
        return seconds if seconds >= 0 else np.inf

    def fits(self, block: NDArray[np.float32], most: int) -> bool:
        """Whether they go into one message of `most` samples with those that wait."""
        return not self.blocks or (
            self.blocks[0].shape[1] == block.shape[1] and sum(map(len, self.blocks)) + len(block) <= most
        )

    def add(self, times: NDArray[np.float64], block: NDArray[np.float32]) -> None:
        """Let them wait too."""
        self.times.append(times)
        self.blocks.append(block)

    def take(self) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """Times and samples; none waits on."""
        found = np.concatenate(self.times), np.concatenate(self.blocks)
        self.times, self.blocks = [], []
        return found
