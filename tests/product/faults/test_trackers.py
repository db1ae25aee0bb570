"""A tracker that nobody serves is named by `run` and by `check`, and `check` names gaze that is implausible."""

import asyncio
from pathlib import Path

import msgspec
import numpy as np
import pytest

from eyestream.ops.check_trackers import tracker_findings
from eyestream.rim.config import Settings, SourceEntry
from eyestream.rim.plan import resolved
from eyestream.rim.sidecar import unserved
from eyestream.rim.sidecar.unserved import served_streams, unserved_words, watch
from eyestream.sdk.publisher import Publisher
from eyestream.streams import StreamKey
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.sidecar import settings_for

RATE_HZ = 90.0


def of_gaze(settings: Settings) -> Settings:
    return msgspec.structs.replace(settings, source=(SourceEntry("mqtt", "hmd-1", rate_hz=RATE_HZ),))


def test_a_stream_that_is_not_served_is_named_with_the_likely_one() -> None:
    served = frozenset({StreamKey("hmd-1", "features"), StreamKey("desk", "gaze")})
    heard = {StreamKey("hmd-l", "features"): 3, StreamKey("hmd-1", "features"): 9}
    [(key, words)] = unserved_words(heard, served).items()
    assert key == StreamKey("hmd-l", "features")
    assert words.endswith("; did you mean hmd-1/features")
    assert len(unserved_words({StreamKey(f"x{n}", "gaze"): 1 for n in range(100)}, served)) == 8


def test_gaze_of_a_source_and_rows_of_a_stream_are_served(tmp_path: Path) -> None:
    settings = settings_for("mqtt://localhost:1883", tmp_path, rate_hz=2.0)
    assert served_streams(resolved(settings)) == {StreamKey("hmd-1", "features")}
    assert served_streams(resolved(of_gaze(settings))) == {StreamKey("hmd-1", "gaze")}


async def test_a_mistyped_device_is_named_once(
    mosquitto: Mosquitto, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("_FIRST_S", 0.0), ("_AGAIN_S", 0.0), ("LISTEN_S", 0.3)):
        monkeypatch.setattr(unserved, name, seconds)
    plan = resolved(settings_for(mosquitto.url, tmp_path, rate_hz=2.0))
    names = plan.streams["features"].spec.names
    task = asyncio.create_task(watch(plan))
    async with (
        Publisher(mosquitto.url, "hmd-2", names, 2.0) as wrong,
        Publisher(mosquitto.url, "hmd-1", names, 2.0) as own,
    ):

        async def send() -> bool:
            await wrong.send(np.zeros((1, len(names))))
            await own.send(np.zeros((1, len(names))))
            return "hmd-2/features" in caplog.text

        for _ in range(200):
            if await send():
                break
            await asyncio.sleep(0.02)
        for _ in range(20):
            await send()
            await asyncio.sleep(0.05)
    task.cancel()
    told = [record.getMessage() for record in caplog.records if record.name == "eyestream.tracker"]
    assert len(told) == 1
    assert told[0].startswith("hmd-2/features: its messages arrive and are dropped")
    assert "; did you mean hmd-1/features" in told[0]


@pytest.mark.parametrize(("factor", "fault"), [(1.0, None), (1e3, "milliseconds")])
async def test_a_check_names_gaze_that_is_implausible(
    mosquitto: Mosquitto, tmp_path: Path, factor: float, fault: str | None
) -> None:
    plan = resolved(of_gaze(settings_for(mosquitto.url, tmp_path, rate_hz=2.0)))
    looks = asyncio.create_task(tracker_findings(plan))
    walk = np.cumsum(np.random.default_rng(1).normal(0.0, 0.3, (3000, 2)), axis=0)
    async with Publisher(mosquitto.url, "hmd-1") as publisher:
        begin = asyncio.get_running_loop().time()
        sent = 0
        while not looks.done():
            due = int((asyncio.get_running_loop().time() - begin) * RATE_HZ)
            t = begin + np.arange(sent, due) / RATE_HZ
            if len(t):
                await publisher.send_gaze(factor * t, np.column_stack([walk[sent:due] % 20.0, np.full(len(t), 3.5)]))
            sent = due
            await asyncio.sleep(0.05)
    found = {one.what: one for one in looks.result()}
    assert found["hmd-1/gaze is served, and its tracker sends"].passed
    plausible = found["gaze of hmd-1 is plausible"]
    assert plausible.passed == (fault is None)
    assert fault is None or fault in str(plausible)


async def test_that_no_tracker_sends_is_found(mosquitto: Mosquitto, tmp_path: Path) -> None:
    [found] = await tracker_findings(resolved(of_gaze(settings_for(mosquitto.url, tmp_path, rate_hz=2.0))))
    assert str(found) == "pass  no gaze of hmd-1 comes now, so nothing was checked in it"
    assert await tracker_findings(None) == []
