"""A shard on a log, a disk or a directory that is not what it was: refused or withheld by name, never twice."""

import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import msgspec
import pytest

from eyestream.core.charge import Ceilings
from eyestream.errors import LedgerError, LinkError, ShardError
from eyestream.rim.ledger.file import LedgerFile
from eyestream.rim.ledger.second_place import FilePlace, Lengths, Remembered, check_not_shorter
from eyestream_fleet.directory import LEDGER, LIVES, OUTBOX, create_shard, held_outbox, opened_shard
from eyestream_fleet.frames import Contents, ReleasedChunk, Step, pack, unpack
from eyestream_fleet.log import Entry
from eyestream_fleet.worker import ShardWorker
from tests.fleet.shard.test_shard_crashes import CHUNKS, COST, DEVICES, faults, world
from tests.rigs.shards import (
    CountingMechanism,
    Points,
    ShardHost,
    damage_from_last_reservation,
    raw_log,
    shard_settings,
)

LIFE = "0123456789abcdef" * 2


def raised(one: ShardHost) -> BaseException:
    """What ends a life."""
    with pytest.raises((ShardError, LedgerError, BaseExceptionGroup)) as caught:
        one.live()
    error: BaseException = caught.value
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def test_a_failed_sync_closes_the_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the third sync of the outbox: nothing of what it was for leaves, then or later in this life."""
    one, syncs, sync = world(tmp_path / "shard"), [0], LedgerFile.sync

    def failing(self: LedgerFile) -> None:
        syncs[0] += self._path.name == OUTBOX
        if syncs[0] == 2:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(self)

    with monkeypatch.context() as patch:
        patch.setattr(LedgerFile, "sync", failing)
        assert "outbox durably: Input/output error" in str(raised(one))
        assert one.shard is not None
        with pytest.raises(LedgerError, match="closed, or failed before"):
            one.shard.take([])
    before = len(one.payloads())
    assert 0 < before < CHUNKS * len(DEVICES)
    assert one.live()
    assert faults(one) == []


def test_a_full_disk_stops_the_shard_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, append = world(tmp_path / "shard"), LedgerFile.append
    room = [20]

    def full(self: LedgerFile, data: bytes) -> None:
        room[0] -= 1
        if room[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(self, data)

    def no_room(self: LedgerFile, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(LedgerFile, "append", full)
        assert "No space left on device" in str(raised(one))
        patch.setattr(LedgerFile, "prepare", no_room)
        assert "No space left on device" in str(raised(one))
    assert one.live()
    assert faults(one) == []


def test_two_workers_on_one_shard(tmp_path: Path) -> None:
    one = world(tmp_path / "shard")
    with one.opened(), pytest.raises(LedgerError, match="in use by another process"), one.opened():
        raise AssertionError("a second worker has it")


@pytest.mark.parametrize("which", [[LEDGER, OUTBOX], [LEDGER], [OUTBOX]])
def test_a_volume_that_is_rolled_back_is_refused(tmp_path: Path, which: list[str]) -> None:
    one = world(tmp_path / "shard")
    assert not one.live(Points(40))
    shutil.copytree(one.folder, tmp_path / "old")
    assert one.live()
    published = len(one.log.published)
    for name in which:
        shutil.copy(tmp_path / "old" / name, one.folder / name)
    for _ in range(9):  # nor does it grow by being started
        assert "older than what was released" in str(raised(one))
    assert len(one.log.published) == published


def test_control_without_a_second_place_an_old_volume_is_not_noticed(tmp_path: Path) -> None:
    one = world(tmp_path / "shard")
    shutil.copytree(one.folder, tmp_path / "old")
    assert one.live()
    shutil.copytree(tmp_path / "old", one.folder, dirs_exist_ok=True)
    (one.folder / LIVES).unlink()
    one.place.held = dict.fromkeys(one.place.held, Remembered(Lengths(0, 0)))
    assert one.live()
    assert any("byte strings" in fault for fault in faults(one))


def test_a_shard_that_the_second_place_does_not_know(tmp_path: Path) -> None:
    one = world(tmp_path / "shard")
    one.place.held.clear()
    assert "knows nothing of it" in str(raised(one))


@pytest.mark.parametrize(("partition", "partitions"), [(0, 2), (1, 2)])
def test_another_number_of_partitions_is_refused(tmp_path: Path, partition: int, partitions: int) -> None:
    one = world(tmp_path / "shard")
    with (
        pytest.raises(ShardError, match=r"partition 0 of 1, not \d of 2; the number of partitions is fixed"),
        held_outbox(one.folder, partition, partitions),
    ):
        pass


def test_rows_of_another_partition_are_refused(tmp_path: Path) -> None:
    """They are in this partition by mistake, or somebody has changed how the log is cut."""
    (folder := tmp_path / "shard").mkdir()
    create_shard(folder, 1, 2, created=0)
    streams = [(shard_settings(device), CountingMechanism()) for device in ("d", "e")]
    with (
        held_outbox(folder, 1, 2) as outbox,
        opened_shard(folder, outbox, streams, ceilings=Ceilings(), today=lambda: 0) as shard,
    ):
        (served,) = shard.streams
        shard.take(raw_log(("d", "e"), 2))
        assert shard.rejected == {"partition": sum(entry.key != served for entry in raw_log(("d", "e"), 2))}


def test_a_shard_that_is_half_made_is_not_there(tmp_path: Path) -> None:
    """As on a full disk; the same command makes it when there is room."""
    (tmp_path / OUTBOX).touch()
    with pytest.raises(LedgerError, match="exists already"):
        create_shard(tmp_path, 0, 1, created=0)
    (tmp_path / OUTBOX).unlink()
    create_shard(tmp_path, 0, 1, created=0)


def test_a_shard_that_is_not_there_is_made_by_a_person(tmp_path: Path) -> None:
    with (
        pytest.raises(ShardError, match=r"there is no shard; put its directory back.*`eyestream shard --new`"),
        held_outbox(tmp_path, 0, 1),
    ):
        pass


def test_a_foreign_ledger_is_refused(tmp_path: Path) -> None:
    one, other = world(tmp_path / "one"), world(tmp_path / "other")
    shutil.copy(other.folder / LEDGER, one.folder / LEDGER)
    assert "belong together" in str(raised(one))
    assert other.live()
    damage_from_last_reservation(other.folder / LEDGER)
    shutil.copy(other.folder / LEDGER, one.folder / LEDGER)
    assert "belong together" in str(raised(one))
    data = (other.folder / LEDGER).read_bytes()
    assert (one.folder / LEDGER).read_bytes().startswith(data), "nothing of it is cut off"


@pytest.mark.parametrize("lost", [1, 5, None])
@pytest.mark.parametrize("kill", [50, 57, None])
def test_a_log_that_was_cut_off_is_read_from_its_beginning(tmp_path: Path, kill: int | None, lost: int | None) -> None:
    """As NATS may be after servers are lost, of its newest messages or all. It gives the offsets again, to other rows.

    Its end does not say so when it is as long as before.
    """
    one, whole = world(tmp_path / "shard"), raw_log(DEVICES, CHUNKS, most=1)
    one.log.entries = whole[:30]
    one.live(Points(kill))
    with one.opened() as shard:
        read = shard.position.next
    kept = 0 if lost is None else read - lost
    one.log.entries = whole[:kept] + moved(whole[read:], kept)
    assert one.live()
    assert one.shard is not None
    assert one.shard.position.losses == {"made_again": 0, "cut_off": 1, "forgotten": 0}
    assert faults(one) == []
    assert one.live()
    assert one.shard.position.losses["cut_off"] == 0, "it is known now"


def moved(entries: list[Entry], first: int) -> list[Entry]:
    """The same rows, taken a little later, at offsets from `first` on."""
    return [Entry(first + i, e.key, e.payload, e.at + 0.001) for i, e in enumerate(entries)]


@contextmanager
def cut_off(one: ShardHost, kept: int, again: int) -> Iterator[None]:
    """After 30 messages the connection breaks; when it is back, those after `kept` are lost, and others there instead.

    The others are the rows from message `again` on.
    """
    whole, fetch = raw_log(DEVICES, CHUNKS, most=1), one.log.fetch

    async def broken(most: int, wait_s: float) -> list[Entry]:
        if one.log._at >= 30 and one.log.entries is whole:
            one.log.entries = whole[:kept] + moved(whole[again:], kept)
            raise LinkError("broken")
        return await fetch(most, wait_s)

    one.log.entries, one.log.piece = whole, 1
    with mock.patch.object(one.log, "fetch", broken):
        yield


@pytest.mark.parametrize("kept", [29, 25, 13])
def test_a_log_that_is_cut_off_while_it_is_read_is_noticed(tmp_path: Path, kept: int) -> None:
    """It may be as long again by then."""
    one = world(tmp_path / "shard")
    with cut_off(one, kept, 30):
        assert one.live()
    assert one.shard is not None
    assert (one.shard.position.losses["cut_off"], one.shard.position.missing) == (1, 0)
    assert faults(one) == []


@pytest.mark.parametrize("kill", range(104, 124))
def test_killed_after_the_log_was_cut_off(tmp_path: Path, kill: int) -> None:
    """Where it goes on is an offset of the log as it is now: trackers have sent all again that was not released."""
    one = world(tmp_path / "shard")
    with cut_off(one, 0, 20):
        one.live(Points(kill))
    assert one.live()
    assert faults(one) == []


def test_a_log_that_goes_on_is_read_from_where_it_was_left(tmp_path: Path) -> None:
    """After each break the newest message that was read comes again, once: it is neither taken nor refused."""
    one, breaks = world(tmp_path / "shard"), [0]
    one.log.entries, fetch = raw_log(DEVICES, CHUNKS, most=1), one.log.fetch

    async def breaking(most: int, wait_s: float) -> list[Entry]:
        breaks[0] += 1
        if breaks[0] % 3 == 0:
            raise LinkError("broken")
        return await fetch(most, wait_s)

    with mock.patch.object(one.log, "fetch", breaking):
        assert one.live()
    assert one.shard is not None
    assert breaks[0] > 9
    assert (one.shard.taken, one.shard.rejected) == (len(one.log.entries), {})
    assert not any(one.shard.position.losses.values())
    assert faults(one) == []


def test_a_log_that_was_made_again_is_read_from_its_beginning(tmp_path: Path) -> None:
    """Its offsets begin again; what was released is not released again."""
    one = world(tmp_path / "shard")
    assert one.live()
    later = [Entry(e.offset - 20, e.key, e.payload, e.at) for e in one.log.entries[20:]]
    one.log.entries, one.log.epoch = later, "two"
    assert one.live()
    assert faults(one) == []
    assert [one.spent(device) for device in DEVICES] == [CHUNKS * COST] * len(DEVICES)


def test_a_log_that_has_forgotten_loses_rows_and_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    one = world(tmp_path / "shard")
    assert not one.live(Points(30))
    with one.opened() as shard:
        offset = shard.position.next
    one.log.first = offset + 4
    one.log.entries = [entry for entry in one.log.entries if entry.offset >= one.log.first]
    assert one.live()
    assert "the log has forgotten 4 offsets" in caplog.text
    assert one.shard is not None
    assert (one.shard.position.losses["forgotten"], one.shard.position.missing) == (1, 4)
    assert all(len(data) == 1 for data in one.payloads().values())


def test_what_is_forgotten_while_a_log_is_read_is_counted_by_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As when a worker is slower than rows grow old: its reader goes on with those that are left."""
    one = world(tmp_path / "shard")
    del one.log.entries[4:7]
    assert one.live()
    assert one.shard is not None
    assert (one.shard.position.losses["forgotten"], one.shard.position.missing) == (1, 3)
    assert "the log has forgotten 3 offsets" in caplog.text


