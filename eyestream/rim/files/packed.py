"""Files that may be compressed with gzip, and what is said when one cannot be read."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eyestream.errors import RecordingError

__all__ = ["is_packed", "reading"]


def is_packed(path: Path) -> bool:
    """Whether the file says by its name that it is compressed."""
    return path.name.lower().endswith(".gz")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Around whatever opens and reads the file.

    Raises
    ------
    RecordingError
        when it is missing, damaged or cut off.
    """
    try:
        yield
    except EOFError:
        raise RecordingError(f"{path}: the compressed file is cut off") from None
    except (gzip.BadGzipFile, zlib.error):
        raise RecordingError(f"{path}: not a gzip file, or a damaged one") from None
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read: {error.strerror}") from None
