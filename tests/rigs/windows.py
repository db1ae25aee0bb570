"""A process in which POSIX is taken away, as far as this project could notice: `become()`.

What Windows does is simulated: modes say nothing, folders are not opened, what is open is neither replaced nor removed,
only what may be written is synced, the loop takes no handlers of signals, and a byte of a file can be locked.
"""

import asyncio
import contextlib
import importlib.metadata
import multiprocessing
import os
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["become"]

_LOADED = (contextlib, importlib.metadata, multiprocessing, ssl, subprocess, tempfile, np)
"""They look at the system while they are imported, so they come first."""

_MODULES = ("fcntl", "grp", "pwd", "resource", "termios", "tty", "pty")
_OF_OS = ("fdatasync", "getuid", "geteuid", "getgid", "getegid", "chown", "fchmod", "initgroups", "setuid", "setgid",
          "fork", "forkpty", "killpg", "pread", "pwrite", "mkfifo", "O_NOFOLLOW", "O_CLOEXEC",
          "O_DIRECTORY")  # fmt: skip
_OF_SIGNAL = ("SIGHUP", "SIGUSR1", "SIGUSR2", "SIGKILL", "SIGALRM", "SIGPIPE")
_OF_SOCKET = ("AF_UNIX", "SO_PEERCRED", "SO_REUSEPORT")
_OF_LOOP = ("add_signal_handler", "add_reader", "add_writer", "create_unix_connection", "create_unix_server")


def become() -> None:
    """Take POSIX away from this process, for good."""
    locks: Any = importlib.import_module("fcntl")
    pair, family = socket.socketpair, socket.AF_UNIX
    for name in _MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    for holder, names in ((os, _OF_OS), (signal, _OF_SIGNAL), (socket, _OF_SOCKET)):
        for name in names:
            delattr(holder, name)
    vars(socket)["socketpair"] = lambda *_: pair(family)  # the loop's own
    sys.modules["msvcrt"] = _locking(locks)
    _files(locks)
    for name in _OF_LOOP:
        setattr(asyncio.SelectorEventLoop, name, _not_here)
    vars(shutil)["_use_fd_functions"] = False


def _not_here(*_: Any, **__: Any) -> None:
    raise NotImplementedError


def _locking(locks: Any) -> Any:
    module: Any = types.ModuleType("msvcrt")
    module.LK_NBLCK = 2

    def locking(fd: int, mode: int, size: int) -> None:
        assert (mode, size) == (module.LK_NBLCK, 1)
        try:
            locks.flock(fd, locks.LOCK_EX | locks.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(13, "Permission denied") from None

    module.locking = locking
    return module


def _files(locks: Any) -> None:
    """Functions of `os` with files, as Windows has them."""
    own = vars(os)
    opened, synced = os.open, os.fsync
    for name in ("stat", "lstat", "fstat"):
        own[name] = _without_rights(own[name])
    for name in ("rename", "replace", "unlink", "remove"):
        own[name] = _of_closed(own[name], new=name == "rename")
    own["chmod"] = lambda *_, **__: None

    def no_folder(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if os.path.isdir(path):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, flags, mode, dir_fd=dir_fd)

    def fsync(fd: Any) -> None:
        number = fd if isinstance(fd, int) else fd.fileno()
        if locks.fcntl(number, locks.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(9, "Bad file descriptor")
        synced(number)

    own["open"], own["fsync"] = no_folder, fsync


_IN_ORDER = {"st_mode", "st_ino", "st_dev", "st_nlink", "st_uid", "st_gid", "st_size"}
"""Of a result of `stat`: they are given by their order, and no other way."""


def _without_rights(look: Any) -> Any:
    def looked(*words: Any, **more: Any) -> os.stat_result:
        found = look(*words, **more)
        rest = {name for name in dir(found) if name.startswith("st_")} - _IN_ORDER
        named = {name: getattr(found, name) for name in rest}
        mode = stat.S_IFMT(found.st_mode) | (0o777 if stat.S_ISDIR(found.st_mode) else 0o666)
        return os.stat_result((mode, *found[1:]), named)

    return looked


def _of_closed(move: Any, *, new: bool) -> Any:
    def moved(*paths: Any, **more: Any) -> None:
        places = {str(Path(os.path.abspath(path))) for path in paths if not more.get("dir_fd")}
        for fd in os.listdir("/proc/self/fd"):
            with contextlib.suppress(FileNotFoundError):
                if os.readlink(f"/proc/self/fd/{fd}") in places:
                    raise PermissionError(13, "Permission denied", str(paths[0]))
        if new and os.path.lexists(paths[1]):
            raise FileExistsError(17, "File exists", str(paths[1]))
        move(*paths, **more)

    return moved
