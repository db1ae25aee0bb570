"""Columns of text tables, plain or compressed: numbers, and what stands in their place where they are missing."""

import csv
import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import RecordingError
from eyestream.rim.files.fast_tables import fast_columns

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": " "}
"""By the words that profiles and layouts have for them."""

_MISSING = frozenset(("", ".", "-", "na", "n/a", "nan", "none", "null"))
_WORDS = {"true": 1.0, "false": 0.0, "valid": 1.0, "invalid": 0.0, "yes": 1.0, "no": 0.0}
_BLOCK = 65_536
_GZIP = b"\x1f\x8b"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def is_packed(path: Path) -> bool:
    """Whether the name of the file says that it is compressed.

    >>> is_packed(Path("P33.csv.GZ"))
    True
    """
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


@contextmanager
def opened(path: Path, *, lenient: bool = False) -> Iterator[TextIO]:
    """The text of the file, unpacked when its name ends with .gz. It is UTF-8, or UTF-16 where its first bytes say so.

    Parameters
    ----------
    lenient
        Whether letters of other encodings may stand where nobody reads them, as in messages of an experiment.

    Raises
    ------
    RecordingError
        when it is missing, damaged, cut off, or in another encoding; also while it is read.
    """
    try:
        with reading(path):
            with open(path, "rb") as raw:
                unpacked = gzip.open if is_packed(path) or raw.read(2) == _GZIP else open
            with unpacked(path, "rb") as binary:
                wide = binary.read(2) in _UTF16
            errors = "surrogateescape" if lenient else "strict"
            with unpacked(path, "rt", encoding="utf-16" if wide else "utf-8-sig", errors=errors, newline="") as file:
                yield file
    except UnicodeDecodeError:
        raise RecordingError(f"{path}: not a text file in UTF-8 or UTF-16") from None
    except csv.Error as error:
        raise RecordingError(f"{path}: not a table ({error})") from None


def read_header(path: Path, delimiter: str) -> list[str]:
    """The names in the first line."""
    with opened(path) as file:
        header = next(csv.reader(file, delimiter=delimiter), [])
    names = [name.strip() for name in header]
    if not names or any(is_number(name) for name in names):
        raise RecordingError(f"{path}: line 1: a header with the names of the columns is wanted")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise RecordingError(f"{path}: line 1: two columns are called {twice[0]!r}")
    return names


def is_number(text: str) -> bool:
    """Whether `float` takes it."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_columns(
    path: Path,
    names: Sequence[str],
    numbers: Sequence[str],
    texts: Sequence[str],
    *,
    delimiter: str,
    header: bool,
    decimal: str = ".",
    only: Sequence[str] = (),
) -> dict[str, NDArray[np.float64] | list[str]]:
    """Columns of a table whose columns are called `names`.

    Parameters
    ----------
    numbers, texts
        The columns that are wanted as (n,) float64 with NaN for what is missing, and as lists of texts.
    header
        Whether the first line is no data.
    decimal
        What stands before the decimals of a number.
    only
        A column and a value; rows with another value in it are left out.

    Raises
    ------
    RecordingError
        naming the column that is missing, or line and column of what is not a number; never what stands there.
    """
    for name in (*numbers, *texts, *only[:1]):
        if name not in names:
            raise RecordingError(f"{path}: no column {name!r}; the columns are {', '.join(map(repr, names))}")
    with reading(path):
        table = {"delimiter": delimiter, "header": header, "decimal": decimal, "packed": is_packed(path)}
        fast = None if only else fast_columns(path, names, numbers, texts, **table)  # type: ignore[arg-type]
    if fast is not None:
        return fast
    parts: dict[str, list[NDArray[np.float64]]] = {name: [] for name in numbers}
    told: dict[str, list[str]] = {name: [] for name in texts}
    for columns, lines in _portions(path, names, delimiter, header=header, only=only):
        for name in numbers:
            cells = columns[names.index(name)]
            try:
                parts[name].append(_numbers(cells, decimal))
            except _NoNumberError as error:
                word = cells[error.place].strip().lower()
                comma = " (a decimal comma?)" if is_number(word.replace(",", ".", 1)) else ""
                line = lines[error.place]
                raise RecordingError(f"{path}: line {line}: column {name!r} holds no number{comma}") from None
        for name in texts:
            told[name] += columns[names.index(name)]
    found: dict[str, NDArray[np.float64] | list[str]] = {
        name: np.concatenate(blocks) if blocks else np.zeros(0) for name, blocks in parts.items()
    }
    return {**found, **told}


def read_numbers(
    path: Path,
    names: Sequence[str],
    *,
    delimiter: str,
    header: bool = True,
    decimal: str = ".",
    only: Sequence[str] = (),
) -> dict[str, NDArray[np.float64]]:
    """Those columns of a table that hold numbers alone; parameters and errors are of `read_columns`."""
    parts: dict[str, list[NDArray[np.float64]]] = {name: [] for name in names}
    for columns, _ in _portions(path, names, delimiter, header=header, only=only):
        for name, cells in zip(names, columns, strict=True):
            if name in parts:
                try:
                    parts[name].append(_numbers(cells, decimal))
                except _NoNumberError:
                    del parts[name]
    return {name: np.concatenate(blocks) if blocks else np.zeros(0) for name, blocks in parts.items()}


def _portions(
    path: Path, names: Sequence[str], delimiter: str, *, header: bool, only: Sequence[str]
) -> Iterator[tuple[list[tuple[str, ...]], list[int]]]:
    """The columns of so many rows, and the rows' lines."""
    line = 2 if header else 1
    with opened(path) as file:
        reader = csv.reader(file, delimiter=delimiter)
        if header:
            next(reader, None)
        for rows in _blocks(reader):
            for i, row in enumerate(rows):
                if len(row) != len(names):
                    raise RecordingError(f"{path}: line {line + i}: {len(row)} values, {len(names)} wanted")
            place = names.index(only[0]) if only else 0
            kept = [(at, row) for at, row in enumerate(rows, line) if not only or row[place].strip() == only[1]]
            yield list(zip(*(row for _, row in kept), strict=True)) or [()] * len(names), [at for at, _ in kept]
            line += len(rows)


def _blocks(reader: Iterator[list[str]]) -> Iterator[list[list[str]]]:
    """Rows in portions, so that a long file need not be held as texts; empty lines are left out at the end only."""
    rows: list[list[str]] = []
    for row in reader:
        rows.append(row)
        if len(rows) == _BLOCK:
            yield rows
            rows = []
    while rows and not rows[-1]:
        rows.pop()
    if rows:
        yield rows


class _NoNumberError(Exception):
    """The cell at `place` is no number."""

    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.place = place


def _numbers(cells: Sequence[str], decimal: str) -> NDArray[np.float64]:
    if decimal != ".":
        cells = [cell.replace(decimal, ".", 1) for cell in cells]
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        pass
    values = np.empty(len(cells))
    for i, cell in enumerate(cells):
        word = cell.strip().lower()
        try:
            values[i] = np.nan if word in _MISSING else _WORDS[word] if word in _WORDS else float(word)
        except ValueError:
            raise _NoNumberError(i) from None
    return values
