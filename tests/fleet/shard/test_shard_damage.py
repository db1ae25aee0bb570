"""A ledger whose end cannot be read: cut off where a second place shows that nothing left under it, else charged."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from eyestream.core.charge import Ceilings
from eyestream.errors import LedgerError, ShardError
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.records import NAME, RELEASED, REPAIRED, SETTLED
from eyestream.rim.ledger.second_place import Remembered
from eyestream.wire.raw import decode_raw
from eyestream_fleet.frames import ReleasedChunk
from eyestream_fleet.log import Entry
from eyestream_fleet.shard import Shard
from tests.fleet.shard.test_shard_crashes import COST, DEVICES, chunks, faults, world
from tests.rigs.shards import (
    CountingMechanism,
    MemoryLog,
    Points,
    ShardHost,
    damage,
    damage_from_last_reservation,
    kinds,
    raw_log,
    shard_settings,
)

FIRST, SECOND = (raw_log((device,), 16, most=4, seed=5) for device in ("d", "e"))
"""Messages of a device: sixteen chunks in two sessions, up to four rows in each message."""


def test_a_ledger_whose_end_was_damaged_after_it_was_used_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    one = world(tmp_path / "shard")
    assert one.live()
    with one.opened() as shard:  # nothing waits there, so only the second place knows
        shard.acknowledge(shard.waiting)
        shard._outbox.begin({})
    path = one.folder / "ledger"
    damage_from_last_reservation(path)
    damaged = path.read_bytes()
    for _ in range(2):
        with pytest.raises(LedgerError, match="the ledger is older than what was released"):
            one.live()
        assert path.read_bytes().startswith(damaged), "what tells of the damage is there"


def test_a_ledger_whose_end_was_damaged_is_charged_for_what_the_outbox_has_of_it(tmp_path: Path) -> None:
    """Not told to the second place, but durable in the outbox: it is sent, so it counts."""
    whole, tried = Points(), 0
    world(tmp_path / "whole").live(whole)
    for kill, name in enumerate(whole.names):
        if name == "second place":
            one = world(tmp_path / str(kill))
            assert not one.live(Points(kill))
            damage_from_last_reservation(one.folder / "ledger")
            assert one.live()
            assert sum(one.spent(device) for device in DEVICES) >= len(chunks(one)) * COST
            tried += 1
    assert tried > 2


def test_killed_anywhere_while_a_torn_end_is_cut_off(tmp_path: Path) -> None:
    whole = Points()
    world(tmp_path / "whole").live(whole)
    torn = [kill for kill, name in enumerate(whole.names, start=1) if name == "before append of ledger"][3]
    for kill in range(14):
        one = world(tmp_path / str(kill))
        assert not one.live(Points(torn, torn=True))
        assert not one.live(Points(kill))
        assert one.live()
        assert faults(one) == [], f"killed at effect {kill}"


def of(folder: Path, messages: list[Entry]) -> ShardHost:
    """Of d and e, with these messages."""
    entries = [Entry(offset, one.key, one.payload, offset / 2) for offset, one in enumerate(messages)]
    made = CountingMechanism()
    return ShardHost(folder, MemoryLog(entries), [(shard_settings(device), made) for device in ("d", "e")])


def publish(one: ShardHost, shard: Shard, found: list[ReleasedChunk]) -> None:
    """As a worker does."""
    one.place.held[shard.name] = Remembered(shard.lengths)
    one.log.published += [(chunk.id, one.log.entries[0].key._replace(device=chunk.device), b"") for chunk in found]
    shard.acknowledge(found)


def read(one: ShardHost, shard: Shard) -> list[Entry]:
    """What the log has for it."""
    start = shard.begin(asyncio.run(one.log.bounds()))
    return list(shard.position.recognised([entry for entry in one.log.entries if entry.offset >= start]))


def lived(one: ShardHost, published: int, untold: int) -> None:
    """One life: so many messages were published, and their chunks; then so many chunks only reach the outbox."""
    with one.opened() as shard:
        entries, waiting = read(one, shard), 0
        for entry in entries[:published]:
            publish(one, shard, shard.take([entry]))
        for entry in entries[published:]:
            if waiting < untold:
                waiting += len(shard.take([entry]))
        assert waiting == untold


def heard_and_charged(one: ShardHost) -> dict[str, tuple[int, float]]:
    heard = Counter(device for _, device in {(name, key.device) for name, key, _ in one.log.published})
    return {device: (heard[device], one.spent(device) / COST) for device in heard}


def test_two_stretches_of_damage_are_charged(tmp_path: Path) -> None:
    """The first one, of d, closes the session of e: that looks as if the chunks of e that wait had been charged."""
    one = of(tmp_path / "s", SECOND[:4] + FIRST[:6] + SECOND[4:14])
    lived(one, 10, 4)
    path, told = one.folder / "ledger", next(iter(one.place.held.values())).lengths.ledger
    found = kinds(path)
    last_told = [number for number, kind in enumerate(found) if kind == RELEASED][told - 1]
    assert found[last_told - 1] == SETTLED
    damage(path, [last_told - 1, *range(last_told + 1, len(found))])
    with one.opened() as shard:
        assert len(shard.waiting) >= 4
        publish(one, shard, shard.waiting)
    assert all(charged >= heard for heard, charged in heard_and_charged(one).values())


def test_what_damage_was_charged_outlives_more_damage(tmp_path: Path) -> None:
    """The record of the repair lies beside the damage; nothing but it says that the chunks after it were charged."""
    one, settings = of(tmp_path / "s", FIRST), shard_settings("d")
    lived(one, 3, 3)
    path, told = one.folder / "ledger", next(iter(one.place.held.values())).lengths.ledger
    found = kinds(path)
    damage(path, range([number for number, kind in enumerate(found) if kind == RELEASED][told], len(found)))
    with one.opened() as shard:
        publish(one, shard, shard.waiting)
        for entry in read(one, shard):
            if decode_raw(entry.payload, settings.features, settings.schema).session == 1:
                shard.take([entry])  # withheld: the session is closed, and the outbox forgets what was sent
    if kinds(path)[-1:] == [REPAIRED]:
        damage(path, [len(kinds(path)) - 1])
    ((heard, charged),) = heard_and_charged(one).values()
    assert charged >= heard > told


def test_an_outbox_with_chunks_of_which_the_ledger_knows_nothing_is_refused(tmp_path: Path) -> None:
    one = of(tmp_path / "s", FIRST[:6] + SECOND[:8])
    lived(one, 6, 2)
    path = one.folder / "ledger"
    found = kinds(path)
    damage(path, range(max(number for number, kind in enumerate(found) if kind == NAME), len(found)))
    with pytest.raises(ShardError, match="chunks in the outbox are of rows that it does not know"), one.opened():
        raise AssertionError("it would send them")


def test_a_command_that_opens_a_torn_ledger_first_charges_it(tmp_path: Path) -> None:
    """It asks no second place: `docs/scale.md` says that the worker comes first."""
    one = of(tmp_path / "s", FIRST)
    lived(one, 3, 0)
    path = one.folder / "ledger"
    path.write_bytes(path.read_bytes() + bytes([5]) * 40)
    with Ledger(path, ceilings=Ceilings()) as ledger:
        assert ledger.odometer("d").unreadable == 1  # type: ignore[union-attr]
