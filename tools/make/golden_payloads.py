"""Write the golden payloads and their index: `python -m tools.make.golden_payloads [--out FOLDER]`.

Uses `msgpack` and the standard library only, nothing of eyestream, so that it also serves as an example for those who
write a client of their own in another language.
"""

import argparse
import json
import struct
from pathlib import Path
from typing import Any

import msgpack

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "golden"
SCHEMA = 7
NAMES = ["fixation_rate", "saccade_rate", "blink_rate"]
NAN, INF = float("nan"), float("inf")
U64 = 2**64 - 1


def floats(rows: list[list[float]]) -> bytes:
    """Rows as little-endian float32, one row after the other."""
    return b"".join(struct.pack(f"<{len(row)}f", *row) for row in rows)


def raw(rows: list[list[float]], **changes: Any) -> dict[str, Any]:
    """A tracker's message; keys in the order in which they are written."""
    message = {
        "v": 1,
        "schema": SCHEMA,
        "session": 20261120,
        "seq": 96,
        "shape": [len(rows), 3],
        "values": floats(rows),
    }
    return {**message, **changes}


def pack(message: Any) -> bytes:
    return msgpack.packb(message, use_bin_type=True)


def wide(message: dict[str, Any]) -> bytes:
    """The same map as an encoder writes it that keeps every integer 8 bytes wide, and the map header 2."""
    parts = [b"\xde" + struct.pack(">H", len(message))]
    for key, value in message.items():
        numbers = [
            struct.pack(">BQ", 0xCF, number)
            for number in (value if isinstance(value, list) else [value])
            if isinstance(number, int)
        ]
        head = b"\x92" if isinstance(value, list) else b""
        parts.append(pack(key) + (head + b"".join(numbers) if numbers else pack(value)))
    return b"".join(parts)


ROWS = [[0.5, 2.25, -1.0], [0.75, 2.0, 0.0], [1.0, 1.75, 3.5], [1.25, 1.5, 1e30]]
GAPS = [[0.5, NAN, -1.0], [NAN, NAN, NAN], [INF, 2.0, -INF]]

RAW = {
    "raw-one-row": ("one row", raw(ROWS[:1]), ROWS[:1]),
    "raw-four-rows": ("rows 96 to 99 in one message", raw(ROWS), ROWS),
    "raw-missing": ("NaN, and whatever is not finite, is a missing value; a lost eye is a row of NaN", raw(GAPS), GAPS),
    "raw-last-rows": ("the last rows of a session", raw(ROWS[:2], seq=98, end=True), ROWS[:2]),
    "raw-end": ("the end of a session without rows; seq is the number that would have come next",
                raw([], seq=100, end=True), []),
    "raw-largest-numbers": ("session and row numbers are u64; the number after the last row still fits",
                            raw(ROWS[:1], session=U64, seq=U64 - 1), ROWS[:1]),
    "raw-wearer": ("rows that name who wears the device; the largest handle",
                   raw(ROWS[:1], wearer=2**32 - 1), ROWS[:1]),
}  # fmt: skip

MOMENTS = [1024.5, 1025.0, 1025.5, 1026.125]
TIMED = raw(ROWS, t=struct.pack("<4d", *MOMENTS))

