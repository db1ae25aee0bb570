"""The ledger's file: created once, locked, read, appended to, made durable. The only part that touches the disk."""

import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from eyestream.errors import LedgerError

__all__ = ["LedgerFile", "create_file", "read_pieces"]

_PIECE_BYTES = 1 << 22


def create_file(path: Path, data: bytes) -> None:
    """Make a new file with `data`, durable together with its name; mode 0600.

    Raises
    ------
    LedgerError
        There is something at `path` already, or it cannot be written.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(path, flags, 0o600)
    except FileExistsError:
        raise LedgerError(f"{path} exists already; a ledger is never overwritten") from None
    except OSError as error:
        raise LedgerError(f"{path}: cannot create the ledger: {error.strerror}") from None
    try:
        try:
            if os.write(fd, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(fd)
        finally:
            os.close(fd)
        _sync_directory(path.parent)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise LedgerError(f"{path}: cannot create the ledger: {error.strerror}") from None


def _sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def read_pieces(path: Path) -> Iterator[bytes]:
    """The bytes of the file, in pieces, without a lock: for those who only look.

    Raises
    ------
    LedgerError
        Missing or unreadable.
    """
    fd = _open(path, os.O_RDONLY)
    try:
        yield from _pieces(path, fd)
    finally:
        os.close(fd)


def _open(path: Path, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        raise LedgerError(
            f"{path}: there is no ledger; make one with `eyestream init` or `eyestream budget --new`"
        ) from None
    except OSError as error:
        raise LedgerError(f"{path}: cannot open the ledger: {error.strerror}") from None


def _pieces(path: Path, fd: int) -> Iterator[bytes]:
    try:
        while piece := os.read(fd, _PIECE_BYTES):
            yield piece
    except OSError as error:
        raise LedgerError(f"{path}: cannot read the ledger: {error.strerror}") from None


class LedgerFile:
    """An existing file, held by this process alone.

    Whatever is there when it is opened is made durable first: a process that was killed may have left records that only
    the page cache knows.

    Raises
    ------
    LedgerError
        Missing, unreadable, not writable, or held by another process.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = _open(path, os.O_RDWR | os.O_APPEND)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.fsync(self._fd)
        except OSError as error:
            os.close(self._fd)
            if isinstance(error, BlockingIOError):
                raise LedgerError(f"{path}: the ledger is in use by another process") from None
            raise LedgerError(f"{path}: cannot lock the ledger and make it durable: {error.strerror}") from None

    def pieces(self) -> Iterator[bytes]:
        """The bytes of the file, from its beginning."""
        return _pieces(self._path, self._fd)

    def append(self, data: bytes) -> None:
        """Write at the end; not durable yet. Raises OSError, also when only a part was written."""
        if os.write(self._fd, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def sync(self) -> None:
        """Make everything appended durable. Raises OSError."""
        os.fdatasync(self._fd)

    def close(self) -> None:
        """Give the file and its lock up; a second call does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
