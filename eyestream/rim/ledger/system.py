"""What of a system the ledger needs, and how each system does it: locks, durability, flags of files.

Linux has all of it. macOS has no `fdatasync`, and its `fsync` leaves data in the disk's own memory: `F_FULLFSYNC` does
not (fsync(2) of macOS). Windows has no lock that ends with its process, and replaces no file that is open: there
a ledger can be made and read, not spent from.
"""

import os
from pathlib import Path

from eyestream.errors import LedgerError

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

__all__ = ["NEW_FILE", "OPEN_SAFELY", "lock", "make_durable", "make_durable_file", "need_locks", "sync_directory"]

OPEN_SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | OPEN_SAFELY


def need_locks(path: Path) -> None:
    """Raise LedgerError where the ledger at `path` cannot be held by one process alone."""
    if fcntl is None:
        raise LedgerError(
            f"{path}: a ledger is spent from on Linux and macOS only; no lock of this system ends with its process"
        )


def lock(fd: int) -> None:
    """Hold the file for this process alone; raises BlockingIOError when another one does."""
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def make_durable(fd: int) -> None:
    """Let what was appended outlive a loss of power; raises OSError."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    elif fcntl is not None and hasattr(fcntl, "F_FULLFSYNC"):
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fsync(fd)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable, where a directory can be opened."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | OPEN_SAFELY)
    try:
        make_durable_file(fd)
    finally:
        os.close(fd)


def make_durable_file(fd: int) -> None:
    """Let all of a file, its length and times too, outlive a loss of power; raises OSError."""
    if fcntl is not None and hasattr(fcntl, "F_FULLFSYNC"):
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fsync(fd)