@pytest.mark.parametrize("mix", [lambda log: log[::-1], lambda log: [e for entry in log for e in (entry, entry)]])
def test_messages_out_of_order_are_refused(tmp_path: Path, mix: Callable[[list[Entry]], list[Entry]]) -> None:
    one = world(tmp_path / "shard")
    entries = mix(raw_log(DEVICES, CHUNKS))
    with one.opened() as shard:
        shard.take(entries)
        shard.take(entries[:5])
        assert shard.rejected["offset"] >= len(entries) // 2
        assert shard.position.next == max(entry.offset for entry in entries) + 1


@pytest.mark.parametrize("payload", [b"", b"\xc1", b"\x80" * 30, b"x" * 70_000])
def test_what_is_no_message_is_refused_by_name(tmp_path: Path, payload: bytes) -> None:
    one = world(tmp_path / "shard")
    with one.opened() as shard:
        (key, *_) = shard.streams
        assert shard.take([Entry(0, key, payload, 0.0), Entry(1, None, payload, 0.0)]) == []
        assert shard.rejected.total() == 2
        assert shard.position.next == 2


def test_a_clock_that_is_behind_opens_no_other_day(tmp_path: Path) -> None:
    """A shard moves to a host whose clock is ten days behind: the day of its ledger stays."""
    one = world(tmp_path / "shard", ceilings=Ceilings(day=3 * COST))
    assert not one.live(Points(50))
    one.today -= 10
    assert one.live()
    assert [one.spent(device) for device in DEVICES] == [3 * COST] * len(DEVICES)


