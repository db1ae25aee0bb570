"""Tables that pyarrow reads: each value, each refusal and each line are those of the other way, or it says nothing."""

import gzip
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyestream.errors import RecordingError
from eyestream.rim.files import fast_tables
from eyestream.rim.files.delimited import read_columns
from eyestream.rim.files.fast_tables import fast_columns

pytestmark = pytest.mark.needs("pyarrow")

NAMES = ["t", "x", "y", "label"]
USUAL = "t,x,y,label\n" + "".join(f"{i / 1000:.6f},{i % 7}.5,{-i % 9},F\n" for i in range(300))

WORDS = """0 -0.0 1 +1 007 1. .5 . - -- + 1e5 1E-5 1e400 -1e400 1e-400 4.9e-324 2.2250738585072011e-308 1e 1e+ inf -inf
+inf Infinity -infinity iNf infin nan NaN NAN nAn -nan +nan nan(1) na NA nA n/a N/A n/A none None NONE nOne null NULL
Null nULL true True false valid yes no 1_0 _1 0x10 0x1p3 0b1 1d5 1f 1j 1,5 1;5 1:5 12:30 1/2 --1 1-1 9007199254740993
0.1000000000000000055511151231257827021181583404541015625 123456789012345678901234567890 1.7976931348623157e308
1.7976931348623159e308 0.3 2.675 8.41 5e-324 3e-324 2e-324""".split()  # noqa: SIM905
WORDS += [
    "",
    " ",
    " 1.5",
    "1.5 ",
    " nan ",
    "  ",
    "1 5",
    "\t2",
    "2\t",
    "\x0b3",
    '"4"',
    '4"',
    "4\0",
    "\u0664",
    "\ufeff5",
    "6\x1c",
    "1" * 400,
]


def read(path: Path, **more: Any) -> object:
    """Values by their bits, or the refusal."""
    given = {"names": NAMES, "numbers": ["t", "x", "y"], "texts": ["label"], "delimiter": ",", "header": True, **more}
    try:
        found = read_columns(path, **given)
    except RecordingError as error:
        return str(error)
    return {name: column if isinstance(column, list) else column.tobytes() for name, column in found.items()}


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., bool]:
    """Compare the two ways over bytes; whether the fast one read them."""

    def compare(data: bytes, packed: bool = False, **more: Any) -> bool:
        path, read_fast = tmp_path / ("table.csv" + ".gz" * packed), list[bool]()
        path.unlink(missing_ok=True)  # ext4 waits for the disk where a file that has been there is cut and written anew
        path.write_bytes(data)

        def noted(*given: Any, **named: Any) -> object:
            found = fast_columns(*given, **named)
            read_fast.append(found is not None)
            return found

        monkeypatch.setattr("eyestream.rim.files.delimited.fast_columns", lambda *_, **__: None)
        slow = read(path, **more)
        monkeypatch.setattr("eyestream.rim.files.delimited.fast_columns", noted)
        monkeypatch.setattr(fast_tables, "FEWEST_BYTES", 0)
        assert read(path, **more) == slow
        return read_fast == [True]

    return compare


def test_usual_tables_are_read_fast(both: Callable[..., bool]) -> None:
    """Else nothing below is shown."""
    assert both(USUAL.encode())
    assert both(USUAL.replace("\n", "\r\n").encode())
    assert both(b"\xef\xbb\xbf" + USUAL.encode())
    assert both(USUAL.removesuffix("\n").encode())
    assert both(gzip.compress(USUAL.encode()), packed=True)
    assert both(USUAL.replace(",", "\t").encode(), delimiter="\t")
    assert both(USUAL.replace(",", ";").replace(".", ",").encode(), delimiter=";", decimal=",")
    assert both(USUAL.partition("\n")[2].encode(), header=False)
    assert both(USUAL.replace(",0.5,", ",,").replace(",1.5,", ",NaN,").encode())


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("decimal", [".", ","])
def test_each_word_is_read_alike_wherever_it_stands(both: Callable[..., bool], word: str, decimal: str) -> None:
    delimiter = "," if decimal == "." else ";"
    lines = [[f"{i}{decimal}25", "1", "2", "F"] for i in range(20)]
    for column in range(4):
        changed = [list(line) for line in lines]
        changed[11][column] = word
        text = "t,x,y,label\n".replace(",", delimiter) + "".join(delimiter.join(line) + "\n" for line in changed)
        both(text.encode(), delimiter=delimiter, decimal=decimal)


