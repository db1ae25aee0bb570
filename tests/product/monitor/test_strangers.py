"""Whatever stands at the topics of a stream, the page goes on, and counts what it cannot show."""

import asyncio
import contextlib
import json
import math
import random
import time
from collections.abc import Iterator
from typing import Any

import aiohttp
import msgpack
import numpy as np
import pytest

from eyestream.cli.devices import _as_json, _as_words
from eyestream.cli.ledger_words import budget_words
from eyestream.cli.monitor import monitoring
from eyestream.monitor.frames import MOST_FEATURES
from eyestream.monitor.watch import Watch
from eyestream.rim.config import BrokerSettings
from eyestream.rim.mqtt.transport import Message
from eyestream.sdk.chunks import Chunks
from eyestream.sdk.discovery import Found
from eyestream.wire import topics
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.spoken import speaking_to

pytestmark = pytest.mark.filterwarnings("error")

DEVICE = "hmd-1"
HOSTILE: tuple[Any, ...] = (
    *(math.inf, -math.inf, math.nan, 5e-324, -5e-324, 1e-308, 1e308, -1e308, 1.7976931348623157e308, 0.0, -0.0, -1.0),
    *(1e15, 1.0000001e15, 1e-9, 3.5e38, 2.0**63, 0, 1, -1, 2**31, 2**53 + 1, 2**63, 2**64 - 1, -(2**63)),
    *(None, True, "", "NaN", "Infinity", b"", b"\xff\xff\x7f\x7f" * 2, b"\x00\x00\xc0\x7f" * 2, [], [0], [2**64 - 1]),
)
GOOD: dict[str, dict[str, Any]] = {
    "meta": {
        "v": 1,
        "names": ["a", "b"],
        "units": ["1", "1"],
        "rate_hz": 2.0,
        "n": 4,
        "mechanism": "cfpa",
        "k": [1, 1],
        "epsilon": 1.5,
        "delta": 0.0,
        "noise_sd": np.full(2, 0.5, "<f4").tobytes(),
        "guarantee": "words",
        "calibration": "00",
    },
    "status": {"v": 1, "state": "online", "reason": "ready"},
    "budget": {"v": 1, "chunks": 3600, "ceiling": "session", "resumes_at": 1_800_000_000},
    "private": {
        "v": 1,
        "session": 9,
        "chunk": 0,
        "t0": 0.0,
        "dt": 0.5,
        "shape": [2, 4],
        "values": np.arange(8, dtype="<f4").tobytes(),
        "epsilon": 1.5,
        "delta": 0.0,
        "at": 5.0,
    },
}
TOPIC = {
    "meta": topics.meta_topic(DEVICE),
    "status": topics.status_topic(DEVICE),
    "budget": topics.budget_topic(DEVICE),
    "private": topics.private_topic(DEVICE),
}


def strange() -> Iterator[tuple[str, bytes]]:
    """Every field of every message with every hostile value."""
    for leaf, fields in GOOD.items():
        for name in fields:
            for value in HOSTILE:
                yield leaf, msgpack.packb(fields | {name: value})


STRANGE = list(strange())


def refuse_constant(word: str) -> float:
    raise AssertionError(f"{word} is no JSON")


def read(frame: str) -> dict[str, Any]:
    """A frame as a browser reads it."""
    told: dict[str, Any] = json.loads(frame, parse_constant=refuse_constant)
    return told


class Page:
    """What a page is sent of one stream, without a broker."""

    def __init__(self) -> None:
        self.watch = Watch(BrokerSettings("mqtt://127.0.0.1:1"))
        self.found = Found(DEVICE, topics.FEATURE_STREAM)
        self.chunks = Chunks(DEVICE, 64)

    async def hear(self, leaf: str, payload: bytes) -> None:
        """A message, as the two links of the watch hear it, and all frames that follow."""
        self.found.note(leaf, payload)
        self.chunks._deliver(Message(TOPIC[leaf], payload, retain=leaf != "private"))
        self.watch._note(self.found)
        for one in self.watch._followed.values():
            one.chunks = self.chunks
            self.watch._describe(one, self.chunks)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0):
                    await self.watch._take(one, self.chunks)

    def frames(self) -> list[dict[str, Any]]:
        """What a page that opens now is sent first; and what the commands print of the same is printed."""
        _as_words(self.found, time.monotonic())
        json.loads(_as_json(self.found, time.monotonic()), parse_constant=refuse_constant)
        meta, budget = self.chunks.meta, self.chunks.budget
        if meta is not None and budget is not None:
            budget_words(budget, meta.n / meta.rate_hz, time.time())
        return [read(frame) for frame in self.watch._snapshot()]


