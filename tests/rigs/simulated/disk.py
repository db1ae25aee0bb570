"""Disks without a disk: the few calls that a ledger's file makes, in memory, with what real disks do wrong.

A path begins with the name of its disk, `/host/ledger`, and each disk loses its power by itself. Data and names are
durable after their own sync alone. A loss of power keeps any of the sectors that were not synced, in any order.
"""

import errno
import os
import random
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import ClassVar

__all__ = ["Disks", "Inode", "Killed", "Place"]

SECTOR = 512


class Killed(BaseException):
    """The process is gone: nothing of it may catch this."""


@dataclass(eq=False, slots=True)
class Inode:
    """Bytes of a file: as they are read, and as they outlive the power."""

    data: bytes = b""
    durable: bytes = b""
    held: bool = False
    holes: list[tuple[int, int]] = field(default_factory=list)
    """Bytes that are in memory alone: a sync of them has failed, and the system calls them clean."""

    def sync(self) -> None:
        """Make durable what the system takes for changed."""
        if not self.holes:
            self.durable = self.data
            return
        kept = bytearray(self.data)
        for first, last in self.holes:
            kept[first:last] = bytes(last - first)
        self.durable = bytes(kept)


@dataclass(eq=False, slots=True)
class _Open:
    inode: Inode | None
    at: int = 0
    folder: str = ""
    holds: bool = False
    owner: object = None


@dataclass(eq=False)
class Disk:
    """Names as they are, and as they outlive the power."""

    names: dict[str, Inode] = field(default_factory=dict)
    kept: dict[str, Inode] = field(default_factory=dict)
    lies: bool = False
    """Whether a sync returns and has done nothing."""
    locks: bool = True
    """Whether locks hold; on some network disks none does."""

    def sync_names(self, folder: str) -> None:
        """Make the names in a folder durable."""
        for names in (self.kept, self.names):
            for name in [one for one in names if one.startswith(folder + "/")]:
                if name in self.names:
                    self.kept[name] = self.names[name]
                else:
                    del self.kept[name]

    def lose_power(self, luck: random.Random) -> None:
        """Only what is durable is sure to be there; of the rest each sector may be."""
        if luck.random() < 0.5:
            self.names = dict(self.kept)
        for inode in self.names.values():
            durable, data = inode.durable, bytearray(inode.data)
            if data != durable:
                if data.startswith(durable):
                    end = luck.randint(len(durable), len(data))
                    del data[end:]
                    for sector in range(len(durable) // SECTOR, -(-end // SECTOR)):
                        if luck.random() < 0.3:
                            first = max(sector * SECTOR, len(durable))
                            last = min((sector + 1) * SECTOR, end)
                            data[first:last] = bytes(last - first)
                else:
                    data = bytearray(durable)
            inode.data = inode.durable = bytes(data)
            inode.holes.clear()
        self.kept = dict(self.names)

    def put(self, path: str, data: bytes) -> None:
        """Somebody beside the processes writes a file, durably."""
        self.names[path] = self.kept[path] = Inode(data, data)

    def copy(self, source: str, target: str, names: tuple[str, ...], disk: "Disk | None" = None) -> None:
        """Copy files of a folder into another one, of this disk or another."""
        for name in names:
            if (found := self.names.get(f"{source}/{name}")) is not None:
                (disk or self).put(f"{target}/{name}", found.data)

    def durable(self, path: str) -> bytes:
        """What would be read at `path` after a loss of power that takes all it may."""
        inode = self.kept.get(path)
        return b"" if inode is None else inode.durable


class Place(str):
    """A path on these disks, with what the product asks of a path; one of `pathlib` takes five times as long."""

    __slots__ = ()
    disks: ClassVar["Disks"]

    def __truediv__(self, name: str) -> "Place":
        return Place(f"{self}/{name}")

    @property
    def parent(self) -> "Place":
        return Place(self.rpartition("/")[0])

    @property
    def name(self) -> str:
        return self.rpartition("/")[2]

    def with_name(self, name: str) -> "Place":
        return self.parent / name

    def exists(self) -> bool:
        return self in self.disks.of(self).names

    def lstat(self) -> "_Stat":
        return _Stat(0o100600, len(self.read_bytes()), None)

    def read_bytes(self) -> bytes:
        found = self.disks.of(self).names.get(self)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "No such file")
        return found.data

    def read_text(self, encoding: str) -> str:
        return self.read_bytes().decode(encoding)

    def unlink(self, missing_ok: bool = False) -> None:
        found = self.disks.of(self).names.pop(self, None)
        if found is None and not missing_ok:
            raise FileNotFoundError(errno.ENOENT, "No such file")


class _Stat:
    """What the product asks of a file or a folder."""

    __slots__ = ("inode", "st_mode", "st_size")

    def __init__(self, st_mode: int, st_size: int, inode: Inode | None) -> None:
        self.st_mode, self.st_size, self.inode = st_mode, st_size, inode


