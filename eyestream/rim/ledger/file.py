"""The ledger's file: created once, locked, read, appended to, made durable, replaced. Nothing else touches a disk.

LEDGER.md says how a file is replaced, what the lock is on, and what each system has (section 2).
"""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from eyestream.errors import LedgerError

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

__all__ = ["LedgerFile", "create_file", "put", "read_pieces"]

_PIECE_BYTES = 1 << 22
_SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFELY


def create_file(path: Path, data: bytes) -> None:
    """Make a new file with `data`, durable together with its name; mode 0600.

    Raises
    ------
    LedgerError
        There is something at `path` already, or it cannot be written.
    """
    try:
        fd = os.open(path, _NEW_FILE, 0o600)
    except FileExistsError:
        raise LedgerError(f"{path} exists already; a ledger is never overwritten") from None
    except OSError as error:
        raise LedgerError(f"{path}: cannot create the ledger: {error.strerror}") from None
    try:
        try:
            _write(fd, data)
            _sync_whole(fd)
        finally:
            os.close(fd)
        _sync_directory(path.parent)  # the file's bytes are durable, and without this its name may be gone
    except OSError as error:
        path.unlink(missing_ok=True)
        raise LedgerError(f"{path}: cannot create the ledger: {error.strerror}") from None


def put(path: Path, data: bytes) -> None:
    """Let the file at `path` hold `data` alone, durably; mode 0600. For whoever holds what lies beside it.

    Raises
    ------
    LedgerError
        It cannot be written: it holds what it held, or `data`.
    """
    beside = _beside(path)
    try:
        beside.unlink(missing_ok=True)
        fd = os.open(beside, _NEW_FILE, 0o600)
        try:
            _write(fd, data)
            _sync_whole(fd)
        finally:
            os.close(fd)
        os.rename(beside, path)
        _sync_directory(path.parent)
    except OSError as error:
        raise LedgerError(f"{path}: cannot be written durably: {error.strerror}") from None


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.rewritten")


def _write(fd: int, data: bytes) -> None:
    """All of `data`, or OSError."""
    if os.write(fd, data) != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _need_locks(path: Path) -> None:
    """Raise LedgerError where the ledger at `path` cannot be held by one process alone."""
    if fcntl is None:
        raise LedgerError(
            f"{path}: a ledger is spent from on Linux and macOS only; no lock of this system ends with its process"
        )


def _hold(fd: int) -> None:
    """Hold the file for this process alone; raises BlockingIOError when another one does."""
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sync_data(fd: int) -> None:
    """Let what was appended outlive a loss of power; raises OSError."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    elif fcntl is not None and hasattr(fcntl, "F_FULLFSYNC"):
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fsync(fd)


def _sync_directory(path: Path) -> None:
    """Make the names in a directory durable, where a directory can be opened."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _SAFELY)
    try:
        _sync_whole(fd)
    finally:
        os.close(fd)


def _sync_whole(fd: int) -> None:
    """Let all of a file, its length and times too, outlive a loss of power; raises OSError."""
    if fcntl is not None and hasattr(fcntl, "F_FULLFSYNC"):
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fsync(fd)


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
        return os.open(path, flags | _SAFELY)
    except FileNotFoundError:
        raise LedgerError(
            f"{path}: there is no ledger; put it back. Where nothing was ever released under these pseudonyms, make "
            "one with `eyestream budget --new`, or both with `eyestream init`"
        ) from None
    except OSError as error:
        raise LedgerError(f"{path}: cannot open the ledger: {error.strerror}") from None


def _pieces(path: Path, fd: int) -> Iterator[bytes]:
    try:
        while piece := os.read(fd, _PIECE_BYTES):
            yield piece
    except OSError as error:
        raise LedgerError(f"{path}: cannot read the ledger: {error.strerror}") from None


