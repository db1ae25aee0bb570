"""What many tests share: a real broker, and the data beside the checkout."""

import asyncio
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


def free_port() -> int:
    """A TCP port of the loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def until(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait until `holds()`; a test fails when it does not in time."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110  the conditions of tests have no events
            await asyncio.sleep(0.005)


class Mosquitto:
    """One mosquitto on one loopback port, started and stopped by its own handle."""

    def __init__(self, folder: Path, *more: str) -> None:
        self.port = free_port()
        self.url = f"mqtt://127.0.0.1:{self.port}"
        self.log = folder / "mosquitto.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._configuration = folder / "mosquitto.conf"
        lines = [f"listener {self.port} 127.0.0.1", "allow_anonymous true", "set_tcp_nodelay true"]
        lines += ["max_queued_messages 100000", f"log_dest file {self.log}", "log_type all", *more]
        if os.geteuid() == 0:
            lines.append("user root")
        self._configuration.write_text("\n".join(lines) + "\n")

    def start(self) -> None:
        """Start and wait until it accepts connections."""
        program = shutil.which("mosquitto", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
        assert program is not None
        self._process = subprocess.Popen([program, "-c", str(self._configuration)], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while True:
            try:
                self.knock()
                return
            except OSError:
                assert self._process.poll() is None, "mosquitto ended at once"
                assert time.monotonic() < deadline, "mosquitto does not listen"
                time.sleep(0.01)

    def knock(self) -> None:
        """Raise OSError when it does not accept connections."""
        socket.create_connection(("127.0.0.1", self.port), timeout=1).close()

    def stop(self, *, kill: bool = False) -> None:
        """Stop it; `kill` gives it no time to say goodbye."""
        if self._process is None:
            return
        if kill:
            self._process.kill()
        else:
            self._process.terminate()
        self._process.wait(timeout=10)
        self._process = None


@pytest.fixture
def mosquitto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    """A started broker. Skips where mosquitto is not installed, and fails there in CI."""
    if shutil.which("mosquitto", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin") is None:
        if os.environ.get("CI"):
            pytest.fail("mosquitto is not installed")
        pytest.skip("mosquitto is not installed")
    broker = Mosquitto(tmp_path_factory.mktemp("mosquitto"))
    broker.start()
    yield broker
    broker.stop()


@pytest.fixture
def shared_data() -> Path:
    """The directory of recordings beside the checkout, which is no part of the repository."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no ../shared/data beside the checkout")
    return folder
