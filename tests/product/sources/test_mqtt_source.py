"""Gaze over MQTT: a tracker's life, what is refused, and rows that cross no broker."""

import asyncio
import contextlib
from functools import partial
from pathlib import Path

import aiomqtt
import msgspec
import numpy as np
import pytest

from eyestream.gaze.profile import Profile
from eyestream.rim.config import BrokerSettings, SourceEntry
from eyestream.rim.files.gaze_columns import GazeColumns
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.mqtt.messages import Message
from eyestream.rim.mqtt.portions import PORTION_S
from eyestream.rim.plan import resolved
from eyestream.rim.sidecar.assembly import assemble
from eyestream.rim.sources.gaze import GazeFeeder, Place, UndecodedGaze
from eyestream.rim.sources.mqtt import MqttOptions, MqttSource
from eyestream.sdk.publisher import Publisher
from eyestream.wire.gaze import encode_gaze
from eyestream.wire.raw import RawRows
from eyestream.wire.topics import gaze_topic
from eyestream_lab.testing.clocks import simulated, until
from eyestream_lab.testing.gaze_lives import TrackerClock, hard_life
from eyestream_lab.testing.gaze_sources import hearing
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.sidecar import at_work, settings_for
from tests.rigs.spy import spying

RATE_HZ = 200.0
DEVICE = "hmd-1"


def usual() -> Profile:
    return load_profile("mqtt").at_rate(RATE_HZ)


class MqttTracker:
    """A publisher on a broker that can be killed with it."""

    def __init__(self, broker: Mosquitto) -> None:
        self.broker, self.clock, self.began = broker, TrackerClock(), False
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        if self.began:
            await asyncio.to_thread(self.broker.start)
        self.began = True
        self._task = asyncio.create_task(self._send())

    async def stop(self) -> None:
        assert self._task is not None
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        await asyncio.to_thread(self.broker.stop)

    async def flood(self) -> None:
        async with self._client() as client:
            payload = encode_gaze(np.arange(100.0), np.zeros((100, 3)), 1)
            for _ in range(200):
                await client.publish(gaze_topic(DEVICE), payload)

    async def nonsense(self) -> None:
        async with self._client() as client:
            for payload in (b"", b"\xc1", b"nonsense", encode_gaze(np.zeros(1), np.zeros((1, 7)), 1)):
                await client.publish(gaze_topic(DEVICE), payload)
            await client.publish(gaze_topic(DEVICE), encode_gaze(np.full(3, np.nan), np.full((3, 2), 1e30), 1))

    def _client(self) -> aiomqtt.Client:
        return aiomqtt.Client("127.0.0.1", self.broker.port)

    async def _send(self) -> None:
        loop = asyncio.get_running_loop()
        async with Publisher(self.broker.url, DEVICE, gaze_s=0.0) as publisher:
            while True:
                t = self.clock.show(loop.time())
                await publisher.send_gaze(t, [1.0, 2.0, 3.5])
                await asyncio.sleep(1 / RATE_HZ)


@pytest.mark.long
async def test_a_hard_life(mosquitto: Mosquitto) -> None:
    source = MqttSource(MqttOptions(), usual(), Place(DEVICE, BrokerSettings(mosquitto.url)))
    heard = await hard_life(source, MqttTracker(mosquitto), PORTION_S)
    assert {"not_msgpack", "not_a_map", "shape"} <= set(source.refused)
    assert len(heard.away) >= 1
    mosquitto.start()


async def test_retained_gaze_is_not_live(mosquitto: Mosquitto, caplog: pytest.LogCaptureFixture) -> None:
    payload = encode_gaze(np.array([1.0]), np.zeros((1, 2)), 1)
    async with aiomqtt.Client("127.0.0.1", mosquitto.port) as client:
        await client.publish(gaze_topic(DEVICE), payload, qos=1, retain=True)
        source = MqttSource(MqttOptions(), usual(), Place(DEVICE, BrokerSettings(mosquitto.url)))
        async with hearing(source) as heard:
            await until(lambda: source.refused["retained"] == 1)
            await client.publish(gaze_topic(DEVICE), payload, qos=1)
            await until(lambda: heard.samples == 1)
    [line] = [record.getMessage() for record in caplog.records if "its tracker is refused" in record.getMessage()]
    assert line.endswith("(retained): it publishes with the retain flag; raw rows must not be kept: clear it")


async def test_a_publisher_of_gaze_needs_no_features(mosquitto: Mosquitto) -> None:
    async with Publisher(mosquitto.url, DEVICE) as publisher:
        assert await publisher.send_gaze([1.0, 2.0], [[0.0, 1.0], [np.nan, np.nan]])
        with pytest.raises(ValueError, match="one time for each sample"):
            await publisher.send_gaze([1.0], [[0.0, 1.0], [0.0, 1.0]])
        with pytest.raises(ValueError, match="without names"):
            await publisher.send(np.zeros((1, 3)))


