"""Hostile payloads field by field: types, keys, numbers, shapes, values."""

import itertools
import struct
from collections.abc import Iterator

from tests.rigs.hostile.corpus import FEATURES
from tests.rigs.hostile.parts import (
    FITTING,
    GOOD,
    KEYS,
    ODD,
    ROW,
    U64,
    WHOLE,
    Case,
    as_map,
    case,
    entries,
    entry,
    pack,
    with_bytes,
)


def types() -> Iterator[Case]:
    """Every key with everything that it is not."""
    for key, fitting in FITTING.items():
        for what, value in ODD.items():
            if what not in fitting:
                yield case(f"{key}: {what}", "type", with_bytes(key, value))
    for what, value in ODD.items():
        if what != "one":
            yield case(f"v: {what}", "version", with_bytes("v", value))
    for what, value in ODD.items():
        if what not in ("one", "minus one"):
            yield case(f"shape of {what} and 3", "type", with_bytes("shape", b"\x92" + value + b"\x03"))
            yield case(f"shape of 1 and {what}", "type", with_bytes("shape", b"\x92\x01" + value))


_NOT_UTF8 = {
    "0xff": b"\xff",
    "a cut character": b"\xc3",
    "an overlong slash": b"\xc0\xaf",
    "an overlong nul": b"\xc0\x80",
    "a surrogate": b"\xed\xa0\x80",
    "beyond Unicode": b"\xf4\x90\x80\x80",
    "a lone continuation": b"\x80",
    "latin-1": b"Stra\xdfe",
    "utf-16": b"\xff\xfes\0",
}


def keys() -> Iterator[Case]:
    """Versions, keys that lack, that are strange, that come twice, and the order of the questions."""
    numbers = [0, 2, 3, 127, 128, 255, 256, 65_535, 2**31, 2**32 - 1, 2**32 + 1, 2**63, U64, -1, -32, -128, -(2**63)]
    for number in numbers:
        yield case(f"version {number}", "version", pack({**GOOD, "v": number}))
        yield case(f"version {number} and nothing else", "version", pack({"v": number}))
    for key in ("V", "v ", " v", "v\0", "ver", "version", "", "ѵ"):
        yield case(f"version under {key!r}", "version", pack({key: 1, **{k: GOOD[k] for k in KEYS[1:6]}}))
    for how, head in (("text 8", b"\xd9\x01v"), ("text 16", b"\xda\0\x01v"), ("bytes", b"\xc4\x01v")):
        yield case(f"v written as {how}", "version", b"\x86" + head + pack(GOOD)[3:])
    for order in itertools.permutations(KEYS[:6]):
        if order[0] != "v" and order.index("v") == len(order) - 1:
            yield case("v last: " + " ".join(order), "version", pack({key: GOOD[key] for key in order}))
    for count in range(6):
        for absent in itertools.combinations(KEYS[1:6], count):
            if absent:
                rest = {key: value for key, value in WHOLE.items() if key not in absent}
                yield case("without " + " ".join(absent), "missing_key", pack(rest))


def keys_again() -> Iterator[Case]:
    """Keys that come twice, and too many."""
    for key in KEYS:
        again = entry(key, pack(WHOLE[key]))
        yield case(f"{key} twice, the same", "duplicate_key", b"\x88" + pack(WHOLE)[1:] + again)
        yield case(f"{key} twice, nil", "duplicate_key", b"\x88" + pack(WHOLE)[1:] + entry(key, b"\xc0"))
        yield case(f"{key} three times", "duplicate_key", b"\x89" + pack(WHOLE)[1:] + again + again)
        short = [entry(name, pack(WHOLE[name])) for name in KEYS if name not in (key, "v")]
        if key != "v":
            second = entry("v", b"\x01") + b"".join(short) + short[0]
            yield case(f"no {key}, another twice", "duplicate_key", b"\x87" + second)