@pytest.mark.parametrize("ahead_s", [-1000.0, -1.0, 1000.0])
def test_a_server_of_the_log_whose_clock_is_wrong(tmp_path: Path, ahead_s: float) -> None:
    """Some messages are stamped by it, and chunks may close early: each is one all the same, and no row is uncounted.

    After a crash they close at the same times.
    """
    whole = raw_log(DEVICES, CHUNKS, most=1)
    wrong = [Entry(e.offset, e.key, e.payload, e.at + ahead_s) for e in whole]
    one, killed = world(tmp_path / "one"), world(tmp_path / "killed")
    for own in (one, killed):
        own.log.entries = whole[:16] + wrong[16:32] + whole[32:]
    assert not killed.live(Points(70))
    assert one.live()
    assert one.shard is not None
    rows = [stream.rows for stream in one.shard.streams.values()]
    assert sum(own.accepted + own.late + own.refused + own.stale_session for own in rows) == len(whole)
    assert killed.live()
    for own in (one, killed):
        assert all(len(data) == 1 for data in own.payloads().values())
        assert sum(own.spent(device) for device in DEVICES) == COST * len(own.payloads())
    assert len(killed.payloads()) == len(one.payloads())
    assert (len(one.payloads()) > CHUNKS * len(DEVICES)) == (abs(ahead_s) > 60.0), "empty chunks, until it is idle"


