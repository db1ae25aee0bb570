"""The order of a stream's messages, whatever its share of the time."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import cast

import pytest

from eyestream.core.chunking.settings import DeviceSettings
from eyestream.rim.mqtt.messages import Message
from eyestream.rim.sidecar.pipeline import Arrival, Pipeline
from eyestream.rim.sidecar.worker import Worker
from eyestream.wire.topics import raw_topic
from eyestream_lab.testing.clocks import simulated

LENGTH = 40
SETTINGS = [
    DeviceSettings(device, "s", 1, ("f",), 5.0, 16, grace_s=1.0, idle_s=60.0, jump_chunks=4) for device in "abc"
]
TOPICS = [raw_topic(*settings.key) for settings in SETTINGS]


class Reader:
    """Stands for a pipeline: notes what it is fed, and takes time of a simulated clock for a batch."""

    waits = paused = False
    settings = SETTINGS

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.read: defaultdict[str, list[int]] = defaultdict(list)

    def next_due(self) -> None:
        """Nothing is awaited."""

    def feed(self, arrival: Arrival) -> None:
        self.read[arrival.topic].append(int(arrival.payload.rstrip(b".")))

    async def run_turn(self, arrivals: Iterable[Arrival], now: float) -> None:
        for arrival in arrivals:
            self.feed(arrival)
        await asyncio.sleep(self._rng.choice([0.0, 0.001, 0.02]))

    def close(self, now: float) -> None:
        """Nothing is open."""


Messages = dict[str, list[int]]


async def history(seed: int, most_held: int, pauses_s: Sequence[float]) -> tuple[Messages, Messages, int, int]:
    """What was sent and what was read, by stream; how many were dropped; how often a pause began."""
    rng = random.Random(seed)
    reader, sent, pauses = Reader(rng), defaultdict[str, list[int]](list), 0
    worker = Worker(cast("Pipeline", reader), LENGTH)
    pause = worker._inbox.pause

    def counted(sender: object) -> None:
        nonlocal pauses
        pauses += 1
        pause(cast("str", sender))

    worker._inbox.pause = counted  # type: ignore[method-assign]
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        for number in range(400):
            while worker.held >= most_held:  # noqa: ASYNC110  there is no event for it
                await asyncio.sleep(0.01)
            topic, rows = rng.choice(TOPICS), rng.choice([1, 1, 1, 60])  # 60 spend all that a stream may send
            sent[topic].append(number)
            worker.receive(Message(topic, b"%d" % number + bytes(140 * rows - 3).replace(b"\0", b"."), False))
            await asyncio.sleep(rng.choice(pauses_s))
        while worker.held:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        worker.stop()
    return sent, reader.read, worker.dropped, pauses


@pytest.mark.parametrize("seed", range(10))
def test_each_stream_is_read_in_order_and_whole(seed: int) -> None:
    """As a plain queue for each stream would, however shares are spent and refilled, and streams paused."""
    pauses_s = (0.0, 0.0, 0.0, 0.0, 0.002, 0.05, 1.0)  # a share is full again after 2 s
    sent, read, dropped, pauses = simulated(history(seed, LENGTH - 1, pauses_s))
    assert read == sent
    assert dropped == 0
    assert pauses > 20


@pytest.mark.parametrize("seed", range(5))
def test_of_too_many_messages_the_rest_is_read_in_order(seed: int) -> None:
    sent, read, dropped, _ = simulated(history(seed, LENGTH + 1, (*[0.0] * 60, 0.002, 0.05, 1.0)))
    assert dropped > 0
    for topic, numbers in read.items():
        assert numbers == sorted(set(numbers))
        assert set(numbers) <= set(sent[topic])
    assert sum(map(len, sent.values())) == sum(map(len, read.values())) + dropped
