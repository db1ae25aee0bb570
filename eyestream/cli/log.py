"""Log lines, and what is said of an error that nobody foresaw: where and of what type, never its message.

A library may put into a message what it was given, and that may be a raw row. The lines of a traceback are lines of
code; the message is the only part that holds values.
"""

import asyncio
import json
import logging
import os
import shutil
import sys
import threading
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from eyestream.errors import LinkError


class JsonLines(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message; and the fields of an event, where it is one."""

    def format(self, record: logging.LogRecord) -> str:
        """The object; no traceback, which might hold more than a message may."""
        said = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        return json.dumps(said | getattr(record, "fields", {}))


class _ForJournal(logging.Formatter):
    """Each line with its priority in front, as sd-daemon(3) has it: systemd takes it off and files the line by it."""

    def __init__(self, own: logging.Formatter) -> None:
        super().__init__()
        self._own = own

    def format(self, record: logging.LogRecord) -> str:
        """The line of the other formatter, after its priority."""
        priority = next(number for level, number in _PRIORITIES if record.levelno >= level)
        return f"<{priority}>{self._own.format(record)}"


_PRIORITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6), (0, 7))


def _to_journal() -> bool:
    """Whether standard error is systemd's journal (systemd.exec(5), JOURNAL_STREAM)."""
    device, _, inode = os.environ.get("JOURNAL_STREAM", "").partition(":")
    try:
        found = os.fstat(sys.stderr.fileno())
    except (OSError, ValueError):
        return False
    return (str(found.st_dev), str(found.st_ino)) == (device, inode)


class LogLines(logging.StreamHandler[TextIO]):
    """Log lines on stderr, and on a terminal below them one that is written again and again, such as a countdown."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self._shown = ""

    def show(self, text: str) -> None:
        """Let `text` stand below the lines; "": nothing. Elsewhere than on a terminal nothing is shown."""
        if text != self._shown and self.stream.isatty():
            self._shown = text[: shutil.get_terminal_size().columns - 1]
            self.stream.write(_CLEAR + self._shown)
            self.flush()

    def emit(self, record: logging.LogRecord) -> None:
        """A line above what is shown."""
        if not self._shown:
            super().emit(record)
            return
        self.stream.write(_CLEAR)
        super().emit(record)
        self.stream.write(self._shown)
        self.flush()


_CLEAR = "\r\x1b[K"
"""Back to the beginning of the line, and away with it (ECMA-48, EL)."""


def start_log(
    level: int = logging.INFO,
    formatter: logging.Formatter = logging.Formatter("%(asctime)s %(levelname)s %(message)s"),  # noqa: B008  immutable
) -> LogLines:
    """Log lines of eyestream on stderr, one line each."""
    handler = LogLines()
    handler.setFormatter(_ForJournal(formatter) if _to_journal() else formatter)
    log = logging.getLogger("eyestream")
    log.handlers[:] = [handler]
    log.setLevel(level)
    log.propagate = False
    return handler


def one_line_faults() -> "asyncio.Future[None]":
    """From now on, faults in callbacks of the running loop are one line in the log.

    What the network does is for those who look for it. What nobody foresaw is an error: its type and places are said,
    and neither its message nor the callback and what that was given, which may be a raw row.

    Returns
    -------
    asyncio.Future
        Fails with the first such error of a callback: what it had to do is not done, and who depends on it must end.
    """
    log, fault = logging.getLogger("eyestream.loop"), asyncio.get_running_loop().create_future()

    def say(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error, of_callback = context.get("exception"), "handle" in context
        if error is None or (isinstance(error, OSError | LinkError) and not of_callback):
            kind = "no exception" if error is None else type(error).__name__
            log.debug("%s (%s)", context["message"], kind)
            return
        log.error("nobody foresaw this: %s", in_one_line(error))
        if of_callback and not isinstance(error, OSError) and not fault.done():
            fault.set_exception(error)
            fault.exception()  # looked at: where nobody waits for it, the log has it

    asyncio.get_running_loop().set_exception_handler(say)
    return fault


def traceback_without_message(error: BaseException) -> str:
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
    # Without columns: carets are found by a parser, and an error may come while that parser is at work (a finalizer's).
    frames = [(at.filename, at.lineno or 0, at.name, at.line) for at in traceback.extract_tb(error.__traceback__)]
    lines = ["Traceback (most recent call last):\n", *traceback.StackSummary.from_list(frames).format()]
    return "".join(lines) + f"{type(error).__name__} (its message is kept back: it may hold raw values)\n"


def hide_messages() -> None:
    """From now on, no error that ends the process or a thread, or that cannot be raised, tells its message."""
    sys.excepthook = lambda kind, error, trace: _tell(error)
    threading.excepthook = lambda given: _tell(given.exc_value)
    sys.unraisablehook = lambda given: _tell(given.exc_value)


def _tell(error: BaseException | None) -> None:
    if error is not None:
        sys.stderr.write(traceback_without_message(error))
