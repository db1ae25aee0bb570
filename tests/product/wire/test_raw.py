"""Rows on the wire: both ways against an independent library, and what is refused."""

import math
import struct
import subprocess
import sys
import tracemalloc
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from eyestream.errors import PayloadError
from eyestream.wire import envelope
from eyestream.wire.envelope import MAX_PAYLOAD_BYTES, MAX_U64, REASONS
from eyestream.wire.raw import MAX_ROWS, MAX_WEARER, decode_raw, encode_raw, rows_per_message

FEATURES, SCHEMA = 3, 7
ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)

u64 = st.integers(0, MAX_U64)
arrays = hnp.arrays(
    np.float32, st.tuples(st.integers(0, 9), st.integers(1, 5)), elements=st.floats(width=32, allow_subnormal=True)
)


def message(**changes: Any) -> dict[str, Any]:
    fine = {"v": 1, "schema": SCHEMA, "session": 5, "seq": 8, "shape": [2, 3], "values": ROWS.tobytes()}
    return {**fine, **changes}


def reason(payload: bytes | bytearray | memoryview) -> str:
    """The word with which `payload` is refused, or the empty word."""
    refusal: PayloadError | None = None
    try:
        decode_raw(payload, FEATURES, SCHEMA)
    except PayloadError as error:
        refusal = error
    if refusal is None:
        return ""
    assert str(refusal) == refusal.reason
    assert refusal.__cause__ is None
    assert refusal.__context__ is None  # the library quotes values: its error must not hang on
    assert refusal.reason in REASONS
    return refusal.reason


@given(u64, u64, arrays, st.booleans())
def test_an_independent_decoder_reads_what_we_write(session: int, seq: int, rows: np.ndarray, end: bool) -> None:
    seq = min(seq, MAX_U64 - len(rows))
    read = msgpack.unpackb(encode_raw(session, seq, rows, SCHEMA, end=end))
    assert list(read) == ["v", "schema", "session", "seq", "shape", "values"] + ["end"] * end
    assert [read[key] for key in ("v", "schema", "session", "seq")] == [1, SCHEMA, session, seq]
    assert read["shape"] == list(rows.shape)
    assert read["values"] == struct.pack(f"<{rows.size}f", *rows.ravel().tolist())
    assert read.get("end", False) is end


@given(u64, u64, arrays, st.sampled_from([None, False, True]))
def test_we_read_what_an_independent_encoder_writes(session: int, seq: int, rows: np.ndarray, end: bool | None) -> None:
    seq = min(seq, MAX_U64 - len(rows))
    given_end = {} if end is None else {"end": end}
    fields = message(session=session, seq=seq, shape=rows.shape, values=rows.astype("<f4").tobytes(), **given_end)
    read = decode_raw(msgpack.packb(fields), rows.shape[1], SCHEMA)
    assert (read.session, read.seq, read.end) == (session, seq, bool(end))
    np.testing.assert_array_equal(read.rows, rows)
    assert read.rows.dtype == np.float32
    assert not read.rows.flags.writeable


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_kind_of_bytes_is_read_and_not_held(kind: type) -> None:
    payload = bytearray(encode_raw(5, 8, ROWS, SCHEMA))
    read = decode_raw(kind(payload), FEATURES, SCHEMA)
    payload[:] = bytes(len(payload))
    np.testing.assert_array_equal(read.rows, ROWS)
    assert reason(kind(bytes(MAX_PAYLOAD_BYTES + 1))) == "oversize"


def test_a_view_is_measured_in_bytes() -> None:
    assert reason(memoryview(bytes(80_000)).cast("d")) == "oversize"


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_are_written_one_after_the_other_whatever_the_memory_order(order: Any) -> None:
    rows = np.array(ROWS, dtype=np.float64, order=order)
    np.testing.assert_array_equal(decode_raw(encode_raw(5, 8, rows, SCHEMA), FEATURES, SCHEMA).rows, ROWS)