def other_keys() -> Iterator[Case]:
    """Keys that are not ours, or no text at all."""
    for odd in ("x", "", "Seq", "seq ", "values\0", "__class__", "timestamp", "eid", "ключ", "\U0001f441", "a" * 300):
        yield case(f"also {odd!r:.20}", "unknown_key", pack({**GOOD, odd: 1}))
        yield case(
            f"also {odd!r:.20} and no seq",
            "missing_key",
            pack({k: v for k, v in GOOD.items() if k != "seq"} | {odd: 1}),
        )
    for what, value in ODD.items():
        yield case(f"also x: {what}", "unknown_key", as_map([*entries(GOOD), entry("x", value)]))
    for what, value in ODD.items():
        if not what.endswith("text") and not what.startswith("text"):
            yield case(f"a key that is {what}", "type", as_map([*entries(GOOD), value + b"\x01"]))
    for what, text in _NOT_UTF8.items():
        yield case(
            f"a key of {what}", "not_msgpack", as_map([*entries(GOOD), bytes([0xA0 + len(text)]) + text + b"\x01"])
        )


def counts() -> Iterator[Case]:
    """Map headers that promise another number of entries."""
    for count in (*range(1, 6), 8, 9, 15):
        yield case(f"map header of {count}", "not_msgpack", as_map(entries(GOOD), count))
    yield case("map header of 0", "missing_key", as_map(entries(GOOD), 0))
    for head, what in ((b"\xde", 2), (b"\xdf", 4)):
        for count in (1, 5, 7, 255, 2 ** (8 * what) - 1):
            data = head + count.to_bytes(what, "big") + pack(GOOD)[1:]
            yield case(f"map {8 * what} header of {count}", "not_msgpack", data)
        yield case(f"map {8 * what}, empty", "missing_key", head + bytes(what))


WIDTHS = {"u8": ">BB", "u16": ">BH", "u32": ">BI", "u64": ">BQ", "i8": ">Bb", "i16": ">Bh", "i32": ">Bi", "i64": ">Bq"}
CODES = dict(zip(WIDTHS, (0xCC, 0xCD, 0xCE, 0xCF, 0xD0, 0xD1, 0xD2, 0xD3), strict=True))
EDGES = {"u8": [255], "u16": [2**16 - 1], "u32": [2**32 - 1], "u64": [2**63, U64]}
EDGES |= {"i8": [-128, -1], "i16": [-(2**15), -1], "i32": [-(2**31), -1], "i64": [-(2**63), -1, 2**63 - 1]}


def numbers() -> Iterator[Case]:
    """Integers of every width at their edges, in every place that takes one."""
    for width, edges in EDGES.items():
        for number in edges:
            data = struct.pack(WIDTHS[width], CODES[width], number)
            what = f"{number} as {width}"
            yield case(f"schema {what}", "schema", with_bytes("schema", data))
            if number < 0:
                yield case(f"session {what}", "range", with_bytes("session", data))
                yield case(f"seq {what}", "range", with_bytes("seq", data))
            yield case(
                f"{what} rows", "shape" if number < 0 else "length", with_bytes("shape", b"\x92" + data + b"\x03")
            )
            columns = "length" if 0 < number <= 4 * 2**20 else "shape"
            yield case(f"{what} columns", columns, with_bytes("shape", b"\x92\x01" + data))
            none = b"\x92\x00" + data if columns == "shape" else b"\x92\x00\x04"
            yield case(f"no rows of {what} columns", columns, with_bytes("shape", none))
    for rows in (1, 2, 7):
        message = {**GOOD, "shape": [rows, FEATURES], "values": ROW * rows}
        for seq in range(U64 - rows + 1, U64 + 1):
            yield case(f"{rows} rows from {seq}", "range", pack({**message, "seq": seq}))
    for schema in (0, 1, 6, 8, 263, 2**32 + 7, 2**63 + 7):
        yield case(f"schema {schema}", "schema", pack({**GOOD, "schema": schema}))
        yield case(f"schema {schema}, and shape and range are wrong too", "schema",
                   pack({**GOOD, "schema": schema, "seq": -1, "shape": []}))  # fmt: skip


