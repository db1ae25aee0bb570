"""The ledger's file: created once, locked, read, appended to, made durable, replaced. Nothing else touches a disk.

LEDGER.md says how a file is replaced, what the lock is on, and what each system has (section 2).
"""

import errno
import importlib
import itertools
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyestream.errors import LedgerError
from eyestream.rim.ledger.records import RECORD_BYTES, SEALED

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from eyestream.rim.ledger.seal import Seal, SealedFile

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
        (os.replace if fcntl is None else os.rename)(beside, path)  # Windows renames onto nothing
        _sync_directory(path.parent)
    except OSError as error:
        raise LedgerError(f"{path}: cannot be written durably: {error.strerror}") from None


@contextmanager
def held_alone(path: Path) -> Iterator[None]:
    """Hold the file at `path`, which is made where there is none. Raises BlockingIOError: another process does."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | _SAFELY, 0o600)
    try:
        _hold(fd)
        yield
    finally:
        os.close(fd)


def is_held(path: Path) -> bool:
    """Whether a process holds the ledger at `path`. Raises LedgerError."""
    fd = _open(path, os.O_RDONLY)
    try:
        if fcntl is None:
            with held_alone(_lock_of(path)):
                return False
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.rewritten")


def _write(fd: int, data: bytes) -> None:
    """All of `data`, or OSError."""
    if os.write(fd, data) != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _read_at(fd: int, start: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(fd, _PIECE_BYTES, start)
    os.lseek(fd, start, os.SEEK_SET)
    return os.read(fd, _PIECE_BYTES)


def _write_at(fd: int, data: bytes, start: int) -> int:
    if hasattr(os, "pwrite"):
        return os.pwrite(fd, data, start)
    os.lseek(fd, start, os.SEEK_SET)
    return os.write(fd, data)


def _lock_of(path: Path) -> Path:
    """The file that is locked in the place of the one at `path` on Windows, where nobody can read what is locked."""
    return path.with_name(f".{path.name}.lock")


def _hold(fd: int) -> None:
    """Hold the file for this process alone; raises BlockingIOError when another one does."""
    if fcntl is not None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    windows: Any = importlib.import_module("msvcrt")
    try:
        windows.locking(fd, windows.LK_NBLCK, 1)
    except OSError:
        raise BlockingIOError from None


def _sync_data(fd: int) -> None:
    """Let what was appended outlive a loss of power; raises OSError."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        _sync_whole(fd)


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
        try:
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        except OSError as error:
            if error.errno != errno.ENOTSUP:
                raise  # a volume of macOS that knows no such command, as one of a network, is synced as others are
        else:
            return
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
    if not hasattr(os, "geteuid"):
        return  # Windows shows no rights in a mode
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

    def __init__(self, path: Path, seal: "Seal | None" = None) -> None:
        self._path, self._seal = path, seal
        self._sealed: SealedFile | None = None
        self._prepared: SealedFile | None = None
        self._beside = _beside(path)
        self._fd, self._locked = _open(path, os.O_RDWR | os.O_APPEND), ExitStack()
        try:
            _check_rights(path, self._fd)
            self._lock(self._fd)  # first: what another process still appends could not be made durable here
            _sync_whole(self._fd)
            _sync_directory(path.parent)
            self._beside.unlink(missing_ok=True)
        except OSError as error:
            self.close()
            raise LedgerError(f"{path}: cannot lock the ledger and make it durable: {error.strerror}") from None
        except LedgerError:
            self.close()
            raise

    def _lock(self, fd: int) -> None:
        try:
            if fcntl is None:
                self._locked.enter_context(held_alone(_lock_of(self._path)))
            else:
                _hold(fd)
        except BlockingIOError:
            raise LedgerError(f"{self._path}: the ledger is in use by another process") from None
        if not os.path.samestat(os.fstat(fd), os.stat(self._path)):
            raise LedgerError(f"{self._path}: the ledger is in use by another process, which has just rewritten it")

    def pieces(self) -> Iterator[bytes]:
        """The bytes of the file, from its beginning, unsealed; all of them must be read before anything is written."""
        pieces = _pieces(self._path, self._fd)
        first = next(pieces, b"")
        if first.startswith(SEALED):
            from eyestream.rim.ledger.seal import unsealed  # noqa: PLC0415  for who seals

            self._sealed = yield from unsealed(self._path, itertools.chain([first], pieces), self._seal)
        else:
            yield first
            yield from pieces

    def is_there(self, size: int) -> bool:
        """Whether the name still leads to this file, and nobody else has written it: it has `size` bytes.

        Raises OSError.
        """
        held = os.fstat(self._fd)
        return held.st_size == size and os.path.samestat(held, os.stat(self._path))

    def append(self, data: bytes) -> None:
        """Write at the end; not durable yet. Raises OSError, also when only a part was written."""
        _write(self._fd, data if self._sealed is None else self._sealed.seal(data, os.fstat(self._fd).st_size))

    def write_again(self, start: int) -> None:
        """Write what is read from byte `start` on once more, durably, and nothing else. Raises OSError.

        After a sync that failed, in a life before, the system may call pages clean that are in memory alone: they are
        read, and no later sync writes them.
        """
        fd, start = os.open(self._path, os.O_RDWR | _SAFELY), start + (0 if self._sealed is None else RECORD_BYTES)
        try:
            while piece := _read_at(fd, start):
                if _write_at(fd, piece, start) != len(piece):
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
        self._prepared = None if self._seal is None else self._seal.new_file()
        if self._prepared is not None:
            data = self._prepared.head + self._prepared.seal(data, RECORD_BYTES)
        fd = os.open(self._beside, _NEW_FILE | os.O_APPEND, 0o600)
        try:
            if fcntl is not None:
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
        if fcntl is None:  # Windows replaces no file that is open. The lock, of a file beside it, stays
            os.close(prepared)
            os.close(self._fd)
            self._fd = -1
            os.replace(self._beside, self._path)
            prepared = os.open(self._path, os.O_RDWR | os.O_APPEND | _SAFELY)
        else:
            try:
                os.rename(self._beside, self._path)
            except OSError:
                os.close(prepared)
                raise
            os.close(self._fd)
        self._fd, self._sealed = prepared, self._prepared
        # Only after this may anything be appended: a loss of power could bring the old file's name back.
        _sync_directory(self._path.parent)

    def close(self) -> None:
        """Give the file and its lock up; a second call does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._locked.close()
