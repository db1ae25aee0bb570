"""Thousands of payloads that no tracker sends: each refused by its name, and the sidecar takes the next good row."""

import random
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from eyestream.errors import PayloadError
from eyestream.rim.sidecar.pipeline import Arrival
from eyestream.wire import envelope
from eyestream.wire.envelope import REASONS
from eyestream.wire.raw import decode_raw, encode_raw
from eyestream.wire.topics import parse_topic
from tests.rigs.hostile.corpus import FEATURES, FOLDER, SCHEMA, every, payload, read
from tests.rigs.hostile.judge import judge
from tests.rigs.rig import N, World

CASES = every()
REFUSED = [case for case in CASES if case["reason"] is not None]
TAKEN = [case for case in CASES if case["reason"] is None]


def reason(data: bytes) -> str:
    """The word for `data`; empty when it is taken. `tests/product/wire` sees that only the word hangs on the error."""
    try:
        decode_raw(data, FEATURES, SCHEMA)
    except PayloadError as error:
        return error.reason
    return ""


def test_there_are_enough_and_no_two_are_the_same() -> None:
    assert len({payload(case) for case in CASES}) == len(CASES)
    assert len(REFUSED) >= 2_500
    assert len({case["name"] for case in read("keys")}) == len(read("keys"))
    count = Counter(case["reason"] for case in REFUSED)
    assert set(count) == REASONS - {"topic"}
    assert min(count.values()) >= 15


def test_the_files_are_what_the_script_writes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tools.make.hostile_payloads", "--out", str(tmp_path)]
    subprocess.run(command, cwd=FOLDER.parents[1], check=True, timeout=60)
    made = sorted(tmp_path.iterdir())
    assert {path.stem for path in FOLDER.glob("*.jsonl")} - {path.stem for path in made} == {"found", "gaze", "kept"}
    for path in made:
        assert path.read_bytes() == (FOLDER / path.name).read_bytes(), path.name


def test_each_is_refused_with_its_reason() -> None:
    assert [case["name"] for case in REFUSED if reason(payload(case)) != case["reason"]] == []


def test_a_second_reading_of_the_format_comes_to_the_same() -> None:
    for case in CASES:
        assert judge(payload(case), FEATURES, SCHEMA) == (case["reason"] or ""), case["name"]


@pytest.mark.parametrize("case", TAKEN, ids=[case["name"] for case in TAKEN])
def test_what_is_not_finite_is_missing_and_the_rest_is_taken(case: dict[str, Any]) -> None:
    rows = decode_raw(payload(case), FEATURES, SCHEMA).rows
    assert np.argwhere(~np.isfinite(rows)).tolist() == case["missing"]


@pytest.mark.parametrize("case", read("topics"), ids=[case["name"] for case in read("topics")])
def test_addresses_that_are_none(case: dict[str, Any]) -> None:
    with pytest.raises(PayloadError, match="topic"):
        parse_topic(case["topic"])


async def test_the_pipeline_lives_counts_exactly_and_takes_the_next_good_row(tmp_path: Path) -> None:
    """Every case between two good rows: nothing of it shows, and the good rows make the chunks they always make."""
    world = World(tmp_path, held=2_000)
    count: Counter[str] = Counter()
    for seq, case in enumerate(REFUSED):
        await world.take(world.arrival(payload(case)), world.rows(seq))
        count[case["reason"]] += 1
        assert len(world.published) == (seq + 1) // N
    for case in read("topics"):
        await world.take(Arrival(case["topic"], encode_raw(1, 0, np.zeros((1, 3)), SCHEMA), 0.0))
        count["topic"] += 1
    assert world.pipeline.counters.rejected == count
    assert world.pipeline.counters.taken == world.device().counters.accepted == len(REFUSED)
    assert world.pipeline.counters.released == len(REFUSED) // N
    assert world.pipeline.counters.dropped == {}
    world.check()


async def test_a_bad_payload_does_not_cost_its_batch(tmp_path: Path) -> None:
    world = World(tmp_path, held=2_000)
    batch = []
    for seq, case in enumerate(REFUSED[::7]):
        batch += [world.arrival(payload(case)), world.rows(seq)]
    await world.take(*batch)
    assert world.pipeline.counters.taken == len(batch) // 2 == world.device().counters.accepted
    assert world.pipeline.counters.released == len(batch) // 2 // N
    world.check()


async def test_no_value_reaches_a_counter_nor_breaks_a_release(tmp_path: Path) -> None:
    """Chunks full of extremes: finite out, inside the range, and every count as for ordinary rows."""
    extremes = [np.float32(value) for value in (np.nan, np.inf, -np.inf, -0.0, 1e-45, 3.4e38, -3.4e38, 1.0)]
    random_ = random.Random(1)
    worlds = []
    for name, choices in (("calm", [np.float32(1.0)]), ("wild", extremes)):
        world = World(tmp_path / name)
        for seq in range(400):
            values = struct.pack("<3f", *random_.choices(choices, k=3))
            fields = {"v": 1, "schema": SCHEMA, "session": 1, "seq": seq, "shape": [1, 3], "values": values}
            await world.take(world.arrival(msgpack.packb(fields)))
        worlds.append(world)
    calm, wild = worlds
    assert calm.pipeline.counters == wild.pipeline.counters
    assert calm.device().counters == wild.device().counters
    assert [len(data) for _, data in wild.published] == [len(data) for _, data in calm.published]
    assert len(wild.published) == 100
    for _, data in wild.published:
        chunk = np.frombuffer(msgpack.unpackb(data)["values"], "<f4")
        assert np.isfinite(chunk).all()


@pytest.mark.parametrize("rounds", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_bad_and_good_in_turn(rounds: int) -> None:
    """The decoder is one object for ever: an error leaves nothing in it (as it did in msgpack before 1.2.1)."""
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)
    good = encode_raw(5, 8, rows, SCHEMA)
    bad = [payload(case) for case in REFUSED if "hex" in case]
    for turn in range(rounds):
        assert reason(bad[turn % len(bad)]) != ""
        read_back = decode_raw(good, FEATURES, SCHEMA)
        assert (read_back.session, read_back.seq) == (5, 8)
        assert read_back.rows.tobytes() == rows.tobytes()


def test_without_the_size_cap_the_corpus_would_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(envelope, "MAX_PAYLOAD_BYTES", 2**40)
    monkeypatch.setattr(envelope.open_envelope, "__defaults__", (2**40,))
    wrong = [case for case in REFUSED if reason(payload(case)) != case["reason"]]
    assert {case["reason"] for case in wrong} == {"oversize"}
    assert len(wrong) >= 16


def test_with_the_version_looked_at_last_the_corpus_would_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder that takes `v` wherever it stands, and asks for it after the rest."""

    class Anything(tuple):  # a prefix of every payload
        __slots__ = ()

    monkeypatch.setattr(envelope, "_VERSION_ONE", Anything([b""]))
    wrong = [case for case in REFUSED if reason(payload(case)) != case["reason"]]
    assert {case["reason"] for case in wrong} == {"version"}
    assert len(wrong) >= 100


def test_without_a_look_at_repeated_keys_the_corpus_would_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(envelope, "_entries", lambda message: _Any())
    wrong = {case["reason"] for case in REFUSED if reason(payload(case)) != case["reason"]}
    assert wrong == {"duplicate_key"}


class _Any:
    """Equal to everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]