BAD = {
    "bad-version": ("a later version, whatever else it holds", "version", pack({"v": 2, "frames": [1.5, 2.5]})),
    "bad-version-not-first": ("v is not the first key", "version",
                              pack({**{k: v for k, v in raw(ROWS).items() if k != "v"}, "v": 1})),
    "bad-empty": ("no bytes", "not_msgpack", b""),
    "bad-cut": ("cut short", "not_msgpack", pack(raw(ROWS))[:-1]),
    "bad-trailing": ("a byte too many", "not_msgpack", pack(raw(ROWS)) + b"\x00"),
    "bad-json": ("JSON", "not_a_map", json.dumps({"v": 1, "schema": SCHEMA}).encode()),
    "bad-list": ("a list of values without keys", "not_a_map", pack([1, SCHEMA, 1, 0, [1, 3], floats(ROWS[:1])])),
    "bad-nesting": ("lists in lists", "nesting", pack(raw(ROWS))[:1].replace(b"\x86", b"\x87")
                    + pack(raw(ROWS))[1:] + pack("x") + b"\x91" * 4000 + b"\xc0"),
    "bad-duplicate-key": ("seq twice", "duplicate_key", b"\x87" + pack(raw(ROWS))[1:] + pack("seq") + pack(5)),
    "bad-missing-key": ("no seq", "missing_key", pack({k: v for k, v in raw(ROWS).items() if k != "seq"})),
    "bad-unknown-key": ("a key that is not ours", "unknown_key", pack(raw(ROWS, timestamp=1.0))),
    "bad-float-list": ("values as a list of numbers", "type", pack(raw(ROWS[:1], values=ROWS[0]))),
    "bad-text-number": ("a number as text", "type", pack(raw(ROWS, seq="96"))),
    "bad-schema": ("another schema", "schema", pack(raw(ROWS, schema=8))),
    "bad-features": ("two features where three are configured", "shape",
                     pack(raw([], shape=[4, 2], values=floats([row[:2] for row in ROWS])))),
    "bad-one-dimension": ("shape without the number of rows", "shape", pack(raw(ROWS[:1], shape=[3]))),
    "bad-float64": ("values in double precision", "length",
                    pack(raw(ROWS[:1], values=struct.pack("<3d", *ROWS[0])))),
    "bad-times": ("a time too few", "length", pack(raw(ROWS, t=struct.pack("<3d", *MOMENTS[:3])))),
    "bad-time": ("a time that is not finite", "range", pack(raw(ROWS[:1], t=struct.pack("<d", NAN)))),
    "bad-negative": ("a negative row number", "range", pack(raw(ROWS, seq=-1))),
    "bad-wrap": ("row numbers would wrap", "range", pack(raw(ROWS, seq=U64 - 2))),
    "bad-wearer": ("a handle of more than 32 bits", "range", pack(raw(ROWS[:1], wearer=2**32))),
    "bad-wearer-text": ("a handle as text", "type", pack(raw(ROWS[:1], wearer="anna"))),
}  # fmt: skip

TIMES = [5021.25, 5021.254, 5021.258]
SAMPLES = [[-3.5, 1.25, 3.75], [NAN, NAN, NAN], [12.0, -8.5, 4.0]]


def gaze(**changes: Any) -> dict[str, Any]:
    """A tracker's samples: x and y in degrees, the pupil in mm."""
    message = {"v": 1, "schema": SCHEMA, "shape": [3, 3], "values": floats(SAMPLES), "t": struct.pack("<3d", *TIMES)}
    return {**message, **changes}


GAZE = {
    "gaze": ("three samples; of the second the eye was lost", gaze(), SAMPLES, TIMES),
    "gaze-no-pupil": ("one sample of a tracker without pupils",
                      gaze(shape=[1, 2], values=floats([[0.5, -0.25]]), t=struct.pack("<d", 1.7e9)),
                      [[0.5, -0.25]], [1.7e9]),
    "gaze-none": ("no samples", gaze(shape=[0, 2], values=b"", t=b""), [], []),
}  # fmt: skip
BAD_GAZE = {
    "bad-gaze-no-time": ("no times", "missing_key", pack({k: v for k, v in gaze().items() if k != "t"})),
    "bad-gaze-float32-time": ("times in single precision", "length", pack(gaze(t=struct.pack("<3f", *TIMES)))),
    "bad-gaze-list": ("times as a list of numbers", "type", pack(gaze(t=TIMES))),
    "bad-gaze-seq": ("a key that only rows have", "unknown_key", pack(gaze(seq=5))),
    "bad-gaze-columns": ("a column too many", "shape",
                         pack(gaze(shape=[1, 4], values=floats([[0.0] * 4]), t=struct.pack("<d", 1.0)))),
    "bad-gaze-one-column": ("x alone", "shape", pack(gaze(shape=[3, 1], values=floats([[1.0]] * 3)))),
    "bad-gaze-schema": ("another schema", "schema", pack(gaze(schema=8))),
    "bad-gaze-later": ("a later version", "version", pack({**gaze(), "v": 2})),
}  # fmt: skip

