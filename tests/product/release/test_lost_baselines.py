"""Whether the eye was seen in a session's baseline shows in nothing but the mechanism's own noisy values."""

import logging

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.mechanisms import build
from eyestream.core.release.stream import Outcome, StreamRelease
from eyestream.core.reservation import Granted, Request, Withheld
from eyestream.rim.files import calibrations
from eyestream.sdk.publisher import Publisher
from eyestream.wire.raw import RawRows
from eyestream.wire.release import decode_private
from eyestream_lab.testing.noise import SeededNoise

Array = NDArray[np.float64]
CALIBRATION = calibrations.load("everyday-klt-anchored-64")
N, BASELINE = 64, 128
SETTINGS = DeviceSettings(
    id="d",
    stream="features",
    schema=1,
    names=CALIBRATION.names,
    rate_hz=2.0,
    n=N,
    grace_s=1.0,
    idle_s=60.0,
    jump_chunks=4,
)


def lived(rows: Array) -> tuple[list[Request], list[tuple[int, int]], list[bytes], dict[str, object]]:
    """What a session asks of the ledger, what is settled after which row, what is published, and what is counted."""
    stream = StreamRelease(SETTINGS, build(CALIBRATION, 4.8, noise=SeededNoise(3)), lambda: 7)
    requests, settled, payloads = list[Request](), list[tuple[int, int]](), list[bytes]()

    def note(outcome: Outcome, at: int) -> None:
        while True:
            settled.extend((at, one.span.first_row) for one in outcome.settled)
            payloads.extend(outcome.payloads)
            requests.extend(outcome.requests)
            if not outcome.requests:
                return
            outcome = stream.answer([Granted(request) for request in outcome.requests])

    for begin in range(0, len(rows), 16):
        note(stream.feed(RawRows(1, begin, rows[begin : begin + 16]), begin / 2), begin)
    counters = stream.counters
    counted = {"due": counters.due, "released": counters.released, "withheld": dict(counters.withheld)}
    return requests, settled, payloads, counted | {"dropped": dict(counters.dropped), "condition": stream.condition}


@pytest.fixture(scope="module")
def rows() -> Array:
    """Five chunks of whole numbers, each feature constant within the two of the baseline."""
    drawn = np.random.default_rng(1).integers(0, 3, (5 * N, len(CALIBRATION.names))).astype(np.float64)
    drawn[:BASELINE] = drawn[0]
    return drawn


def test_what_leaves_is_the_same_to_the_bit_where_the_mean_is(rows: Array) -> None:
    """Half of the baseline, or all but a row: the mean of a constant does not change, so nothing else may."""
    seen = lived(rows)
    assert len(seen[2]) == 3
    for kept in (BASELINE // 2, 1):
        weak = rows.copy()
        weak[kept:BASELINE] = np.nan
        assert lived(weak) == seen


def test_a_baseline_without_any_value_changes_noisy_values_alone(rows: Array, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    lost = rows.copy()
    lost[:BASELINE] = np.nan
    (asked, settled, payloads, counted), seen = lived(lost), lived(rows)
    assert (asked, settled, counted) == (seen[0], seen[1], seen[3])
    assert [len(one) for one in payloads] == [len(one) for one in seen[2]]
    for one, other in zip(payloads, seen[2], strict=True):
        here, there = decode_private(one), decode_private(other)
        assert (here.session, here.chunk, here.t0, here.epsilon) == (
            there.session,
            there.chunk,
            there.t0,
            there.epsilon,
        )
        assert np.isfinite(here.values).all()
    assert not caplog.records


def test_a_session_after_a_spent_one_shows_with_its_first_released_chunk(rows: Array) -> None:
    """Applications read the condition: a session too short to release anything, and a first row, are not in it."""
    stream = StreamRelease(SETTINGS, build(CALIBRATION, 4.8, noise=SeededNoise(3)), lambda: 7)

    def live(session: int, rows: Array) -> list[tuple[str, int]]:
        """What is said after each message, and how many chunks were released until then; the first session is spent."""
        said = list[tuple[str, int]]()
        for begin in range(0, len(rows), 16):
            message = RawRows(session, begin, rows[begin : begin + 16], end=begin + 16 == len(rows))
            outcome = stream.feed(message, 1000 * session + begin / 2)
            spent = [one.session == 1 and not one.unreleased for one in outcome.requests]
            asked = zip(outcome.requests, spent, strict=True)
            stream.answer([Withheld(one, "session") if withheld else Granted(one) for one, withheld in asked])
            said.append((stream.condition, stream.counters.released))
        return said

    assert live(1, rows[: 3 * N])[-1] == ("session", 0)
    assert live(2, rows[:BASELINE]) == [("session", 0)] * 8
    assert live(3, rows[: 3 * N]) == [("session", 0)] * 11 + [("ready", 1)]


async def test_the_tracker_knows_by_itself(rows: Array) -> None:
    names = [f"f{i}" for i in range(4)]
    publisher = Publisher("mqtt://localhost", "d", names=names, rate=2.0)
    eye = np.ones((60, 4))
    eye[:, 3] = np.nan  # no pupil: three of four values are a row with values
    gone = np.full((200, 4), np.nan)
    assert publisher.baseline_seen is None
    await publisher.send(eye)
    assert publisher.baseline_seen is None
    await publisher.send(gone[:30], seq=90)  # rows that were left out had no values
    assert publisher.baseline_seen == 0.5
    await publisher.send(eye)
    assert publisher.baseline_seen == 0.5
    await publisher.end_session()
    assert publisher.baseline_seen is None
    await publisher.send(gone)
    assert publisher.baseline_seen == 0.0
    await publisher.end_session()
    await publisher.send(eye[0], seq=119)
    assert publisher.baseline_seen == pytest.approx(1 / 120)
    assert Publisher("mqtt://localhost", "d").baseline_seen is None
