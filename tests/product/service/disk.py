"""A disk that remembers which bytes and which names were durable, and what may be left of the rest when the power goes.

`TracedDisk` stands in for `os` in the ledger's file: it does the same on the real disk and writes down every step.
`states` makes, from a prefix of that trace, the directories that a power cut may leave.
"""

import os
import random
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.product.service.power_loss import damaged

Trace = list[tuple[str, Any, Any]]
"""("create", file, name), ("write", file, bytes), ("sync", file, None), ("rename", old, new), ("names", None, None)."""


class TracedDisk:
    """`os`, and a trace of what changes the disk; tests add ("seen", ...) to it."""

    def __init__(self) -> None:
        self.trace: Trace = []
        self._files: dict[int, str] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: Path, flags: int, mode: int = 0o777) -> int:
        fd = os.open(path, flags, mode)
        info = os.fstat(fd)
        if not stat.S_ISDIR(info.st_mode):
            self._files[fd] = str(info.st_ino)
            if flags & os.O_CREAT:
                self.trace.append(("create", self._files[fd], Path(path).name))
        return fd

    def write(self, fd: int, data: bytes) -> int:
        self.trace.append(("write", self._files[fd], bytes(data)))
        return os.write(fd, data)

    def fsync(self, fd: int) -> None:
        """Not waited for: the durability of these files is simulated."""
        is_directory = stat.S_ISDIR(os.fstat(fd).st_mode)
        self.trace.append(("names", None, None) if is_directory else ("sync", self._files[fd], None))

    def fdatasync(self, fd: int) -> None:
        self.fsync(fd)

    def rename(self, old: Path, new: Path) -> None:
        self.trace.append(("rename", Path(old).name, Path(new).name))
        os.rename(old, new)


def states(before: bytes, trace: Trace, cut: int, rng: random.Random, damages: int) -> Iterator[dict[str, bytes]]:
    """Directories, name to bytes, that may be left after `cut` steps on one that had a durable `ledger` alone."""
    durable, waiting = {"": before}, {"": b""}
    first = next((file for step, file, _ in trace if step in {"write", "sync"}), "")
    durable[first], waiting[first] = before, b""
    names = [{"ledger": first}]  # what the directory may look like: all since it was last made durable
    for step, what, more in trace[:cut]:
        if step == "create":
            durable[what], waiting[what] = b"", b""
            names.append({**names[-1], more: what})
        elif step == "write":
            waiting[what] += more
        elif step == "sync":
            durable[what], waiting[what] = durable[what] + waiting[what], b""
        elif step == "rename":
            now = dict(names[-1])
            now[more] = now.pop(what)
            names.append(now)
        elif step == "names":
            names = names[-1:]
    for now in names:
        for kind in range(3 + damages):
            yield {each: _image(durable[file], waiting[file], kind, rng) for each, file in now.items()}


def _image(durable: bytes, waiting: bytes, kind: int, rng: random.Random) -> bytes:
    if kind == 0 or not waiting:
        return durable
    if kind == 1:
        return durable + waiting
    return durable + (bytes(len(waiting)) if kind == 2 else damaged(waiting, len(durable), rng))
