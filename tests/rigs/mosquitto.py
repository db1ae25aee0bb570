"""A real broker: mosquitto, started and stopped by a handle."""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

from eyestream_lab.embedded import free_port
from eyestream_lab.testing.clocks import PATIENCE_S

__all__ = ["Mosquitto", "plugin", "program"]


def program() -> str | None:
    """Path of the installed mosquitto; None where there is none.

    Debian has it in a `sbin`, which is not on the path of every user: the one beside each `bin` of the path is tried.
    """
    path = os.environ.get("PATH", os.defpath).split(os.pathsep)
    beside = [str(Path(folder).with_name("sbin")) for folder in path if Path(folder).name == "bin"]
    return shutil.which("mosquitto", path=os.pathsep.join([*path, *beside]))


def plugin() -> Path | None:
    """Path of the installed mosquitto's dynamic security plugin; None where there is none."""
    return next(Path("/usr/lib").glob("**/mosquitto_dynamic_security.so"), None)


class Mosquitto:
    """One mosquitto on one loopback port, started and stopped by its own handle.

    Parameters
    ----------
    folder
        Where its configuration and its log go.
    more
        Further lines of the configuration.
    binary
        Another mosquitto than the installed one.
    """

    def __init__(self, folder: Path, *more: str, binary: str | None = None) -> None:
        self._binary = binary
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

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start and wait until it accepts connections."""
        found = self._binary or program()
        assert found is not None, "mosquitto is not installed"
        self._process = subprocess.Popen([found, "-c", str(self._configuration)], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE_S
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

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self, *, kill: bool = False) -> None:
        """Stop it; `kill` gives it no time to say goodbye."""
        if self._process is None:
            return
        if kill:
            self._process.kill()
        else:
            self._process.terminate()
        self._process.wait(timeout=PATIENCE_S)
        self._process = None
