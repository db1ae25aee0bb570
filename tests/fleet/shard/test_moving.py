"""Devices that leave a shard, come back to it, or move to the ledger of another one."""

import asyncio
import logging
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.core.charge import Ceilings
from eyestream.rim.ledger.operating import OperatedLedger
from eyestream.rim.plan import load
from eyestream.streams import StreamKey
from eyestream.wire.raw import encode_raw
from eyestream_fleet.directory import LEDGER
from eyestream_fleet.fleet import accept_shard, copies_of_shard, found_shard
from eyestream_fleet.log import Entry
from eyestream_fleet.worker import ShardWorker
from tests.fleet.shard.test_shard_crashes import world
from tests.rigs.fleets import fleet_config
from tests.rigs.nats import NatsServer
from tests.rigs.shards import CountingMechanism, MemoryLog, ShardHost, shard_settings

KEY = StreamKey("d", "features")


def message(offset: int, first: int, count: int, device: str = "d") -> Entry:
    payload = encode_raw(1, first, np.full((count, 3), 0.5, np.float32), 1)
    return Entry(offset, StreamKey(device, "features"), payload, (first + count) / 2)


def streams(*devices: str) -> list[Any]:
    return [(shard_settings(device), CountingMechanism()) for device in devices]


def small(tmp_path: Path, name: str = "shard") -> ShardHost:
    return ShardHost(tmp_path / name, MemoryLog([]), streams("d"))


def test_a_stream_that_comes_back_goes_on_and_computes_its_open_chunk_under_the_old_reservation(tmp_path: Path) -> None:
    one = small(tmp_path)
    with one.opened() as shard:
        (whole,) = shard.take([message(0, 0, 6)])
        assert whole.last_row == 3
        spent = shard._ledger.odometer("d")
        assert spent is not None
        shard.serve([])
        assert shard.streams == {}
        assert shard.take([message(1, 6, 1)]) == []
        assert shard.rejected == {"topic": 1}
        shard.serve(one.streams)
        (after,) = shard.take([message(2, 7, 1)])
        assert after.last_row == 7, "with one row of four"
        assert shard._open == {}
        now = shard._ledger.odometer("d")
        assert now is not None
        assert now.released == spent.released == 2, "rows 4 to 7 were reserved before it went"


def test_the_log_is_not_read_again_for_a_stream_that_has_gone(tmp_path: Path) -> None:
    one = ShardHost(tmp_path / "shard", MemoryLog([]), streams("d", "e"))
    with one.opened() as shard:
        shard.take([message(0, 0, 2, "d"), message(1, 0, 4, "e")])
        assert shard._outbox.contents.offset == 0, "control: the chunk of d is open"
        shard.serve([one.streams[1]])
        shard.take([message(2, 4, 4, "e")])
        assert shard._outbox.contents.offset == 3


def test_a_timer_of_a_stream_that_has_gone_wakes_nobody(tmp_path: Path) -> None:
    one = small(tmp_path)
    with one.opened() as shard:
        shard.take([message(0, 0, 2)])
        shard.serve([])
        assert shard.take([], 1e6) == []


