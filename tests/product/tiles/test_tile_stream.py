"""Coarse gaze as a stream: from samples of a tracker through chunking, ledger, wire and sdk, beside the features."""

import asyncio
import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eyestream
from eyestream.core.charge import EPSILON_UNITS
from eyestream.core.mechanisms import build
from eyestream.core.mechanisms.tile.mechanism import OUTPUT
from eyestream.core.tiles.reader import TileCode, WordReader
from eyestream.errors import CalibrationError, ConfigError
from eyestream.rim.ledger.reading import create_ledger, read_ledger
from eyestream.rim.sidecar.assembly import assemble
from eyestream.rim.sources import registry
from eyestream.sdk.subscriber import Chunk, subscribe
from eyestream_lab.calibration.tiles import tile_calibration
from eyestream_lab.hindsight import hindsight
from eyestream_lab.testing.clocks import until
from eyestream_lab.testing.mechanisms import check_any_input, check_frozen, check_life, check_sessions, some_chunks
from eyestream_lab.testing.noise import SeededNoise
from tests.product.tiles import worlds
from tests.rigs.fast_gaze import SPEED
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.pages import body_of, code_of
from tests.rigs.sidecar import at_work
from tests.rigs.spy import spying
from tests.rigs.tile_stream import DEVICE, EPSILON, PROFILE, STAY_S, planned


def test_a_plan_of_coarse_gaze(tmp_path: Path) -> None:
    stream = planned(tmp_path).streams["gaze"]
    assert (stream.spec.features, stream.spec.rate_hz, stream.chunk_s) == (1009, 1.0, 1.0)
    assert stream.spec.memory_s == PROFILE.live_reach_s
    assert (stream.meta.names, stream.meta.units) == (tuple(OUTPUT), tuple(OUTPUT.values()))
    assert (stream.meta.n, stream.meta.rate_hz, len(stream.meta.noise_sd), stream.meta.mechanism) == (1, 1, 5, "tile")
    assert stream.touched == 3  # a window of 1 s and what live samples reach begin in one slot and end two further


def test_the_guarantee_says_what_a_slot_and_any_time_cost_and_what_it_is_for(tmp_path: Path) -> None:
    made = planned(tmp_path).streams["gaze"].guarantee
    said = dict(made.sentences())
    assert said["claim"].startswith("6-differential privacy (pure) for the gaze of one slot of 1 s of one device")
    assert said["slot"] == "epsilon 6"
    assert "epsilon 18 in any 1 s, epsilon 24 in any 2 s" in said["any time"]
    assert "cost one slot more than those of a recording" in said["any time"]
    assert "regions of interest, dwell time" in said["use"]
    assert "not for selecting things by gaze, and not for foveated rendering" in said["use"]
    assert "1009" not in made.text()
    told = json.loads(json.dumps(made.claim()))
    assert told["loss"]["unit"] == "slot"
    assert told["epsilon_in_any"] == {"1": 18.0, "2": 24.0, "10": 72.0, "60": 372.0, "3600": 21612.0}
    assert "foveated" in told["use"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('front_end = "slots"', 'front_end = "features-52"', "the stream has 52 features, the calibration 1009"),
        ('mechanism = "tile"', 'mechanism = "klt"', "klt is klt, and the calibration is one of tile"),
        ('"everyday-tile"', '"everyday-tiles"', "kaleido-r2; did you mean everyday-tile?"),
        ("epsilon = 6.0", "epsilon = 200.0", "epsilon of a slot: expected 0.01 to 100, not 200"),
        ("epsilon = 6.0", "epsilon = 0.0099", "epsilon of a slot: expected 0.01 to 100, not 0.0099"),
    ],
)
def test_what_does_not_fit_is_said_in_a_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises((ConfigError, CalibrationError)) as caught:
        planned(tmp_path, changed=(old, new))
    assert said in str(caught.value)


@pytest.mark.parametrize("border", [0.01, 100.0])
def test_the_borders_that_are_said_can_be_taken(tmp_path: Path, border: float) -> None:
    stream = planned(tmp_path, changed=("epsilon = 6.0", f"epsilon = {border}")).streams["gaze"]
    assert stream.mechanism.epsilon == pytest.approx(border, rel=1e-11)


