"""What eyestream logs, caught."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["silence"]


@contextmanager
def silence() -> Iterator[list[str]]:
    """Lines that eyestream logs inside; they go nowhere else."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("eyestream")
    propagate, level = logger.propagate, logger.level
    logger.propagate = False
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate
        logger.setLevel(level)
