"""Kaleido as a stream: from a tracker through chunking, ledger, wire and sdk, beside the features, under one budget."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from eyestream.core.charge import EPSILON_UNITS
from eyestream.core.mechanisms import build
from eyestream.rim.ledger.reading import create_ledger, read_ledger
from eyestream.rim.plan import load
from eyestream.rim.sidecar.assembly import assemble
from eyestream.rim.sources import registry
from eyestream.sdk.subscriber import Chunk, subscribe
from eyestream_lab.kaleido import Settings
from eyestream_lab.kaleido_live.tables import calibration_of
from eyestream_lab.testing.clocks import until
from eyestream_lab.testing.mechanisms import check_any_input, check_frozen, check_life, check_sessions, some_chunks
from eyestream_lab.testing.noise import SeededNoise
from tests.rigs.fast_gaze import SPEED
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.sidecar import at_work
from tests.rigs.spy import spying
from tests.rigs.tile_stream import DEVICE, TEXT

EPSILON, CEILING, W = 360.5, 50_000.0, 50


async def test_samples_and_features_of_one_tracker_go_all_the_way_under_one_budget(
    mosquitto: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the session's ceiling withholds both."""
    monkeypatch.setattr(registry, "HOST_SPEED", SPEED)
    text = TEXT.format(url=mosquitto.url, session=CEILING).replace('"slots"', '"places"')
    text = text.replace('"everyday-tile"\nmechanism = "tile"\nepsilon = 6.0', f'"kaleido-r2"\nepsilon = {EPSILON}')
    text = text.replace("[budget]\n", "[budget]\nday_epsilon = 1e6\n")
    (tmp_path / "sidecar.toml").write_text(text)
    plan = load(tmp_path / "sidecar.toml")
    create_ledger(plan.settings.sidecar.ledger, created=0)
    heard: list[Chunk] = []
    with assemble(plan, lambda: 20_000) as made:
        async with spying(mosquitto.url) as spy, at_work(made.sidecar):
            async with subscribe(mosquitto.url, DEVICE, stream="gaze") as chunks, asyncio.timeout(90):
                async for chunk in chunks:
                    heard.append(chunk)
                    if len(spy.leaf("private")) >= 1 and len(heard) >= 20:
                        break
            await until(lambda: made.sidecar.pipeline.counters.withheld["session"] > 0, 60)
            await until(lambda: len(made.sidecar.outbox) == 0)
        features = spy.leaf("private")
        released = {"features": len(features), "gaze": len(spy.leaf("private", stream="gaze"))}
    assert all(
        (chunk.gaze.shape, chunk.epsilon, chunk.names[2:]) == ((W, 2), EPSILON, ("tested", "spent")) for chunk in heard
    )
    heard = [chunk for chunk in heard if chunk.session == heard[-1].session]  # a machine that pauses may end the first
    gaze, times = (np.concatenate([getattr(chunk, name) for chunk in heard]) for name in ("gaze", "times"))
    np.testing.assert_allclose(np.diff(times), 0.01, atol=1e-6)
    assert (heard[0].index, features[0]["chunk"]) == (0, 0)
    assert features[0]["at"] - times[0] == pytest.approx(30.0 - 0.01, abs=1e-3)  # first window's end, first place's end
    assert (np.abs(gaze) <= (30.0, 20.0)).all()
    assert len(np.unique(gaze, axis=0)) > len(heard) / 4
    odometer = read_ledger(plan.settings.sidecar.ledger).odometers[DEVICE]
    assert {name: own.released for name, own in odometer.streams.items()} == released
    assert odometer.epsilon == round((4.8 * released["features"] + EPSILON * released["gaze"]) * EPSILON_UNITS)
    assert CEILING - EPSILON < odometer.session_epsilon / EPSILON_UNITS <= CEILING


def small(epsilon: float = 8.0, seed: int | None = None):
    made = calibration_of(Settings(w=6, skip=2, r_deg=20.0), 60.0)
    return build(made, epsilon, noise=None if seed is None else SeededNoise(seed))


def test_the_mechanism_keeps_what_every_mechanism_must() -> None:
    chunks = some_chunks(small(), 6)
    assert chunks[0].shape == (18, 1)
    check_any_input(small())
    check_frozen(small(), chunks)
    check_sessions(lambda: small(seed=7), chunks)
    check_life(small(), levels=3)