PRIVATE = {"v": 1, "session": 0x9E3779B97F4A7C15, "chunk": 3, "t0": 6.0, "dt": 0.5, "shape": [3, 4],
           "values": floats([[1.0, 1.5, 2.0, 2.5], [0.0, -0.5, 0.25, 8.0], [30.0, 30.0, 30.0, 30.0]]),
           "epsilon": 4.8, "delta": 0.0}  # fmt: skip
SLOT = [[-12.5], [3.25], [8.0], [0.125], [14.0]]
SLOT_OF_GAZE = {"v": 1, "session": 0x9E3779B97F4A7C15, "chunk": 7, "t0": 7.0, "dt": 1.0, "shape": [5, 1],
                "values": floats(SLOT), "epsilon": 3.3, "delta": 0.0, "at": 1031.5}  # fmt: skip
META = {"v": 1, "names": NAMES, "units": ["1/s", "1/s", "1/min"], "rate_hz": 2.0, "n": 4, "mechanism": "cfpa",
        "k": [1, 2, 0], "epsilon": 4.8, "delta": 0.0, "noise_sd": floats([[12.5, 3.25, 0.0]]),
        "guarantee": "epsilon 4.8 for each chunk of 4 rows", "calibration": "00" * 32}  # fmt: skip
WORDS = [[0.0625], [0.875], [0.0625]]
WORD = PRIVATE | {"t0": 96.0, "dt": 32.0, "shape": [3, 1], "values": floats(WORDS), "epsilon": 2.625}
WORD_META = META | {"names": ["browse", "read", "write"], "units": ["probability"] * 3, "rate_hz": 0.03125, "n": 1,
                    "mechanism": "task-words", "k": [], "epsilon": 2.625, "noise_sd": floats([[0.25, 0.25, 0.25]]),
                    "guarantee": "epsilon 2.625 for each chunk of 64 rows"}  # fmt: skip
ASKED = [[-0.0625], [0.25]]
CHANGE = PRIVATE | {"t0": 96.0, "dt": 32.0, "shape": [2, 1], "values": floats(ASKED)}
ASKED_META = META | {"names": ["blink_rate", "mean_mean_diameter"], "units": ["1/s", "mm"], "rate_hz": 0.03125, "n": 1,
                     "mechanism": "asked", "k": [], "noise_sd": floats([[0.125, 0.1875]]),
                     "guarantee": "epsilon 4.8 for each chunk of 64 rows"}  # fmt: skip
STATUS = {"v": 1, "state": "online", "reason": "ready"}
PAUSED = {"v": 1, "state": "paused", "reason": "paused"}
OWNER = {"v": 1, "ledger": "0123456789abcdef" * 2, "devices": ["hmd-1", "hmd-2"]}
BUDGET = {"v": 1, "chunks": 96, "ceiling": "session"}
SPENT = {"v": 1, "chunks": 0, "ceiling": "day", "resumes_at": 1795305600}
READING = {"v": 1, "ledger": "0123456789abcdef" * 2, "life": 81985529216486895 >> 4, "began": 2_000_000_000_000,
           "reads": 2_000_014_400_000}  # fmt: skip
LAST_WILL = {"v": 1, "state": "offline", "reason": "lost"}


def shown(message: dict[str, Any], values: list[list[float]]) -> dict[str, Any]:
    """What a reader must find: bytes as numbers, missing values as null, and in digits what JavaScript would round."""
    finite = [[value if abs(value) < INF else None for value in row] for row in values]
    digits: dict[str, Any] = {key: str(message[key]) for key in ("session", "seq", "chunk") if key in message}
    return {**message, **digits, "values": finite}


