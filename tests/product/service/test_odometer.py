"""An older ledger in the place of the newer one is heard, by applications, `devices`, the monitor and readers."""

import asyncio
import contextlib
import io
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from eyestream.cli.main import main
from eyestream.core.charge import Ceilings, Charge
from eyestream.core.reservation import Request
from eyestream.monitor.watch import Watch
from eyestream.rim.config import BrokerSettings, Settings
from eyestream.rim.ledger.identity import ledger_name
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.operating import OperatedLedger
from eyestream.rim.sidecar.boards import Odometers
from eyestream.rim.sidecar.sidecar import Sidecar
from eyestream.sdk.odometer import OdometerWatch, OtherLedger, WentBack
from eyestream.sdk.publisher import Publisher
from eyestream.sdk.subscriber import subscribe
from eyestream.streams import StreamKey
from eyestream_lab.testing.clocks import PATIENCE_S, until
from tests.rigs.memory_ledger import MemoryLedger
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.sidecar import ceilings_of, running, settings_for
from tests.rigs.spy import Spy, spying

KEY = StreamKey("hmd-1", "features")
COST = 4_800_000
"""Millionths of epsilon that a chunk costs."""


@contextlib.asynccontextmanager
async def life(settings: Settings, spy: Spy, chunks: int) -> AsyncIterator[Sidecar]:
    """A sidecar that has released so many chunks more, with all that is said about them."""
    rows = rows_of_a_stranger(32 * chunks, 52)
    before = len(spy.chunks())
    async with running(settings) as sidecar:
        await until(lambda: sidecar.private_stands and sidecar.raw_stands)
        if chunks:
            async with Publisher(settings.private.url, "hmd-1", settings.stream[0].names, 2.0) as publisher:
                await publisher.send(rows)
            await until(lambda: len(spy.chunks()) == before + chunks)
        began = sidecar._budgets._odometers._began[KEY]
        await until(lambda: spy.leaf("odometer")[-1]["reads"] == began + COST * chunks)
        yield sidecar


