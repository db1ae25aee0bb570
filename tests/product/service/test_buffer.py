"""The buffers between client and consumer: bounded, oldest dropped, counted; and one of each sender in turn."""

import asyncio
import random
from collections import Counter

import pytest

from eyestream.rim.sidecar.worker import FairQueue
from eyestream.sdk.chunks import DropOldest
from eyestream_lab.testing.clocks import PATIENCE_S


async def test_a_full_buffer_drops_its_oldest_and_counts() -> None:
    buffer: DropOldest[int] = DropOldest(3)
    for number in range(5):
        buffer.put(number)
    assert (len(buffer), buffer.dropped) == (3, 2)
    assert [await buffer.get() for _ in range(3)] == [2, 3, 4]


async def test_a_waiting_consumer_wakes_up() -> None:
    buffer: DropOldest[int] = DropOldest(3)
    waiting = asyncio.create_task(buffer.get())
    await asyncio.sleep(0)
    buffer.put(7)
    assert await asyncio.wait_for(waiting, PATIENCE_S) == 7


async def test_a_cancelled_consumer_takes_nothing() -> None:
    buffer: DropOldest[int] = DropOldest(3)
    waiting = asyncio.create_task(buffer.get())
    await asyncio.sleep(0)
    buffer.put(7)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert buffer.pop() == 7
    assert buffer.pop() is None


def taken(queue: FairQueue[str, int]) -> list[tuple[str, int]]:
    """All that is ready, with its sender."""
    return [(sender, queue.pop()) for _ in range(len(queue)) if (sender := queue.next_sender) is not None]


def test_each_sender_has_its_turn_and_its_own_order() -> None:
    queue: FairQueue[str, int] = FairQueue(10)
    for sender, item in [("a", 1), ("a", 2), ("a", 3), ("b", 4), ("c", 5), ("b", 6)]:
        assert queue.put(sender, item) is None
    assert taken(queue) == [("a", 1), ("b", 4), ("c", 5), ("a", 2), ("b", 6), ("a", 3)]
    assert (len(queue), queue.dropped, queue.next_sender) == (0, 0, None)
    with pytest.raises(KeyError):
        queue.pop()


def test_who_sends_too_many_loses_its_own_oldest_and_nobody_elses() -> None:
    queue: FairQueue[str, int] = FairQueue(4)
    queue.put("b", 0)
    assert [queue.put("a", number) for number in range(5)] == [None, None, None, "a", "a"]
    assert queue.put("b", 1) == "a"
    assert queue.dropped == 3
    assert taken(queue) == [("b", 0), ("a", 3), ("b", 1), ("a", 4)]


def test_one_sender_alone_has_all_the_room() -> None:
    queue: FairQueue[str, int] = FairQueue(4)
    assert [queue.put("a", number) for number in range(6)] == [None] * 4 + ["a", "a"]
    assert taken(queue) == [("a", 2), ("a", 3), ("a", 4), ("a", 5)]


def test_a_sender_that_is_paused_keeps_its_items_and_its_share_of_the_room() -> None:
    queue: FairQueue[str, int] = FairQueue(4)
    queue.put("a", 0)
    queue.pause("a")
    for number in range(1, 6):
        queue.put("a", number)
    queue.put("b", 9)
    assert (len(queue), queue.dropped, queue.next_sender) == (4, 3, "b")
    assert [queue.holds(sender) for sender in "abc"] == [True, True, False]
    assert taken(queue) == [("b", 9)]
    queue.resume("a")
    assert taken(queue) == [("a", 3), ("a", 4), ("a", 5)]
    queue.pause("a")
    assert [queue.holds(sender) for sender in "ab"] == [False, False]


def test_nothing_vanishes_uncounted_whatever_is_done() -> None:
    rng, queue, paused = random.Random(5), FairQueue[str, int](7), set[str]()
    put = took = 0
    last: Counter[str] = Counter()
    for number in range(1, 5000):
        sender = rng.choice("aaaaabc")
        match rng.randrange(5):
            case 0 if sender not in paused:
                queue.pause(sender)
                paused.add(sender)
            case 1 if sender in paused:
                queue.resume(sender)
                paused.remove(sender)
            case 2 if queue.next_sender is not None:
                whose = queue.next_sender
                item = queue.pop()
                assert whose not in paused
                assert item > last[whose]  # each sender's in order
                last[whose], took = item, took + 1
            case _:
                queue.put(sender, number)
                put += 1
        assert len(queue) <= 7
        assert put == took + queue.dropped + len(queue)
    assert queue.dropped > 100
