"""Tell the service manager that we are ready, alive, and stopping: sd_notify(3) without a library."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Mapping

__all__ = ["Notifier"]


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
