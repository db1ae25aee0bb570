"""A front end from outside the package, one category a slot, beside the 52 features of the same gaze."""

import asyncio
import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from thirds import EDGE_DEG, THIRDS

from eyestream.core.charge import EPSILON_UNITS
from eyestream.core.mechanisms import build
from eyestream.errors import ConfigError, OperatorError
from eyestream.gaze.profile import Profile
from eyestream.gaze.samples import Samples
from eyestream.rim import config
from eyestream.rim.files import calibrations, profiles
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.ledger.reading import create_ledger, read_ledger
from eyestream.rim.plan import Plan, load, resolved
from eyestream.rim.sidecar.assembly import assemble
from eyestream.rim.sources import registry
from eyestream.rim.sources.gaze import GazeFeeder
from eyestream.sdk.subscriber import subscribe
from eyestream.streams import StreamKey
from eyestream_lab.testing.clocks import until
from tests.rigs.fast_gaze import RATE_HZ, SPEED, fast_tracker
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.noise import any_noise_taken
from tests.rigs.relay import LOST, Relay
from tests.rigs.sidecar import at_work
from tests.rigs.spy import spying

DEVICE = "hmd-1"
THIRD_S = 3.0
"""The eye goes to the next third after so long; every fourth stay it is lost."""


def gaze_at(t: np.ndarray[Any, Any]) -> Samples:
    """Three seconds left, three in the middle, three right, three lost, and again."""
    stay = np.floor((t + 0.001) / THIRD_S).astype(int) % 4
    x = np.choose(stay, [-20.0, 0.0, 20.0, math.nan])
    return Samples.of(t, x, np.zeros(len(t)), valid=stay != 3)


