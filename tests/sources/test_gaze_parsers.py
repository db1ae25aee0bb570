"""What a parser of gaze makes of a sample does not depend on the samples of an event before it."""

import asyncio
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from eyestream.rim.config import BrokerSettings
from eyestream.rim.files.gaze_columns import GazeColumns
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.mqtt.transport import Message
from eyestream.rim.sources.core import read_datum
from eyestream.rim.sources.gaze import Place
from eyestream.rim.sources.lsl import Options as LslOptions
from eyestream.rim.sources.lsl import _Puller
from eyestream.rim.sources.mqtt import MqttSource, Options
from eyestream.rim.sources.neon import _Stream
from eyestream.wire.messages import encode_gaze
from eyestream.wire.rtsp import Description
from eyestream.wire.topics import gaze_topic
from tests.rigs.core import datum
from tests.rigs.neon import payload_of

PLACE = Place("hmd-1", BrokerSettings("mqtt://localhost"))
HZ, KIND = 90_000, 97
Parser = Callable[[], Callable[[Any], list[GazeColumns]]]


def neon() -> Callable[[Any], list[GazeColumns]]:
    """A stream whose clock has been reported."""
    heard: list[GazeColumns] = []
    parser = _Stream("127.0.0.1", Description("", KIND, HZ), heard.append, Counter())

    def take(data: Any) -> list[GazeColumns]:
        heard.clear()
        parser.datagram_received(data, ("127.0.0.1", 1))
        return list(heard)

    take(report(0.0))
    return take


def report(t: float, source: int = 7) -> bytes:
    whole = 3_900_000_000 + t
    told = struct.pack("!IIIIII", source, int(whole), int((whole % 1) * 2**32), round(t * HZ), 1, 1)
    return struct.pack("!BBH", 0x80, 200, 6) + told


def packet(rng: np.random.Generator, t: float, source: int = 7) -> bytes:
    length = int(rng.choice([9, 17, 25, 65]))
    payload = payload_of(length, *rng.uniform(0.0, 1600.0, 2), worn=bool(rng.random() < 0.9))
    return struct.pack("!BBHII", 0x80, KIND, int(t * 200) % 2**16, round(t * HZ) % 2**32, source) + payload


def of_neon(rng: np.random.Generator, t: float, *, odd: bool) -> bytes:
    kind = rng.integers(5) if odd else 0
    wrong = [packet(rng, t), packet(rng, t, 8), packet(rng, t)[:15], b"\x80", packet(rng, t) + b"\0"]
    return wrong[kind]


def core() -> Callable[[Any], list[GazeColumns]]:
    def take(parts: Any) -> list[GazeColumns]:
        records = read_datum(parts)
        return [] if isinstance(records, str) else [records]

    return take


def of_core(rng: np.random.Generator, t: float, *, odd: bool) -> list[bytes]:
    point = None if odd and rng.random() < 0.3 else rng.normal(0.0, 300.0, 3).tolist()
    topic = bytes(rng.choice([b"gaze.3d.0.", b"gaze.3d.1.", b"gaze.3d.01."]))
    body = datum(t, float(rng.random()), point, nested=bool(rng.random() < 0.5))
    return [topic, body[: len(body) // 2] if odd and rng.random() < 0.3 else body]


def mqtt() -> Callable[[Any], list[GazeColumns]]:
    source = MqttSource(Options(), load_profile("mqtt").at_rate(200.0), PLACE)

    def take(message: Any) -> list[GazeColumns]:
        records = source._records(message)
        return [] if records is None else [records]

    return take


def of_mqtt(rng: np.random.Generator, t: float, *, odd: bool) -> Message:
    n = int(rng.integers(0, 5))
    payload = encode_gaze(np.full(n, t), rng.normal(0.0, 5.0, (n, 3)).astype(np.float32), 1)
    payload = payload[:-3] if odd and rng.random() < 0.3 else payload
    return Message(gaze_topic("hmd-1"), payload, 0, odd and bool(rng.random() < 0.3))


def same(one: list[GazeColumns], other: list[GazeColumns]) -> bool:
    def told(records: list[GazeColumns]) -> list[list[bytes | None]]:
        columns = ("time", "gaze", "pupil", "valid")
        return [[None if (c := getattr(r, name)) is None else c.tobytes() for name in columns] for r in records]

    return told(one) == told(other)


@pytest.mark.parametrize(("made", "message"), [(neon, of_neon), (core, of_core), (mqtt, of_mqtt)])
async def test_what_lies_outside_of_an_event_is_read_alike(made: Parser, message: Callable[..., Any]) -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        ordinary = [message(rng, i / 200.0, odd=False) for i in range(120)]
        if made is neon:  # the clock is told again, a little off, and once by much
            ordinary[20], ordinary[60], ordinary[90] = report(0.1005), report(0.3032), report(5.0)
        event = [message(rng, 0.2 + i / 1e3, odd=True) for i in range(int(rng.choice([0, 3, 60])))]
        one, other = made(), made()
        before = [one(part) for part in ordinary]
        after = [other(part) for part in ordinary[:40]]
        for part in event:
            other(part)
        after += [other(part) for part in ordinary[40:]]
        outside = [*range(40), *range(52, 120)]  # those between are of the event
        assert all(same(before[i], after[i]) for i in outside)
        assert sum(map(len, before)) > 60


async def test_nothing_that_was_pulled_from_an_outlet_is_pushed_out_while_the_loop_is_busy() -> None:
    heard: list[float] = []
    loop = asyncio.get_running_loop()
    profile = load_profile("lsl").at_rate(200.0)

    def deliver(records: GazeColumns) -> None:
        heard.extend(records.time.tolist())

    puller = _Puller(LslOptions("gaze"), profile, None, loop, deliver)  # type: ignore[arg-type]

    def work() -> None:
        for number in range(3000):
            puller._hand_over(GazeColumns(np.array([float(number)]), np.zeros((1, 2))))

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.2)  # noqa: ASYNC251  the loop is busy
    assert len(puller._pulled) < 100
    while thread.is_alive() or puller._pulled:  # noqa: ASYNC110  a thread has no event
        await asyncio.sleep(0.001)
    assert heard == list(map(float, range(3000)))


async def test_a_puller_that_waits_comes_to_its_end() -> None:
    puller = _Puller(LslOptions("gaze"), load_profile("lsl").at_rate(200.0), None, asyncio.get_running_loop(), print)  # type: ignore[arg-type]
    thread = threading.Thread(
        target=lambda: [puller._hand_over(GazeColumns(np.zeros(1), np.zeros((1, 2)))) for _ in range(200)]
    )
    thread.start()
    puller.stop()
    thread.join(5.0)
    assert not thread.is_alive()
