"""What eyestream logs, caught."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["log_as_it_was", "silence"]


@contextmanager
def log_as_it_was() -> Iterator[logging.Logger]:
    """The log of eyestream, which is afterwards what it was before, whatever was done to it."""
    log = logging.getLogger("eyestream")
    handlers, level, propagate = log.handlers[:], log.level, log.propagate
    try:
        yield log
    finally:
        log.handlers[:] = handlers
        log.setLevel(level)
        log.propagate = propagate


@contextmanager
def silence() -> Iterator[list[str]]:
    """Lines that eyestream logs inside; they go nowhere else."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    with log_as_it_was() as log:
        log.propagate = False
        log.addHandler(handler)
        log.setLevel(logging.DEBUG)
        yield lines