def test_a_shard_serves_no_device_that_has_moved_away(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An old roll may name it. The ledger grants nothing of it, and a worker must not end over that."""
    one, other = small(tmp_path), small(tmp_path, "other")
    with one.opened() as shard:
        shard.take([message(0, 0, 4)])
    with other.opened() as shard:
        name = shard.name
    with OperatedLedger(one.folder / LEDGER, ceilings=Ceilings()) as ledger:
        moved = ledger.export_device("d", name)
    with OperatedLedger(other.folder / LEDGER, ceilings=Ceilings()) as ledger:
        ledger.import_device(moved)
    with one.opened() as shard:
        assert shard.streams == {}
        assert "d: was moved to another ledger" in caplog.text
        assert shard.take([message(1, 4, 4)]) == []
    with other.opened() as shard:
        assert shard.take([message(0, 0, 4)]) == [], "they were released elsewhere"
        (chunk,) = shard.take([message(1, 4, 4)])
        assert chunk.last_row == 7


def test_no_reservation_moves_with_a_device(tmp_path: Path) -> None:
    """Its bytes may have left, or lie in the outbox that stays behind: the other shard would draw noise again."""
    one, other = small(tmp_path), small(tmp_path, "other")
    with one.opened() as shard:
        assert len(shard.take([message(0, 0, 6)])) == 1  # and reserves rows 4 to 7
        assert shard._ledger.unsettled(KEY)
    with other.opened() as shard:
        name = shard.name
    with OperatedLedger(one.folder / LEDGER, ceilings=Ceilings()) as ledger:
        moved = ledger.export_device("d", name)
    with OperatedLedger(other.folder / LEDGER, ceilings=Ceilings()) as ledger:
        ledger.import_device(moved)
        assert ledger.unsettled(KEY) == []
    with other.opened() as shard:  # whose log has all of it once more
        assert shard.take([message(0, 0, 8), message(1, 8, 4)])[-1].last_row == 11
        assert [chunk.last_row for chunk in shard.waiting] == []
        odometer = shard._ledger.odometer("d")
    assert odometer is not None
    assert odometer.released == 3


@pytest.mark.needs("nats")
def test_moving_a_device_overtakes_copies_of_both_shards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Moving takes no slot, so lengths do not show it: only a token does."""
    servers, configs, names = [], [], []
    for fleet in ("west", "east"):
        (folder := tmp_path / fleet).mkdir()
        servers.append(NatsServer(folder / "nats", 1))
        servers[-1].start()
        configs.append(fleet_config(folder, [servers[-1].url], 1, ["d"], pages=[servers[-1].page_url]))
    try:
        for config in configs:
            asyncio.run(found_shard(load(config), 0, 0))
            shutil.copytree(config.parent / "shards" / "shard-0", config.parent / "copy")
            names += [one.name for one in asyncio.run(copies_of_shard(load(config), 0, []))[0]]
        west, east = (["shard", "--config", str(config), "--partition", "0"] for config in configs)
        main([*west, "--export", "d", str(tmp_path / "moving"), "--to", names[1]])
        main([*east, "--import", str(tmp_path / "moving")])
        assert not (tmp_path / "moving").exists()
        main([*west, "--today"])
        for config in configs:
            own, copy = config.parent / "shards" / "shard-0", config.parent / "copy"
            copies, remembered = asyncio.run(copies_of_shard(load(config), 0, [own, copy]))
            assert remembered is not None
            assert [one.can_go_on(remembered) for one in copies] == [True, False]
            shutil.rmtree(own)
            copy.rename(own)
        with pytest.raises(SystemExit):
            main([*west, "--export", "d", str(tmp_path / "again"), "--to", names[1]])
        assert "another copy was opened after this one" in capsys.readouterr().err
        asyncio.run(accept_shard(load(configs[0]), 0))
    finally:
        for server in servers:
            server.kill()


def test_clocks_that_are_apart_are_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a message that was waited for; one that lay in the log tells nothing."""
    one = world(tmp_path / "shard")
    monkeypatch.setattr("eyestream_fleet.worker.time.time", lambda: 1000.0)
    with one.opened() as shard, caplog.at_level(logging.WARNING):
        worker = ShardWorker(shard, one.log)

        def come(*at: float) -> None:
            worker._compare_clocks([Entry(0, None, b"", one) for one in at])

        come(900.0)  # it lay there for 100 s
        assert worker.ahead_s == 0.0
        for at, seconds, count in (
            (1001.0, 1.0, 0),
            (1012.0, 12.0, 1),
            (1013.0, 13.0, 1),
            (1000.0, 0.0, 1),
            (980.0, -20.0, 2),
        ):
            come()
            come(at, 5000.0)
            assert (worker.ahead_s, len(caplog.records)) == (seconds, count)
    assert "12 s ahead of this host's" in caplog.text
    assert "20 s behind this host's" in caplog.text
