"""The control socket: lines from the wearer's side, each answered by a line. Nothing but words of ours comes out.

============== ================================= ===============================================================
line           answer                            what it does
============== ================================= ===============================================================
``pause``      ``paused``                        `Off.pause`
``resume``     ``on``, or ``paused``             `Off.resume`
``indicator``  ``on`` or ``off``, and again      shows it; without a connection, take it for ``off``
               with each change
============== ================================= ===============================================================

Any other line is answered with ``no`` and some words, and nothing happens. So is every line of a user who may not.
"""

import asyncio
import contextlib
import logging
import os
import socket
import stat
import struct
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from pathlib import Path

from eyestream.errors import ConfigError, LedgerError
from eyestream.rim.config.tables import Settings
from eyestream.rim.ledger.file import held_alone
from eyestream.rim.sidecar.off import Off

_LOG = logging.getLogger("eyestream.control")

MOST_CLIENTS, MOST_BYTES, MOST_UNREAD = 16, 256, 4096
"""Connections at once, of which the oldest is closed, one that shows the indicator last; bytes of a line; bytes that a
client may leave unread."""

SHOWN_S = 5.0
"""Seconds for the indicator's program to end."""

_LONGEST_PATH = 107
_CREDENTIALS = struct.Struct("3i")
_NOBODY = 65534
"""The user that stands for all whom a user namespace does not know."""


def control_socket(settings: Settings) -> Path:
    """Where the sidecar of a configuration listens: beside its ledger, if it says nothing else."""
    ledger = settings.sidecar.ledger
    return settings.control.socket or ledger.with_name(f"{ledger.name}.control")


def _users(names: Collection[str]) -> frozenset[int]:
    """Numbers of those who may: ourselves, root, and the users named. Raises ConfigError."""
    import pwd  # noqa: PLC0415  not on Windows

    try:
        return frozenset({0, os.geteuid(), *(pwd.getpwnam(name).pw_uid for name in names)}) - {_NOBODY}
    except KeyError as error:
        raise ConfigError(f"[control] users: there is no user {error.args[0].split()[-1]}") from None


class Control:
    """The lines of one sidecar, and who watches its indicator.

    Parameters
    ----------
    off
        The switch.
    program
        Is started with ``on`` or ``off``; None: there is none.
    may
        Numbers of the users who may.
    """

    def __init__(self, off: Off, program: Path | None, may: Collection[int]) -> None:
        self._off, self._program, self._may = off, program, may
        self._clients: dict[asyncio.StreamWriter, bool] = {}
        self._shown = "off"
        self.lines: dict[str, Callable[[str], Awaitable[str]]] = {"pause": self._pause, "resume": self._resume}
        """The work of each first word, which is given the rest of its line. Others may add theirs."""
        off.show = self.show

    async def show(self, on: bool) -> bool:
        """Show on the socket and by the program; whether the program did."""
        self._shown = word = "on" if on else "off"
        for client in [client for client, watches in self._clients.items() if watches]:
            self._say(client, word)
        return self._program is None or await _started(self._program, word)

    async def visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        peer = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        user = _CREDENTIALS.unpack(peer)[1]
        if user not in self._may:
            _LOG.warning("control: user %d may not, and was refused", user)
            writer.write(b"no: this user may not\n")
            writer.close()
            return
        if len(self._clients) >= MOST_CLIENTS:
            min(self._clients, key=lambda client: self._clients[client]).transport.abort()
        self._clients[writer] = False
        try:
            while line := await reader.readline():
                if not line.endswith(b"\n"):
                    raise ValueError
                self._say(writer, await self._answer(line, writer))
        except (ValueError, OSError):  # of asyncio: too long a line, a connection that is lost
            self._say(writer, f"no: a line has at most {MOST_BYTES} bytes, and ends")
        finally:
            self._clients.pop(writer, None)
            writer.close()

    async def _answer(self, line: bytes, writer: asyncio.StreamWriter) -> str:
        word, _, rest = line.decode("ascii", "replace").strip().partition(" ")
        if word == "indicator" and not rest:
            self._clients[writer] = True
            return self._shown
        known = self.lines.get(word)
        if known is None or (rest and word in ("pause", "resume", "indicator")):
            _LOG.warning("control: a line that is not known was refused")
            return f"no: expected {', '.join(self.lines)} or indicator"
        try:
            return await known(rest)
        except LedgerError as error:
            _LOG.error("control: %s", error)
            return "no: it is off now, but the disk failed, and the next start may be another"

    async def _pause(self, rest: str) -> str:
        await self._off.pause()
        return "paused"

    async def _resume(self, rest: str) -> str:
        return "on" if await self._off.resume() else "paused"

    def _say(self, client: asyncio.StreamWriter, word: str) -> None:
        client.write(f"{word}\n".encode())
        if client.transport.get_write_buffer_size() > MOST_UNREAD:
            client.transport.abort()


async def _started(program: Path, word: str) -> bool:
    """Start the program and wait for its end; whether it did what it was asked."""
    try:
        process = await asyncio.create_subprocess_exec(program, word, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
    except OSError as error:
        _LOG.error("the indicator %s cannot be started: %s", program, error.strerror)
        return False
    try:
        async with asyncio.timeout(SHOWN_S):
            code = await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
        code = -1
    if code:
        _LOG.error("the indicator %s %s failed", program, word)
    return code == 0


@contextlib.asynccontextmanager
async def serving(settings: Settings, off: Off) -> AsyncIterator[Control | None]:
    """Listen on the control socket; None on a system that does not say who is at the other end.

    Raises
    ------
    ConfigError
        The socket cannot be made, or another process listens there; a user that is not there.
    """
    path, table = control_socket(settings), settings.control
    if not hasattr(socket, "SO_PEERCRED"):
        _LOG.warning("this system does not say who writes to a socket: there is no control socket")
        yield None
        return
    control = Control(off, table.indicator, _users(table.users))
    with _bound(path, 0o666 if table.users else 0o600) as listening:
        server = await asyncio.start_unix_server(control.visit, sock=listening, limit=MOST_BYTES)
        async with server:
            try:
                yield control
            finally:
                for client in list(control._clients):
                    client.transport.abort()


@contextlib.contextmanager
def _bound(path: Path, mode: int) -> Iterator[socket.socket]:
    """A socket at `path`, ours alone: the lock beside it tells one that is in use from one that a crash left."""
    if len(os.fsencode(path)) > _LONGEST_PATH:
        raise ConfigError(f"[control] socket: {path}: longer than a socket's name may be, {_LONGEST_PATH} bytes")
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(held_alone(path.with_name(f"{path.name}.lock")))
            listening = stack.enter_context(socket.socket(socket.AF_UNIX))
            if path.is_symlink() or (path.exists() and not stat.S_ISSOCK(path.stat().st_mode)):
                raise ConfigError(f"[control] socket: {path}: there is something else than a socket")
            path.unlink(missing_ok=True)
            os.fchmod(listening.fileno(), 0o600)  # before it has a name: the kernel gives the name these rights
            listening.bind(str(path))
            stack.callback(path.unlink, missing_ok=True)
            path.chmod(mode)
        except BlockingIOError:
            raise ConfigError(f"[control] socket: {path}: another process listens there") from None
        except OSError as error:
            raise ConfigError(f"[control] socket: {path}: cannot be made: {error.strerror}") from None
        yield listening
