"""Released chunks, descriptions and status: both ways against an independent library, and what is refused."""

import dataclasses
import struct
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eyestream.errors import PayloadError
from eyestream.wire.envelope import MAX_PAYLOAD_BYTES, MAX_RELEASE_BYTES, MAX_U64, REASONS
from eyestream.wire.release import Meta, PrivateChunk, decode_meta, decode_private, encode_meta, encode_private
from eyestream.wire.status import (
    CEILINGS,
    STATES,
    STATUS_REASONS,
    Budget,
    Status,
    decode_budget,
    decode_status,
    encode_budget,
    encode_status,
)

CHUNK = PrivateChunk(2**63, 3, 96.0, 0.5, np.arange(8, dtype=np.float32).reshape(2, 4), 4.8, 0.0)
META = Meta(
    names=("a", "b"),
    units=("1/s", "°"),
    rate_hz=2.0,
    n=4,
    mechanism="cfpa",
    k=(1, 0),
    epsilon=4.8,
    delta=1e-9,
    noise_sd=np.array([1.5, 0.0], dtype=np.float32),
    guarantee="epsilon 4.8 for each chunk",
    calibration="ab" * 32,
)


def refused(read: Callable[[Any], Any], what: Any) -> str:
    with pytest.raises(PayloadError) as refusal:
        read(what)
    assert refusal.value.reason in REASONS
    return refusal.value.reason


@given(
    st.integers(0, MAX_U64),
    st.integers(0, MAX_U64),
    st.floats(0, 1e12),
    st.tuples(st.integers(1, 5), st.sampled_from([1, 2, 32])),
    st.floats(0, 1e6),
)
def test_chunk_both_ways(session: int, index: int, t0: float, shape: tuple[int, int], epsilon: float) -> None:
    features, n = shape
    values = np.linspace(-1, 1, features * n, dtype=np.float32).reshape(features, n)
    payload = encode_private(PrivateChunk(session, index, t0, 0.25, values, epsilon, 0.0))
    fields = msgpack.unpackb(payload)
    expected = {"v": 1, "session": session, "chunk": index, "t0": t0, "dt": 0.25, "shape": [features, n]}
    expected |= {"values": struct.pack(f"<{features * n}f", *values.ravel()), "epsilon": epsilon, "delta": 0.0}
    assert fields == expected
    assert list(fields) == list(expected)
    back = decode_private(msgpack.packb(fields))
    assert (back.session, back.chunk, back.t0, back.dt) == (session, index, t0, 0.25)
    assert (back.epsilon, back.delta) == (epsilon, 0.0)
    np.testing.assert_array_equal(back.values, values)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"session": -1}, "range"),
        ({"session": 2**64}, "range"),
        ({"chunk": -1}, "range"),
        ({"chunk": 2**64}, "range"),
        ({"t0": -1.0}, "range"),
        ({"t0": np.inf}, "range"),
        ({"t0": np.nan}, "range"),
        ({"dt": 0.0}, "range"),
        ({"dt": np.inf}, "range"),
        ({"dt": np.nan}, "range"),
        ({"epsilon": -0.1}, "range"),
        ({"epsilon": np.nan}, "range"),
        ({"delta": -1e-9}, "range"),
        ({"delta": 1.1}, "range"),
        ({"delta": np.nan}, "range"),
        ({"at": np.nan}, "range"),
        ({"at": -np.inf}, "range"),
        ({"values": np.zeros((0, 4), np.float32)}, "shape"),
        ({"values": np.zeros((4, 0), np.float32)}, "shape"),
        ({"values": np.zeros(4, np.float32)}, "shape"),
        ({"values": np.zeros((1025, 1024), np.float32)}, "oversize"),
    ],
)
def test_chunk_out_of_range_is_refused_on_both_sides(changes: dict[str, Any], word: str) -> None:
    broken = dataclasses.replace(CHUNK, **changes)
    assert refused(encode_private, broken) == word
    fields = {key: value for key, value in dataclasses.asdict(broken).items() if value is not None}
    fields["shape"], fields["values"] = list(broken.values.shape), broken.values.tobytes()
    if max(fields["session"], fields["chunk"]) <= MAX_U64:
        assert refused(decode_private, msgpack.packb({"v": 1, **fields})) == word


def test_numbers_of_numpy_are_written_as_numbers() -> None:
    chunk = dataclasses.replace(CHUNK, session=np.uint64(7), t0=np.float64(1.0), epsilon=np.float64(4.8))
    assert decode_private(encode_private(chunk)).session == 7


def test_a_whole_number_is_a_time_too() -> None:
    fields = msgpack.unpackb(encode_private(CHUNK))
    assert decode_private(msgpack.packb({**fields, "t0": 96})).t0 == 96.0