@given(st.integers(0, MAX_WEARER))
def test_a_handle_comes_as_it_was_sent_and_nobody_takes_no_byte(wearer: int) -> None:
    payload = encode_raw(5, 8, ROWS, SCHEMA, wearer=wearer)
    assert decode_raw(payload, FEATURES, SCHEMA).wearer == wearer
    assert msgpack.unpackb(payload).get("wearer", 0) == wearer
    assert (payload == encode_raw(5, 8, ROWS, SCHEMA)) == (wearer == 0)


@pytest.mark.parametrize("wearer", [-1, MAX_WEARER + 1])
def test_a_handle_that_no_ledger_holds_is_not_sent(wearer: int) -> None:
    with pytest.raises(PayloadError, match="range"):
        encode_raw(5, 8, ROWS, SCHEMA, wearer=wearer)


def test_what_float32_cannot_hold_is_missing_and_no_error() -> None:
    rows = np.array([[1e308, -1e308, np.nan]])
    np.testing.assert_array_equal(
        decode_raw(encode_raw(5, 8, rows, SCHEMA), FEATURES, SCHEMA).rows, [[np.inf, -np.inf, np.nan]]
    )


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, ""),
        ({"v": 0}, "version"),
        ({"v": 256}, "version"),
        ({"v": 1.0}, "version"),
        ({"v": "1"}, "version"),
        ({"v": True}, "version"),
        ({"v": None}, "version"),
        ({"v": [1]}, "version"),
        ({"schema": 6}, "schema"),
        ({"schema": True}, "type"),
        ({"session": -1}, "range"),
        ({"session": 5.0}, "type"),
        ({"session": None}, "type"),
        ({"session": MAX_U64}, ""),
        ({"seq": -(2**63)}, "range"),
        ({"seq": MAX_U64 - 2}, ""),
        ({"seq": MAX_U64 - 1}, "range"),
        ({"seq": MAX_U64}, "range"),
        ({"seq": msgpack.Timestamp(2**33, 0)}, "type"),
        ({"shape": []}, "shape"),
        ({"shape": [6]}, "shape"),
        ({"shape": [1, 2, 3]}, "shape"),
        ({"shape": [3, 2]}, "shape"),
        ({"shape": [-2, -3]}, "shape"),
        ({"shape": [-2, 3]}, "shape"),
        ({"shape": [2, 0], "values": b""}, "shape"),
        ({"shape": [MAX_U64, 0], "values": b""}, "shape"),
        ({"shape": [0, MAX_U64], "values": b""}, "shape"),
        ({"shape": [MAX_U64, MAX_U64]}, "shape"),
        ({"shape": [MAX_U64, 3]}, "length"),
        ({"shape": [1, 3]}, "length"),
        ({"shape": [3, 3]}, "length"),
        ({"shape": "23"}, "type"),
        ({"shape": {"m": 2}}, "type"),
        ({"shape": [2.0, 3]}, "type"),
        ({"shape": [2, True]}, "type"),
        ({"shape": [0, 3], "values": b""}, ""),
        ({"values": ROWS.tobytes()[:-1]}, "length"),
        ({"values": ROWS.astype(np.float16).tobytes()}, "length"),
        ({"values": ROWS.astype(np.float64).tobytes()}, "length"),
        ({"values": "x" * 24}, "type"),
        ({"values": ROWS.ravel().tolist()}, "type"),
        ({"values": msgpack.ExtType(4, ROWS.tobytes())}, "type"),
        ({"values": None}, "type"),
        ({"end": True}, ""),
        ({"end": False}, ""),
        ({"end": 1}, "type"),
        ({"end": None}, "type"),
        ({"wearer": 0}, ""),
        ({"wearer": MAX_WEARER}, ""),
        ({"wearer": MAX_WEARER + 1}, "range"),
        ({"wearer": -1}, "range"),
        ({"wearer": 7.0}, "type"),
        ({"wearer": True}, "type"),
        ({"wearer": "anna"}, "type"),
        ({"wearer": None}, "type"),
        ({"x": 1}, "unknown_key"),
        ({"": None}, "unknown_key"),
        ({"Seq": 1}, "unknown_key"),
    ],
)
def test_each_fault_has_its_word(changes: dict[str, Any], word: str) -> None:
    assert reason(msgpack.packb(message(**changes))) == word