@pytest.mark.parametrize("at", range(0, 2000, 97))
def test_damage_anywhere_in_the_outbox(tmp_path: Path, at: int) -> None:
    """It is refused, or what may have been in it is given up."""
    one = world(tmp_path / "shard")
    assert not one.live(Points(60))
    path = one.folder / OUTBOX
    data = bytearray(path.read_bytes())
    first = 20 + int.from_bytes(data[:4], "little")
    data[at % len(data)] ^= 16
    path.write_bytes(data)
    if at % len(data) < first:
        assert "its beginning is damaged" in str(raised(one))
        return
    assert "older than what was released" in str(raised(one))
    one.place.forget_lengths()
    assert one.live()
    assert all(len(payloads) == 1 for payloads in one.payloads().values())


def test_an_outbox_on_disk_has_the_names_that_it_always_had() -> None:
    """A shard of an earlier version goes on: what stands in the first frame, by name, and in each step, in order."""
    chunk = ReleasedChunk("id", "d", "features", 1, 3, b"bytes")
    frame, _ = pack(Contents("name", 0, 1, waiting=[chunk]))
    told = msgspec.msgpack.decode(frame[20:])
    assert set(told) == {
        "ledger", "partition", "partitions", "frames", "epoch", "offset", "borders", "given_up", "parcels", "newest",
    }  # fmt: skip
    assert told["parcels"] == [["id", "d", "features", 1, 3, b"bytes"]]
    step, _ = pack(Step("epoch", 7, {}, [chunk], ["gone"], (6, 0.5)))
    assert msgspec.msgpack.decode(step[20:]) == ["epoch", 7, {}, told["parcels"], ["gone"], [6, 0.5]]