async def test_any_message_of_a_stranger_leaves_the_page_alive() -> None:
    """Each of them between good ones: the next good chunk is shown, and the strange one is shown or counted."""
    for leaf, payload in STRANGE:
        page = Page()
        for kind in ("meta", "status", "budget"):
            await page.hear(kind, msgpack.packb(GOOD[kind]))
        await page.hear(leaf, payload)
        page.frames()
        await page.hear("meta", msgpack.packb(GOOD["meta"]))
        await page.hear("private", msgpack.packb(GOOD["private"] | {"session": 77, "chunk": 5}))
        sent = page.frames()
        assert [frame["index"] for frame in sent if frame["kind"] == "chunk"][-1] == 5


async def test_any_two_messages_of_strangers_leave_the_page_alive() -> None:
    rng = random.Random(13)
    for _ in range(600):
        page = Page()
        for leaf, payload in rng.sample(STRANGE, 6):
            await page.hear(leaf, payload)
        await page.hear("private", msgpack.packb(GOOD["private"]))
        page.frames()


@pytest.mark.parametrize(
    ("leaf", "fields"),
    [
        ("meta", {"epsilon": math.inf}),
        ("meta", {"rate_hz": 5e-324}),
        ("meta", {"rate_hz": math.inf}),
        ("meta", {"n": 2**63, "rate_hz": 1.0}),
        ("private", {"epsilon": math.inf}),
        ("private", {"dt": 1e308}),
        ("private", {"dt": math.nan}),
        ("private", {"t0": 1e300}),
        ("private", {"at": math.inf}),
    ],
)
async def test_a_number_that_no_stream_has_is_refused_and_counted(leaf: str, fields: dict[str, float]) -> None:
    page = Page()
    await page.hear("meta", msgpack.packb(GOOD["meta"]))
    await page.hear(leaf, msgpack.packb(GOOD[leaf] | fields))
    (state,) = (frame for frame in page.frames() if frame["kind"] == "state")
    assert state["refusals"] == {"range": 1}


async def test_a_stream_whose_description_cannot_be_read_is_listed_and_counted() -> None:
    page = Page()
    await page.hear("meta", b"\xc1")
    await page.hear("status", msgpack.packb(GOOD["status"]))
    page.chunks.refusals["not_msgpack"] = 1  # its own link hears the retained message when it is followed
    page.chunks.connected = True
    (state,) = page.frames()
    assert state["headline"] == ["the stream is not described: nothing can be shown", True]
    assert state["refusals"] == {"not_msgpack": 1}


async def test_what_is_too_large_to_show_is_counted() -> None:
    count = MOST_FEATURES + 1
    names = [f"f{i}" for i in range(count)]
    noise = np.ones(count, "<f4").tobytes()
    page = Page()
    await page.hear("meta", msgpack.packb(GOOD["meta"] | {"names": names, "units": names, "noise_sd": noise}))
    values = {"shape": [count, 1], "values": noise}
    await page.hear("private", msgpack.packb(GOOD["private"] | values))
    (state,) = page.frames()
    assert state["refusals"] == {"oversize": 1}
    await page.hear("meta", msgpack.packb(GOOD["meta"]))
    long = {"chunk": 1, "shape": [2, 100_000], "values": np.full(200_000, -1.2345e-20, "<f4").tobytes()}
    await page.hear("private", msgpack.packb(GOOD["private"] | long))
    *_, state = page.frames()
    assert state["refusals"] == {"oversize": 2}


@pytest.mark.needs("mosquitto")
async def test_the_page_lives_while_strangers_publish(mosquitto: Mosquitto) -> None:
    """Retained and live, at a stream of its own; another stream's chunks go on coming to who reads the page."""
    async with (
        speaking_to(mosquitto.url, device="calm") as calm,
        speaking_to(mosquitto.url, device="loud") as loud,
        monitoring(BrokerSettings(mosquitto.url)) as address,
        aiohttp.ClientSession() as session,
        session.get(f"{address}events") as answer,
        asyncio.timeout(30),
    ):
        kinds = some_strange(17)
        for leaf, payload in kinds:
            await loud.say(leaf, payload)
        index, done = 0, {"chunk": False, "refused": False}
        while not all(done.values()):
            await calm.chunk(index)
            index += 1
            line = await answer.content.readline()
            if not line.startswith(b"data: "):
                continue
            frame = read(line[6:].decode())
            done["chunk"] |= frame["kind"] == "chunk" and frame["id"].startswith("calm/")
            refused = sum(frame.get("refusals", {}).values())
            done["refused"] |= frame["kind"] == "state" and frame["id"].startswith("loud/") and refused >= 3


def some_strange(seed: int) -> list[tuple[str, bytes]]:
    """Fifty strange messages, and the three that ended the page once."""
    found = random.Random(seed).sample(STRANGE, 50)
    ended = [("private", {"dt": 1e308}), ("meta", {"rate_hz": 5e-324}), ("meta", {"epsilon": math.inf})]
    return found + [(leaf, msgpack.packb(GOOD[leaf] | fields)) for leaf, fields in ended]
