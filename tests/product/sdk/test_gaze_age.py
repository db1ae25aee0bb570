"""Ages of the newest and of the oldest gaze in a chunk, from what every application is told and from nothing else."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.rim.plan import StreamPlan, load
from eyestream.sdk.subscriber import subscribe
from eyestream.wire.release import PrivateChunk, encode_meta, encode_private
from eyestream_lab.testing.clocks import PATIENCE_S
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.spoken import speaking_to
from tests.rigs.tile_stream import planned

PLANS = ("usual", "asked", "features", "gaze")


def plan_of(name: str, folder: Path) -> StreamPlan:
    """A stream as `init` writes it, or of a tracker whose profile makes rows reach further back."""
    if name in ("features", "gaze"):
        return planned(folder).streams[name]
    asked = ("--features", "blink_rate") if name == "asked" else ()
    main(["init", str(folder / "conf"), *asked])
    return load(folder / "conf" / "sidecar.toml").streams["features"]


@pytest.mark.parametrize("name", PLANS)
async def test_both_ages_are_told(name: str, tmp_path: Path, mosquitto: Mosquitto) -> None:
    """The second chunk comes 0.25 s later than the first did; its oldest gaze is that of its first row's window."""
    stream, now = plan_of(name, tmp_path), 1000.0
    meta, spec, n = stream.meta, stream.spec, stream.mechanism.n
    values, dt = np.zeros((len(meta.names), meta.n), np.float32), 1 / meta.rate_hz
    async with (
        speaking_to(mosquitto.url) as speaker,
        subscribe(mosquitto.url, "hmd-1", clock=lambda: now) as chunks,
    ):
        await speaker.say("meta", encode_meta(meta))
        for index, late in enumerate((0.0, 0.25)):
            now = 1000.0 + index * stream.chunk_s + late
            chunk = PrivateChunk(7, index, index * stream.chunk_s, dt, values, meta.epsilon, meta.delta)
            await speaker.say("private", encode_private(chunk))
            got = await asyncio.wait_for(anext(chunks), PATIENCE_S)
    assert got.latency_s == pytest.approx(0.25, abs=0.01)
    assert got.oldest_gaze_s is not None
    reach = (n - 1) / spec.rate_hz + spec.window_s + spec.memory_s  # back from the last row, at which the chunk closes
    found = got.oldest_gaze_s - got.latency_s
    assert reach - 1e-3 <= found <= reach + (dt if meta.n == 1 else 0.0) + 0.01


def test_they_are_as_the_pages_say(tmp_path: Path) -> None:
    usual, asked = plan_of("usual", tmp_path / "a"), plan_of("asked", tmp_path / "b")
    assert (usual.mechanism.n - 1) / usual.spec.rate_hz + usual.spec.window_s == 61.5  # docs/costs.md
    assert asked.chunk_s + asked.spec.window_s == 62.0  # README.md
