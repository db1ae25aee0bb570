"""Keep the memory of this process to itself: it holds raw rows.

A core limit of 0 stops core files. It does not stop a core that the kernel pipes into a program (core(5)), and it does
not stop another process of the same user from reading our memory; a process that is not dumpable stops both (prctl(2)).
That is Linux's; macOS has the limit alone, Windows neither.
"""

import ctypes
import sys

try:
    import resource
except ImportError:
    resource = None  # type: ignore[assignment]

__all__ = ["keep_memory_private", "memory_is_private", "not_forbidden"]

_GET_DUMPABLE, _SET_DUMPABLE = 3, 4


def keep_memory_private() -> None:
    """No core of this process, in a file or through a pipe, and no debugger at it, as far as the system can do that."""
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def memory_is_private() -> bool:
    """Whether `keep_memory_private` has worked."""
    return not not_forbidden()


def not_forbidden() -> list[str]:
    """What could still read the memory of this process, in words; empty when nothing can."""
    found = []
    if resource is None or resource.getrlimit(resource.RLIMIT_CORE) != (0, 0):
        found.append("a core file")
    if sys.platform != "linux" or ctypes.CDLL(None).prctl(_GET_DUMPABLE, 0, 0, 0, 0) != 0:
        found.append("a debugger of the same user")
    return found