def _check_rights(path: Path, fd: int) -> None:
    """Refuse a ledger that others can read, write or replace.

    Who reads it knows the client ids of the sidecar's links, and which rows were reserved. A list of further users
    (ACL) shows in the bits of the group.
    """
    if os.fstat(fd).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise LedgerError(f"{path}: others than its owner can read or write the ledger; chmod 600 {path}")
    mode = os.stat(path.parent).st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise LedgerError(f"{path}: everybody can replace the ledger in its directory; chmod o-w {path.parent}")


class LedgerFile:
    """An existing file, held by this process alone.

    Whatever is there when it is opened is made durable first, with its name: a process that was killed may have left
    records, or a file that it had just put into place, that only the memory of the system knows.

    Raises
    ------
    LedgerError
        Missing, unreadable, not writable, open to others, or held by another process.
    """

    def __init__(self, path: Path) -> None:
        _need_locks(path)
        self._path = path
        self._beside = _beside(path)
        self._fd = _open(path, os.O_RDWR | os.O_APPEND)
        try:
            _check_rights(path, self._fd)
            self._lock(self._fd)  # first: what another process still appends could not be made durable here
            _sync_whole(self._fd)
            _sync_directory(path.parent)
            self._beside.unlink(missing_ok=True)
        except OSError as error:
            os.close(self._fd)
            raise LedgerError(f"{path}: cannot lock the ledger and make it durable: {error.strerror}") from None
        except LedgerError:
            os.close(self._fd)
            raise

    def _lock(self, fd: int) -> None:
        try:
            _hold(fd)
        except BlockingIOError:
            raise LedgerError(f"{self._path}: the ledger is in use by another process") from None
        if not os.path.samestat(os.fstat(fd), os.stat(self._path)):
            raise LedgerError(f"{self._path}: the ledger is in use by another process, which has just rewritten it")

    def pieces(self) -> Iterator[bytes]:
        """The bytes of the file, from its beginning."""
        return _pieces(self._path, self._fd)

    def is_there(self, size: int) -> bool:
        """Whether the name still leads to this file, and nobody else has written it: it has `size` bytes.

        Raises OSError.
        """
        held = os.fstat(self._fd)
        return held.st_size == size and os.path.samestat(held, os.stat(self._path))

    def append(self, data: bytes) -> None:
        """Write at the end; not durable yet. Raises OSError, also when only a part was written."""
        _write(self._fd, data)

    def write_again(self, start: int) -> None:
        """Write what is read from byte `start` on once more, durably, and nothing else. Raises OSError.

        After a sync that failed, in a life before, the system may call pages clean that are in memory alone: they are
        read, and no later sync writes them.
        """
        fd = os.open(self._path, os.O_RDWR | _SAFELY)
        try:
            while piece := os.pread(fd, _PIECE_BYTES, start):
                if os.pwrite(fd, piece, start) != len(piece):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                start += len(piece)
            _sync_whole(fd)
        finally:
            os.close(fd)

    def sync(self) -> None:
        """Make everything appended durable. Raises OSError."""
        _sync_data(self._fd)

    def prepare(self, data: bytes) -> int:
        """Write `data` durably into a locked file beside this one, and give it to `replace`.

        Raises
        ------
        OSError
            It cannot be written: it is removed, and this file is as it was.
        """
        fd = os.open(self._beside, _NEW_FILE | os.O_APPEND, 0o600)
        try:
            _hold(fd)  # before the file has the ledger's name: nobody can open it unlocked by that name
            _write(fd, data)
            _sync_whole(fd)
        except OSError:
            os.close(fd)
            self._beside.unlink(missing_ok=True)
            raise
        return fd

    def replace(self, prepared: int) -> None:
        """Put the prepared file durably into this one's place. After an OSError nobody knows which of them is there."""
        try:
            os.rename(self._beside, self._path)
        except OSError:
            os.close(prepared)
            raise
        os.close(self._fd)
        self._fd = prepared
        # Only after this may anything be appended: a loss of power could bring the old file's name back.
        _sync_directory(self._path.parent)

    def close(self) -> None:
        """Give the file and its lock up; a second call does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