async def test_an_older_ledger_in_the_place_of_the_newer_one_is_heard(
    mosquitto: Mosquitto, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """By who listened all the time, by who was away and remembers, by `devices` and on the monitor's page."""
    settings = settings_for(mosquitto.url, tmp_path)
    ledger, older, seen = settings.sidecar.ledger, tmp_path / "older", tmp_path / "seen.json"
    watch = Watch(BrokerSettings(mosquitto.url))
    async with spying(mosquitto.url) as spy, subscribe(mosquitto.url, "hmd-1") as chunks:
        watching = asyncio.create_task(watch.run(10.0, asyncio.Event()))
        async with life(settings, spy, 2):
            pass
        shutil.copy(ledger, older)
        async with life(settings, spy, 3):
            await until(lambda: "hmd-1/features" in watch._followed)
        ours = [one.message for one in caplog.records if one.name.startswith("eyestream")]  # not what other tests left
        assert (chunks.odometer.fault, ours) == (None, []), "control: an honest restart"
        assert await devices(mosquitto, seen) == [""]
        remembered = chunks.odometer.to_json()
        newest = ledger.read_bytes()
        shutil.copy(older, ledger)
        async with life(settings, spy, 0):
            await until(lambda: chunks.odometer.doubt is not None)
            assert (chunks.odometer.fault, chunks.odometer.doubt) == (None, WentBack(14.4))
            (said,) = await devices(mosquitto, seen)
            assert said.startswith("perhaps its ledger went back: epsilon 14.4")
            away = OdometerWatch.from_json(remembered)
            async with subscribe(mosquitto.url, "hmd-1", odometer=away) as later:
                await until(lambda: away.doubt is not None)
                assert later.odometer.fault is None, "the broker may have kept an old message"
        async with life(settings, spy, 1):
            await until(lambda: chunks.odometer.fault is not None)
            assert chunks.odometer.fault == WentBack(14.4)
            assert "epsilon 14.4 that was spent is forgotten" in caplog.text
            async with asyncio.timeout(PATIENCE_S):
                assert WentBack(14.4) == await anext(
                    event async for event in chunks.events() if type(event) is WentBack
                )
            await until(lambda: b"its ledger went back" in page(watch))
        ledger.write_bytes(newest)
        async with life(settings, spy, 1), subscribe(mosquitto.url, "hmd-1") as afresh:
            await until(lambda: afresh.odometer.known != [])
            assert chunks.odometer.fault == WentBack(14.4), "what was spent stays forgotten"
            assert afresh.odometer.fault is None
        watching.cancel()
    assert caplog.text.count("went back") == 1 + 1, "once by each of the two that listened"


async def devices(mosquitto: Mosquitto, seen: Path) -> list[str]:
    """What the command says of the ledgers of streams, in a thread of its own."""
    words = ["devices", "--broker", mosquitto.url, "--json", "--seconds", "1", "--remember", str(seen)]

    def run() -> list[str]:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            main(words)
        found = [json.loads(line) for line in out.getvalue().splitlines()]
        return [one["ledger"] for one in found if one["stream"] != "sidecar"]

    return await asyncio.to_thread(run)


def page(watch: Watch) -> bytes:
    """All that a page that opens now is sent."""
    return "".join(watch._snapshot()).encode()


async def test_what_is_reserved_and_lost_by_a_crash_is_no_rollback(mosquitto: Mosquitto, tmp_path: Path) -> None:
    settings = settings_for(mosquitto.url, tmp_path)
    async with spying(mosquitto.url) as spy, subscribe(mosquitto.url, "hmd-1") as chunks:
        async with life(settings, spy, 1):
            pass
        with Ledger(settings.sidecar.ledger, ceilings=ceilings_of(settings)) as ledger:
            ledger.reserve([Request(KEY, 2**63, 0, 31, 32, Charge.of(4.8))], 20_000)  # and the process is gone
        async with life(settings, spy, 0):
            pass
        reads = [one["reads"] for one in spy.leaf("odometer")]
        assert reads == sorted(reads)
        assert reads[-1] - reads[0] == 2 * COST
        await until(lambda: len(chunks.odometer.known) == 2)
        assert chunks.odometer.fault is None


async def test_each_link_is_a_life_and_a_lost_one_is_no_rollback(mosquitto: Mosquitto, tmp_path: Path) -> None:
    async with subscribe(mosquitto.url, "hmd-1") as chunks, running(settings_for(mosquitto.url, tmp_path)):
        await until(lambda: len(chunks.odometer.known) == 1)
        mosquitto.stop(kill=True)
        mosquitto.start()
        await until(lambda: len(chunks.odometer.known) == 2)
        assert (chunks.odometer.fault, chunks.odometer.doubt, chunks._noticed) == (None, None, {})


async def test_an_imported_device_names_the_ledger_that_it_came_from(mosquitto: Mosquitto, tmp_path: Path) -> None:
    settings, other = (settings_for(mosquitto.url, tmp_path / name) for name in made(tmp_path, "here", "there"))
    async with spying(mosquitto.url) as spy, subscribe(mosquitto.url, "hmd-1") as chunks:
        async with life(settings, spy, 1):
            pass
        first = spy.leaf("odometer")[-1]["ledger"]
        ceilings = ceilings_of(settings)
        with (
            OperatedLedger(settings.sidecar.ledger, ceilings=ceilings) as old,
            OperatedLedger(other.sidecar.ledger, ceilings=ceilings) as new,
        ):
            new.import_device(old.export_device("hmd-1", ledger_name(new.header.ledger_id)))
        async with life(other, spy, 1):
            await until(lambda: chunks._noticed == {OtherLedger: OtherLedger(moved=True)})
        assert spy.leaf("odometer")[-1]["former"] == first
        assert chunks.odometer.fault is None


def made(folder: Path, *names: str) -> tuple[str, ...]:
    """Names of folders that are there."""
    for name in names:
        (folder / name).mkdir()
    return names


def test_two_streams_do_not_show_that_they_share_a_ledger() -> None:
    """Nor how much was spent: names and beginnings are unlike, and the same in every copy of the ledger."""
    secret = bytes(range(16))
    odometers, copy = (Odometers(secret, lambda device: ()) for _ in range(2))
    keys = [StreamKey(device, stream) for device in ("d0", "d1") for stream in ("features", "gaze")]
    said = [odometers.reading(key, None) for key in keys]
    assert len({one.ledger for one in said}) == len({one.reads for one in said}) == 4
    assert all(one.reads == one.began < 2**62 for one in said)
    again = [copy.reading(key, None) for key in keys]
    assert [(one.ledger, one.began) for one in again] == [(one.ledger, one.began) for one in said]
    assert {one.life for one in again}.isdisjoint(one.life for one in said)
    assert max(one.reads for one in said) > 2**60, "the beginnings fill their range"


def test_it_reads_what_the_one_stream_has_spent_rounded_up() -> None:
    """Not what the device, another stream or the session has."""
    odometers, start = (
        Odometers(bytes(16), lambda device: ()),
        Odometers(bytes(16), lambda device: ()).reading(KEY, None),
    )
    ledger = MemoryLedger(Ceilings())
    figures = []
    for stream, session, epsilon in (
        ("features", 1, 0.5),
        ("gaze", 1, 3.0),
        ("features", 2, 0.25),
        ("features", 3, 1e-9),
    ):
        ledger.reserve([Request(StreamKey("hmd-1", stream), session, 0, 31, 32, Charge.of(epsilon))], 20_000)
        figures.append(odometers.reading(KEY, ledger.odometer("hmd-1")).reads - start.reads)
    assert figures == [500_000, 500_000, 750_000, 750_001]
