"""Real NATS servers, one or three, started and stopped by a handle."""

import asyncio
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from eyestream.errors import LinkError
from eyestream_fleet.demo.servers import Server, free_port, nats_program

__all__ = ["NatsServer", "cluster", "nats_program", "patiently"]

Result = TypeVar("Result")


class NatsServer(Server):
    """A server of a demo that ends as `config/fleet` lets it, and may stand still."""

    def __init__(
        self,
        folder: Path,
        partitions: int,
        name: str = "n0",
        routes: Sequence[int] = (),
        place: int = 0,
        *,
        memory: str = "1G",
        durable: bool = True,
    ) -> None:
        self._pid_file = folder / f"{name}.pid"
        more = [f"pid_file: '{self._pid_file}'", *_drain_lines()]
        super().__init__(folder, partitions, name, routes, place, memory=memory, durable=durable, more=more)

    def drain(self) -> None:
        """Ask it to end in order, as `config/fleet` does; it is there until `drained`."""
        subprocess.run([self._program, "--signal", f"ldm={self._pid_file}"], check=True)

    def freeze(self) -> None:
        """As a host that has lost its power: it answers nothing, and its connections stay."""
        assert self._process is not None, "it is not started"
        self._process.send_signal(signal.SIGSTOP)

    @property
    def pid(self) -> int:
        """Of its process."""
        assert self._process is not None, "it is not started"
        return self._process.pid

    @property
    def drained(self) -> bool:
        """Whether its process has ended."""
        return not self.runs


async def patiently(call: Callable[[], Awaitable[Result]], seconds: float = 60.0) -> Result:
    """Until it works: a cluster elects a leader first, and again after each kill."""
    from nats.errors import Error

    end = time.monotonic() + seconds
    while True:
        try:
            return await call()
        except (Error, LinkError, TimeoutError, OSError):
            if time.monotonic() > end:
                raise
            await asyncio.sleep(0.1)


def _drain_lines() -> list[str]:
    """How a server ends in order, from the file of operators."""
    lines = (Path(__file__).parents[2] / "config" / "fleet" / "nats.conf").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith("lame_duck")]


def cluster(folder: Path, partitions: int, memory: Sequence[str] = ("1G", "1G", "1G")) -> list[NatsServer]:
    """Three servers that know one another; not started."""
    routes = [free_port() for _ in memory]
    return [NatsServer(folder, partitions, f"n{place}", routes, place, memory=own) for place, own in enumerate(memory)]
