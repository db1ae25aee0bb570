"""What hostile payloads are made of: a good message in pieces, and values that do not fit."""

import struct
from collections.abc import Iterable, Iterator
from typing import Any

import msgpack

from tests.rigs.hostile.corpus import FEATURES, SCHEMA
from tests.rigs.hostile.judge import judge

Case = dict[str, Any]
U64 = 2**64 - 1
ROW = struct.pack("<3f", 0.5, 2.25, -1.0)
GOOD: dict[str, Any] = {"v": 1, "schema": SCHEMA, "session": 5, "seq": 8, "shape": [1, FEATURES], "values": ROW}
WHOLE = {**GOOD, "end": True}
KEYS = list(WHOLE)


def pack(value: Any) -> bytes:
    """`value` as msgpack."""
    return bytes(msgpack.packb(value, use_bin_type=True))


def entry(key: str, value: bytes) -> bytes:
    """A key before the bytes of its value."""
    return pack(key) + value


def as_map(entries: list[bytes], count: int | None = None) -> bytes:
    """A map of entries that are bytes already, whatever they hold."""
    return bytes([0x80 + (len(entries) if count is None else count)]) + b"".join(entries)


def with_bytes(key: str, value: bytes) -> bytes:
    """The whole message, one value of it replaced by bytes."""
    return as_map([entry(name, value if name == key else pack(WHOLE[name])) for name in KEYS])


def case(name: str, reason: str | None, data: bytes, **more: Any) -> Case:
    """One case of the corpus."""
    return {"name": name, "hex": data.hex(), "reason": reason, **more}


def judged(named: Iterable[tuple[str, bytes]]) -> Iterator[Case]:
    """Those that are refused, each with the word of the judge."""
    for name, data in named:
        reason = judge(data, FEATURES, SCHEMA)
        if reason:
            yield case(name, reason, data)


def entries(message: dict[str, Any]) -> list[bytes]:
    """Each entry of a message as bytes."""
    return [entry(key, pack(value)) for key, value in message.items()]


def wide(message: dict[str, Any]) -> bytes:
    """As an encoder writes that keeps every width at its largest."""
    parts = [b"\xdf" + struct.pack(">I", len(message))]
    for key, value in message.items():
        parts.append(pack(key) if key == "v" else b"\xdb" + struct.pack(">I", len(key)) + key.encode())
        if isinstance(value, bytes):
            parts.append(b"\xc6" + struct.pack(">I", len(value)) + value)
        elif isinstance(value, list):
            parts += [b"\xdd" + struct.pack(">I", len(value)), *(struct.pack(">BQ", 0xCF, number) for number in value)]
        else:
            parts.append(pack(value) if isinstance(value, bool) else struct.pack(">BQ", 0xCF, value))
    return b"".join(parts)


ODD: dict[str, bytes] = {
    "nil": b"\xc0",
    "false": b"\xc2",
    "true": b"\xc3",
    "float 1.0": pack(1.0),
    "float32 1.0": b"\xca" + struct.pack(">f", 1.0),
    "NaN": pack(float("nan")),
    "infinity": pack(float("inf")),
    "1e308": pack(1e308),
    "text 1": pack("1"),
    "empty text": pack(""),
    "long text": pack("1" * 300),
    "text that is not UTF-8": b"\xa2\xff\xfe",
    "bytes 1": pack(b"1"),
    "empty bytes": pack(b""),
    "empty list": b"\x90",
    "list of 1": b"\x91\x01",
    "list of lists": b"\x92\x91\x01\x91\x03",
    "list of floats": pack([1.0, 3.0]),
    "list of texts": pack(["1", "3"]),
    "list of nil": b"\x92\xc0\xc0",
    "list of truth values": b"\x92\xc3\xc3",
    "empty map": b"\x80",
    "map": pack({"a": 1}),
    "map of numbers": pack({0: 1, 1: 3}),
    "ext of one byte": b"\xd4\x05\x01",
    "ext of four": b"\xd6\x05\0\0\0\x01",
    "ext 8, empty": b"\xc7\x00\x05",
    "timestamp 32": b"\xd6\xff\0\0\0\x01",
    "timestamp 64": b"\xd7\xff" + bytes(8),
    "timestamp 96": b"\xc7\x0c\xff" + bytes(12),
    "far timestamp": b"\xc7\x0c\xff" + b"\xff" * 12,
    "one": b"\x01",
    "minus one": b"\xff",
    "list of 1 and 3": b"\x92\x01\x03",
    "the bytes of a row": pack(ROW),
}
FITTING = {
    "schema": {"one", "minus one"},
    "session": {"one", "minus one"},
    "seq": {"one", "minus one"},
    "shape": {"empty list", "list of 1", "list of 1 and 3"},
    "values": {"bytes 1", "empty bytes", "the bytes of a row"},
    "end": {"false", "true"},
}
