"""How far a command is: one line that counts."""

import sys
import time

__all__ = ["Progress"]


class Progress:
    """Rewritten in a terminal, repeated every few seconds elsewhere; on stderr.

    Parameters
    ----------
    name, total, unit
        What is worked on, and how many of what it has.
    """

    def __init__(self, name: str, total: int, unit: str) -> None:
        self._name, self._total, self._unit = name, total, unit
        self._live = sys.stderr.isatty()
        self._next = time.monotonic() + (0.0 if self._live else 5.0)

    def __call__(self, done: int) -> None:
        """So many are done."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + (0.2 if self._live else 5.0)
        self._say(f"{self._name}: {done} of {self._total} {self._unit}", "\r" if self._live else "\n")

    def finish(self, how: str) -> None:
        """Say how it ended."""
        self._say(f"{self._name}: {how}", "\n")

    def clear(self) -> None:
        """Leave the line to what is said next."""
        if self._live:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    @staticmethod
    def _say(text: str, end: str) -> None:
        print(f"\r{text}" if end == "\r" else text, end=end, file=sys.stderr, flush=True)