class Disks:
    """All disks of a world, in the place of `os` and `fcntl`.

    Attributes
    ----------
    left : effects until something goes wrong; None: nothing does.
    kind : what goes wrong: ``kill`` before the effect, ``torn`` in the middle of it, ``after`` it; ``full``; ``eio``.
    effects : how many there were.
    owner : the process that opens files now.
    """

    O_NOFOLLOW = O_CLOEXEC = O_DIRECTORY = 0
    O_RDONLY, O_WRONLY, O_RDWR = os.O_RDONLY, os.O_WRONLY, os.O_RDWR
    O_APPEND, O_CREAT, O_EXCL = os.O_APPEND, os.O_CREAT, os.O_EXCL
    LOCK_EX, LOCK_NB = 2, 4
    strerror = staticmethod(os.strerror)

    def __init__(self, luck: random.Random) -> None:
        self._luck = luck
        self.disks: dict[str, Disk] = {}
        self._by_path: dict[str, Disk] = {}
        self._open: dict[int, _Open] = {}
        self.owner: object = None
        self._next = 1000
        self.left: int | None = None
        self.kind, self.effects = "kill", 0
        self.path = SimpleNamespace(samestat=lambda one, two: one.inode is two.inode)
        Place.disks = self

    def of(self, path: str) -> Disk:
        """The disk of a path."""
        known = self._by_path.get(path)
        if known is None:
            known = self._by_path[path] = self.disks.setdefault(path.split("/", 2)[1], Disk())
        return known

    def _effect(self, *, sync: bool = False, size: int = 0) -> int:
        """One more effect: how many of `size` bytes it writes."""
        self.effects += 1
        if self.left is None:
            return size
        self.left -= 1
        if self.left >= 0:
            return size
        kind = self.kind
        if kind in ("full", "eio"):
            if (kind == "eio") == sync:
                self.left = None
                if sync:
                    raise OSError(errno.EIO, "Input/output error")
                return self._luck.randint(0, size)
            return size
        if kind == "kill" or not size:
            raise Killed
        return self._luck.randint(0, size) if kind == "torn" else size

    def _die(self) -> None:
        if self.left is not None and self.left < 0 and self.kind in ("torn", "after"):
            raise Killed

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        disk, self._next = self.of(name), self._next + 1
        if flags & self.O_CREAT:
            if name in disk.names:
                raise FileExistsError(errno.EEXIST, "File exists")
            disk.names[name] = Inode()
        if (inode := disk.names.get(name)) is not None:
            self._open[self._next] = _Open(inode, owner=self.owner)
        elif any(one.startswith(name + "/") for one in disk.names):
            self._open[self._next] = _Open(None, folder=name, owner=self.owner)
        else:
            raise FileNotFoundError(errno.ENOENT, "No such file")
        return self._next

    def close(self, fd: int) -> None:
        one = self._open.pop(fd, None)  # of a process that is gone, nothing is open
        if one is not None and one.inode is not None and one.holds:
            one.inode.held = False

    def end(self, owner: object) -> None:
        """A process is gone, and with it its locks."""
        for fd in [fd for fd, one in self._open.items() if one.owner is owner]:
            self.close(fd)

    def read(self, fd: int, most: int) -> bytes:
        one = self._open[fd]
        assert one.inode is not None
        got = one.inode.data[one.at : one.at + most]
        one.at += len(got)
        return got

    def write(self, fd: int, data: bytes) -> int:
        inode, size = self._open[fd].inode, self._effect(size=len(data))
        assert inode is not None
        inode.data += data[:size]
        self._die()
        return size

    def pread(self, fd: int, most: int, at: int) -> bytes:
        inode = self._open[fd].inode
        assert inode is not None
        return inode.data[at : at + most]

    def pwrite(self, fd: int, data: bytes, at: int) -> int:
        inode, size = self._open[fd].inode, self._effect(size=len(data))
        assert inode is not None
        inode.data = inode.data[:at] + data[:size] + inode.data[at + size :]
        inode.holes = [one for one in inode.holes if one[0] < at]
        self._die()
        return size

    def fsync(self, fd: int) -> None:
        one = self._open[fd]
        try:
            self._effect(sync=True)
        except OSError:
            if one.inode is not None:
                one.inode.holes.append((len(one.inode.durable), len(one.inode.data)))
            raise
        if one.inode is None:
            disk = self.of(one.folder)
            if not disk.lies:
                disk.sync_names(one.folder)
        elif not self._lies(one.inode):
            one.inode.sync()

    fdatasync = fsync

    def _lies(self, inode: Inode) -> bool:
        return any(disk.lies and inode in disk.names.values() for disk in self.disks.values())

    def rename(self, source: str, target: str) -> None:
        self._effect()
        names = self.of(source).names
        names[target] = names.pop(source)

    def fstat(self, fd: int) -> _Stat:
        inode = self._open[fd].inode
        assert inode is not None
        return _Stat(0o100600, len(inode.data), inode)

    def stat(self, path: str) -> _Stat:
        return _Stat(0o40700, 0, self.of(path).names.get(path))

    def flock(self, fd: int, how: int) -> None:
        one = self._open[fd]
        assert one.inode is not None
        if one.inode.held and all(disk.locks for disk in self.disks.values() if one.inode in disk.names.values()):
            raise BlockingIOError(errno.EWOULDBLOCK, "held")
        one.inode.held = one.holds = True