def shapes() -> Iterator[Case]:
    """Shapes against lengths; other element types; other dimensions."""
    for rows, columns in itertools.product((0, 1, 2, 3, 5), (0, 1, 2, 3, 4, 6, 52)):
        for count in sorted({0, 1, 11, 12, 13, 24, 36, 4 * rows * columns, 4 * rows * columns + 1}):
            right = count == 4 * rows * columns
            reason = "shape" if columns == 0 or (right and columns != FEATURES) else "length"
            if not (right and columns == FEATURES):
                message = {**GOOD, "shape": [rows, columns], "values": bytes(count)}
                yield case(f"{rows} by {columns} in {count} bytes", reason, pack(message))
    for shape in ([], [1], [3], [0], [1, 3, 1], [1, 1, 3], [3, 1, 1, 1], [0, 3, 0], [1] * 40, [1, 3] * 8):
        yield case(f"shape {shape!r:.30}", "shape", pack({**GOOD, "shape": shape}))
    for rows, columns in ((-1, 3), (1, -3), (-1, -3), (-3, -1), (-4, 3), (-(2**63), 3), (1, -(2**63))):
        yield case(f"{rows} by {columns}", "shape", pack({**GOOD, "shape": [rows, columns]}))
    for what, form in {"int8": "b", "int16": "h", "float16": "e", "int64": "q", "float64": "d"}.items():
        for order in "<>":
            for rows in (1, 2, 4):
                values = struct.pack(f"{order}{3 * rows}{form}", *([1] * 3 * rows))
                message = {**GOOD, "shape": [rows, 3], "values": values}
                yield case(f"{rows} rows as {order}{what}", "length", pack(message))
    for rows in (4097, 5000, 5400):
        parts = [[pack({**GOOD, "shape": [rows, 3], "values": b""})[:-2].hex(), 1]]
        parts += [["c5" + (12 * rows).to_bytes(2, "big").hex(), 1], ["00" * 12, rows]]
        yield {"name": f"{rows} rows, more than a message may have", "parts": parts, "reason": "shape"}


def values() -> Iterator[Case]:
    """What is taken: a value that is not finite is a missing one, and every other value is a value."""
    single = {"NaN": float("nan"), "infinity": float("inf"), "minus infinity": float("-inf")}
    for what, value in single.items():
        for at in range(6):
            rows = [1.0] * 6
            rows[at] = value
            data = pack({**GOOD, "shape": [2, 3], "values": struct.pack("<6f", *rows)})
            yield case(f"{what} at {at}", None, data, missing=[[at // 3, at % 3]])
    for what, word in {"quiet NaN with a message": "7fc12345", "signalling NaN": "7f800001", "negative NaN": "ffc00000",
                       "last NaN": "7fffffff"}.items():  # fmt: skip
        data = pack({**GOOD, "values": bytes.fromhex(word)[::-1] + ROW[4:]})
        yield case(what, None, data, missing=[[0, 0]])
    for what, word in {"minus zero": "80000000", "smallest subnormal": "00000001", "largest subnormal": "007fffff",
                       "smallest normal": "00800000",
                       "largest": "7f7fffff", "most negative": "ff7fffff"}.items():  # fmt: skip
        yield case(what, None, pack({**GOOD, "values": bytes.fromhex(word)[::-1] * 3}), missing=[])
    yield case("a row of NaN, a lost eye", None, pack({**GOOD, "values": struct.pack("<f", float("nan")) * 3}),
               missing=[[0, 0], [0, 1], [0, 2]])  # fmt: skip
    yield case("big-endian: nothing tells it from little-endian numbers", None,
               pack({**GOOD, "values": struct.pack(">3f", 0.5, 2.25, -1.0)}), missing=[])  # fmt: skip
    yield case("int32: nothing tells them from numbers", None, pack({**GOOD, "values": struct.pack("<3i", 1, -1, 7)}),
               missing=[[0, 1]])  # fmt: skip
    yield case("no rows", None, pack({**GOOD, "shape": [0, 3], "values": b""}), missing=[])
    yield case("largest numbers", None, pack({**GOOD, "session": U64, "seq": U64 - 1}), missing=[])
    for order in list(itertools.permutations(KEYS[1:6]))[::17]:
        yield case("order v " + " ".join(order), None, pack({key: GOOD[key] for key in ("v", *order)}), missing=[])
