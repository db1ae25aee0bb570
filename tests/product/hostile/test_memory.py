"""Payloads that ask for memory: what they get is bounded by the cap, and what is over the cap is not looked at."""

import contextlib
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest

from eyestream.errors import PayloadError
from eyestream.wire import envelope
from eyestream.wire.envelope import MAX_PAYLOAD_BYTES
from eyestream.wire.raw import decode_raw
from tests.rigs.hostile.corpus import FEATURES, SCHEMA, every, payload, read
from tests.rigs.rig import World

MOST_BYTES = 8_000_000
"""What one message of 64 KiB may cost; msgpack read without types grows 73 times, to 4.7 MB."""


def peak_of(data: bytes) -> int:
    """Bytes allocated on the way to the refusal of `data`, at their highest."""
    tracemalloc.start()
    try:
        decode_raw(data, FEATURES, SCHEMA)
    except PayloadError:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak


BOMBS = [case for case in read("bombs") if case["reason"] != "oversize"]
OVERSIZE = [case for case in read("bombs") if case["reason"] == "oversize"]


def test_no_bomb_grows_past_its_bound() -> None:
    assert max(len(payload(case)) for case in BOMBS) == MAX_PAYLOAD_BYTES
    peaks = {case["name"]: peak_of(payload(case)) for case in BOMBS}
    assert max(peaks.values()) < MOST_BYTES, max(peaks, key=lambda name: peaks[name])


def test_the_worst_map_of_all_stays_below_the_bound() -> None:
    """13,000 keys of three letters: what the second look, which says why, costs at most.

    Without lists and maps: with many of them there is no second look.
    """
    entries = [b"\xa3%03x\xc0" % i for i in range(4096)] + [b"\xa3%03X\xc0" % i for i in range(4096) if i % 16 > 9]
    entries += [b"\xa3x%02x\xc0" % i for i in range(256)] + [b"\xa4%04x\xc0" % i for i in range(6000)]
    data = b"\xde" + (len(entries) + 1).to_bytes(2, "big") + b"\xa1v\x01" + b"".join(entries)
    assert 60_000 < len(data) <= MAX_PAYLOAD_BYTES
    assert peak_of(data) < MOST_BYTES


@pytest.mark.parametrize("case", OVERSIZE, ids=[case["name"] for case in OVERSIZE])
def test_what_is_too_large_is_not_even_copied(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def never(data: bytes) -> tuple[int, int]:
        raise AssertionError("looked at")

    monkeypatch.setattr(envelope, "_map_header", never)
    data = payload(case)
    assert peak_of(data) < 10_000
    assert peak_of(memoryview(data)) < 10_000


def test_without_the_cap_the_bound_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the same measure on the same decoder, with a cap of 1 MiB and a payload that uses it."""
    monkeypatch.setattr(envelope.open_envelope, "__defaults__", (2**20,))
    count = 2**18
    data = b"\x82\xa1v\x01\xa1x\xdd" + count.to_bytes(4, "big") + b"\x80" * count
    assert peak_of(data) < MOST_BYTES, "typed decoding steps over what it does not know"
    keys = b"".join(b"\xa4%04x\xc0" % i for i in range(65_535 - 1))
    assert peak_of(b"\xde\xff\xff\xa1v\x01" + keys) > MOST_BYTES


def test_decoding_without_types_would_pass_the_bound_of_the_cap() -> None:
    """The other control: why there are types. The same 64 KiB, read as plain objects."""
    data = b"\xdd" + (MAX_PAYLOAD_BYTES - 5).to_bytes(4, "big") + b"\x80" * (MAX_PAYLOAD_BYTES - 5)
    tracemalloc.start()
    kept = msgspec.msgpack.decode(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(kept) == MAX_PAYLOAD_BYTES - 5
    assert peak > 30 * MAX_PAYLOAD_BYTES
    assert peak > 10 * peak_of(data)


async def test_bombs_one_after_the_other_leave_nothing_behind(tmp_path: Path) -> None:
    world = World(tmp_path)
    payloads = [payload(case) for case in BOMBS]
    for data in payloads:
        await world.take(world.arrival(data))
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for _ in range(3):
        for data in payloads:
            await world.take(world.arrival(data))
    after, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 100_000
    assert peak - before < MOST_BYTES
    world.check()


def test_no_payload_leaves_a_block_of_memory_behind() -> None:
    """Counted by the allocator, so that a leak in a library would show as well."""
    small = [(case["name"], payload(case)) for case in every()]
    assert [name for name, data in small if len(data) < 2_000 and grows(data) and grows(data)] == []


def grows(data: bytes) -> bool:
    """Whether each of 30 decodings keeps a block; what the interpreter keeps once, it does not keep again."""
    for _ in range(5):
        decode(data)
    before = sys.getallocatedblocks()
    for _ in range(30):
        decode(data)
    return sys.getallocatedblocks() - before >= 30


def decode(data: bytes) -> None:
    """Decode, whatever comes of it."""
    with contextlib.suppress(PayloadError):
        decode_raw(data, FEATURES, SCHEMA)