def test_an_outbox_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    """One that does not know the newest message that was read."""
    frames, before = b"", b"eyestream shard 1"
    contents = {"ledger": "name", "partition": 0, "partitions": 1, "epoch": "one", "offset": 3}
    for body in (contents, ["one", 7, {}, [], []]):
        data = msgspec.msgpack.encode(body)
        before = hashlib.blake2b(data, key=before, digest_size=16).digest()
        frames += len(data).to_bytes(4, "little") + before + data
    held, _, torn = unpack(frames)
    assert (held.epoch, held.offset, held.newest, torn) == ("one", 7, (-1, 0.0), 0)


async def test_a_second_place_in_a_file(tmp_path: Path) -> None:
    FilePlace.create(path := tmp_path / "place")
    place = FilePlace(path)
    assert await place.read("a") is None
    for count in range(3):
        await place.write("a", Remembered(Lengths(count, 7)))
    place.close()
    path.write_bytes(path.read_bytes()[:-5])
    place = FilePlace(path)
    assert await place.read("a") == Remembered(Lengths(1, 7))
    await place.write("a", Remembered(Lengths(9, 9), LIFE))
    with pytest.raises(LedgerError, match="of another ledger"):
        await place.read("b")
    place.close()
    place = FilePlace(path)
    assert await place.read("a") == Remembered(Lengths(9, 9), LIFE)
    with pytest.raises(LedgerError, match="in use"):
        FilePlace(path)
    place.close()


@pytest.mark.parametrize(("now", "had"), [((1, 5), (2, 5)), ((2, 4), (2, 5)), ((2**32, 0), (5, 1))])
def test_either_length_counts(now: tuple[int, int], had: tuple[int, int]) -> None:
    check_not_shorter("s", Lengths(*had), Lengths(*had))
    with pytest.raises(LedgerError, match="is older"):
        check_not_shorter("s", Lengths(*now), Lengths(*had))


class Watched(Points):
    """Looks, at each publication, whether the second place knows of what is published."""

    def __init__(self, one: ShardHost) -> None:
        super().__init__()
        self._one, self.early = one, 0

    def __call__(self, name: str) -> None:
        super().__call__(name)
        if name == "publish":
            ((known, _),) = self._one.place.held.values()
            self.early += known.ledger <= len(self._one.payloads()) or known.outbox == 0


@pytest.mark.parametrize("told", [True, False])
def test_the_second_place_knows_before_anybody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    """And a worker that does not tell it is found."""

    async def silent(self: ShardWorker) -> None:
        return

    if not told:
        monkeypatch.setattr(ShardWorker, "_remember", silent)
    one = world(tmp_path / "shard")
    watched = Watched(one)
    assert one.live(watched)
    assert (watched.early == 0) == told


@pytest.mark.parametrize(("most", "changes"), [(6, 0), (2, 1)])
def test_a_change_of_condition_is_noticed_once(tmp_path: Path, most: int, changes: int) -> None:
    """Of six chunks some are withheld, for ever, or none: that wakes who says how streams are."""
    (folder := tmp_path / "shard").mkdir()
    create_shard(folder, 0, 1, created=0)
    streams = [(shard_settings("d"), CountingMechanism())]
    ceilings = Ceilings(lifetime=most * COST)
    with (
        held_outbox(folder, 0, 1) as outbox,
        opened_shard(folder, outbox, streams, ceilings=ceilings, today=lambda: 0) as shard,
    ):
        for entry in raw_log(("d",), CHUNKS):
            shard.take([entry])
        assert shard.changes == changes
