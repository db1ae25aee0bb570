"""The key of a stream: everything that is kept per stream is kept under it."""

from typing import NamedTuple

__all__ = ["StreamKey"]


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
