"""A lost eye is not a lost link: neither what sources say of their links nor what applications read depends on it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyestream.gaze.live import LiveFrontEnd, LiveRows
from eyestream.gaze.samples import Samples
from eyestream.rim.config import BrokerSettings, SourceEntry
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.sources import core, lsl, mqtt, neon
from eyestream.rim.sources.asked import ASK_EVERY_S
from eyestream.rim.sources.gaze import GazeSource, Place
from eyestream.rim.sources.mqtt import MqttOptions, MqttSource
from eyestream.sdk import publisher
from eyestream_lab.testing.clocks import until
from eyestream_lab.testing.gaze_lives import TrackerClock
from eyestream_lab.testing.gaze_sources import hearing
from tests.product.sources.eye_runs import CHUNKS, DEVICE, SPEED, Make, See, both
from tests.rigs.core import FakeCapture
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.neon import FakeNeon

PLACE = Place(DEVICE, BrokerSettings("mqtt://localhost"))
RATE_HZ = 200.0


def phone_and_source() -> tuple[FakeNeon, GazeSource]:
    phone = FakeNeon()
    return phone, neon.NeonSource(neon.NeonOptions("127.0.0.1", phone.port), load_profile("neon"), PLACE)


def capture_and_source() -> tuple[FakeCapture, GazeSource]:
    capture = FakeCapture()
    return capture, core.CoreSource(core.CoreOptions("127.0.0.1", capture.port), load_profile("core"), PLACE)


@pytest.mark.parametrize("made", [phone_and_source, capture_and_source])
async def test_a_tracker_that_is_silent_stands(made: Callable[[], tuple[Any, GazeSource]]) -> None:
    """From the beginning, and later; for longer than a silence that was taken for an outage (3 s) until now."""
    tracker, source = made()
    tracker.silent = True
    await tracker.start()
    try:
        async with hearing(source) as heard:
            await until(lambda: heard.stands > 0)
            assert heard.samples == 0
            tracker.silent = False
            await until(lambda: heard.samples > 20)
            tracker.silent = True
            await asyncio.sleep(3.6)
            tracker.silent, before = False, heard.samples
            await until(lambda: heard.samples > before)
    finally:
        await tracker.stop()
    assert heard.away == []


async def test_gaze_in_space_without_a_point_is_a_lost_eye() -> None:
    """Its samples come, in their time, and it takes no word from the link."""
    capture, source = capture_and_source()
    capture.lost = True
    await capture.start()
    try:
        async with hearing(source) as heard:
            await until(lambda: heard.samples > 20)
            await asyncio.sleep(3.6)
    finally:
        await capture.stop()
    assert heard.away == []
    assert np.isfinite(heard.column("time")).all()
    assert np.isnan(heard.column("gaze")).all()
    assert not heard.column("valid").any()


async def test_a_phone_that_does_not_answer_is_away_though_gaze_comes() -> None:
    """The control: what decides is the answer, and nothing but the answer."""
    phone, source = phone_and_source()
    await phone.start()
    try:
        async with hearing(source, again_s=60.0) as heard:
            await until(lambda: heard.samples > 20)
            phone.mute = True
            await until(lambda: bool(heard.away))
            assert heard.arrived[-1] > asyncio.get_running_loop().time() - 1.0
    finally:
        await phone.stop()
    assert heard.away == ["the phone does not answer"]


async def test_a_capture_that_was_started_again_is_another_one() -> None:
    capture, source = capture_and_source()
    await capture.start()
    async with hearing(source) as heard:
        await until(lambda: heard.samples > 20)
        await capture.stop()
        await capture.start()
        try:
            await until(lambda: bool(heard.away))
            before = heard.samples
            await until(lambda: heard.samples > before)
        finally:
            await capture.stop()
    assert heard.away == ["Pupil Capture was started again"]


async def test_a_silent_publisher_of_gaze_leaves_its_broker_standing(mosquitto: Mosquitto) -> None:
    place = Place(DEVICE, BrokerSettings(mosquitto.url))
    source = MqttSource(MqttOptions(), load_profile("mqtt").at_rate(RATE_HZ), place)
    async with hearing(source) as heard:
        await until(lambda: heard.stands > 0)
        await asyncio.sleep(3.6)
    assert (heard.away, heard.samples) == ([], 0)


def test_a_session_lasts_for_as_long_as_its_tracker_answers() -> None:
    """Two minutes without a sample: rows of nothing, at their moments; then, without an answer, the end."""
    live, rows = LiveFrontEnd(load_profile("lsl").at_rate(RATE_HZ), answers=True), []
    for second in range(225):
        if second < 35:
            t = second + np.arange(200) / RATE_HZ
            live.take(Samples.of(t, np.zeros(200), np.zeros(200)), t)
        if second < 155 and second % ASK_EVERY_S == 0:
            live.stand(second)
        while live.next_due is not None and live.next_due <= second:
            rows += live.due(live.next_due)
    *before, end = rows
    assert [made.number for made in before] == list(range(len(before)))
    assert end.end
    assert len(before) == 2 * (215 - 30) - 2  # the last answer came at 154 s, so the vote of 215 s ends it
    assert np.isnan(before[-1].values).all()


@pytest.mark.parametrize("answers", [True, False])
def test_whether_the_eye_was_seen_before_a_tracker_was_switched_off_decides_nothing(answers: bool) -> None:
    """Of one that answers. Of one that cannot be asked, the last sample decides."""
    ends = []
    for seen_s in (44.9, 50.0):
        live, rows = LiveFrontEnd(load_profile("lsl").at_rate(RATE_HZ), answers), list[LiveRows]()
        for second in range(46):
            if second % ASK_EVERY_S == 0:
                live.stand(second)
            t = second + np.arange(200) / RATE_HZ
            t = t[t < seen_s]
            live.take(Samples.of(t, np.zeros(len(t)), np.zeros(len(t))), t)
        while live.next_due is not None:
            now = live.next_due
            rows += live.due(now)
        ends.append((now, len(rows), rows[-1].end))
    assert (ends[0] == ends[1]) == answers


def test_kinds_of_trackers_that_can_be_asked_say_so() -> None:
    assert [kind.answers for kind in (core.CORE, neon.NEON, lsl.LSL, mqtt.MQTT)] == [True, True, True, False]


def test_the_page_says_how_often_a_tracker_is_asked() -> None:
    page = (Path(__file__).parents[3] / "docs" / "clocks.md").read_text(encoding="utf-8")
    assert ASK_EVERY_S == 2.0
    assert "The sidecar asks the tracker every two seconds" in " ".join(page.split())


class Publisher:
    """A tracker that publishes gaze, and NaN while the eye is lost, as the protocol demands."""

    def __init__(self, url: str) -> None:
        self.clock, self.lost = TrackerClock(), False
        self._url, self._task = url, asyncio.get_running_loop().create_future()

    async def start(self) -> None:
        self._task = asyncio.ensure_future(self._send())

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _send(self) -> None:
        loop = asyncio.get_running_loop()
        async with publisher.Publisher(self._url, DEVICE) as there:
            while True:
                t = self.clock.show(loop.time()) - np.arange(8)[::-1] / RATE_HZ
                await there.send_gaze(t, np.full((8, 3), np.nan if self.lost else 3.0))
                await asyncio.sleep(8 / RATE_HZ / SPEED)


def run_of(kind: str, how: str) -> Make:
    """How a tracker of a kind loses the eye."""

    def make(name: str, url: str) -> tuple[Any, See, SourceEntry]:
        made: dict[str, Any] = {"neon": FakeNeon, "core": FakeCapture}
        tracker: Any = Publisher(url) if kind == "mqtt" else made[kind](RATE_HZ * SPEED)
        options = {} if kind == "mqtt" else {"host": "127.0.0.1", "port": tracker.port}

        async def see(seen: bool) -> None:
            setattr(tracker, how, not seen)

        return tracker, see, SourceEntry(kind, DEVICE, rate_hz=RATE_HZ if kind == "mqtt" else None, options=options)

    return make


@pytest.mark.long
@pytest.mark.needs("mosquitto")
@pytest.mark.parametrize(
    ("kind", "how"),
    [
        ("neon", "silent"),
        pytest.param("core", "silent", marks=pytest.mark.slow),
        pytest.param("core", "lost", marks=pytest.mark.slow),
        ("mqtt", "lost"),
    ],
)
async def test_all_that_an_application_reads_is_the_same_whether_or_not_the_eye_is_seen(
    kind: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every byte but the private values, random names and origins; the order and the number of messages, too.

    Clocks are hurried, so a machine that pauses may change one of the two runs; what an eye changes, it changes always.
    """
    monkeypatch.setattr("eyestream.rim.sources.registry.HOST_SPEED", SPEED)
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        seen, losing = await both(run_of(kind, how), folder)
        assert [topic for topic, _ in seen].count(f"eyestream/v1/{DEVICE}/features/private") == CHUNKS
        if losing == seen:
            break
    assert losing == seen