@pytest.mark.parametrize("key", ["schema", "session", "seq", "shape", "values"])
def test_every_key_is_needed_once(key: str) -> None:
    whole = msgpack.packb(message(end=True))
    assert reason(msgpack.packb({name: value for name, value in message().items() if name != key})) == "missing_key"
    again = msgpack.packb(key) + msgpack.packb(message()[key])
    assert reason(bytes([whole[0] + 1]) + whole[1:] + again) == "duplicate_key"


@pytest.mark.parametrize("extra", [{"v": 1}, {"v": 2}, {"end": True}, {"end": False}, {"seq": "x"}])
def test_a_key_that_occurs_twice_is_refused_whatever_its_second_value(extra: dict[str, Any]) -> None:
    """msgspec takes the last of them: a message must not mean two things to two readers."""
    whole = msgpack.packb(message(end=False))
    assert reason(bytes([whole[0] + 1]) + whole[1:] + msgpack.packb(extra)[1:]) == "duplicate_key"


def test_a_missing_and_a_repeated_key_do_not_make_up_for_each_other() -> None:
    short = msgpack.packb({name: value for name, value in message().items() if name != "seq"})
    assert reason(bytes([short[0] + 1]) + short[1:] + msgpack.packb("session") + b"\x01") == "duplicate_key"


@pytest.mark.parametrize(
    ("payload", "word"),
    [
        (b"", "not_msgpack"),
        (b"\xc1", "not_msgpack"),
        (b"\xc0", "not_a_map"),
        (b"\x91" * 1000, "not_a_map"),
        (b"\xdd\xff\xff\xff\xff", "not_a_map"),
        (b"\xde", "not_msgpack"),
        (b"\xde\x00", "not_msgpack"),
        (b"\xdf\xff\xff\xff", "not_msgpack"),
        (b"\x80", "missing_key"),
        (b"\xde\x00\x00", "missing_key"),
        (b"\x86", "version"),
        (b"\xdf\xff\xff\xff\xff", "version"),
        (b"\xdf\xff\xff\xff\xff\xa1v\x01", "not_msgpack"),
        (b"\x81\xa1v\x01", "missing_key"),
        (b"\x82\xa1v\x01\x01\x01", "type"),  # a key that is a number
        (b"\x82\xa1v\x01\xc4\x03seq\x01", "type"),  # a key that is bytes
        (b"\x82\xa1v\x01\xa1\xff\x01", "not_msgpack"),  # a key that is not UTF-8
        (b"\x82\xa1v\x01\xa1\xff\xc1", "not_msgpack"),
        (b"\x83\xa1v\x01\xa1x\x01\xa1\xff\x01", "not_msgpack"),  # seen on the second look only
        (b"\x82\xa1v\x01\xa1x\xc1", "not_msgpack"),
        (b"\x82\xa1v\x01\xa1x" + b"\x91" * 60_000, "nesting"),
        (b"\x82\xa1v\x02\xa1x" + b"\x91" * 60_000, "version"),
        (b"\x86\xa1v\x02", "version"),  # cut short after a version that is not ours
    ],
)
def test_structure_is_asked_in_a_fixed_order(payload: bytes, word: str) -> None:
    assert reason(payload) == word


@pytest.mark.parametrize("cut", range(len(msgpack.packb(message()))))
def test_every_prefix_is_refused(cut: int) -> None:
    assert reason(msgpack.packb(message())[:cut]) in ("not_msgpack", "version")


