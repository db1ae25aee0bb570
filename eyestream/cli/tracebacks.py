"""What is said of an error that nobody foresaw: where and of what type, never its message.

A library may put into a message what it was given, and that may be a raw row. The lines of a traceback are lines of
code; the message is the only part that holds values.
"""

import sys
import threading
import traceback
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from threading import ExceptHookArgs

__all__ = ["hide_messages", "in_one_line", "told"]


def told(error: BaseException) -> str:
    """Frames and type of `error`, then of what it was raised in place of, and of the members of a group."""
    seen: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop(0)
        if one is None or any(one is other for other in seen):  # a chain of causes may be a ring
            continue
        seen.append(one)
        waiting += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
    return "".join(_frames(one) for one in seen)


def in_one_line(error: BaseException) -> str:
    """Type of `error` and the places it came through, the one where it was raised last."""
    places = (f"{Path(at.filename).name}:{at.lineno} {at.name}" for at in traceback.extract_tb(error.__traceback__))
    return f"{type(error).__name__} (its message is kept back: it may hold raw values), by " + " > ".join(places)


def _frames(error: BaseException) -> str:
    lines = ["Traceback (most recent call last):\n", *traceback.format_tb(error.__traceback__)]
    return "".join(lines) + f"{type(error).__name__} (its message is kept back: it may hold raw values)\n"


def hide_messages() -> None:
    """From now on, no error that ends the process or a thread, or that cannot be raised, tells its message."""
    sys.excepthook = _of_process
    threading.excepthook = _of_thread
    sys.unraisablehook = _unraisable


def _of_process(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    sys.stderr.write(told(error))


def _of_thread(given: "ExceptHookArgs") -> None:
    if given.exc_value is not None:
        sys.stderr.write(told(given.exc_value))


def _unraisable(given: "UnraisableHookArgs") -> None:
    if given.exc_value is not None:
        sys.stderr.write(told(given.exc_value))
