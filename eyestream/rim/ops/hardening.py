"""Keep the memory of this process to itself: it holds raw rows.

A core limit of 0 stops core files. It does not stop a core that the kernel pipes into a program (core(5)), and it does
not stop another process of the same user from reading our memory; a process that is not dumpable stops both (prctl(2)).
"""

import ctypes
import resource

__all__ = ["keep_memory_private", "memory_is_private"]

_GET_DUMPABLE, _SET_DUMPABLE = 3, 4


def keep_memory_private() -> None:
    """No core of this process, in a file or through a pipe, and no debugger at it."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def memory_is_private() -> bool:
    """Whether `keep_memory_private` has worked."""
    dumpable: int = ctypes.CDLL(None).prctl(_GET_DUMPABLE, 0, 0, 0, 0)
    return dumpable == 0 and resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)