def words(t: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Of the slots that end at the times `t`, which are multiples of half a second after the first sample, at 0."""
    stay = np.floor((t - 0.25) / THIRD_S).astype(int) % 4
    return np.where(stay == 3, LOST, stay)


MADE: list[Profile] = []
TRACKER = fast_tracker(gaze_at, MADE)

TEXT = """
[private]
url = "{url}"
[[device]]
id = "hmd-1"
[[source]]
kind = "tests.product.sources.test_two_front_ends:TRACKER"
rate_hz = 100.0
streams = ["features", "third"]
[[stream]]
name = "features"
[stream.privacy]
calibration = "everyday-cfpa-32"
epsilon = 4.8
[[stream]]
name = "third"
schema = 2
front_end = "{front_end}"
[stream.privacy]
calibration = "everyday-cfpa-32"
epsilon = 0.5
[budget]
session_epsilon = {session}
"""


def planned(folder: Path, url: str = "mqtt://localhost", session: float = 1152.0) -> Plan:
    path = folder / "sidecar.toml"
    path.write_text(TEXT.format(url=url, session=session, front_end="thirds:THIRDS"))
    features: Any = build(calibrations.load("everyday-cfpa-32"), 4.8)
    third: Any = Relay(0.5, THIRDS.names)
    return resolved(config.load(path), folder, mechanisms={"features": features, "third": third})


def test_a_plan_has_a_front_end_for_each_stream_and_one_tracker_for_both(tmp_path: Path) -> None:
    plan, before = planned(tmp_path), len(MADE)
    features, third = plan.streams["features"], plan.streams["third"]
    assert (len(features.spec.names), features.spec.window_s, features.chunk_s) == (52, 30.0, 16.0)
    assert (third.spec.names, third.spec.units, third.spec.rate_hz, third.chunk_s) == (("third",), ("1",), 2.0, 0.5)
    profile = load_profile("degrees").at_rate(RATE_HZ)
    assert third.spec.memory_s == profile.live_reach_s < features.spec.memory_s == profile.memory_s
    assert third.touched == math.ceil(2.0 * (0.5 + 1.0 + profile.live_reach_s)) == 4
    sources = plan.sources()
    assert len(MADE) == before + 1
    feeders = [sources[StreamKey(DEVICE, name)] for name in ("features", "third")]
    assert all(isinstance(feeder, GazeFeeder) for feeder in feeders)
    assert feeders[0].link is feeders[1].link  # type: ignore[union-attr]
    assert {mark.front_end for _, mark in features.marks} != {mark.front_end for _, mark in third.marks}


def test_a_profile_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many streams and sources ask for it: what the plan says of the memory holds of the rows that come."""
    read = []
    monkeypatch.setattr(profiles, "load_profile", lambda name: read.append(name) or load_profile(name))
    plan = planned(tmp_path)
    sources = plan.sources()
    assert read == ["degrees"]
    for feeder in sources.values():
        assert feeder.live.profile is plan.streams["third"].parts.profiles[0]  # type: ignore[union-attr]


def test_a_source_of_two_streams_that_is_wrong_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "sidecar.toml"
    text = TEXT.format(url="mqtt://a", session=1e3, front_end="thirds:THIRDS").replace(
        "rate_hz = 100.0", "rate_hz = 7.0"
    )
    path.write_text(text.replace("everyday-cfpa-32", "everyday-cfpa-31", 1))
    with pytest.raises(OperatorError) as caught:
        load(path)
    source, calibration = str(caught.value).splitlines()
    assert source.startswith(f"{path}: source of hmd-1/features, third: ")
    assert calibration.startswith(f"{path}: stream 'features': ")


async def test_two_streams_of_one_tracker_go_all_the_way_under_one_budget(
    mosquitto: Mosquitto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks of one row, through chunking, release, ledger, wire and sdk, until the session's ceiling is reached."""
    monkeypatch.setattr(registry, "HOST_SPEED", SPEED)
    plan = planned(tmp_path, mosquitto.url, session=60.0)
    create_ledger(plan.settings.sidecar.ledger, created=0)
    heard: list[Any] = []
    with any_noise_taken(), assemble(plan, lambda: 20_000) as made:
        async with spying(mosquitto.url) as spy, at_work(made.sidecar):
            async with subscribe(mosquitto.url, DEVICE, stream="third") as chunks:
                async with asyncio.timeout(60):
                    async for chunk in chunks:
                        heard = [
                            one for one in heard if one.session == chunk.session
                        ]  # it may end where a machine pauses
                        heard.append(chunk)
                        if len(spy.leaf("private")) >= 1 and len(heard) >= 92:
                            break
            counters = made.sidecar.pipeline.counters
            await until(lambda: made.sidecar.pipeline.counters.withheld["session"] > 0)
            await until(lambda: len(made.sidecar.outbox) == 0)
        released = {"features": len(spy.leaf("private")), "third": len(spy.leaf("private", stream="third"))}
        assert {chunk["dt"] for chunk in spy.leaf("private", stream="third")} == {THIRDS.step_s}
    assert counters.dropped.total() == 0
    assert all((chunk.values.shape, chunk.names, chunk.epsilon) == ((1, 1), THIRDS.names, 0.5) for chunk in heard)
    t = np.array([chunk.at for chunk in heard])
    np.testing.assert_allclose(np.diff(t), 0.5, atol=1e-6)
    said = np.array([chunk.values[0, 0] for chunk in heard])
    first = round((t[0] - THIRDS.step_s) * RATE_HZ)  # the session's first sample
    wanted = THIRDS.make(PROFILE, 60.0, None).feed(gaze_at(np.arange(first, first + 6_000) / RATE_HZ))
    missed = said != np.nan_to_num(wanted.values[: len(said), 0], nan=LOST)
    assert missed.sum() <= 8  # where a machine pauses, gaze comes late, and is lost
    assert (said[missed] == LOST).all()
    assert set(said) == {0.0, 1.0, 2.0, LOST}
    odometer = read_ledger(plan.settings.sidecar.ledger).odometers[DEVICE]
    assert {name: (own.chunk, own.released) for name, own in odometer.streams.items()} == {
        "features": (32, released["features"]),
        "third": (1, released["third"]),
    }
    assert released["features"] >= 1
    assert odometer.epsilon == round((4.8 * released["features"] + 0.5 * released["third"]) * EPSILON_UNITS)
    assert 60.0 - 4.8 < odometer.session_epsilon / EPSILON_UNITS <= 60.0


PROFILE = load_profile("degrees").at_rate(RATE_HZ)


def test_a_row_is_the_third_with_most_of_the_gaze() -> None:
    whole = THIRDS.make(PROFILE, 60.0, None).feed(gaze_at(np.arange(3_001) / RATE_HZ))
    np.testing.assert_array_equal(np.nan_to_num(whole.values[:, 0], nan=LOST), words(whole.t))


@pytest.mark.parametrize(
    ("front_end", "said"),
    [
        (
            "features-25",
            "'features-25' is none of features-52, not that of the calibration, and no place (package.module:NAME); ",
        ),
        ("thirds:HALVES", "there is no 'thirds:HALVES' to import"),
        ("thirds:EDGE_DEG", "'thirds:EDGE_DEG' is no FrontEndEntry"),
    ],
)
def test_a_front_end_that_is_none_is_named(tmp_path: Path, front_end: str, said: str) -> None:
    (path := tmp_path / "sidecar.toml").write_text(TEXT.format(url="mqtt://a", session=1e3, front_end=front_end))
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert f"{path}: stream 'third': [[stream]] front_end: {said}" in str(caught.value)


def test_a_calibration_of_other_rows_is_refused_for_a_front_end(tmp_path: Path) -> None:
    (path := tmp_path / "sidecar.toml").write_text(TEXT.format(url="mqtt://a", session=1e3, front_end="thirds:THIRDS"))
    with pytest.raises(ConfigError, match=r"stream 'third': the stream has 1 features, the calibration 52"):
        load(path)


def test_a_source_of_rows_serves_one_stream(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    (entry,) = plan.settings.source
    rows = msgspec.structs.replace(entry, kind="sine:SINE", rate_hz=None)
    streams = [(stream.spec, None) for stream in plan.streams.values()]
    with pytest.raises(ConfigError, match="is a source of rows, and serves one stream"):
        registry.make_sources(registry.named_source(rows), streams, tmp_path, plan.settings.raw_broker)


def test_the_edges_of_the_field() -> None:
    t = np.arange(101) / RATE_HZ
    for x, third in ((-EDGE_DEG - 0.1, 0.0), (-EDGE_DEG + 0.1, 1.0), (EDGE_DEG + 0.1, 2.0)):
        rows = THIRDS.make(PROFILE, 60.0, None).feed(Samples.of(t, np.full(101, x), np.zeros(101)))
        assert rows.values.tolist() == [[third], [third]]
