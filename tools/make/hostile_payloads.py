"""Write the hostile payloads that can be written by rule: `python -m tools.make.hostile_payloads [--out FOLDER]`.

Uses `msgpack`, the standard library and `tests.rigs.hostile`, no encoder of eyestream. Where a case is made on purpose
its reason stands here. Where cases are made by the hundred (cuts, flipped bits, single bytes)
`tests.rigs.hostile.judge` names it. `found.jsonl`, the finds of the fuzzer, is not touched.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from tests.rigs.hostile.corpus import FEATURES, FOLDER, SCHEMA, payload, write
from tests.rigs.hostile.judge import MOST_NESTED, judge
from tests.rigs.hostile.parts import (
    GOOD,
    ODD,
    ROW,
    WHOLE,
    Case,
    as_map,
    case,
    entries,
    entry,
    judged,
    pack,
    wide,
)
from tools.make.hostile_fields import counts, keys, keys_again, numbers, other_keys, shapes, types, values


def cuts() -> Iterator[Case]:
    """Messages cut short at every byte, and with something behind them."""
    two = {**WHOLE, "shape": [2, 3], "values": ROW * 2}
    for what, data in (
        ("whole", pack(WHOLE)),
        ("wide", wide(two)),
        ("backwards", pack({"v": 1} | dict(reversed(WHOLE.items())))),
    ):
        yield from judged((f"{what}, cut at {cut}", data[:cut]) for cut in range(len(data)))
    for what, tail in {**ODD, "a reserved byte": b"\xc1", "the message again": pack(GOOD), "a newline": b"\n"}.items():
        yield case(f"followed by {what}", "not_msgpack", pack(GOOD) + tail)
    for skipped in range(1, len(pack(GOOD))):
        data = pack(GOOD)
        yield from judged([(f"byte {skipped} left out", data[:skipped] + data[skipped + 1 :])])


def flips() -> Iterator[Case]:
    """Every bit of everything but the numbers' digits and the values, and every byte turned over; those refused."""
    data = pack(WHOLE)
    for at in range(len(data)):
        for mask in (1, 2, 4, 8, 16, 32, 64, 128, 255):
            changed = bytearray(data)
            changed[at] ^= mask
            yield from judged([(f"byte {at} xor {mask:#04x}", bytes(changed))])


def bytes_alone() -> Iterator[Case]:
    """Each byte alone; each as the value of a known key and of an unknown one, with nothing behind."""
    yield case("nothing", "not_msgpack", b"")
    yield from judged((f"byte {byte:#04x} alone", bytes([byte])) for byte in range(256))
    head = as_map(entries(GOOD)[:5])[1:]
    yield from judged(
        (f"values begin with {byte:#04x}", b"\x86" + head + pack("values") + bytes([byte])) for byte in range(256)
    )


