"""A publisher's messages end at chunk borders, however its rows come; gaze goes by time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import cast

import numpy as np
import pytest

from eyestream.rim.mqtt.transport import Link, Message, connect
from eyestream.sdk.publisher import Publisher, _Carrier
from eyestream.wire import gaze, topics
from eyestream.wire.raw import decode_raw
from eyestream_lab.testing.clocks import PATIENCE_S, until
from tests.product.service.test_publish_subscribe import NAMES, endpoint, meta
from tests.rigs.mosquitto import Mosquitto

N = 4
"""Rows of a chunk, by `meta`."""


@contextlib.asynccontextmanager
async def heard(mosquitto: Mosquitto, *, described: bool = True) -> AsyncIterator[list[Message]]:
    """Every raw message, and every one of gaze; with the description of the stream at the broker, or without."""
    got: list[Message] = []
    async with connect(endpoint(mosquitto.url), client_id=None, deliver=got.append) as link:
        await link.subscribe_all([topics.raw_topic("d", "features"), topics.gaze_topic("d")], 1)
        if described:
            await link.state([(topics.meta_topic("d", "features"), meta())])
        yield got


def spans(got: list[Message]) -> list[tuple[int, int]]:
    """First row of each message, and the one after its last; the end of a session is left out."""
    found = [decode_raw(message.payload, len(NAMES), 1) for message in got]
    return [(rows.seq, rows.seq + len(rows.rows)) for rows in found if len(rows.rows)]


def rows(first: int, count: int) -> np.ndarray:
    return np.arange(first, first + count, dtype=np.float32)[:, None] * np.ones(3, np.float32)


async def publish(mosquitto: Mosquitto, pieces: list[int], *, hold: bool = True) -> list[Message]:
    async with heard(mosquitto) as got:
        async with Publisher(mosquitto.url, "d", NAMES, 2.0, hold=hold) as publisher:
            await until(lambda: publisher._chunk == (N if hold else 0))
            first = 0
            for count in pieces:
                assert await publisher.send(rows(first, count))
                first += count
        await until(lambda: bool(got) and decode_raw(got[-1].payload, 3, 1).end)
    return got


@pytest.mark.parametrize("pieces", [[1] * 10, [10], [3, 3, 3, 1], [1, 5, 4], [2, 6, 1, 1]])
async def test_messages_end_where_chunks_end(mosquitto: Mosquitto, pieces: list[int]) -> None:
    """Whatever the pieces: the first of a session goes at once, each later one ends a chunk, and the rest goes last."""
    got = await publish(mosquitto, pieces)
    found = spans(got)
    assert found[0] == (0, pieces[0])
    assert all(end % N == 0 for _, end in found[1:-1])
    assert len(found) <= 4
    assert found[-1][1] == 10
    assert all(after[0] == before[1] for before, after in pairwise(found))
    values = [decode_raw(message.payload, 3, 1).rows for message in got]
    np.testing.assert_array_equal(np.concatenate(values), rows(0, 10))


async def test_control_without_holding_each_call_is_a_message(mosquitto: Mosquitto) -> None:
    assert spans(await publish(mosquitto, [1] * 10, hold=False)) == [(i, i + 1) for i in range(10)]


async def test_without_a_description_each_call_is_a_message(mosquitto: Mosquitto) -> None:
    async with heard(mosquitto, described=False) as got, Publisher(mosquitto.url, "d", NAMES, 2.0) as publisher:
        for first in range(3):
            await publisher.send(rows(first, 1))
        await until(lambda: len(got) == 3)
    assert spans(got) == [(0, 1), (1, 2), (2, 3)]


async def test_numbers_that_are_left_out_and_times_that_begin_end_a_message(mosquitto: Mosquitto) -> None:
    async with heard(mosquitto) as got, Publisher(mosquitto.url, "d", NAMES, 2.0) as publisher:
        await until(lambda: publisher._chunk == N)
        await publisher.send(rows(0, 4))
        await publisher.send(rows(4, 1))
        await publisher.send(rows(6, 1), seq=6)
        await publisher.send(rows(7, 1), t=[3.5])
        await publisher.end_session()
        await publisher.send(rows(0, 1))
        await until(lambda: len(got) == 6)
    assert spans(got) == [(0, 4), (4, 5), (6, 7), (7, 8), (0, 1)]


async def test_no_row_waits_for_longer_than_a_session_would(mosquitto: Mosquitto) -> None:
    rate = 0.1  # 30 s are three rows
    async with heard(mosquitto) as got, Publisher(mosquitto.url, "d", NAMES, rate) as publisher:
        await until(lambda: publisher._chunk == N)
        for first in range(7):
            await publisher.send(rows(first, 1))
        await until(lambda: len(got) == 3)
    assert spans(got)[:3] == [(0, 1), (1, 4), (4, 7)]


@pytest.mark.parametrize("count", [1, 7, 40])
async def test_gaze_goes_by_time(mosquitto: Mosquitto, count: int) -> None:
    """100 Hz and 50 ms: at least six samples a message, whatever the pieces, and none is missing."""
    t = np.arange(40) / 100
    async with heard(mosquitto) as got:
        async with Publisher(mosquitto.url, "d") as publisher:
            for first in range(0, 40, count):
                await publisher.send_gaze(t[first : first + count], rows(first, len(t[first : first + count])))
        await asyncio.sleep(0.1)
    found = [gaze.decode_gaze(message.payload, {3}, 1) for message in got]
    assert all(len(times) >= 6 for times, _ in found[:-1])
    np.testing.assert_array_equal(np.concatenate([times for times, _ in found]), t)


@pytest.mark.parametrize("t", [5.0, np.nan], ids=["stands still", "is none"])
async def test_gaze_whose_clock_does_not_run_is_sent_too(mosquitto: Mosquitto, t: float) -> None:
    """The sidecar names such a clock: a publisher that waited for time to pass would hide it."""
    async with heard(mosquitto) as got, Publisher(mosquitto.url, "d") as publisher:
        for first in range(4):
            await publisher.send_gaze(t, rows(first, 1)[0])
        await until(lambda: len(got) >= 2)


async def test_messages_that_wait_for_room_when_the_link_goes_are_not_taken() -> None:
    """Three tasks hand over at once: one message is with the broker, one is next, and one waits for room."""

    class Silent:
        async def publish(self, *_: object, **__: object) -> None:
            await asyncio.Event().wait()

    async def nothing(_: Link) -> None:
        pass

    carrier = _Carrier()
    serving = asyncio.create_task(carrier.serve(cast(Link, Silent()), nothing))
    await until(lambda: carrier.stands)
    sent = [asyncio.create_task(carrier.hand_over("topic", b"rows")) for _ in range(3)]
    await until(carrier._pending.full)
    serving.cancel()
    async with asyncio.timeout(PATIENCE_S):
        assert await asyncio.gather(*sent) == [False] * 3
