"""Core: what its data say, and Capture's hard life."""

import asyncio
import sys

import msgpack
import numpy as np
import pytest

from eyestream.errors import ConfigError, LinkError
from eyestream.gaze.intake import take_in
from eyestream.rim.config import BrokerSettings
from eyestream.rim.files.gaze_columns import GazeColumns
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.sources.core import CoreOptions, CoreSource, read_datum
from eyestream.rim.sources.gaze import Place
from eyestream_lab.testing.gaze_lives import hard_life
from tests.rigs.core import FakeCapture, datum

PLACE = Place("hmd-1", BrokerSettings("mqtt://localhost"))


@pytest.mark.long
async def test_a_hard_life() -> None:
    capture = FakeCapture()
    source = CoreSource(CoreOptions("127.0.0.1", capture.port), load_profile("core"), PLACE)
    heard = await hard_life(source, capture)
    assert source.refused["no datum"] >= 5
    assert source.refused["gaze without a point in space: use the three-dimensional calibration"] == 1
    assert heard.away[0] == "Pupil Capture was started again"


@pytest.mark.parametrize("nested", [True, False])
def test_a_datum_becomes_degrees_and_mm(nested: bool) -> None:
    records = read_datum([b"gaze.3d.01.", datum(12.5, nested=nested)])
    assert isinstance(records, GazeColumns)
    samples = take_in(load_profile("core"), records.time, records.gaze, pupil=records.pupil, valid=records.valid)
    assert samples.t[0] == 12.5
    assert samples.x[0] == pytest.approx(np.degrees(np.arctan2(10.0, 600.0)))
    assert samples.y[0] == pytest.approx(np.degrees(np.arctan2(20.0, np.hypot(10.0, 600.0))))
    assert samples.pupil_mm[0] == 3.5
    assert samples.valid[0]


@pytest.mark.parametrize("confidence", [0.59, -1.0, float("nan"), float("inf"), float("-inf")])
def test_a_datum_without_confidence_is_a_lost_eye(confidence: float) -> None:
    records = read_datum([b"gaze.3d.01.", datum(12.5, confidence=confidence)])
    assert isinstance(records, GazeColumns)
    assert records.valid is not None
    assert records.valid[0] == 0.0


def test_a_pupil_that_is_missing_or_strange_is_nan() -> None:
    told = msgpack.unpackb(datum(1.0, nested=False))
    told["base_data"] = [{"id": 1, "diameter_3d": 4.0}, {"id": "x"}, 5, None, [], {"id": 0, "diameter_3d": None}]
    records = read_datum([b"gaze.3d.01.", msgpack.packb(told)])
    assert isinstance(records, GazeColumns)
    assert records.pupil is not None
    np.testing.assert_array_equal(records.pupil, [[np.nan, 4.0]])


@pytest.mark.parametrize("answer", [b"", b"unknown", b"0", b"70000", b"123456", b"-5", "٣".encode()])
async def test_what_answers_and_is_not_capture_is_said_so(answer: bytes) -> None:
    import zmq.asyncio

    context = zmq.asyncio.Context()
    socket = context.socket(zmq.REP)
    port = socket.bind_to_random_port("tcp://127.0.0.1")

    async def speak() -> None:
        await socket.recv()
        await socket.send(answer)

    task = asyncio.create_task(speak())
    try:
        with pytest.raises(LinkError, match="is not Pupil Capture"):
            await CoreSource(CoreOptions("127.0.0.1", port), load_profile("core"), PLACE).run(lambda records: None)
        await task
    finally:
        context.destroy(0)


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zmq", None)
    with pytest.raises(ConfigError, match=r"pip install 'eyestream\[core\]'"):
        CoreSource(CoreOptions(), load_profile("core"), PLACE)
