"""The processes around a sidecar under test: each started here, and stopped by its own handle."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import msgspec

from benchmarks.mqtt import Client
from eyestream.rim import config
from eyestream.rim.files import calibrations
from eyestream.rim.ledger.reading import create_ledger
from eyestream.wire.topics import sidecar_status_topic
from eyestream_lab.embedded import free_port
from tests.rigs.mosquitto import program

__all__ = [
    "CALIBRATION",
    "RUN",
    "Child",
    "Waiter",
    "broker",
    "embedded_broker",
    "mosquitto_missing",
    "python_child",
    "sidecar",
    "write_config",
]

_TICK = os.sysconf("SC_CLK_TCK")
_REPOSITORY = Path(__file__).resolve().parents[1]
RUN = "from eyestream.cli.main import main; main()"
CALIBRATION = "everyday-cfpa-64"


class Child:
    """A process of ours; `environment` has the variables that are other than ours."""

    def __init__(
        self, command: Sequence[str], core: int | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self.started = time.monotonic_ns()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=_REPOSITORY,
            env=os.environ | (environment or {}),
        )
        if core is not None:
            os.sched_setaffinity(self._process.pid, {core})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(timeout=10)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def line(self) -> str:
        """The next line that it says; ours to wait for."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._process.args!r} ended too early")
        return line.rstrip("\n")

    def tell(self, line: str) -> None:
        """Say a line to it."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def cpu_seconds(self) -> float:
        """Processor time it has used."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    def counts(self) -> tuple[int, int, int]:
        """Nanoseconds and voluntary context switches of all its threads, and its bytes to the disk."""
        spent = woken = 0
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            spent += int((task / "schedstat").read_text().split()[0])
            lines = (task / "status").read_text().splitlines()
            woken += sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))
        io = dict(line.split(": ") for line in Path(f"/proc/{self.pid}/io").read_text().splitlines())
        return spent, woken, int(io["write_bytes"])

    def resident_mib(self) -> float:
        """Resident memory now."""
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        return 0.0


def python_child(module: str, *arguments: object, core: int | None = None) -> Child:
    """One of the roles of this folder in a process of its own."""
    return Child([sys.executable, "-m", f"benchmarks.{module}", *map(str, arguments)], core)


def mosquitto_missing() -> str | None:
    """Why there can be no mosquitto, or None."""
    return None if program() else "mosquitto is not installed: left out"


@contextmanager
def broker() -> Iterator[int]:
    """A mosquitto on the loopback; gives its port."""
    port, found = free_port(), program()
    assert found is not None
    with tempfile.TemporaryDirectory() as folder:
        lines = [f"listener {port} 127.0.0.1", "allow_anonymous true", "set_tcp_nodelay true"]
        lines += ["max_queued_messages 100000", "max_inflight_messages 0", "log_type error"]
        if os.geteuid() == 0:
            lines.append("user root")
        file = Path(folder) / "mosquitto.conf"
        file.write_text("\n".join(lines) + "\n")
        with Child([found, "-c", str(file)]):
            _wait_for(port)
            yield port


@contextmanager
def embedded_broker() -> Iterator[int]:
    """The embedded broker in a process of its own; gives its port."""
    port = free_port()
    with python_child("embedded", port) as child:
        child.line()
        _wait_for(port)
        yield port


def _wait_for(port: int) -> None:
    for _ in range(1000):
        try:
            Client(port, "probe").close()
            return
        except OSError:
            time.sleep(0.01)
    raise RuntimeError("the broker does not answer")


def write_config(folder: Path, port: int, devices: Sequence[str], ledger: Path | None = None) -> Path:
    """Configuration of a sidecar with ceilings that are never reached, and its new ledger."""
    names = calibrations.load(CALIBRATION).names
    text = f"""
    [sidecar]
    name = "bench"
    ledger = "{ledger or "ledger"}"
    [private]
    url = "mqtt://127.0.0.1:{port}"
    [[stream]]
    name = "features"
    schema = 1
    rate_hz = 2.0
    window_s = 30.0
    grace_s = 1.0
    idle_s = 600.0
    release = "on_row"
    names = {msgspec.json.encode(list(names)).decode()}
    [stream.privacy]
    calibration = "{CALIBRATION}"
    epsilon = 4.8
    k = 8
    [budget]
    window_chunks = 2
    window_epsilon = 9.6
    session_epsilon = 1e7
    day_epsilon = 1e7
    [limits]
    raw_messages = 4096
    """
    text += "".join(f'\n[[device]]\nid = "{device}"\n' for device in devices)
    path = folder / "sidecar.toml"
    path.write_text(text)
    create_ledger(config.load(path).sidecar.ledger, created=int(time.time()))
    return path


@contextmanager
def sidecar(port: int, devices: Sequence[str], *, core: int | None = None, fast_disk: bool = False) -> Iterator[Child]:
    """``eyestream run`` at work, its devices subscribed; `fast_disk` keeps the ledger in memory where there is one."""
    memory = Path("/dev/shm") if fast_disk and Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(dir=memory) as other:
        path = write_config(Path(folder), port, devices, Path(other) / "ledger")
        with watcher(port) as wait, Child([sys.executable, "-c", RUN, "run", "--config", str(path)], core) as child:
            wait()
            yield child


@contextmanager
def watcher(port: int) -> Iterator["Waiter"]:
    """Gives what waits until the sidecar is online and says how long after that was."""
    client = Client(port, "watcher")
    client.subscribe([sidecar_status_topic("bench")])
    time.sleep(0.05)
    yield Waiter(client)
    client.close()


class Waiter:
    """Waits for a sidecar to be ready: degraded when it starts, online when its devices are subscribed."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __call__(self) -> int:
        """Monotonic nanoseconds when it was ready."""
        count = 0
        while True:
            if not self._client.wait(count + 1, 60):
                raise RuntimeError("the sidecar is not ready after a minute")
            count += 1
            if b"online" in self._client.payloads[count - 1]:
                return self._client.arrivals[count - 1][1]
