"""Several streams of one device in one process: a mechanism each, one ledger, one budget."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import aiomqtt
import msgspec
import numpy as np
import pytest

from eyestream.core.charge import EPSILON_UNITS
from eyestream.rim.config import PrivacySettings, Settings, SourceEntry, StreamBudgetSettings
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.plan import resolved
from eyestream.rim.sidecar.assembly import assemble
from eyestream.sdk.publisher import Publisher
from eyestream.sdk.subscriber import subscribe
from eyestream.wire.raw import encode_raw
from eyestream.wire.topics import raw_topic
from eyestream_lab.testing.clocks import PATIENCE_S, until
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.sidecar import NO_BROKER, at_work, settings_for
from tests.rigs.spy import Spy, spying
from tests.rigs.storms import settled


def two_streams(url: str, folder: Path, **second: Any) -> Settings:
    """``features`` by CFPA in chunks of 32 rows, ``more`` by KLT in chunks of 64; epsilon 4.8 and 2.4."""
    settings = settings_for(url, folder, calibration="everyday-cfpa-32")
    (features,) = settings.stream
    other = PrivacySettings(calibration="everyday-klt-64", epsilon=2.4)
    more = msgspec.structs.replace(features, name="more", schema=2, privacy=other, **second)
    return msgspec.structs.replace(settings, stream=(features, more))


def with_budget(settings: Settings, **ceilings: float) -> Settings:
    return msgspec.structs.replace(settings, budget=msgspec.structs.replace(settings.budget, **ceilings))


async def send(url: str, stream: str, schema: int, chunks: int, n: int) -> None:
    """So many whole chunks of a session of one stream."""
    host, _, port = url.removeprefix("mqtt://").partition(":")
    async with aiomqtt.Client(host, int(port)) as tracker:
        for index in range(chunks):
            rows = rows_of_a_stranger(n, 52)
            await tracker.publish(raw_topic("hmd-1", stream), encode_raw(1, index * n, rows, schema), 1)


def both(spy: Spy, leaf: str) -> list[dict[str, Any]]:
    return [*spy.leaf(leaf), *spy.leaf(leaf, stream="more")]


async def test_each_stream_has_its_mechanism_and_both_spend_from_one_ledger(
    mosquitto: Mosquitto, tmp_path: Path
) -> None:
    settings = two_streams(mosquitto.url, tmp_path)
    with assemble(resolved(settings), lambda: 20_000) as made:
        async with spying(mosquitto.url) as spy, at_work(made.sidecar):
            await until(lambda: made.sidecar.raw_stands and made.sidecar.private_stands)
            await send(mosquitto.url, "features", 1, 4, 32)
            await send(mosquitto.url, "more", 2, 3, 64)
            await until(lambda: made.sidecar.pipeline.counters.released == 7)
            await until(lambda: len(made.sidecar.outbox) == 0 and len(both(spy, "private")) == 7)
        told = {meta["mechanism"]: (meta["n"], meta["epsilon"]) for meta in both(spy, "meta")}
        assert told == {"cfpa": (32, 4.8), "klt": (64, 2.4)}
        shapes = sorted(tuple(chunk["shape"]) for chunk in both(spy, "private"))
        assert shapes == [(52, 32)] * 4 + [(52, 64)] * 3
    odometer = read_ledger(settings.sidecar.ledger).odometers["hmd-1"]
    assert odometer.epsilon == round((4 * 4.8 + 3 * 2.4) * EPSILON_UNITS)
    assert {name: (own.chunk, own.released) for name, own in odometer.streams.items()} == {
        "features": (32, 4),
        "more": (64, 3),
    }


async def test_trackers_and_applications_name_the_stream(mosquitto: Mosquitto, tmp_path: Path) -> None:
    settings = two_streams(mosquitto.url, tmp_path)
    names = settings.stream[1].names
    with assemble(resolved(settings), lambda: 20_000) as made:
        async with (
            at_work(made.sidecar),
            subscribe(mosquitto.url, "hmd-1", stream="more", client_id="app") as more,
            subscribe(mosquitto.url, "hmd-1", client_id="app") as features,
            Publisher(mosquitto.url, "hmd-1", names, 2.0, stream="more", schema=2) as publisher,
        ):
            await until(lambda: made.sidecar.raw_stands and made.sidecar.private_stands)
            assert await publisher.send(rows_of_a_stranger(64, 52))
            async with asyncio.timeout(PATIENCE_S):
                chunk = await anext(more)
            assert (chunk.values.shape, chunk.epsilon) == ((52, 64), 2.4)
            assert "gaze event, all streams" in chunk.guarantee
            assert "releases features beside this stream" in chunk.guarantee
            assert len(features._arrived) == 0


@pytest.mark.parametrize("first", ["features", "more"])
async def test_a_ceiling_of_the_device_holds_over_both(mosquitto: Mosquitto, tmp_path: Path, first: str) -> None:
    """What one stream has spent the other cannot spend: 12 allow two chunks of 4.8 and one of 2.4, in any order."""
    settings = with_budget(two_streams(mosquitto.url, tmp_path), lifetime_epsilon=12.0)
    kinds = {"features": (1, 3, 32), "more": (2, 3, 64)}
    with assemble(resolved(settings), lambda: 20_000) as made:
        async with spying(mosquitto.url) as spy, at_work(made.sidecar):
            await until(lambda: made.sidecar.raw_stands and made.sidecar.private_stands)
            for done, stream in enumerate(sorted(kinds, key=lambda name: name != first), start=1):
                await send(mosquitto.url, stream, *kinds[stream])
                await until(lambda done=done: settled(made.sidecar) == 3 * done)
            counters = made.sidecar.pipeline.counters
            assert counters.withheld.total() > 0
            assert set(counters.withheld) == {"lifetime"}
            await until(lambda: any(status["reason"] == "lifetime" for status in both(spy, "status")))
    spent = read_ledger(settings.sidecar.ledger).odometers["hmd-1"].epsilon / EPSILON_UNITS
    assert spent <= 12.0
    assert spent > 12.0 - 4.8


async def test_a_lower_ceiling_of_one_stream_leaves_the_other_alone(mosquitto: Mosquitto, tmp_path: Path) -> None:
    settings = two_streams(mosquitto.url, tmp_path, budget=StreamBudgetSettings(day_epsilon=2.4))
    with assemble(resolved(settings), lambda: 20_000) as made:
        async with at_work(made.sidecar):
            await until(lambda: made.sidecar.raw_stands)
            await send(mosquitto.url, "more", 2, 3, 64)
            await send(mosquitto.url, "features", 1, 3, 32)
            await until(lambda: settled(made.sidecar) == 6)
            assert made.sidecar.pipeline.counters.released == 4
            assert made.sidecar.pipeline.counters.withheld == {"day": 2}


async def test_a_source_in_the_process_needs_no_raw_broker(mosquitto: Mosquitto, tmp_path: Path) -> None:
    """The rows of the example cross no broker; their chunks say the tracker's time."""
    settings = settings_for(mosquitto.url, tmp_path, raw_url=NO_BROKER, rate_hz=2.0)
    source = SourceEntry("sine:SINE", "hmd-1", options={"period_s": 5.0})
    settings = msgspec.structs.replace(settings, source=(source,))
    with assemble(resolved(settings), lambda: 20_000) as made, contextlib.suppress(TimeoutError):
        async with spying(mosquitto.url) as spy, at_work(made.sidecar):
            assert made.sidecar.raw_stands
            assert made.sidecar.links["raw"] == 0
            await until(lambda: made.sidecar.pipeline.counters.taken >= 3)
            await until(lambda: any(status["reason"] == "ready" for status in spy.leaf("status")))
    (payload,) = spy.leaf("private")[-1:]
    assert payload["shape"] == [52, 32]
    assert np.isfinite(payload["at"])