def foreign() -> Iterator[Case]:
    """What other programs send."""
    texts = {
        "JSON": json.dumps({"v": 1, "schema": SCHEMA, "values": [[0.5, 2.25, -1.0]]}),
        "JSON with NaN": '{"v": 1, "values": [NaN, Infinity, 1e999]}',
        "JSON, deep": "[" * 1000,
        "JSON, twice the same key": '{"v":1,"v":1}',
        "an integer of 4301 digits": "1" * 4301,
        "HTTP": "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "XML": "<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
        "SQL": "'; DROP TABLE ledger; --",
        "a format string": "%s%s%s%n{0.__class__}",
        "CSV": "1,2,3\n4,5,6\n",
        "YAML": "!!python/object/apply:os.system ['true']",
        "a path": "../../../../etc/passwd\0",
        "an escape": "\x1b[2J\x1b]0;hello\x07",
        "spaces": " " * 100,
    }
    things = {
        **{what: text.encode() for what, text in texts.items()},
        "pickle 0": b"(dp0\nVv\np1\nI1\ns.",
        "pickle 2": b"\x80\x02}q\x00X\x01\x00\x00\x00vq\x01K\x01s.",
        "pickle 4": b"\x80\x04\x95\x0a\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01v\x94K\x01s.",
        "pickle that runs a command": b"cos\nsystem\n(S'true'\ntR.",
        "npy": b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3)}" + ROW,
        "npz": b"PK\x03\x04" + bytes(26),
        "zlib": b"x\x9c" + bytes(20),
        "gzip": b"\x1f\x8b\x08" + bytes(7),
        "CBOR": b"\xa6avavgschema\x07gsession\x05cseq\x08",
        "CBOR, self-described": b"\xd9\xd9\xf7\xa1av\x01",
        "protobuf": b"\x08\x01\x10\x07\x18\x05\x20\x08\x2a\x0c" + ROW,
        "BSON": b"\x0c\x00\x00\x00\x10v\x00\x01\x00\x00\x00\x00",
        "an MQTT CONNECT": b"\x10\x0c\x00\x04MQTT\x04\x02\x00<\x00\x00",
        "a row without anything": ROW,
        "UTF-16": '{"v":1}'.encode("utf-16"),
        "a byte order mark": b"\xef\xbb\xbf" + pack(GOOD),
        "the message as text": pack(pack(GOOD).decode("latin-1")),
        "the message as bytes": pack(pack(GOOD)),
        "the message in a list": b"\x91" + pack(GOOD),
        "the message in an ext": b"\xc7" + bytes([len(pack(GOOD))]) + b"\x05" + pack(GOOD),
        "msgpack-numpy": pack({b"nd": True, b"type": "<f4", b"kind": b"", b"shape": [1, 3], b"data": ROW}),
        "msgpack-numpy of objects": pack({b"nd": True, b"type": "O", b"kind": b"O", b"data": b"\x80\x04]\x94K\x01a."}),
        "values without keys": pack([1, SCHEMA, 5, 8, [1, 3], ROW]),
        "a private chunk": pack({"v": 1, "session": 5, "chunk": 0, "t0": 0.0, "dt": 0.5, "values": bytes(48)}),
        "a budget": pack({"v": 1, "chunks": 5, "ceiling": "day"}),
        "a status": pack({"v": 1, "state": "online", "reason": "ready"}),
    }  # fmt: skip
    for what, data in things.items():
        yield case(what, judge(data, FEATURES, SCHEMA), data)


V = as_map([entry("v", b"\x01")], 2).hex()
FULL = 65_536


