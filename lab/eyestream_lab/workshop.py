"""A private folder in which a release is made, so that it can go on after an interruption, and what each step of it is.

Whoever makes a part of a release fills a folder of its own, makes that durable, and puts it at the part's place by one
rename. The first wins: a part that is made twice, as a cluster does when a machine is lost, is there once, and nobody
outside has seen the bytes of the other one.
"""

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from eyestream.errors import ConfigError
from eyestream.rim.ledger.file import held_alone


@contextlib.contextmanager
def workshop(out: Path, mark: str) -> Iterator[Path]:
    """The private folder `.NAME.partial` of a run that makes `out`, held by this process alone.

    Parameters
    ----------
    mark
        What must be the same for an interrupted run to go on; it stays in the private folder.

    Raises
    ------
    ConfigError
        Another run is at work there, or was interrupted; or something cannot be written.
    """
    folder = out.with_name(f".{out.name}.partial")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / "whole").mkdir(mode=0o755, exist_ok=True)
        with held_alone(folder / "lock"), (folder / "run.json").open("a+", encoding="utf-8") as file:
            file.seek(0)
            before = file.read()
            if before not in ("", mark):
                raise ConfigError(f"{folder}: holds another run that was interrupted; finish that one, or remove it")
            file.truncate(0)
            file.write(mark)
            file.flush()
            yield folder
    except BlockingIOError:
        raise ConfigError(f"{folder}: another run is at work there") from None
    except OSError as error:
        raise ConfigError(f"{error.filename or out}: cannot be written: {error.strerror or error}") from None


def once(place: Path, fill: Callable[[Path], object]) -> None:
    """Let there be a folder `place` that `fill` has filled, durable and whole; where there is one, it stays.

    Raises
    ------
    OSError
        It cannot be written.
    """
    if place.exists():
        return
    own = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        fill(own)
        sync_all(own)
        os.rename(own, place)  # onto a folder with something in it this fails
        sync(place.parent)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    finally:
        shutil.rmtree(own, ignore_errors=True)


def write_whole(path: Path, text: str, beside: Path) -> None:
    """A text under its name as a whole, durably; what is half written lies in the folder `beside`."""
    new = beside / "new"
    with new.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)


def sync_all(folder: Path) -> None:
    """Make the files of a folder durable, and their names."""
    for path in folder.iterdir():
        sync(path)
    sync(folder)


def sync(path: Path) -> None:
    """Make a file or a folder durable; Windows opens no folder, and syncs what may be written alone."""
    windows = not hasattr(os, "O_DIRECTORY")
    if windows and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR if windows else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
