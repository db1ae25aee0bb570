"""A shard that is killed at every effect, and at many, releases each chunk once: the same bytes, charged once."""

import hashlib
import random
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.charge import Ceilings, Charge
from eyestream.core.reservation import Granted, Request
from eyestream.errors import LedgerError
from eyestream.rim.ledger import writer
from eyestream.wire.release import PrivateChunk, decode_private
from eyestream_fleet import outbox
from eyestream_fleet.frames import ReleasedChunk
from eyestream_fleet.shard import Shard
from tests.rigs.shards import (
    BASELINE,
    BaselineMechanism,
    CountingMechanism,
    MemoryLog,
    Points,
    ShardHost,
    raw_log,
    shard_settings,
)

DEVICES = ("d", "e")
CHUNKS = 6
COST = Charge.of(CountingMechanism.epsilon).epsilon


def world(
    folder: Path, kind: type[Shard] = Shard, mechanism: CountingMechanism | None = None, **given: object
) -> ShardHost:
    made = mechanism or CountingMechanism()
    streams = [(shard_settings(device), made) for device in DEVICES]
    return ShardHost(folder, MemoryLog(raw_log(DEVICES, CHUNKS)), streams, kind=kind, **given)  # type: ignore[arg-type]


def chunks(one: ShardHost) -> list[PrivateChunk]:
    """The first publication of every chunk."""
    return [decode_private(payload) for payload in {name: data for name, _, data in one.log.published}.values()]


def faults(one: ShardHost) -> list[str]:
    """What an outsider and an auditor hold against a world that has come to the end of its log."""
    found = [f"{len(data)} byte strings for one chunk" for data in one.payloads().values() if len(data) > 1]
    released = chunks(one)
    if len(released) != len(DEVICES) * CHUNKS:
        found.append(f"{len(released)} chunks were published")
    found += [f"{one.spent(d) / COST} chunks charged" for d in DEVICES if one.spent(d) != CHUNKS * COST]
    sessions = defaultdict(list)
    for chunk in released:
        sessions[chunk.session].append(chunk)
    found += ["a session of applications was broken"] * (len(sessions) != 2 * len(DEVICES))
    for turns in sessions.values():
        if [int(chunk.values[0, 0]) for chunk in turns] != [chunk.chunk + 1 for chunk in turns]:
            found.append("a session of the mechanism went on from another state")
    found += ["rows were lost" for chunk in released if chunk.values[1, 0]]
    if len({float(chunk.values[2, 0]) for chunk in released}) < len(released):
        found.append("equal rows were released with equal noise")
    return found


def points_of(folder: Path) -> int:
    """Effects of a whole life."""
    points = Points()
    assert world(folder).live(points)
    return len(points.names)


def test_killed_at_any_effect(tmp_path: Path) -> None:
    resent = again = 0
    total = points_of(tmp_path / "whole")
    assert total > 60
    for kill in range(total):
        one = world(tmp_path / str(kill))
        one.live(Points(kill))
        before = len(one.log.published)
        assert one.live()
        assert faults(one) == [], f"killed at effect {kill}"
        resent += len(one.log.published) - len(one.payloads())
        again += before
    assert resent > 10, "kills between a publication and its acknowledgement"


def baselines(one: ShardHost) -> tuple[int, int]:
    """Sessions that applications saw, and chunks; each session has one baseline, and counts its chunks."""
    sessions = defaultdict(list)
    for chunk in chunks(one):
        sessions[chunk.session].append(chunk)
    for own in sessions.values():
        assert len({float(chunk.values[1, 0]) for chunk in own}) == 1
        assert [int(chunk.values[0, 0]) for chunk in own] == list(range(1, len(own) + 1))
        assert [chunk.chunk for chunk in own] == list(range(2, len(own) + 2))
    return len(sessions), sum(map(len, sessions.values()))