HOSTILE = {
    "nothing": b"",
    "a header alone": b"t,x,y,label\n",
    "a header without an end": b"t,x,y,label",
    "an empty line between": USUAL.replace("\n0.1", "\n\n0.1", 1).encode(),
    "an empty line of two bytes between": USUAL.replace("\n", "\r\n").replace("\n0.1", "\n\r\n0.1", 1).encode(),
    "an empty first line": USUAL.replace("label\n", "label\n\n", 1).encode(),
    "empty lines at the end": (USUAL + "\n\n").encode(),
    "a short line": USUAL.replace(",F\n", "\n", 1).encode(),
    "a long line": USUAL.replace(",F\n", ",F,\n", 1).encode(),
    "a cut line at the end": USUAL[:-4].encode(),
    "quotes": USUAL.replace("F", '"F"').encode(),
    "a quoted line end": USUAL.replace("F\n", '"F\nF"\n', 1).encode(),
    "quotes in the header": USUAL.replace("label", '"la\nbel"', 1).encode(),
    "a lone carriage return": USUAL.replace("\n0.1", "\r0.1", 1).encode(),
    "carriage returns alone": USUAL.replace("\n", "\r").encode(),
    "a carriage return in the header": USUAL.replace("x,", "x\r,", 1).encode(),
    "a NUL": USUAL.replace("F", "\0", 1).encode(),
    "another encoding": USUAL.replace("F", "\u00e4", 1).encode("latin-1"),
    "another encoding in the header": b"t\xe4" + USUAL[1:].encode(),
    "UTF-16": USUAL.encode("utf-16"),
    "letters": USUAL.replace("F", "\u00e4").encode(),
    "a large cell": USUAL.replace("F", "F" * 140_000, 1).encode(),
    "a large number": USUAL.replace("1.5", "1" * 140_000, 1).encode(),
    "spaces": USUAL.replace(",", ", ").encode(),
    "comments": ("# a tracker\n" + USUAL).encode(),
    "a line separator": USUAL.replace("F", "\x85\u2028", 1).encode(),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_tables_are_read_or_refused_alike(both: Callable[..., bool], name: str) -> None:
    both(HOSTILE[name])
    both(HOSTILE[name], header=False)
    both(HOSTILE[name], texts=[])
    both(HOSTILE[name], numbers=["x"], texts=["label", "y"])
    both(HOSTILE[name], numbers=["x", "y"], texts=["x"])
    both(HOSTILE[name], only=("label", "F"))


def test_packed_tables_that_are_damaged_are_refused_alike(both: Callable[..., bool]) -> None:
    packed = gzip.compress(USUAL.encode())
    for data in (packed[:-9], packed[:40], b"", USUAL.encode(), packed[:60] + b"\xff" + packed[61:], packed + b"x"):
        both(data, packed=True)


def test_pieces_end_where_lines_do(both: Callable[..., bool], monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (1, 7, 64, 1000):
        monkeypatch.setattr(fast_tables, "_PIECE_BYTES", size)
        assert both(USUAL.encode())


@pytest.mark.parametrize("seed", range(40))
def test_random_faults_are_found_alike(both: Callable[..., bool], seed: int) -> None:
    chance, data = random.Random(seed), bytearray(USUAL.encode())
    for _ in range(chance.choice([1, 1, 3])):
        at = chance.randrange(12, len(data))
        data[at : at + chance.randrange(3)] = chance.choice(
            [chance.choice(WORDS).encode(), bytes([chance.randrange(256)]), b",", b"\n", b"\r", b" "]
        )
    both(bytes(data))


def test_random_numbers_have_the_same_bits(both: Callable[..., bool]) -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(-(1 << 63), 1 << 63, 6000).view(np.float64)
    values[np.isnan(values)] = 0.25
    forms = ["%r", "%.17g", "%.3e", "%.25e", "%.6f"]
    cells = [forms[i % 5] % float(value) if abs(value) < 1e50 or i % 5 < 4 else "0" for i, value in enumerate(values)]
    lines = [",".join([*cells[i : i + 3], "F"]) for i in range(0, 6000, 3)]
    both(("t,x,y,label\n" + "\n".join(lines) + "\n").encode())
    for line in lines:  # one that goes the other way takes no other with it
        both(f"t,x,y,label\n{line}\n".encode())


def test_a_short_file_and_a_missing_library_take_the_other_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table.csv"
    path.write_text(USUAL)
    given: dict[str, Any] = {"delimiter": ",", "header": True, "decimal": ".", "packed": False}
    assert fast_columns(path, NAMES, ["x"], [], **given) is None
    monkeypatch.setattr(fast_tables, "FEWEST_BYTES", 0)
    assert fast_columns(path, NAMES, ["x"], [], **given) is not None
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert fast_columns(path, NAMES, ["x"], [], **given) is None
