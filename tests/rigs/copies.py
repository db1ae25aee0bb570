"""Copies of this process, to see what a copy draws, releases or keeps."""

import ctypes
import os
from collections.abc import Callable

__all__ = ["in_a_copy", "native_fork"]


def native_fork() -> int:
    """A copy of this process made without Python: no hook runs in it (`ctypes.PyDLL` keeps the lock of the parent)."""
    return int(ctypes.PyDLL(None).fork())


def in_a_copy(act: Callable[[], bytes], fork: Callable[[], int] = native_fork) -> bytes:
    """What `act` gives in a copy of this process."""
    reading, writing = os.pipe()
    child = fork()
    if child == 0:
        try:
            os.write(writing, act())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return data