@pytest.mark.parametrize("tail", [b"\x00", b"\xc0", msgpack.packb(message())])
def test_bytes_after_the_message_are_refused(tail: bytes) -> None:
    assert reason(msgpack.packb(message()) + tail) == "not_msgpack"


def test_integers_may_be_written_wide() -> None:
    narrow = msgpack.packb(message())
    for one in (b"\xcc\x01", b"\xcd\0\x01", b"\xce\0\0\0\x01", b"\xcf" + bytes(7) + b"\x01", b"\xd0\x01"):
        assert reason(narrow.replace(b"\xa1v\x01", b"\xa1v" + one)) == ""
    for other in (b"\xcc\x02", b"\xcd\x01\0", b"\xcf\x01" + bytes(7), b"\xd0\xff", b"\xca\0\0\0\x01"):
        assert reason(narrow.replace(b"\xa1v\x01", b"\xa1v" + other)) == "version"


def test_size_is_asked_before_anything_else() -> None:
    fits = rows_per_message(FEATURES)
    largest = encode_raw(MAX_U64, MAX_U64 - fits, np.zeros((fits, FEATURES)), 2**31, end=True, wearer=MAX_WEARER)
    assert len(largest) <= MAX_PAYLOAD_BYTES
    with pytest.raises(PayloadError, match="oversize"):
        encode_raw(0, 0, np.zeros((2000, 52)), SCHEMA)
    assert reason(b"\xc1" * (MAX_PAYLOAD_BYTES + 1)) == "oversize"
    assert reason(b"\xc1" * MAX_PAYLOAD_BYTES) == "not_msgpack"


def test_number_of_rows_is_capped() -> None:
    assert rows_per_message(1) == MAX_ROWS
    assert rows_per_message(52) == 314
    assert rows_per_message(20_000) == 0
    payload = encode_raw(0, 0, np.zeros((MAX_ROWS, 1)), SCHEMA)
    assert len(decode_raw(payload, 1, SCHEMA).rows) == MAX_ROWS
    with pytest.raises(PayloadError, match="shape"):
        encode_raw(0, 0, np.zeros((MAX_ROWS + 1, 1)), SCHEMA)
    more = message(shape=[MAX_ROWS + 1, 1], values=bytes(4 * MAX_ROWS + 4))
    with pytest.raises(PayloadError, match="shape"):
        decode_raw(msgpack.packb(more), 1, SCHEMA)


@pytest.mark.parametrize(
    ("session", "seq", "rows", "word"),
    [
        (-1, 0, ROWS, "range"),
        (MAX_U64 + 1, 0, ROWS, "range"),
        (0, -1, ROWS, "range"),
        (0, MAX_U64 - 1, ROWS, "range"),
        (0, 0, ROWS[0], "shape"),
        (0, 0, ROWS[:, :0], "shape"),
    ],
)
def test_encoder_refuses_what_the_decoder_would(session: int, seq: int, rows: np.ndarray, word: str) -> None:
    with pytest.raises(PayloadError, match=word):
        encode_raw(session, seq, rows, SCHEMA)


@pytest.mark.parametrize(
    "bomb",
    [
        b"\x82\xa1v\x01\xa1x" + b"\xdc\x7f\xff" + b"\x80" * 32767,
        b"\xde\x50\x00\xa1v\x01"
        + b"".join(b"\xa2" + struct.pack(">H", 0x3030 + i % 79) + b"\x80" for i in range(16000)),
        b"\x86\xa1v\x01\xa5shape\xdd\xff\xff\xff\xff" + b"\x01" * 65_000,
        b"\x86\xa1v\x01\xa6values\xc6\xff\xff\xff\xff",
    ],
)
def test_a_bomb_stays_small(bomb: bytes) -> None:
    tracemalloc.start()
    assert reason(bomb) != ""
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_by_name(payload: bytes) -> None:
    assert reason(payload) in {"", *REASONS}
    assert reason(b"\x86\xa1v\x01" + payload) in {"", *REASONS}


