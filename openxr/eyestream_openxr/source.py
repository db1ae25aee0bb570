"""``kind = "openxr"``: gaze that the layer hands over, on a local socket that says who is there.

Each program with the layer connects. One of them is heard at a time: another one's samples are taken when the first has
been silent for a second. The times are those of the tracker, as the runtime tells them, on this machine's monotonic
clock. An eye that was not seen is a sample like any other.
"""

import asyncio
import os
import socket
import struct
import time
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np

from eyestream.errors import ConfigError, LinkError, PayloadError
from eyestream.gaze.profile import Profile
from eyestream.rim.files.gaze_columns import GazeColumns
from eyestream.rim.sources.gaze import DeliverGaze, GazeKind, Place
from eyestream_openxr import wire
from eyestream_openxr.place import SOCKET, open_folder, usual_folder

MOST_PROGRAMS = 8
SILENT_S = 1.0
OLDEST_NS, SOONEST_NS = 2_000_000_000, 100_000_000
"""How old a sample may be, and how far ahead of the clock: what is further off is a runtime's mistake."""

_PEER = struct.Struct("iII")  # of SO_PEERCRED: process, user, group
_MESSAGE_BYTES = 4096


class OpenXrOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``folder``: where the layer looks; ``users``: numbers of other users whose programs are heard."""

    folder: Path | None = None
    users: tuple[int, ...] = ()


class OpenXrSource:
    """The programs of this machine that have the layer.

    Attributes
    ----------
    refused : messages and programs by the reason for which they were not heard.
    """

    def __init__(self, options: OpenXrOptions, profile: Profile, place: Place) -> None:
        if not hasattr(socket, "SO_PEERCRED"):
            raise ConfigError("[source] kind: 'openxr' is for Linux")
        self._folder = options.folder or usual_folder()
        self._users = {os.geteuid(), *options.users}
        self.refused: Counter[str] = Counter()
        self._heard: tuple[object, float] = (None, 0.0)
        self._last_ns = 0

    async def run(self, deliver: DeliverGaze) -> None:
        """Hear programs until it is cancelled; raises LinkError where the socket cannot be made."""
        with self._listening() as listener:
            deliver(_columns(np.empty(0, wire.SAMPLE)))
            room = asyncio.Semaphore(MOST_PROGRAMS)
            async with asyncio.TaskGroup() as programs:
                while True:
                    await room.acquire()
                    program, _ = await asyncio.get_running_loop().sock_accept(listener)
                    task = programs.create_task(self._hear(program, deliver), name="program of OpenXR")
                    task.add_done_callback(lambda _: room.release())

    def _listening(self) -> socket.socket:
        others = len(self._users) > 1
        path = self._folder / SOCKET
        try:
            open_folder(self._folder, mode=0o755 if others else 0o700)
            path.unlink(missing_ok=True)
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            listener.setblocking(False)
            listener.bind(str(path))
            path.chmod(0o666 if others else 0o600)
            listener.listen(MOST_PROGRAMS)
        except (OSError, ConfigError) as error:
            raise LinkError(f"no socket for programs of OpenXR: {error}") from None
        return listener

    async def _hear(self, program: socket.socket, deliver: DeliverGaze) -> None:
        with program:
            program.setblocking(False)
            _, user, _ = _PEER.unpack(program.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
            if user not in self._users:
                self.refused["program of another user"] += 1
                return
            loop = asyncio.get_running_loop()
            while message := await _received(loop, program):
                self._take(program, message, loop.time(), deliver)

    def _take(self, program: object, message: bytes, now: float, deliver: DeliverGaze) -> None:
        heard, at = self._heard
        if heard not in (None, program) and now - at < SILENT_S:
            return
        try:
            samples = wire.samples(message)
        except PayloadError:
            self.refused["no message of this version"] += 1
            return
        since = time.monotonic_ns() - samples["t_ns"].astype(np.float64)
        good = (since < OLDEST_NS) & (since > -SOONEST_NS) & (np.diff(samples["t_ns"], prepend=self._last_ns) > 0)
        if not good.all():
            self.refused["times"] += 1
            return
        self._heard, self._last_ns = (program, now), int(samples["t_ns"][-1])
        deliver(_columns(samples))


async def _received(loop: asyncio.AbstractEventLoop, program: socket.socket) -> bytes:
    """The next message; empty: the program has ended."""
    try:
        return await loop.sock_recv(program, _MESSAGE_BYTES)
    except ConnectionError:
        return b""


def _columns(samples: "np.ndarray[tuple[int], np.dtype[np.void]]") -> GazeColumns:
    gaze = np.stack([samples["x_deg"], samples["y_deg"]], axis=1).astype(np.float64)
    gaze[~np.isfinite(gaze).all(axis=1)] = np.nan
    return GazeColumns(samples["t_ns"] * 1e-9, gaze)


OPENXR = GazeKind("openxr", OpenXrOptions, "mqtt", OpenXrSource)