def test_meta_both_ways() -> None:
    fields = msgpack.unpackb(encode_meta(META))
    expected = dataclasses.asdict(META) | {"names": ["a", "b"], "units": ["1/s", "°"], "k": [1, 0]}
    assert fields == {"v": 1, **expected, "noise_sd": struct.pack("<2f", 1.5, 0.0)}
    assert list(fields) == ["v", *(field.name for field in dataclasses.fields(META))]
    back = decode_meta(msgpack.packb(fields))
    np.testing.assert_array_equal(back.noise_sd, META.noise_sd)
    plain = {field.name for field in dataclasses.fields(META)} - {"noise_sd"}
    assert {name: getattr(back, name) for name in plain} == {name: getattr(META, name) for name in plain}


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"units": ("1/s",)}, "length"),
        ({"noise_sd": np.zeros(3, np.float32)}, "length"),
        ({"rate_hz": 0.0}, "range"),
        ({"rate_hz": np.inf}, "range"),
        ({"rate_hz": np.nan}, "range"),
        ({"n": 0}, "range"),
        ({"k": (1, -1)}, "range"),
        ({"epsilon": np.nan}, "range"),
        ({"delta": 2.0}, "range"),
        ({"guarantee": "x" * MAX_RELEASE_BYTES}, "oversize"),
    ],
)
def test_meta_out_of_range_is_refused_on_both_sides(changes: dict[str, Any], word: str) -> None:
    broken = dataclasses.replace(META, **changes)
    assert refused(encode_meta, broken) == word
    fields = dataclasses.asdict(broken) | {"noise_sd": broken.noise_sd.tobytes()}
    assert refused(decode_meta, msgpack.packb({"v": 1, **fields})) == word


@pytest.mark.parametrize("state", sorted(STATES))
@pytest.mark.parametrize("reason", sorted(STATUS_REASONS))
def test_status_both_ways(state: Any, reason: Any) -> None:
    fields = msgpack.unpackb(encode_status(Status(state, reason)))
    assert list(fields.items()) == [("v", 1), ("state", state), ("reason", reason)]
    assert decode_status(msgpack.packb(fields)) == Status(state, reason)


@pytest.mark.parametrize(("state", "reason"), [("online", "42 rows"), ("busy", "ready")])
def test_status_has_words_of_the_lists_only(state: Any, reason: Any) -> None:
    assert refused(encode_status, Status(state, reason)) == "range"
    assert refused(decode_status, msgpack.packb({"v": 1, "state": state, "reason": reason})) == "type"


@pytest.mark.parametrize("ceiling", sorted(CEILINGS))
@pytest.mark.parametrize("resumes_at", [{}, {"resumes_at": 2**64 - 1}])
def test_budget_both_ways(ceiling: Any, resumes_at: dict[str, int]) -> None:
    fields = msgpack.unpackb(encode_budget(Budget(2**64 - 1, ceiling, **resumes_at)))
    assert list(fields.items()) == [("v", 1), ("chunks", 2**64 - 1), ("ceiling", ceiling), *resumes_at.items()]
    assert decode_budget(msgpack.packb(fields)) == Budget(2**64 - 1, ceiling, **resumes_at)


@pytest.mark.parametrize(
    ("changes", "written", "read"),
    [
        ({"chunks": -1}, "range", "type"),
        ({"resumes_at": -1}, "range", "type"),
        ({"ceiling": "window"}, "range", "type"),
        ({"chunks": 2**64}, "range", None),
    ],
)
def test_budget_out_of_range_is_refused_on_both_sides(changes: dict[str, Any], written: str, read: str | None) -> None:
    fields: dict[str, Any] = {"chunks": 5, "ceiling": "day"} | changes
    assert refused(encode_budget, Budget(**fields)) == written
    if read is not None:  # msgpack itself has no larger number
        assert refused(decode_budget, msgpack.packb({"v": 1, **fields})) == read


def test_text_that_is_not_utf8_is_refused() -> None:
    payload = msgpack.packb({"v": 1, "state": "online", "reason": "ready"}).replace(b"ready", b"read\xff")
    assert refused(decode_status, payload) in ("type", "not_msgpack")


def test_the_larger_cap_is_for_releases_only() -> None:
    large = dataclasses.replace(CHUNK, values=np.zeros((208, 256), np.float32))
    payload = encode_private(large)
    assert len(payload) > MAX_PAYLOAD_BYTES
    assert decode_private(payload).values.shape == (208, 256)
    assert refused(decode_status, payload) == "oversize"
    assert refused(decode_private, bytes(MAX_RELEASE_BYTES + 1)) == "oversize"
    assert refused(decode_meta, bytes(MAX_RELEASE_BYTES + 1)) == "oversize"


def test_a_word_outside_the_list_of_reasons_is_a_fault_of_ours() -> None:
    from eyestream.wire.envelope import refuse

    with pytest.raises(KeyError):
        refuse("value 3.14")


def test_the_trackers_time_is_written_only_where_it_is_told() -> None:
    told = dataclasses.replace(CHUNK, at=-12.5)
    assert decode_private(encode_private(told)).at == -12.5
    assert decode_private(encode_private(CHUNK)).at is None
    assert "at" not in msgpack.unpackb(encode_private(CHUNK))
