"""Payloads of eyestream's wire, version 1, read with msgpack alone: docs/protocol.md has the tables."""

import math
import sys
from array import array
from typing import Any

import msgpack

RAW_BYTES, PRIVATE_BYTES = 65_536, 4_194_304
MAX_ROWS, MAX_U64, MAX_WEARER = 4096, 2**64 - 1, 2**32 - 1

# Key -> type; a question mark: it may be missing. The key v stands before them all.
KEYS = {
    "raw": {"schema": "int", "session": "int", "seq": "int", "shape": "ints", "values": "bytes", "end": "bool?",
            "t": "bytes?", "wearer": "int?"},
    "gaze": {"schema": "int", "shape": "ints", "values": "bytes", "t": "bytes"},
    "private": {"session": "int", "chunk": "int", "t0": "float", "dt": "float", "shape": "ints", "values": "bytes",
                "epsilon": "float", "delta": "float", "at": "float?"},
    "meta": {"names": "texts", "units": "texts", "rate_hz": "float", "n": "int", "mechanism": "text", "k": "ints",
             "epsilon": "float", "delta": "float", "noise_sd": "bytes", "guarantee": "text", "calibration": "text"},
    "status": {"state": "text", "reason": "text"},
    "budget": {"chunks": "int", "ceiling": "text", "resumes_at": "int?"},
    "odometer": {"ledger": "text", "life": "int", "began": "int", "reads": "int", "former": "text?"},
    "owner": {"ledger": "text", "devices": "texts"},
}  # fmt: skip
CLOSED = ("raw", "gaze", "owner")
"""Kinds in which a sidecar refuses keys that it does not know. In all others a reader ignores them."""

TYPES = {
    "int": lambda x: type(x) is int,
    "float": lambda x: type(x) in (int, float),
    "text": lambda x: type(x) is str,
    "bytes": lambda x: type(x) is bytes,
    "bool": lambda x: type(x) is bool,
    "ints": lambda x: type(x) is list and all(type(one) is int for one in x),
    "texts": lambda x: type(x) is list and all(type(one) is str for one in x),
}


class PayloadError(Exception):
    """A payload that is none; its text is one of the words in docs/protocol.md."""


def need(holds: bool, otherwise: str) -> None:
    if not holds:
        raise PayloadError(otherwise)


def decode(kind: str, payload: bytes, schema: int | None = None, columns: tuple[int, ...] = ()) -> dict[str, Any]:
    """The map in `payload`; of `values`, `t` and `noise_sd` the numbers, flat.

    A sidecar also compares `schema` and the number of `columns` with its configuration.
    """
    need(len(payload) <= (PRIVATE_BYTES if kind in ("private", "meta", "owner") else RAW_BYTES), "oversize")
    message = entries(payload)
    keys = KEYS[kind]
    need(all(key in message or name.endswith("?") for key, name in keys.items()), "missing_key")
    need(kind not in CLOSED or message.keys() <= keys.keys(), "unknown_key")
    message = {key: value for key, value in message.items() if key in keys}
    need(all(TYPES[keys[key].rstrip("?")](value) for key, value in message.items()), "type")
    need(schema is None or message["schema"] == schema, "schema")
    if "shape" in message:
        arrays(message, columns)
    if kind == "meta":
        message["noise_sd"] = numbers("f", message["noise_sd"])
        need(len(message["noise_sd"]) == len(message["units"]) == len(message["names"]), "length")
    limits(kind, message)
    return message


def entries(payload: bytes) -> dict[str, Any]:
    """The entries of the one map in `payload`, without v."""
    need(len(payload) > 0 and payload[0] != 0xC1, "not_msgpack")
    need(payload[0] & 0xF0 == 0x80 or payload[0] in (0xDE, 0xDF), "not_a_map")
    unpacker = msgpack.Unpacker(max_buffer_size=PRIVATE_BYTES)
    unpacker.feed(payload)
    found: dict[str, Any] = {}
    try:
        count = unpacker.read_map_header()
        need(count > 0, "missing_key")
        for number in range(count):
            key, value = unpacker.unpack(), unpacker.unpack()
            need(number > 0 or (key == "v" and type(value) is int and value == 1), "version")
            need(type(key) is str, "type")
            need(key not in found, "duplicate_key")
            found[key] = value
    except msgpack.StackError:
        raise PayloadError("nesting") from None
    except (msgpack.UnpackException, ValueError):
        raise PayloadError("not_msgpack") from None
    need(unpacker.tell() == len(payload), "not_msgpack")
    del found["v"]
    return found


def numbers(code: str, data: bytes) -> "array[float]":
    """Little-endian float32 (f) or float64 (d)."""
    found = array(code)
    need(len(data) % found.itemsize == 0, "length")
    found.frombytes(data)
    if sys.byteorder == "big":
        found.byteswap()
    return found


def arrays(message: dict[str, Any], columns: tuple[int, ...]) -> None:
    """Replace bytes by numbers, as many as the shape says."""
    shape = message["shape"]
    need(len(shape) == 2 and shape[0] >= 0 and shape[1] > 0, "shape")
    need(not columns or (shape[1] in columns and shape[0] <= MAX_ROWS), "shape")
    for key, code, count in (("values", "f", shape[0] * shape[1]), ("t", "d", shape[0])):
        if key in message:
            message[key] = numbers(code, message[key])
            need(len(message[key]) == count, "length")


def limits(kind: str, message: dict[str, Any]) -> None:
    """Numbers lie where the tables say."""
    rows = message["shape"][0] if kind == "raw" else 0
    need(all(value >= 0 for key, value in message.items() if type(value) in (int, float) and key != "at"), "range")
    need(message.get("seq", 0) <= MAX_U64 - rows and message.get("wearer", 0) <= MAX_WEARER, "range")
    need(kind != "raw" or all(map(math.isfinite, message.get("t", ()))), "range")
    need(all(math.isfinite(value) for value in message.values() if type(value) is float), "range")
    need(message.get("dt", 1) > 0 and message.get("rate_hz", 1) > 0 and message.get("delta", 0) <= 1, "range")
