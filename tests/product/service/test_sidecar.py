"""The sidecar over a real broker: every chunk once, in order, nothing raw outside the raw topic."""

import asyncio
import math
import re
from pathlib import Path

import aiomqtt
import msgpack
import numpy as np
import pytest

from eyestream.core.mechanism import Session
from eyestream.rim.config import BrokerSettings, LimitSettings, Settings
from eyestream.rim.files import calibrations, recordings
from eyestream.rim.files.recordings import Recording
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Backoff, connect
from eyestream.sdk.publisher import Publisher
from eyestream.sdk.replay import replay
from eyestream.sdk.subscriber import Chunks, subscribe
from eyestream.streams import StreamKey
from eyestream.wire.raw import encode_raw
from eyestream_lab.testing.clocks import PATIENCE_S, until
from eyestream_lab.testing.noise import SeededNoise
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.sidecar import client_ids, links_made, running, settings_for
from tests.rigs.spy import Spy, spying

NAMES = calibrations.load("everyday-cfpa-32").names


async def publish(url: str, recording: Recording, device: str = "hmd-1") -> None:
    async with Publisher(url, device, recording.names, recording.rate_hz) as publisher:
        await replay(publisher, recording, speed=math.inf)


def recording_of(rows: np.ndarray) -> Recording:
    return Recording(np.arange(len(rows)) / 2.0, rows.astype(np.float64), NAMES)


def online(spy: Spy, device: str = "hmd-1") -> bool:
    return spy.states(device)[-1:] == [("online", "ready")]


def conserved(sidecar) -> bool:
    counters = sidecar.pipeline.counters
    settled = counters.released + counters.withheld.total() + counters.dropped.total()
    outbox = sidecar.outbox
    return counters.due == settled and (
        counters.released == outbox.delivered + outbox.expired + outbox.overflow + len(outbox)
    )