def payloads() -> dict[str, tuple[dict[str, Any], bytes]]:
    """Name -> (entry of the index, bytes)."""
    out = {name: ({"kind": "raw", "what": what, "holds": shown(message, rows)}, pack(message))
           for name, (what, message, rows) in RAW.items()}  # fmt: skip
    back = {"v": 1} | dict(reversed(raw(ROWS).items()))
    out["raw-wide"] = (
        {"kind": "raw", "what": "also fine: wide integers, another order after v", "holds": shown(back, ROWS)},
        wide(back),
    )
    chunk = [[1.0, 1.5, 2.0, 2.5], [0.0, -0.5, 0.25, 8.0], [30.0, 30.0, 30.0, 30.0]]
    out["private"] = ({"kind": "private", "what": "a released chunk", "holds": shown(PRIVATE, chunk)}, pack(PRIVATE))
    timed = {**PRIVATE, "at": MOMENTS[0]}
    out["private-timed"] = (
        {"kind": "private", "what": "the tracker told its time", "holds": shown(timed, chunk)},
        pack(timed),
    )
    out["private-gaze"] = (
        {"kind": "private", "what": "one slot of coarse gaze", "holds": shown(SLOT_OF_GAZE, SLOT)},
        pack(SLOT_OF_GAZE),
    )
    out["raw-timed"] = (
        {"kind": "raw", "what": "rows with the tracker's time of each", "holds": {**shown(TIMED, ROWS), "t": MOMENTS}},
        pack(TIMED),
    )
    out["owner"] = ({"kind": "owner", "what": "the devices of a sidecar", "holds": OWNER}, pack(OWNER))
    meta = {**META, "noise_sd": [12.5, 3.25, 0.0]}
    out["meta"] = ({"kind": "meta", "what": "what an application must know", "holds": meta}, pack(META))
    words = {"kind": "private", "what": "a released word: how likely each task is", "holds": shown(WORD, WORDS)}
    out["private-word"] = (words, pack(WORD))
    of_words = {"kind": "meta", "what": "a stream of words", "holds": {**WORD_META, "noise_sd": [0.25, 0.25, 0.25]}}
    out["meta-words"] = (of_words, pack(WORD_META))
    changed = {"kind": "private", "what": "two asked features, changed since the first minute"}
    out["private-asked"] = (changed | {"holds": shown(CHANGE, ASKED)}, pack(CHANGE))
    of_asked = {"kind": "meta", "what": "a stream of two asked features"}
    out["meta-asked"] = (of_asked | {"holds": {**ASKED_META, "noise_sd": [0.125, 0.1875]}}, pack(ASKED_META))
    out["status"] = ({"kind": "status", "what": "all is well", "holds": STATUS}, pack(STATUS))
    out["status-paused"] = ({"kind": "status", "what": "the wearer said no", "holds": PAUSED}, pack(PAUSED))
    out["status-last-will"] = ({"kind": "status", "what": "a sidecar's last will", "holds": LAST_WILL}, pack(LAST_WILL))
    out["budget"] = ({"kind": "budget", "what": "96 more chunks in this session", "holds": BUDGET}, pack(BUDGET))
    spent = {"kind": "budget", "what": "nothing more today; 2026-11-22 00:00 UTC brings more", "holds": SPENT}
    out["budget-spent"] = (spent, pack(SPENT))
    reading = {"kind": "odometer", "what": "epsilon 14.4 was spent in this life of the ledger", "holds": READING}
    out["odometer"] = (reading, pack(READING))
    moved = READING | {"former": "fedcba9876543210" * 2}
    out["odometer-moved"] = (
        {"kind": "odometer", "what": "the device was moved from another ledger", "holds": moved},
        pack(moved),
    )
    for name, (what, message, samples, times) in GAZE.items():
        out[name] = ({"kind": "gaze", "what": what, "holds": {**shown(message, samples), "t": times}}, pack(message))
    for kind, bad in (("raw", BAD), ("gaze", BAD_GAZE)):
        for name, (what, reason, payload) in bad.items():
            out[name] = ({"kind": kind, "what": what, "refused": reason}, payload)
    return out


def index() -> dict[str, Any]:
    return {
        "about": "Payloads of the wire format, version 1. Arrays are little-endian float32, row after row; null is a "
        "missing value. 'holds' is what a payload says; of its numbers, session, seq and chunk take 64 bits and stand "
        "here as text. 'refused' is the word with which a sidecar refuses it. Written by tools/make/golden_payloads.py "
        "with an independent msgpack library.",
        "schema": SCHEMA,
        "features": len(NAMES),
        "payloads": {f"{name}.msgpack": entry for name, (entry, _) in payloads().items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=FOLDER, metavar="FOLDER", help="default: tests/golden")
    folder = parser.parse_args().out
    for name, (_, payload) in payloads().items():
        (folder / f"{name}.msgpack").write_bytes(payload)
    (folder / "index.json").write_text(json.dumps(index(), indent=1, allow_nan=False) + "\n")


if __name__ == "__main__":
    main()