def bombs() -> Iterator[Case]:
    """Small payloads that ask for a lot, and large ones."""
    heads = {"list 32": "dd", "map 32": "df", "bytes 32": "c6", "text 32": "db", "ext 32": "c9"}
    for what, head in heads.items():
        for size in (2**32 - 1, 2**31, 2**31 - 1, 2**28, 2**24):
            claim = head + size.to_bytes(4, "big").hex()
            for key in ("values", "shape", "x"):
                data = bytes.fromhex(V + pack(key).hex() + claim)
                yield case(
                    f"{key}: {what} of {size}", "not_msgpack" if key == "x" else judge(data, FEATURES, SCHEMA), data
                )
            if head not in ("df",):
                reason = "not_a_map"
                yield case(f"{what} of {size} as the whole", reason, bytes.fromhex(claim))
    for what, unit in {
        "nil": "c0",
        "empty lists": "90",
        "empty maps": "80",
        "empty texts": "a0",
        "maps of nil": "81a0c0",
    }.items():
        count = (FULL - 16) // (len(unit) // 2)
        many = "dd" + count.to_bytes(4, "big").hex()
        parts = [[V + pack("x").hex() + many, 1], [unit, count]]
        reason = "missing_key" if unit in ("a0", "c0") else "nesting"  # too many lists or maps to tell
        yield {"name": f"{count} {what}", "parts": parts, "reason": reason}
        shape = [[V + pack("shape").hex() + many, 1], [unit, count]]
        yield {"name": f"shape of {count} {what}", "parts": shape, "reason": reason}
        count //= 2
        pairs = [
            ["df" + (count + 1).to_bytes(4, "big").hex() + pack("v").hex() + "01", 1],
            ["a0" + unit, count * 2 // 3],
        ]
        reason = "not_msgpack" if unit in ("a0", "c0") else "nesting"
        yield {"name": f"map of the same key and {what}, cut short", "parts": pairs, "reason": reason}
    whole = as_map(entries(GOOD), 7).hex() + pack("x").hex()
    for unit, what, leaf in (
        ("91", "lists", "c0"),
        ("81a0", "maps", "c0"),
        ("9181a0", "lists of maps", "c0"),
        ("92c0", "second of two", "c0"),
    ):
        levels = sum(one in b"\x81\x91\x92" for one in bytes.fromhex(unit))
        allowed = (MOST_NESTED - 1) // levels  # the map of the message is a level too
        for depth in (allowed + 1, 1024, 4096, 20_000):
            if depth * len(unit) // 2 < FULL - 100:
                reason = "nesting"
                yield {
                    "name": f"{depth} {what} deep",
                    "parts": [[whole, 1], [unit, depth], [leaf, 1]],
                    "reason": reason,
                }
                yield {
                    "name": f"{depth} {what} deep and no end",
                    "parts": [[whole, 1], [unit, depth]],
                    "reason": reason,
                }
                first = [[V + pack("session").hex(), 1], [unit, depth], [leaf, 1]]
                yield {"name": f"session {depth} {what} deep", "parts": first, "reason": reason}
        fine = [[whole, 1], [unit, allowed], [leaf, 1]]
        yield {"name": f"{allowed} {what} deep", "parts": fine, "reason": "unknown_key"}
    for size, what in ((FULL + 1, "a byte too many"), (2**17, "128 KiB"), (2**20, "1 MiB"), (2**24, "16 MiB")):
        for head in (pack(GOOD).hex(), "c1", "00", "dfffffffff"):
            parts = [[head, 1], ["00", size - len(head) // 2]]
            yield {"name": f"{what} after {head:.10}", "parts": parts, "reason": "oversize"}
    for head in ("c1", "00", "90", "86", "dfffffffff", "dfffffffffa17601"):
        reason = judge(bytes.fromhex(head) + bytes(FULL - len(head) // 2), FEATURES, SCHEMA)
        parts = [[head, 1], ["00", FULL - len(head) // 2]]
        yield {"name": f"64 KiB after {head}", "parts": parts, "reason": reason}


def topics() -> list[Case]:
    """Addresses that are none of a raw stream's."""
    good = "eyestream/v1/hmd-1/features/raw"
    bad = [
        "", "/", "//", "raw", "eyestream", "eyestream/v1", "eyestream/v1/hmd-1", "eyestream/v1/hmd-1/features",
        good + "/",
        "/" + good, good + "/x", good.upper(), good.replace("v1", "v2"), good.replace("v1", "v01"),
        good.replace("v1", ""),
        good.replace("hmd-1", ""), good.replace("hmd-1", "+"), good.replace("hmd-1", "#"),
        good.replace("hmd-1", "hmd 1"),
        good.replace("hmd-1", "hmd\n1"), good.replace("hmd-1", "hmd\x001"), good.replace("hmd-1", "-hmd"),
        good.replace("hmd-1", "h" * 65), good.replace("hmd-1", "hmd\u20101"), good.replace("hmd-1", "\u0967"),
        good.replace("hmd-1", ".."), good.replace("hmd-1", "a/b"), good.replace("features", "sidecar"),
        good.replace("features", ""), good.replace("features", "+"), good.replace("raw", "RAW"),
        good.replace("raw", ""),
        good.replace("raw", "raw\0"), good.replace("raw", "rawx"), good.replace("raw", "#"), "$SYS/broker/version",
        "$share/g/" + good, good + "\n", " " + good, good + " ", "x" * 999,
    ]  # fmt: skip
    return [{"name": f"{topic!r:.60}", "topic": topic, "reason": "topic"} for topic in bad]


FILES = {
    "types": types,
    "keys": keys,
    "keys_again": keys_again,
    "other_keys": other_keys,
    "counts": counts,
    "numbers": numbers,
    "shapes": shapes,
    "cuts": cuts,
    "flips": flips,
}
FILES |= {"single_bytes": bytes_alone, "foreign": foreign, "bombs": bombs, "values": values}


def build() -> dict[str, list[Case]]:
    """Name of the file -> its cases; the first of equal payloads is kept."""
    seen: set[bytes] = set()
    out: dict[str, list[Case]] = {}
    for name, make in FILES.items():
        out[name] = []
        for made in make():
            data = payload(made)
            if data not in seen:
                seen.add(data)
                out[name].append(made)
    return {**out, "topics": topics()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=FOLDER, metavar="FOLDER", help="default: tests/product/hostile")
    folder = parser.parse_args().out
    for name, cases in build().items():
        write(name, cases, folder)


if __name__ == "__main__":
    main()
