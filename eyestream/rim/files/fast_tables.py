"""Long text tables by pyarrow, where it is installed: the same values bit for bit, or nothing at all.

`eyestream.rim.files.delimited` says what a table is and how one is refused. Here only plain tables are read: ASCII,
without quotes, with whole lines, and with numbers that pyarrow takes. About everything else nothing is said: None means
that the other way must read the file, which then finds the values, or the fault and its line.
"""

import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FEWEST_BYTES = 1 << 20
"""For a shorter file the library takes longer to load than the file to read."""

_PIECE_BYTES = 1 << 24
_LINE_BYTES = 1 << 16
"""Each window of so many bytes has the end of a line: the other way refuses cells of twice this length."""

_LETTERS = bytes({*range(ord("a"), ord("z") + 1), *range(ord("A"), ord("Z") + 1), *range(ord("0"), ord("9") + 1)})
_PLAIN = _LETTERS + b"+-._/: \r\n"
_MISSING = [".", "-", "", *(form(word) for word in ("na", "n/a", "nan", "none", "null") for form in (str, str.upper))]
_MISSING += ["NaN", "Na", "N/a", "None", "Null", "Nan"]

Columns = dict[str, NDArray[np.float64] | list[str]]


def fast_columns(
    path: Path,
    names: Sequence[str],
    numbers: Sequence[str],
    texts: Sequence[str],
    *,
    delimiter: str,
    header: bool,
    decimal: str,
    packed: bool,
) -> Columns | None:
    """Columns of a table, as `read_columns` gives them; None: this way does not read the table, or not surely alike.

    Parameters
    ----------
    packed
        Whether the file is compressed by gzip.
    """
    if set(numbers) & set(texts) or path.stat().st_size < FEWEST_BYTES:
        return None
    try:
        import pyarrow  # noqa: PLC0415  in an extra of the laboratory
        from pyarrow import csv  # noqa: PLC0415
    except ImportError:
        return None
    wanted = list(dict.fromkeys((*numbers, *texts)))
    places = {name: str(names.index(name)) for name in wanted}
    kinds = {places[name]: pyarrow.string() if name in texts else pyarrow.float64() for name in wanted}
    options = {
        "read_options": csv.ReadOptions(use_threads=False, column_names=[*map(str, range(len(names)))]),
        "parse_options": csv.ParseOptions(
            delimiter=delimiter, quote_char=False, double_quote=False, ignore_empty_lines=False
        ),
        "convert_options": csv.ConvertOptions(
            column_types=kinds,
            include_columns=[*kinds],
            null_values=_MISSING,
            decimal_point=decimal,
        ),
    }
    plain, tables = _PLAIN + delimiter.encode() + decimal.encode(), []
    try:
        with gzip.open(path, "rb") if packed else path.open("rb") as file:
            if header and not _is_plain_header(file.readline(_LINE_BYTES)):
                return None
            for piece in _pieces(file):
                if not _is_plain(piece, plain):
                    return None
                tables.append(csv.read_csv(io.BytesIO(piece), **options))
    except (OSError, EOFError, zlib.error, pyarrow.ArrowInvalid):
        return None
    found = {name: _column(tables, places[name], as_text=name in texts) for name in wanted} if tables else {}
    minus = any(np.signbit(values[np.isnan(values)]).any() for values in found.values() if not isinstance(values, list))
    return found if tables and not minus else None


def _pieces(file: Any) -> Iterator[bytes]:
    """Whole lines."""
    rest = b""
    while data := file.read(_PIECE_BYTES):
        data = rest + data
        end = data.rfind(b"\n") + 1
        rest = data[end:]
        if end:
            yield data[:end]
    if rest:
        yield rest


def _is_plain_header(line: bytes) -> bool:
    """Whether a line is one record, in UTF-8."""
    try:
        text = line.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError:
        return False
    return text.endswith("\n") and '"' not in text and "\r" not in text.removesuffix("\n").removesuffix("\r")


def _is_plain(piece: bytes, plain: bytes) -> bool:
    """Whether lines hold nothing that the two ways could take for different things."""
    if piece.translate(None, plain):
        return False
    if b"\r" in piece and (piece.count(b"\r") != piece.count(b"\r\n") or b"\n\r" in piece):
        return False
    if piece[:1] in b"\r\n" or b"\n\n" in piece:
        return False  # an empty line: pyarrow takes it for a line of empty cells
    windows = range(0, len(piece) - _LINE_BYTES, _LINE_BYTES)
    return all(piece.find(b"\n", at, at + _LINE_BYTES) >= 0 for at in windows)


def _column(tables: Sequence[Any], name: str, *, as_text: bool) -> NDArray[np.float64] | list[str]:
    parts = [table.column(name) for table in tables]
    if as_text:
        return [text for part in parts for text in part.to_pylist()]
    return np.concatenate([part.to_numpy() for part in parts])
