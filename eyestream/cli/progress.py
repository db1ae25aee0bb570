"""How far a command is: one line on stderr, with a bar where there is something to count."""

import contextlib
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from eyestream.gaze.entry import USUAL, FrontEndEntry
from eyestream.gaze.profile import Profile
from eyestream.rim.files.extraction import load_rows
from eyestream.rim.files.recordings import Recording

_COUNTED = re.compile(r"(\d+) of (\d+) ")
_WIDTH = 20
_EVERY_S = 30.0


class Line:
    """Rewritten in a terminal. Elsewhere a line every half minute, and so none for what is quick.

    A text that says ``3 of 12`` has a bar before it in a terminal.
    """

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._next = time.monotonic() + (0.0 if self._live else _EVERY_S)

    def __call__(self, text: str) -> None:
        """Say where things stand, unless something was said just now."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + (0.1 if self._live else _EVERY_S)
        if self._live:
            room = shutil.get_terminal_size().columns - 1
            print(f"\r\033[K{_with_bar(text)[:room]}", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Leave the line to what is said next."""
        if self._live:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _with_bar(text: str) -> str:
    """`text` behind a bar of what it counts, where it counts anything.

    >>> _with_bar("read: 5 of 10 recordings")
    '[##########          ] read: 5 of 10 recordings'
    """
    counted = _COUNTED.search(text)
    if counted is None or not int(counted[2]):
        return text
    full = _WIDTH * int(counted[1]) // int(counted[2])
    return f"[{'#' * full:<{_WIDTH}}] {text}"


class Progress:
    """A line that counts, and says how long the rest takes.

    Parameters
    ----------
    name, total, unit
        What is worked on, and how many of what it has.
    """

    def __init__(self, name: str, total: int, unit: str) -> None:
        self._name, self._total, self._unit = name, total, unit
        self._line, self._began = Line(), time.monotonic()

    def __call__(self, done: int) -> None:
        """So many are done."""
        passed = time.monotonic() - self._began
        left = passed * (self._total - done) / done if done and passed > 1.0 else 0.0
        rest = f", about {left:.0f} s left" if left >= 1.0 else ""
        self._line(f"{self._name}: {done} of {self._total} {self._unit}{rest}")

    def finish(self, how: str) -> None:
        """Say how it ended."""
        self.clear()
        print(f"{self._name}: {how}", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Leave the line to what is said next."""
        self._line.clear()


@contextlib.contextmanager
def busy(what: str) -> Iterator[Callable[[int, int], None]]:
    """Say every second for how long the body has been at it; what it gets takes how much is done, and of how much."""
    line, over, began = Line(), threading.Event(), time.monotonic()
    counted = ""

    def tell() -> None:
        while not over.wait(1.0):
            line(f"{what}: {counted}{time.monotonic() - began:.0f} s")

    def count(done: int, total: int) -> None:
        nonlocal counted
        counted = f"{done} of {total} done, "

    beside = threading.Thread(target=tell, name="progress", daemon=True)
    beside.start()
    try:
        yield count
    finally:
        over.set()
        beside.join()
        line.clear()


def load_all(paths: Sequence[Path], profile: Profile | None, entry: FrontEndEntry = USUAL) -> list[Recording]:
    """The recordings in files, as `load_rows` reads each."""
    counted, loaded = Progress("read", len(paths), "recordings"), []
    for path in paths:
        loaded.append(load_rows(path, profile, entry))
        counted(len(loaded))
    counted.clear()
    return loaded
