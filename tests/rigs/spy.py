"""An independent reader of everything on a broker: another client and another decoder than ours."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import aiomqtt
import msgpack

__all__ = ["Spy", "spying"]


class Spy:
    """Reads every topic with another client and another decoder than ours."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, bytes, bool]] = []

    def leaf(self, leaf: str, device: str = "hmd-1", stream: str = "features") -> list[dict[str, Any]]:
        """Decoded messages of one topic, in order."""
        topic = f"eyestream/v1/{device}/{stream}/{leaf}"
        return [msgpack.unpackb(payload) for at, payload, _ in self.messages if at == topic]

    def chunks(self, device: str = "hmd-1") -> list[int]:
        """Indices of the private chunks, in order of arrival."""
        return [chunk["chunk"] for chunk in self.leaf("private", device)]

    def states(self, device: str = "hmd-1") -> list[tuple[str, str]]:
        """States and reasons that were said, in order."""
        return [(status["state"], status["reason"]) for status in self.leaf("status", device)]

    def raw(self) -> bytes:
        """All payloads of the raw topics."""
        return b"\n".join(payload for topic, payload, _ in self.messages if topic.endswith("/raw"))

    def outside_raw(self) -> bytes:
        """All that was published outside of the raw topics, topics included."""
        return b"\n".join(
            topic.encode() + b"\n" + payload for topic, payload, _ in self.messages if not topic.endswith("/raw")
        )


@contextlib.asynccontextmanager
async def spying(url: str, *topics: str) -> AsyncIterator[Spy]:
    """A spy on the broker at `url`."""
    spy = Spy()
    host, _, port = url.removeprefix("mqtt://").partition(":")

    async def read(client: aiomqtt.Client) -> None:
        async for message in client.messages:
            spy.messages.append((str(message.topic), bytes(message.payload), message.retain))

    async with aiomqtt.Client(host, int(port)) as client:
        for topic in topics or ("#",):
            await client.subscribe(topic, 1)
        task = asyncio.create_task(read(client))
        yield spy
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