@given(st.data())
def test_a_damaged_message_is_read_or_refused_by_name(data: st.DataObject) -> None:
    payload = bytearray(msgpack.packb(message(end=True)))
    for _ in range(data.draw(st.integers(1, 3))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    assert reason(payload) in {"", *REASONS}


def test_rows_may_carry_the_trackers_time() -> None:
    t = np.array([1.7e9 + 0.25, 1.7e9 + 0.75])
    rows = np.zeros((2, FEATURES), dtype=np.float32)
    decoded = decode_raw(encode_raw(1, 0, rows, 1, t=t), FEATURES, 1)
    assert decoded.t is not None
    np.testing.assert_array_equal(decoded.t, t)
    assert decode_raw(encode_raw(1, 0, rows, 1), FEATURES, 1).t is None


@pytest.mark.parametrize(
    ("t", "reason"),
    [([0.0], "length"), ([0.0, 1.0, 2.0], "length"), ([0.0, math.nan], "range"), ([math.inf, 0.0], "range")],
)
def test_times_that_are_none_are_refused(t: list[float], reason: str) -> None:
    rows = np.zeros((2, FEATURES), dtype=np.float32)
    with pytest.raises(PayloadError, match=reason):
        encode_raw(1, 0, rows, 1, t=np.array(t))
    good = msgpack.unpackb(encode_raw(1, 0, rows, 1))
    with pytest.raises(PayloadError, match=reason):
        decode_raw(msgpack.packb({**good, "t": np.array(t).tobytes()}), FEATURES, 1)


_IN_A_SMALL_STACK = """
import threading
from tests.product.wire.test_raw import message, msgpack, reason
whole = msgpack.packb({**message(), "x": None})[:-1]
deep = [whole + bytes([0x91]) * count + bytes([0xC0]) for count in (99, 100, 60_000)]
deep.append(bytes.fromhex("82a17601a773657373696f6e") + bytes([0x91]) * 60_000)
threading.stack_size(128 * 1024)
one = threading.Thread(target=lambda: print(*map(reason, deep)))
one.start()
one.join()
"""


def test_depth_is_counted_before_anything_calls_itself() -> None:
    """In a thread with a small stack, as musl gives: Python 3.13 would end with a fault of memory."""
    command = [sys.executable, "-c", _IN_A_SMALL_STACK]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.split() == ["unknown_key", "nesting", "nesting", "nesting"]


class _Looked(bytes):
    """Bytes that count how often one of them is asked for."""

    looks = 0

    def __getitem__(self, at: Any) -> Any:
        self.looks += 1
        return super().__getitem__(at)


@pytest.mark.parametrize("value", [b"\x90", b"\xc0", b"\x91\xc0", b"\xc4\x00", b"\x91" * 98 + b"\xc0"])
def test_a_stranger_cannot_make_the_depth_of_a_payload_take_long(value: bytes) -> None:
    """Of 64 KiB, which would stop the loop for 16 ms, at most `MOST_WALKED` values are looked at."""
    whole = b"\x82\xa1v\x01\xa1x\xdd\x00\x00\xff\x00" + b"\x90" * 101
    data = _Looked(whole + value * ((MAX_PAYLOAD_BYTES - len(whole)) // len(value)))
    assert reason(data) == "nesting"
    assert envelope._is_deep(data)
    assert data.looks <= 2 * envelope.MOST_WALKED


def test_no_message_of_ours_is_walked_for_its_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(envelope, "_is_deep")
    rows = np.frombuffer(b"\x91" * 4 * 3 * 2_000, "<f4").reshape(2_000, 3)
    assert decode_raw(encode_raw(1, 0, rows, 1), 3, 1).rows.shape == (2_000, 3)
