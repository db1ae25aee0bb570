"""Requests to the system: to keep this process' memory to itself, and to know it as ready, alive or stopping.

The memory holds raw rows. A core limit of 0 stops core files. It does not stop a core that the kernel pipes into a
program (core(5)), and it does not stop another process of the same user from reading our memory; a process that is not
dumpable stops both (prctl(2)). That is Linux's; macOS has the limit alone, Windows neither.

The service manager is told by sd_notify(3), without a library.
"""

import asyncio
import contextlib
import ctypes
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping

try:
    import resource
except ImportError:
    resource = None  # type: ignore[assignment]

_GET_DUMPABLE, _SET_DUMPABLE = 3, 4
_LINUX = ("linux", "android")  # Python 3.13 and later tell Android from Linux


def keep_memory_private() -> None:
    """No core of this process, in a file or through a pipe, and no debugger at it, as far as the system can do that."""
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform in _LINUX:
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def memory_is_private() -> bool:
    """Whether `keep_memory_private` has worked."""
    return not not_forbidden()


def not_forbidden() -> list[str]:
    """Ways in which the memory of this process can still be read, in words; empty when there is none."""
    found = []
    if resource is None or resource.getrlimit(resource.RLIMIT_CORE) != (0, 0):
        found.append("a core file")
    if sys.platform not in _LINUX or ctypes.CDLL(None).prctl(_GET_DUMPABLE, 0, 0, 0, 0) != 0:
        found.append("a debugger of the same user")
    return found


class Notifier:
    """Datagrams to the socket that systemd names in the environment; without one, nothing happens.

    Parameters
    ----------
    environment
        Of the process: ``NOTIFY_SOCKET`` and ``WATCHDOG_USEC``.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        name = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + name[1:] if name.startswith("@") else name
        period = environment.get("WATCHDOG_USEC", "")
        self.watchdog_s = int(period) / 1e6 if period.isdecimal() else 0.0
        """Without a sign of life for so long we are killed; 0: nobody watches."""

    def send(self, word: str) -> None:
        """Send ``READY=1``, ``STOPPING=1``, ``WATCHDOG=1`` or ``STATUS=`` and a line; who does not listen misses it."""
        if self._address:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as pipe:
                pipe.setblocking(False)
                pipe.sendto(word.encode(), self._address)

    async def watch(self, pulse: Callable[[], Awaitable[None]]) -> None:
        """Give a sign of life three times in each watchdog period, each only after `pulse` has returned."""
        while self._address and self.watchdog_s:
            await pulse()
            self.send("WATCHDOG=1")
            await asyncio.sleep(self.watchdog_s / 3)
