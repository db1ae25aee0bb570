"""What a `raw` payload deserves: a second, slow reading of the format that shares nothing with ours.

It walks over the bytes with the msgpack specification in hand and no library. The tests hold `decode_raw` to it, the
corpus takes the reasons of its mechanical cases (cuts, flipped bits) from it, and the fuzzer calls every disagreement a
find. The order of the questions is that of `eyestream.wire.envelope`; within the structure it is the order of the
bytes: what is broken first is said.
"""

import struct
from typing import Any

MAX_BYTES, MAX_ROWS, MAX_U64 = 65_536, 4096, 2**64 - 1
MAX_COLUMNS = 4 * 1024 * 1024
MOST_NESTED, MOST_WALKED = 100, 2_000
"""Containers in each other, and values until they have to be counted to the end."""

NEEDED = ["v", "schema", "session", "seq", "shape", "values"]
_FIXED = {0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
_FIXED |= {0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8, 0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17}
_SIZED = {0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0), 0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1)}
_SIZED |= {0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0)}
_INTEGERS = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}


class RefusedError(Exception):
    """The word for a payload that is refused."""


class _Walk:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        piece = self.data[self.at : self.at + count]
        if len(piece) < count:
            raise RefusedError("not_msgpack")
        self.at += count
        return piece

    def size(self, width: int) -> int:
        return int.from_bytes(self.take(width), "big")

    def step(self) -> tuple[int, bytes, int]:
        """One head: its first byte, the bytes that belong to it alone, and how many values follow inside it."""
        code = self.take(1)[0]
        if code <= 0x7F or code >= 0xE0:
            return code, b"", 0
        if code <= 0x9F:
            return code, b"", (code & 0x0F) * (2 if code <= 0x8F else 1)
        if code <= 0xBF:
            return code, self.take(code & 0x1F), 0
        if code in _FIXED:
            return code, self.take(_FIXED[code]), 0
        if code in _SIZED:
            width, more = _SIZED[code]
            return code, self.take(self.size(width) + more), 0
        if code >= 0xDC:
            return code, b"", self.size(4 if code & 1 else 2) * (2 if code >= 0xDE else 1)
        raise RefusedError("not_msgpack")

    def past(self, most: int | None = None) -> bytes:
        """Step over one value; gives its bytes.

        `most`: of containers in each other; then no more than `MOST_WALKED` values are stepped over.
        """
        start, open_, values = self.at, [1], 0
        while open_:
            if most is not None and values == MOST_WALKED and self.at < len(self.data):
                raise RefusedError("nesting")
            open_[-1], values = open_[-1] - 1, values + 1
            code, _, inside = self.step()
            if most is not None and _is_container(code) and len(open_) > most:
                raise RefusedError("nesting")
            if inside:
                open_.append(inside)
            while open_ and open_[-1] == 0:
                open_.pop()
        return self.data[start : self.at]


def _is_container(code: int) -> bool:
    return 0x80 <= code <= 0x9F or 0xDC <= code <= 0xDF


def _is_text(code: int) -> bool:
    return 0xA0 <= code <= 0xBF or 0xD9 <= code <= 0xDB


def _is_deep(data: bytes) -> bool:
    if sum(map(_is_container, data)) <= MOST_NESTED:
        return False
    try:
        _Walk(data).past(MOST_NESTED)
    except RefusedError as refused:
        return str(refused) == "nesting"
    return False


def _read(data: bytes) -> tuple[int, dict[str, bytes]]:
    """Declared entries, and the value's bytes of each key (the last one counts)."""
    walk = _Walk(data)
    if not data or data[0] == 0xC1:
        raise RefusedError("not_msgpack")
    if data[0] & 0xF0 != 0x80 and data[0] not in (0xDE, 0xDF):
        raise RefusedError("not_a_map")
    entries = walk.step()[2] // 2
    if entries == 0:
        raise RefusedError("missing_key")
    if data[walk.at : walk.at + 2] != b"\xa1v":
        raise RefusedError("version")
    walk.at += 2
    try:
        version = _value(walk.past())
    except RefusedError:
        raise RefusedError("version") from None
    if type(version) is not int or version != 1:
        raise RefusedError("version")
    if _is_deep(data):
        raise RefusedError("nesting")
    fields = {"v": b"\x01"}
    for _ in range(entries - 1):
        code, body, _ = walk.step()
        if not _is_text(code):
            raise RefusedError("type" if code != 0xC1 else "not_msgpack")
        try:
            key = body.decode("utf-8")
        except UnicodeDecodeError:
            raise RefusedError("not_msgpack") from None
        fields[key] = walk.past()
    if walk.at != len(data):
        raise RefusedError("not_msgpack")
    return entries, fields


def _value(data: bytes) -> Any:
    """A number, truth value, bytes or list of them; None for anything else."""
    walk = _Walk(data)
    code, body, inside = walk.step()
    value: Any = None
    if code <= 0x7F or code >= 0xE0:
        value = code - 256 * (code >= 0xE0)
    elif code in _INTEGERS:
        (value,) = struct.unpack(_INTEGERS[code], body)
    elif code in (0xC2, 0xC3):
        value = code == 0xC3
    elif code in (0xC4, 0xC5, 0xC6):
        value = body
    elif 0x90 <= code <= 0x9F or code in (0xDC, 0xDD):
        value = [_value(walk.past()) for _ in range(inside)]
    return value


def _whole(value: Any) -> bool:
    return type(value) is int


def judge(payload: bytes, features: int, schema: int) -> str:
    """The reason for which `payload` is to be refused; empty when it is to be taken."""
    try:
        return _judge(payload, features, schema)
    except RefusedError as refusal:
        return str(refusal)


def _judge(payload: bytes, features: int, schema: int) -> str:
    if len(payload) > MAX_BYTES:
        return "oversize"
    entries, fields = _read(bytes(payload))
    of_keys = {
        "duplicate_key": len(fields) != entries,
        "missing_key": not set(NEEDED) <= set(fields),
        "unknown_key": bool(set(fields) - {*NEEDED, "end", "wearer"}),
    }
    for reason, holds in of_keys.items():
        if holds:
            return reason
    values = {key: _value(data) for key, data in fields.items()}
    return _content(values, features, schema) if _typed(values) else "type"


def _typed(values: dict[str, Any]) -> bool:
    shape = values["shape"]
    return (
        all(_whole(values[key]) for key in ("schema", "session", "seq"))
        and _whole(values.get("wearer", 0))
        and isinstance(shape, list)
        and all(_whole(number) for number in shape)
        and isinstance(values["values"], bytes)
        and isinstance(values.get("end", False), bool)
    )


def _content(values: dict[str, Any], features: int, schema: int) -> str:
    shape = values["shape"]
    if values["schema"] != schema:
        return "schema"
    if len(shape) != 2 or shape[0] < 0 or not 1 <= shape[1] <= MAX_COLUMNS:
        return "shape"
    if len(values["values"]) != 4 * shape[0] * shape[1]:
        return "length"
    if shape[1] != features or shape[0] > MAX_ROWS:
        return "shape"
    fine = 0 <= values["session"] <= MAX_U64 and 0 <= values["seq"] <= MAX_U64 - shape[0]
    return "" if fine and 0 <= values.get("wearer", 0) < 2**32 else "range"