@pytest.mark.parametrize("kill", range(0, 80, 3))
def test_a_session_keeps_its_baseline_and_no_file_has_it(tmp_path: Path, kill: int) -> None:
    """Of two sessions of five chunks of each device, two chunks each make the baseline."""
    one = world(tmp_path / "shard", mechanism=BaselineMechanism())
    one.log.entries = raw_log(DEVICES, 10)
    one.live(Points(kill))
    assert not any(BASELINE in path.read_bytes() for path in one.folder.iterdir())
    assert one.live()
    assert all(len(data) == 1 for data in one.payloads().values())
    assert baselines(one) == (4, 12)
    assert [one.spent(device) for device in DEVICES] == [6 * COST] * 2
    with one.opened() as shard:
        held = [stream.border() for stream in shard.streams.values()]
    assert all(BASELINE in border for border in held), "control: it would be in the border"


@pytest.mark.parametrize("kill", range(30, 80, 5))
def test_without_a_key_a_session_with_a_baseline_begins_again(tmp_path: Path, kill: int) -> None:
    """As where the log has lost its memory: with another baseline, of other rows, under another name."""
    one = world(tmp_path / "shard", mechanism=BaselineMechanism())
    one.log.entries = raw_log(DEVICES, 10)
    one.live(Points(kill))
    one.key = None
    assert one.live()
    assert all(len(data) == 1 for data in one.payloads().values())
    sessions, released = baselines(one)
    assert sessions >= 3
    assert released <= 12
    assert sum(one.spent(device) for device in DEVICES) >= released * COST


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ledger and outbox are written again after a few records, and whenever they are opened."""
    monkeypatch.setattr(writer, "_MANY_RECORDS", 1)
    monkeypatch.setattr(writer, "_TOO_MANY_RECORDS", 9)
    monkeypatch.setattr(outbox, "_TOO_LONG", 1)


@pytest.mark.long
@pytest.mark.usefixtures("often")
def test_killed_at_any_step_of_a_rewriting(tmp_path: Path) -> None:
    total = points_of(tmp_path / "whole")
    assert total > 100
    for kill in range(total):
        one = world(tmp_path / str(kill))
        one.live(Points(kill))
        assert one.live()
        assert faults(one) == [], f"killed at effect {kill}"


@pytest.mark.parametrize("seed", range(6))
def test_killed_again_and_again(tmp_path: Path, seed: int) -> None:
    luck, one, lives = random.Random(seed), world(tmp_path / "shard"), 0
    while not one.live(Points(luck.randint(0, 40))):
        lives += 1
    assert lives >= 2
    assert faults(one) == []


@pytest.mark.parametrize("where", ["ledger", "outbox"])
def test_a_file_that_is_torn_loses_nothing_that_the_second_place_does_not_know(tmp_path: Path, where: str) -> None:
    """It was never sent. A process that is killed may leave an append so; it happened once in some 500 kills."""
    whole, tried = Points(), 0
    world(tmp_path / "whole").live(whole)
    for kill, name in enumerate(whole.names, start=1):
        if name == f"before append of {where}":
            one = world(tmp_path / str(kill))
            assert not one.live(Points(kill, torn=True))
            assert one.live()
            assert faults(one) == [], f"killed at effect {kill}"
            tried += 1
    assert tried > 2


def test_an_outbox_whose_end_was_damaged_after_it_was_sent_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    one = world(tmp_path / "shard")
    assert one.live()
    path = one.folder / "outbox"
    cut = path.read_bytes()[:-9]
    path.write_bytes(cut)
    sent = one.payloads()
    for _ in range(2):
        with pytest.raises(LedgerError, match="the outbox is older than what was released"):
            one.live()
        assert path.read_bytes() == cut, "what tells of the damage is there"
    assert one.payloads() == sent


def test_a_write_that_is_torn_loses_chunks_without_a_second_place_and_never_releases_one_twice(tmp_path: Path) -> None:
    lost = 0
    for kill in range(points_of(tmp_path / "whole")):
        one = world(tmp_path / str(kill))
        one.guarded = False
        one.live(Points(kill, torn=True))
        assert one.live()
        assert all(len(data) == 1 for data in one.payloads().values())
        released = chunks(one)
        assert sum(one.spent(device) for device in DEVICES) >= len(released) * COST
        lost += len(released) < len(DEVICES) * CHUNKS
    assert lost > 0, "control: the writes were torn"


@pytest.mark.parametrize("kill", range(0, 80, 3))
def test_what_the_budget_withholds_is_covered(tmp_path: Path, kill: int) -> None:
    """A session may release two chunks of three; neither a crash nor another day brings the third."""
    one = world(tmp_path / "shard", ceilings=Ceilings(session=2 * COST))
    one.live(Points(kill))
    assert one.live()
    expected = {(session, index) for session in (0, 1) for index in (0, 1)}
    for device in DEVICES:
        own = [decode_private(data) for _, key, data in one.log.published if key.device == device]
        order = {number: index for index, number in enumerate(dict.fromkeys(chunk.session for chunk in own))}
        assert {(order[chunk.session], chunk.chunk) for chunk in own} == expected
        assert one.spent(device) == 4 * COST
    one.today, one.ceilings = one.today + 1, Ceilings()
    released, end = len(one.payloads()), len(one.log.entries)
    with one.opened() as shard:
        assert shard.position.next == end, "offsets of withheld chunks are behind"
    one.log.epoch = "two"  # the log is played again, whole, with all the budget there is
    assert one.live()
    assert len(one.payloads()) == released


class Naive(Shard):
    """The operator of a compute engine: what the log brings again is computed again, with fresh noise."""

    def __init__(self, streams, ledger, outbox, **given):  # type: ignore[no-untyped-def]
        outbox.contents.borders.clear()
        super().__init__(streams, ledger, outbox, **given)

    def _again(self, request: Request) -> Granted | None:
        mark = self._ledger.mark(request.key)
        return None if mark is None or mark < (request.session, request.last_row) else Granted(request)


class Hasty(Shard):
    """Publishes before the bytes are durable."""

    log: MemoryLog

    def _write(self) -> list[ReleasedChunk]:
        type(self).log.published += [(p.id, (p.device, p.stream), p.payload) for p in self._unwritten]  # type: ignore[misc]
        return super()._write()


class Forgetful(Shard):
    """Takes what was reserved for released."""

    def _again(self, request: Request) -> Granted | None:
        return None


class Last(Shard):
    """Remembers the last offset, and not where the open chunks began."""

    def _note(self, key, outcome, offset=None):  # type: ignore[no-untyped-def]
        super()._note(key, outcome, offset)
        self._began.clear()


class Stateless(Shard):
    """Begins every stream again."""

    def __init__(self, streams, ledger, outbox, **given):  # type: ignore[no-untyped-def]
        outbox.contents.borders.clear()
        super().__init__(streams, ledger, outbox, **given)


def of_the_input(chunk: NDArray[np.float64]) -> float:
    """Noise as a keyed function of the rows: a repetition gives the same bytes, and so do equal rows."""
    return float(int.from_bytes(hashlib.blake2b(chunk.tobytes(), key=b"a secret", digest_size=2).digest()))


@pytest.mark.parametrize(
    ("kind", "noise", "said"),
    [
        (Naive, None, "byte strings for one chunk"),
        (Hasty, None, "byte strings for one chunk"),
        (Forgetful, None, "chunks were published"),
        (Last, None, "rows were lost"),
        (Stateless, None, "was broken"),
        (Shard, of_the_input, "equal noise"),
    ],
)
def test_the_check_sees_a_shard_with_a_fault(tmp_path: Path, kind: type[Shard], noise: object, said: str) -> None:
    """Negative controls; the first and the last are the ways that engines have."""
    found = set()
    for kill in range(0, 80, 2):
        one = world(tmp_path / str(kill), kind, CountingMechanism(noise) if noise else None)  # type: ignore[arg-type]
        Hasty.log = one.log
        one.live(Points(kill))
        assert one.live()
        found |= {fault for fault in faults(one) if said in fault}
    assert found