async def test_gaze_and_features_of_one_tracker_go_all_the_way_under_one_budget(
    mosquitto: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Until the session's ceiling withholds both, with the application of the page beside. Words alone decide the
    gaze, and lost slots are words.
    """
    monkeypatch.setattr(registry, "HOST_SPEED", SPEED)
    plan = planned(tmp_path, mosquitto.url, session=300.0)
    create_ledger(plan.settings.sidecar.ledger, created=0)
    heard: list[Chunk] = []
    with assemble(plan, lambda: 20_000) as made:
        page = code_of("docs/coarse-gaze.md").replace("mqtt://localhost", mosquitto.url)
        async with spying(mosquitto.url) as spy, at_work(made.sidecar):
            beside = asyncio.create_task(body_of(page, {"eyestream": eyestream}))
            async with subscribe(mosquitto.url, DEVICE, stream="gaze") as chunks:
                async with asyncio.timeout(60):
                    async for chunk in chunks:
                        heard.append(chunk)
                        if len(spy.leaf("private")) >= 1 and len(heard) >= 40:
                            break
            await until(lambda: made.sidecar.pipeline.counters.withheld["session"] > 0)
            await until(lambda: len(made.sidecar.outbox) == 0)
            beside.cancel()
        released = {"features": len(spy.leaf("private")), "gaze": len(spy.leaf("private", stream="gaze"))}
        assert {chunk["dt"] for chunk in spy.leaf("private", stream="gaze")} == {1.0}
    assert re.search(r"^\[\S+\] \[\[ *\S+ +\S+\]\] \[\S+\]$", capsys.readouterr().out, re.M)  # one slot
    assert all((chunk.gaze.shape, chunk.gaze_error.shape, chunk.epsilon) == ((1, 2), (1,), EPSILON) for chunk in heard)
    times = np.concatenate([chunk.times for chunk in heard])
    np.testing.assert_allclose(np.diff(times), 1.0, atol=1e-6)
    reader = WordReader(TileCode(plan.streams["gaze"].mechanism.core.tiles, EPSILON))  # type: ignore[attr-defined]
    for chunk in heard:
        read = reader.take(int(chunk.values[4, 0]))
        np.testing.assert_array_equal(
            chunk.values[:4, 0], np.array([read.x_deg, read.y_deg, read.error_deg, read.lost], np.float32)
        )
    lost = np.array([float(chunk.values[3, 0]) > 0.5 for chunk in heard])
    truly = np.floor((times - 0.5) / STAY_S).astype(int) % 4 == 3
    assert (lost == truly)[3:].mean() > 0.6  # of 37 slots; a word is kept with probability .93
    odometer = read_ledger(plan.settings.sidecar.ledger).odometers[DEVICE]
    assert {name: own.released for name, own in odometer.streams.items()} == released
    assert odometer.epsilon == round((4.8 * released["features"] + 6.0 * released["gaze"]) * EPSILON_UNITS)
    assert 300.0 - 6.0 < odometer.session_epsilon / EPSILON_UNITS <= 300.0


def small(epsilon: float = 2.0, seed: int | None = None) -> Any:
    made = tile_calibration(worlds.calibration(), 2)
    return build(made, epsilon, noise=None if seed is None else SeededNoise(seed))


def test_the_mechanism_keeps_what_every_mechanism_must() -> None:
    chunks = [chunk[:, None].astype(np.float64) for chunk in worlds.walk(worlds.SMALL, 6, 5)]
    check_any_input(small())
    check_frozen(small(), chunks)
    check_sessions(lambda: small(seed=7), chunks)
    check_life(small(8.0), levels=3)
    assert len(some_chunks(small(), 1)[0]) == worlds.SMALL.cells + 1


def test_the_mechanism_releases_what_the_tile_session_releases() -> None:
    """One response: the same draws give the same words, live and by hindsight."""
    content = worlds.walk(worlds.SMALL, 30, 9)
    ours, theirs = small(seed=3), worlds.TileResponse(worlds.calibration(), 2.0, noise=SeededNoise(3))
    session, states, words = ours.session(), [], []
    one = theirs.session()
    for slot in content:
        word, gaze = one.release(slot)
        released = session.release(slot[:, None].astype(np.float64))[:, 0]
        assert released.tolist() == [gaze.x_deg, gaze.y_deg, gaze.error_deg, gaze.lost, word]
        states.append(session.state)
        words.append(word)
    later = np.array([page[:2, 0] for page in hindsight(ours, states)])
    np.testing.assert_array_equal(later, [(gaze.x_deg, gaze.y_deg) for gaze in theirs.hindsight(words)])
    assert ours.loss.epsilon == Fraction(2)
