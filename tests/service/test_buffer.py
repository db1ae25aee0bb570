"""The buffer between client and consumer: bounded, oldest dropped, counted."""

import asyncio

from eyestream.rim.buffer import DropOldest


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
    assert await asyncio.wait_for(waiting, 1) == 7


async def test_a_cancelled_consumer_takes_nothing() -> None:
    buffer: DropOldest[int] = DropOldest(3)
    waiting = asyncio.create_task(buffer.get())
    await asyncio.sleep(0)
    buffer.put(7)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert buffer.take() == 7
    assert buffer.take() is None
