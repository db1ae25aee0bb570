"""What an application reads."""

from typing import Any

__all__ = ["Bits"]


class Bits:
    """Of a released spell.

    Attributes
    ----------
    counts : those whose bit is 1, in words.
    """

    def __init__(self, chunk: Any) -> None:
        self.counts = {name for name, bit in zip(chunk.names, chunk.values[:, 0], strict=True) if bit > 0}