def words(data: bytes) -> np.ndarray:
    """Every run of eight bytes of `data`, wherever it begins."""
    return np.unique(np.concatenate([np.frombuffer(data[o : o + (len(data) - o) // 8 * 8], "<u8") for o in range(8)]))


def raw_words(rows: np.ndarray) -> np.ndarray:
    """Raw values as eight bytes: float64, and float32 beside their neighbour in the row and in the feature.

    Words that are half zeros, such as those of small whole numbers, are everywhere and left out.
    """
    single = rows.astype("<f4")
    pairs = [np.stack([single[:, :-1], single[:, 1:]], axis=-1), np.stack([single[:-1], single[1:]], axis=-1)]
    speaking = [pair[(pair[..., 0] != pair[..., 1]) & (pair != 0).all(axis=-1)] for pair in pairs]
    doubles = rows[rows != np.round(rows)].astype("<f8")
    found = np.concatenate(
        [np.ascontiguousarray(pair).view("<u8").ravel() for pair in speaking] + [doubles.view("<u8")]
    )
    return found[(found.view(np.uint8).reshape(-1, 8) == 0).sum(axis=1) < 4]


def assert_nothing_raw(spy: Spy, rows: np.ndarray) -> None:
    """No raw value stands in anything outside the raw topic; on the raw topic, as a control, they are found."""
    assert np.isin(raw_words(rows), words(spy.raw())).mean() > 0.3
    found = np.isin(raw_words(rows), words(spy.outside_raw()))
    assert not found.any(), np.unique(raw_words(rows)[found]).astype("<u8").tobytes().hex(" ", 8)


@pytest.mark.parametrize("mechanism", ["cfpa", "dcfpa"])
@pytest.mark.parametrize("n", [32, 64, 128])
async def test_a_real_recording_at_full_speed(
    mosquitto: Mosquitto, tmp_path: Path, shared_data: Path, mechanism: str, n: int
) -> None:
    recording = recordings.load(shared_data / "hoppe2018" / "features" / "P00.npz")
    settings = settings_for(
        mosquitto.url, tmp_path, calibration=f"everyday-{mechanism}-{n}", devices=("hmd-1", "hmd-2")
    )
    count = math.ceil(len(recording.t) / n)
    async with spying(mosquitto.url) as spy, running(settings) as sidecar:
        await until(lambda: online(spy) and online(spy, "hmd-2"))
        await asyncio.gather(publish(mosquitto.url, recording), publish(mosquitto.url, recording, "hmd-2"))
        await until(lambda: len(spy.chunks()) == len(spy.chunks("hmd-2")) == count)
        await asyncio.sleep(0.1)
        assert conserved(sidecar)
    for device in ("hmd-1", "hmd-2"):
        chunks = spy.leaf("private", device)
        assert [chunk["chunk"] for chunk in chunks] == list(range(count))
        assert len({chunk["session"] for chunk in chunks}) == 1
        for chunk in chunks:
            assert list(chunk) == ["v", "session", "chunk", "t0", "dt", "shape", "values", "epsilon", "delta"]
            assert (chunk["v"], chunk["shape"], chunk["dt"]) == (1, [52, n], 0.5)
            assert chunk["t0"] == chunk["chunk"] * n / 2
            assert (chunk["epsilon"], chunk["delta"]) == (4.8, 0.0)
            assert np.isfinite(np.frombuffer(chunk["values"], "<f4")).all()
    first, second = (spy.leaf("private", device)[0] for device in ("hmd-1", "hmd-2"))
    assert first["values"] != second["values"], "two devices with the same rows must not share their noise"
    assert first["session"] != second["session"]
    odometers = read_ledger(settings.sidecar.ledger).odometers
    assert odometers["hmd-1"].released == count
    assert_nothing_raw(spy, recording.features[:, ~calibrations.load(settings.stream[0].privacy.calibration).constant])


async def test_what_stands_on_the_broker(mosquitto: Mosquitto, tmp_path: Path) -> None:
    settings = settings_for(mosquitto.url, tmp_path)
    async with spying(mosquitto.url) as spy, running(settings) as sidecar:
        await until(lambda: online(spy))
        await publish(mosquitto.url, recording_of(rows_of_a_stranger(40, 52)))
        await until(lambda: len(spy.chunks()) == 2)
        async with spying(mosquitto.url) as late:
            await until(lambda: len(late.messages) >= 6)
    assert sorted(topic for topic, _, retain in late.messages if retain) == [
        "eyestream/v1/hmd-1/features/budget",
        "eyestream/v1/hmd-1/features/meta",
        "eyestream/v1/hmd-1/features/odometer",
        "eyestream/v1/hmd-1/features/status",
        "eyestream/v1/sidecar/sidecar/owner",
        "eyestream/v1/sidecar/sidecar/status",
    ]
    sessions = re.findall(r"as (\S*) \(p\d, (c[01]),", mosquitto.log.read_text())
    assert {session for session in sessions if session[0] in client_ids(sidecar)} == {
        (own, "c1")
        for own in client_ids(sidecar)  # a broker keeps nothing for a sidecar
    }
    meta = late.leaf("meta")[0]
    assert (meta["names"], meta["n"], meta["mechanism"]) == (list(NAMES), 32, "cfpa")
    assert len(np.frombuffer(meta["noise_sd"], "<f4")) == 52
    assert_nothing_raw(spy, rows_of_a_stranger(40, 52))
    assert spy.states()[-1] == ("offline", "stopped")


async def test_the_goodbye_is_said_although_the_link_is_away(
    mosquitto: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker is back, and the sidecar about to find out: applications must not read for ever that it is there."""
    monkeypatch.setattr(Backoff, "pause", lambda self: 1000.0)
    async with running(settings_for(mosquitto.url, tmp_path)) as sidecar:
        await until(lambda: sidecar.private_stands)
        mosquitto.stop(kill=True)
        await until(lambda: not sidecar.private_stands)
        mosquitto.start()
    async with spying(mosquitto.url) as spy:
        await until(lambda: spy.states()[-1:] == [("offline", "stopped")])


async def release(settings: Settings, url: str, splits: list[np.ndarray]) -> list[bytes]:
    """Payload values of a session under seeded noise, its rows sent in messages of these sizes."""
    async with spying(url) as spy, running(settings, noise=SeededNoise(7)):
        await until(lambda: online(spy))
        async with Publisher(url, "hmd-1", NAMES, 2.0) as publisher:
            for rows in splits:
                await publisher.send(rows)
        await until(lambda: len(spy.chunks()) == 4)
    return [chunk["values"] for chunk in spy.leaf("private")]


async def test_how_rows_are_split_changes_no_byte(mosquitto: Mosquitto, tmp_path: Path) -> None:
    rows = rows_of_a_stranger(100, 52)
    rows[10:20, 3] = np.nan
    results = []
    for index, cuts in enumerate([range(1, 100), [31, 33, 90], [64]]):
        folder = tmp_path / str(index)
        folder.mkdir()
        results.append(await release(settings_for(mosquitto.url, folder), mosquitto.url, np.split(rows, list(cuts))))
    assert results[0] == results[1] == results[2]
    assert len(set(results[0])) == 4


async def test_a_chunk_that_falls_due_is_released_without_its_rows(mosquitto: Mosquitto, tmp_path: Path) -> None:
    settings = settings_for(mosquitto.url, tmp_path, grace_s=0.0, idle_s=17.0)
    async with spying(mosquitto.url) as spy, running(settings) as sidecar:
        await until(lambda: online(spy))
        async with Publisher(mosquitto.url, "hmd-1", NAMES, 2.0) as publisher:
            await publisher.send(rows_of_a_stranger(1, 52), seq=30)  # one row left: due half a second later
            await until(lambda: len(spy.chunks()) == 1, seconds=3)
            assert publisher.next_seq == 31
        assert sidecar.pipeline.counters.released == 1


async def test_an_exhausted_window_withholds_and_recovers(mosquitto: Mosquitto, tmp_path: Path) -> None:
    settings = settings_for(mosquitto.url, tmp_path, window_epsilon=4.8)  # one chunk in any two
    async with spying(mosquitto.url) as spy, running(settings) as sidecar:
        await until(lambda: online(spy))
        await publish(mosquitto.url, recording_of(rows_of_a_stranger(32 * 6, 52)))
        await until(lambda: sidecar.pipeline.counters.due == 6)
        await until(lambda: len(spy.chunks()) == 3)
        await asyncio.sleep(0.1)
        assert conserved(sidecar)
        assert sidecar.pipeline.counters.withheld == {"window": 3}
    assert spy.chunks() == [0, 2, 4]
    assert ("exhausted", "window") in spy.states()


async def test_a_second_session_has_another_name_and_starts_at_zero(mosquitto: Mosquitto, tmp_path: Path) -> None:
    settings = settings_for(mosquitto.url, tmp_path)
    async with spying(mosquitto.url) as spy, running(settings):
        await until(lambda: online(spy))
        for _ in range(2):
            await publish(mosquitto.url, recording_of(rows_of_a_stranger(64, 52)))
        await until(lambda: len(spy.chunks()) == 4)
    assert spy.chunks() == [0, 1, 0, 1]
    private = {chunk["session"] for chunk in spy.leaf("private")}
    tracker = {rows["session"] for rows in spy.leaf("raw")}
    assert len(private) == 2
    assert not private & tracker


async def test_no_row_is_released_twice_by_a_restart(mosquitto: Mosquitto, tmp_path: Path) -> None:
    settings = settings_for(mosquitto.url, tmp_path)
    rows = rows_of_a_stranger(128, 52)
    async with spying(mosquitto.url) as spy, Publisher(mosquitto.url, "hmd-1", NAMES, 2.0) as publisher:
        async with running(settings):
            await until(lambda: online(spy))
            await publisher.send(rows[:40])  # the second chunk is open, hence reserved, and finished at the end
            await until(lambda: len(spy.chunks()) == 1)
        await until(lambda: spy.states()[-1] == ("offline", "stopped"))
        assert spy.chunks() == [0, 1]
        async with running(settings) as sidecar:
            await until(lambda: online(spy))
            await publisher.send(rows[40:])
            await until(lambda: len(spy.chunks()) == 4)
            assert sidecar.pipeline.rows(StreamKey("hmd-1", "features")).refused == 24
    chunks = spy.leaf("private")
    assert [chunk["chunk"] for chunk in chunks] == [0, 1, 0, 1]
    assert read_ledger(settings.sidecar.ledger).odometers["hmd-1"].released == 4


async def test_a_failing_ledger_stops_the_releases_not_the_process(
    mosquitto: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_for(mosquitto.url, tmp_path)
    async with spying(mosquitto.url) as spy, running(settings) as sidecar:
        await until(lambda: online(spy))
        await publish(mosquitto.url, recording_of(rows_of_a_stranger(32, 52)))
        await until(lambda: len(spy.chunks()) == 1)

        def full(self: object, data: bytes) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("eyestream.rim.ledger.file.LedgerFile.append", full)
        await publish(mosquitto.url, recording_of(rows_of_a_stranger(96, 52)))
        await until(lambda: spy.states()[-1] == ("degraded", "ledger"))
        monkeypatch.undo()
        await publish(mosquitto.url, recording_of(rows_of_a_stranger(96, 52)))
        await until(lambda: sidecar.pipeline.counters.due == 7)
        assert sidecar.pipeline.counters.dropped == {"ledger": 6}
        assert conserved(sidecar)
    assert spy.chunks() == [0]


async def test_a_failing_mechanism_costs_its_chunk_alone(
    mosquitto: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_for(mosquitto.url, tmp_path)
    rows = rows_of_a_stranger(96, 52)
    real, calls = Session.release, []

    def once(self: Session, chunk: np.ndarray) -> np.ndarray:
        calls.append(1)
        if len(calls) == 2:
            raise ArithmeticError(str(chunk[0, 0]))
        return real(self, chunk)

    monkeypatch.setattr(Session, "release", once)
    async with spying(mosquitto.url) as spy, running(settings) as sidecar:
        await until(lambda: online(spy))
        await publish(mosquitto.url, recording_of(rows))
        await until(lambda: len(spy.chunks()) == 2)
        await until(lambda: online(spy))
        assert sidecar.pipeline.counters.dropped == {"mechanism": 1}
    assert spy.chunks() == [0, 2]
    assert "ArithmeticError" in caplog.text
    assert str(float(rows[32, 0]))[:6] not in caplog.text
    assert_nothing_raw(spy, rows)


async def test_what_is_no_row_of_ours_is_rejected_and_counted(mosquitto: Mosquitto, tmp_path: Path) -> None:
    settings = settings_for(mosquitto.url, tmp_path)
    async with spying(mosquitto.url) as spy, running(settings) as sidecar:
        await until(lambda: online(spy))
        async with Publisher(mosquitto.url, "hmd-1", NAMES[:3], 2.0) as narrow:
            await narrow.send(np.zeros((1, 3)))
        async with Publisher(mosquitto.url, "hmd-1", NAMES, 2.0, schema=2) as other:
            await other.send(np.zeros((1, 52)))
        async with Publisher(mosquitto.url, "hmd-9", NAMES, 2.0) as stranger:
            await stranger.send(np.zeros((1, 52)))
        await until(lambda: sidecar.pipeline.counters.rejected.total() == 4)
        assert sidecar.pipeline.counters.rejected == {"shape": 2, "schema": 2}
        assert sidecar.pipeline.counters.taken == 0
    assert spy.chunks() == []


async def test_a_retained_raw_message_is_no_live_row(mosquitto: Mosquitto, tmp_path: Path) -> None:
    settings = settings_for(mosquitto.url, tmp_path)
    payload = encode_raw(1, 0, rows_of_a_stranger(32, 52), 1)
    async with connect(Endpoint.of(BrokerSettings(mosquitto.url)), client_id=None, deliver=print) as link:
        await link.publish("eyestream/v1/hmd-1/features/raw", payload, qos=1, retain=True)
    async with spying(mosquitto.url) as spy, running(settings) as sidecar:
        await until(lambda: sidecar.pipeline.counters.rejected == {"retained": 1})
        assert spy.chunks() == []


async def test_the_broker_keeps_no_raw_rows_for_a_sidecar_that_is_away(mosquitto: Mosquitto, tmp_path: Path) -> None:
    settings = settings_for(mosquitto.url, tmp_path)
    async with running(settings) as sidecar:
        await until(lambda: sidecar.raw_stands)
    async with Publisher(mosquitto.url, "hmd-1", NAMES, 2.0, hold=False) as publisher:
        assert await publisher.send(rows_of_a_stranger(40, 52))
        async with running(settings) as sidecar:
            await until(lambda: sidecar.raw_stands and sidecar.private_stands)
            assert await publisher.send(rows_of_a_stranger(1, 52))
            await until(lambda: sidecar.pipeline.counters.taken > 0)
            assert sidecar.pipeline.rows(StreamKey("hmd-1", "features")).rows == 1


async def test_raw_and_private_may_be_two_brokers(
    mosquitto: Mosquitto, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    raw = Mosquitto(tmp_path_factory.mktemp("raw"))
    raw.start()
    try:
        settings = settings_for(mosquitto.url, tmp_path, raw_url=raw.url)
        async with spying(raw.url) as raw_spy, spying(mosquitto.url) as spy, running(settings):
            await until(lambda: online(spy))
            await publish(raw.url, recording_of(rows_of_a_stranger(32, 52)))
            await until(lambda: len(spy.chunks()) == 1)
        assert {topic.rsplit("/", 1)[1] for topic, _, _ in raw_spy.messages} == {"raw"}
        assert not [topic for topic, _, _ in spy.messages if topic.endswith("/raw")]
    finally:
        raw.stop()


async def test_a_broker_that_is_down_at_start_is_waited_for_and_said_once(
    mosquitto: Mosquitto, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mosquitto.stop()
    settings = settings_for(mosquitto.url, tmp_path)
    async with running(settings):
        await asyncio.sleep(1.0)
        assert caplog.text.count("private broker: ") == 1
        assert caplog.text.count("raw broker: ") == 0  # no row is taken before the devices are known to be ours
        mosquitto.start()
        async with asyncio.timeout(PATIENCE_S):
            async with spying(mosquitto.url) as spy:
                await until(lambda: online(spy))
            await publish(mosquitto.url, recording_of(rows_of_a_stranger(32, 52)))


@pytest.mark.long
async def test_restarts_under_traffic_lose_nothing_that_was_released(
    mosquitto: Mosquitto, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    """A persistent application on a private broker that keeps its sessions and is restarted; the raw broker stays."""
    kept = tmp_path_factory.mktemp("kept")
    private = Mosquitto(kept, "persistence true", f"persistence_location {kept}/")
    private.start()
    settings = settings_for(private.url, tmp_path, raw_url=mosquitto.url)
    seen: list[tuple[int, int]] = []

    async def listen(chunks: Chunks) -> None:
        async for chunk in chunks:
            seen.append((chunk.session, chunk.index))

    try:
        async with running(settings) as sidecar, Publisher(mosquitto.url, "hmd-1", NAMES, 2.0) as publisher:
            await until(lambda: sidecar.raw_stands and sidecar.private_stands)
            async with subscribe(private.url, "hmd-1", client_id="app") as chunks:
                listener = asyncio.create_task(listen(chunks))
                for restart in range(1, 5):
                    await publisher.send(rows_of_a_stranger(32, 52))
                    await until(lambda: len(sidecar.outbox) == 0)
                    private.stop()
                    await publisher.send(rows_of_a_stranger(64, 52))
                    private.start()
                    await until(lambda total=3 * restart: sidecar.outbox.delivered == total)
                await until(lambda: len(seen) == 12)
                assert conserved(sidecar)
                listener.cancel()
                await asyncio.gather(listener, return_exceptions=True)
    finally:
        private.stop()
    assert [index for _, index in seen] == list(range(12))
    assert len({session for session, _ in seen}) == 1
    assert read_ledger(settings.sidecar.ledger).odometers["hmd-1"].released == 12


async def test_a_killed_broker_costs_rows_not_chunks(mosquitto: Mosquitto, tmp_path: Path) -> None:
    """One broker for both sides, killed under traffic: rows are lost and imputed, each chunk is released once."""
    settings = settings_for(mosquitto.url, tmp_path)
    async with running(settings) as sidecar, Publisher(mosquitto.url, "hmd-1", NAMES, 2.0, hold=False) as publisher:
        await until(lambda: sidecar.raw_stands)
        for _ in range(3):
            await publisher.send(rows_of_a_stranger(40, 52))
            await until(lambda: sidecar.pipeline.counters.taken > 0)
            mosquitto.stop(kill=True)
            await publisher.send(rows_of_a_stranger(8, 52))
            mosquitto.start()
            await until(lambda: sidecar.raw_stands and sidecar.private_stands and publisher._carrier.stands)
        await publisher.send(rows_of_a_stranger(16, 52))
        await until(lambda: sidecar.pipeline.counters.released == 5)
        await until(lambda: len(sidecar.outbox) == 0)
        assert publisher.lost > 0
        assert conserved(sidecar)
        assert sidecar.pipeline.rows(StreamKey("hmd-1", "features")).accepted < publisher.next_seq
    assert read_ledger(settings.sidecar.ledger).odometers["hmd-1"].released == 5


async def test_released_bytes_wait_bounded_and_not_for_ever(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, mosquitto: Mosquitto
) -> None:
    limits = LimitSettings(released_chunks=3, deadline_s=0.5)
    private = Mosquitto(tmp_path_factory.mktemp("private"))
    private.start()
    settings = settings_for(private.url, tmp_path, raw_url=mosquitto.url, limits=limits)
    async with running(settings) as sidecar:
        await until(lambda: sidecar.raw_stands and sidecar.private_stands)
        private.stop()
        await until(lambda: not sidecar.private_stands)
        await publish(mosquitto.url, recording_of(rows_of_a_stranger(32 * 5, 52)))
        await until(lambda: sidecar.pipeline.counters.released == 5)
        assert (len(sidecar.outbox), sidecar.outbox.overflow) == (3, 2)
        await asyncio.sleep(0.6)
        assert sidecar.outbox.first(asyncio.get_running_loop().time()) is None
        assert sidecar.outbox.expired == 3
        assert conserved(sidecar)


async def test_the_last_will_says_that_a_killed_sidecar_is_lost(mosquitto: Mosquitto, tmp_path: Path) -> None:
    settings = settings_for(mosquitto.url, tmp_path, version="3.1.1")  # in MQTT 5 the will waits: test_mqtt5.py
    async with spying(mosquitto.url) as spy, running(settings) as sidecar:
        await until(lambda: online(spy))
        own = "eyestream/v1/sidecar/sidecar/status"

        def said() -> list[str]:
            return [msgpack.unpackb(payload)["reason"] for topic, payload, _ in spy.messages if topic == own]

        # a second client of the same id takes the session over: the broker breaks the first link, and says its will
        async with aiomqtt.Client("127.0.0.1", mosquitto.port, identifier=client_ids(sidecar)[0]):
            await until(lambda: "lost" in said())
        await until(lambda: said()[-1] == "ready")
        assert links_made(sidecar)[0] >= 2
    assert said()[-1] == "stopped"