async def test_gaze_becomes_rows_in_the_sidecar(
    mosquitto: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At forty times real time: rows are taken without a row on any broker, and the guarantee knows the memory."""
    monkeypatch.setattr("eyestream.rim.sources.registry.HOST_SPEED", 40.0)
    settings = settings_for(mosquitto.url, tmp_path, rate_hz=2.0)
    source = SourceEntry("mqtt", DEVICE, rate_hz=RATE_HZ)
    settings = msgspec.structs.replace(settings, source=(source,))
    plan = resolved(settings)
    told = plan.streams["features"].meta.guarantee
    assert f"within {30.0 + usual().memory_s:g} s of it" in told
    with assemble(plan, lambda: 20_000) as made:
        async with spying(mosquitto.url) as spy, at_work(made.sidecar), Publisher(mosquitto.url, DEVICE) as publisher:
            loop = asyncio.get_running_loop()
            while made.sidecar.pipeline.counters.taken < 40:
                now = 40.0 * loop.time()
                await publisher.send_gaze(now - np.arange(20)[::-1] / RATE_HZ, np.tile([1.0, 2.0, 3.5], (20, 1)))
            await until(lambda: made.sidecar.pipeline.counters.released >= 1)
            await until(lambda: len(spy.leaf("private")) >= 1)
            assert spy.leaf("raw") == []
            assert made.sidecar.raw_stands
    assert spy.leaf("private")[0]["shape"] == [52, 32]
    assert np.isfinite(spy.leaf("private")[0]["at"])


async def test_the_last_line_counts_the_gaze_that_was_refused(
    mosquitto: Mosquitto, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_for(mosquitto.url, tmp_path, rate_hz=2.0)
    source = SourceEntry("mqtt", DEVICE, rate_hz=RATE_HZ)
    with assemble(resolved(msgspec.structs.replace(settings, source=(source,))), lambda: 20_000) as made:
        (feeder,) = made.sidecar.feeders.values()
        with caplog.at_level("INFO", "eyestream.source"):
            async with at_work(made.sidecar), aiomqtt.Client("127.0.0.1", mosquitto.port) as client:
                await until(lambda: "listens at" in caplog.text)
                for _ in range(7):
                    await client.publish(gaze_topic(DEVICE), b"\xc1", qos=1)
                await until(lambda: feeder.refused == 7)
                caplog.set_level("INFO", "eyestream.sidecar")
    [line] = [record.getMessage() for record in caplog.records if record.getMessage().startswith("stopped: ")]
    assert "7 rejected, 0 dropped" in line


@pytest.mark.parametrize("qos", [0, 1])
async def test_a_thousand_samples_a_second_and_a_second_of_them_at_once_all_come_once(
    mosquitto: Mosquitto, qos: int
) -> None:
    """mosquitto, as it is configured from the start, has 20 messages at QoS 1 under way."""
    source = MqttSource(
        MqttOptions(), load_profile("mqtt").at_rate(1000.0), Place(DEVICE, BrokerSettings(mosquitto.url))
    )
    loop, sent = asyncio.get_running_loop(), 0
    async with hearing(source) as heard, aiomqtt.Client("127.0.0.1", mosquitto.port) as client:
        await until(lambda: heard.stands > 0)
        for burst in (*[10] * 100, 1000, *[10] * 20):  # 10 each 10 ms
            for _ in range(burst):
                await client.publish(
                    gaze_topic(DEVICE), encode_gaze(np.array([float(sent)]), np.zeros((1, 3)), 1), qos=qos
                )
                sent += 1
            await asyncio.sleep(0.01)
        await until(lambda: heard.samples >= sent)
    assert heard.column("time").tolist() == [float(number) for number in range(sent)]
    assert heard.away == []
    took = loop.time()
    assert all(records.came is not None and records.came <= took for records in heard.records)
    assert len(heard.records) < sent / 5


def test_gaze_that_is_decoded_late_gives_the_same_rows_and_is_decoded_once_for_all_feeders() -> None:
    """It counts as arrived when it came, and messages without samples say that the tracker is there."""
    source = MqttSource(MqttOptions(), usual(), Place(DEVICE, BrokerSettings("mqtt://localhost")))
    rng = np.random.default_rng(1)

    def message(*t: float, width: int) -> Message:
        payload = encode_gaze(np.array(t), rng.normal(0.0, 5.0, (len(t), width)), 1)
        return Message(gaze_topic(DEVICE), payload, False)

    portions = [([message(p + i / RATE_HZ, width=2 + (p > 20)) for i in range(200)], float(p) + 1.0) for p in range(50)]
    portions += [([message(width=2), Message(gaze_topic(DEVICE), b"\xc1", False)], 51.0)]
    decoded: list[float] = []

    def decode(messages: list[Message], came: float) -> list[GazeColumns]:
        decoded.append(came)
        return [*source.records_of(messages, came)]

    async def rows_of(*, late: bool, feeders: int) -> list[list[RawRows]]:
        loop = asyncio.get_running_loop()
        made = [(GazeFeeder(source, usual()), list[RawRows]()) for _ in range(feeders)]
        async with asyncio.TaskGroup() as group:
            for feeder, rows in made:
                group.create_task(feeder.rows(rows.append))
            for sent, came in portions:
                await asyncio.sleep(came - loop.time())
                gaze: list[GazeColumns | UndecodedGaze] = [*source.records_of(sent, came)]
                if late:
                    gaze = [UndecodedGaze(sum(len(one.payload) for one in sent), came, partial(decode, sent, came))]
                for feeder, _ in made:
                    for one in gaze:
                        feeder.take(one)
            for feeder, _ in made:
                feeder.end()
        assert [feeder.heard for feeder, _ in made] == [10_000] * feeders
        return [rows for _, rows in made]

    [eager] = simulated(rows_of(late=False, feeders=1))
    assert len(eager) > 30
    assert any(np.isfinite(row.rows).any() for row in eager)
    for found in simulated(rows_of(late=True, feeders=2)):
        assert [row.rows.tobytes() for row in found] == [row.rows.tobytes() for row in eager]
    assert decoded == [came for _, came in portions]
