"""Everything a process writes: by strace, by a proxy on its links, and by what it leaves behind."""

import contextlib
import os
import re
import resource
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

__all__ = ["Process", "Proxy", "has_strace", "traced"]

_WRITES = (
    "write,writev,pwrite64,pwritev,pwritev2,sendto,sendmsg,sendmmsg,open,openat,openat2,creat,mkdir,mkdirat,rename,"
    "renameat,renameat2,link,linkat,symlink,symlinkat,setxattr,fsetxattr,prctl,memfd_create,execve"
)
_UNSEEN = "sendfile,splice,vmsplice,tee,copy_file_range,io_uring_setup,process_vm_writev,shmat,mmap"
_STRING = re.compile(rb'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')
_SHARED = re.compile(rb"\bmmap\(.*PROT_WRITE.*MAP_SHARED.*, (?!-1)\d+, ")
_READ = 1 << 16


def has_strace() -> bool:
    """Whether strace is here and may trace."""
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False).returncode == 0


def traced(log: Path) -> Iterator[bytes]:
    """Every string that a traced process handed to the system, in order.

    Raises
    ------
    RuntimeError
        It used a way out that strace does not show, or a string was cut off.
    """
    with log.open("rb") as lines:
        for line in lines:
            call = line.split(b"(", 1)[0].split()[-1].decode(errors="replace")
            if (call in _UNSEEN.split(",") and call != "mmap") or _SHARED.search(line):
                raise RuntimeError(f"{call}: a way out that strace does not show")
            for string in _STRING.finditer(line):
                if string[2]:
                    raise RuntimeError("strace cut a string off")
                yield bytes.fromhex(string[1].replace(b"\\x", b"").decode())


class Process:
    """A command at work in `folder`, with core files allowed; what it says goes to files there.

    `pid` is its own, also under strace.
    """

    def __init__(self, command: Sequence[str], folder: Path, *, trace: bool) -> None:
        self.folder = folder
        self._log = folder.parent / f"{folder.name}.strace" if trace else None
        self.out, self.err = folder / "stdout", folder / "stderr"
        words = list(command)
        if self._log is not None:
            calls = f"trace={_WRITES},{_UNSEEN}"
            words = ["strace", "-D", "-f", "-q", "-xx", "-s", "9999999", "-o", str(self._log), "-e", calls, *words]
        with self.out.open("wb") as out, self.err.open("wb") as err:
            soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
            resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))  # inherited
            self._process = subprocess.Popen(words, stdout=out, stderr=err, cwd=folder, env=_environment(folder))
            resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
        self.pid = self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it has not ended yet."""
        return self._state() is None

    def said(self) -> str:
        """stderr so far."""
        return self.err.read_text(errors="replace")

    def signal(self, number: int) -> None:
        """Send a signal to the process itself."""
        os.kill(self.pid, number)

    def end(self, seconds: float = 15.0) -> tuple[int, bool]:
        """Wait for the end; the exit code, and whether a core was dumped. Killed when it takes longer."""
        deadline = time.monotonic() + seconds
        while (state := self._state()) is None:
            if time.monotonic() > deadline:
                self._process.kill()
            time.sleep(0.01)
        code = self._process.wait()
        while self._log is not None and not self._finished():
            if time.monotonic() > deadline + 60:
                raise RuntimeError("strace does not end")
            time.sleep(0.01)
        return code, state.si_code == os.CLD_DUMPED

    def _state(self) -> os.waitid_result | None:
        """How it ended, without reaping it: a second look says the same."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)

    def _finished(self) -> bool:
        """Whether strace, which outlives the process by a moment, has written its last line."""
        assert self._log is not None
        with self._log.open("rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - 4096))
            return re.search(rb"(?m)^%d +\+\+\+ " % self.pid, log.read()) is not None

    def strings(self) -> Iterator[bytes]:
        """All that strace saw."""
        return iter(()) if self._log is None else traced(self._log)

    def left(self) -> Iterator[bytes]:
        """Name and content of every file that it left, stdout and stderr among them."""
        for path in sorted(self.folder.rglob("*")):
            yield str(path.relative_to(self.folder)).encode()
            if path.is_file():
                yield path.read_bytes()


def _environment(folder: Path) -> dict[str, str]:
    """Ours, with every place where something might be put inside `folder`, and Python as talkative as it gets."""
    home = {name: str(folder) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_STATE_HOME")}
    return os.environ | home | {"PYTHONFAULTHANDLER": "1", "PYTHONDONTWRITEBYTECODE": "1"}


class Proxy:
    """Forwards connections to `port`, and keeps what the client sent; of what went to it, the first 16 MiB."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.sent: list[bytes] = []
        """By the process under test."""
        self.received: list[bytes] = []
        """By the process under test."""
        self._room = 1 << 24
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        """Listen no more; the process under test has ended."""
        self._server.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._join, args=(near,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _join(self, near: socket.socket) -> None:
        with near, socket.create_connection(("127.0.0.1", self._port)) as far:
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            back = threading.Thread(target=_pump, args=(far, near, self._keep_received), daemon=True)
            back.start()
            _pump(near, far, self.sent.append)
            back.join()

    def _keep_received(self, data: bytes) -> None:
        if self._room > 0:
            self.received.append(data)
            self._room -= len(data)


def _pump(source: socket.socket, target: socket.socket, keep: Callable[[bytes], None]) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_READ):
            keep(data)
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
