"""What a parser of gaze makes of a sample does not depend on the samples of an event before it."""

import asyncio
import contextlib
import struct
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.gaze.outlets import Taking
from eyestream.rim.config import BrokerSettings
from eyestream.rim.files.gaze_columns import GazeColumns
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.mqtt.transport import Message
from eyestream.rim.sources.core import read_datum
from eyestream.rim.sources.gaze import Place
from eyestream.rim.sources.lsl import MOST_A_PULL, PORTION_S, Pulled, listen
from eyestream.rim.sources.mqtt import MqttOptions, MqttSource
from eyestream.rim.sources.neon import _Stream
from eyestream.wire.gaze import encode_gaze
from eyestream.wire.rtsp import Description
from eyestream.wire.topics import gaze_topic
from eyestream_lab.testing.clocks import simulated
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
    source = MqttSource(MqttOptions(), load_profile("mqtt").at_rate(200.0), PLACE)

    return lambda message: list(source.records_of([message], 0.0))


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


class Held:
    """What liblsl has of samples by the moments at which they came; 0 s is the loop's beginning."""

    def __init__(self, came: NDArray[np.float64], stamps: NDArray[np.float64]) -> None:
        order = np.argsort(came, kind="stable")
        self._came, self._stamps, self._taken = came[order], stamps[order], 0

    def pull(self) -> Pulled:
        """At most so many of those that came by now."""
        here = int(np.searchsorted(self._came, asyncio.get_running_loop().time(), side="right"))
        taken = self._stamps[self._taken : min(here, self._taken + MOST_A_PULL)].tolist()
        self._taken += len(taken)
        return np.zeros((len(taken), 2)), taken


def arrivals(held: Held, seconds: float) -> dict[float, float]:
    """When each sample was delivered, by its stamp."""
    found: dict[float, float] = {}

    async def life() -> None:
        loop = asyncio.get_running_loop()

        def deliver(records: GazeColumns) -> None:
            found.update(dict.fromkeys(records.time.tolist(), loop.time()))

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await listen(held.pull, Taking((0, 1), (), None, 0.6), deliver)

    simulated(life())
    return found


@pytest.mark.parametrize("more", [0, 1, 1000])
def test_when_a_sample_of_an_outlet_arrives_does_not_depend_on_other_samples(more: int) -> None:
    """During an event none come, twice as many, or a flood: all others arrive at the first tick after they came."""
    stamps = np.arange(2000) / 1000.0
    came = stamps + 0.0123
    event = (stamps >= 0.7) & (stamps < 0.95)
    usual = arrivals(Held(came, stamps), 2.5)
    other = arrivals(
        Held(
            np.concatenate((came[~event], np.repeat(came[event], more))),
            np.concatenate((stamps[~event], np.repeat(stamps[event], more))),
        ),
        2.5,
    )
    outside = stamps[~event].tolist()
    assert [other[stamp] for stamp in outside] == [usual[stamp] for stamp in outside]
    waits = np.array([usual[stamp] for stamp in stamps.tolist()]) - came
    assert waits.min() >= 0.0
    assert waits.max() <= PORTION_S + 1e-6


def test_all_that_an_outlet_sent_while_the_loop_was_busy_is_taken_in_order() -> None:
    stamps = np.arange(5 * MOST_A_PULL, dtype=np.float64)
    assert list(arrivals(Held(np.zeros(len(stamps)), stamps), 1.5 * PORTION_S)) == stamps.tolist()
