"""Those whom a broker has to bear: clients that come, half come, collide and break off, and one that floods it.

Raw MQTT 3.1.1 bytes on plain sockets. They run in processes of their own (`Strangers`), so that what they cost is not
taken for the sidecar's.
"""

import asyncio
import contextlib
import multiprocessing
import random
import socket
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from multiprocessing.queues import Queue
from types import TracebackType
from typing import Any, Self

import numpy as np

from eyestream.wire.raw import encode_raw, rows_per_message
from eyestream.wire.topics import raw_topic
from tests.rigs.listener import reset
from tests.rigs.storms import NAMES

__all__ = ["Strangers", "connect_packet", "packet", "publish_packet"]

_IDS = 100
"""Names that the comers share: most take over somebody's session."""
_PATIENCE_S = 2.0


def _field(data: bytes) -> bytes:
    return len(data).to_bytes(2, "big") + data


def packet(kind: int, body: bytes) -> bytes:
    """A packet: its first byte, its length, its body."""
    length, digits = len(body), bytearray()
    while True:
        length, digit = divmod(length, 128)
        digits.append(digit | (128 if length else 0))
        if not length:
            return bytes([kind]) + bytes(digits) + body


def connect_packet(name: str, *, will: tuple[str, bytes] | None = None) -> bytes:
    """CONNECT, clean session, keep-alive of 60 s; `will` has topic and payload."""
    flags, last_words = 2, b""
    if will is not None:
        flags, last_words = 6, _field(will[0].encode()) + _field(will[1])
    return packet(0x10, _field(b"MQTT") + bytes([4, flags, 0, 60]) + _field(name.encode()) + last_words)


def publish_packet(topic: str, payload: bytes) -> bytes:
    """PUBLISH at most once."""
    return packet(0x30, _field(topic.encode()) + payload)


async def _come(port: int, seen: Counter[str], topic: str) -> None:
    """One visit, of a random kind."""
    kind = random.choice(["whole", "subscribes", "half", "aborts", "will", "says nothing", "noise"])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        name = f"stranger-{random.randrange(_IDS)}"
        will = (topic, random.randbytes(200)) if kind == "will" else None
        hello = connect_packet(name, will=will)
        if kind == "half":
            hello = hello[: random.randrange(1, len(hello))]
        elif kind == "noise":
            hello = random.randbytes(random.randrange(1, 400))
        if kind != "says nothing":
            writer.write(hello)
        if kind in ("whole", "subscribes", "will"):
            async with asyncio.timeout(_PATIENCE_S):
                await reader.readexactly(4)
        if kind == "subscribes":
            writer.write(packet(0x82, b"\0\1" + _field(b"eyestream/v1/+/features/private") + b"\1"))
        await asyncio.sleep(random.expovariate(2.0))
        if kind in ("aborts", "will"):
            reset(writer)
        elif kind == "whole":
            writer.write(b"\xe0\0")
        seen[kind] += 1
    finally:
        writer.close()


def churn(port: int, seconds: float, connections: int, device: str, told: "Queue[Any]") -> None:
    """`connections` clients at a time, for so long; tells how many visits of each kind there were."""
    seen: Counter[str] = Counter()

    async def one() -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                await _come(port, seen, raw_topic(device))
            except (OSError, TimeoutError, asyncio.IncompleteReadError):
                seen["turned away"] += 1
                await asyncio.sleep(0.05)

    async def all_of_them() -> None:
        await asyncio.gather(*[one() for _ in range(connections)])

    asyncio.run(all_of_them())
    told.put(("visits", dict(seen)))


def flood(port: int, seconds: float, device: str, told: "Queue[Any]") -> None:
    """Messages of 64 KiB as fast as the socket takes them, each with rows nobody has seen; tells how many."""
    most = rows_per_message(len(NAMES))
    rows = np.random.default_rng(1).normal(20.0, 5.0, (most, len(NAMES))).astype(np.float32)
    sent, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as link:
            link.sendall(connect_packet("flood"))
            while time.monotonic() < end:
                link.sendall(publish_packet(raw_topic(device), encode_raw(1, sent * most, rows, 1)))
                sent += 1
    told.put(("flood messages", sent))


class Strangers:
    """Processes that come at once and are gone, at the latest, at the end of the context."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._told: Queue[Any] = self._context.Queue()
        self._at_work: list[BaseProcess] = []
        self.figures: dict[str, Any] = {}

    def send(self, work: Callable[..., None], *arguments: Any) -> None:
        """Let one at work: `churn` or `flood`."""
        process = self._context.Process(target=work, args=(*arguments, self._told), daemon=True)
        process.start()
        self._at_work.append(process)

    async def gone(self, seconds: float) -> None:
        """Wait until all are gone, and note what they tell."""
        async with asyncio.timeout(seconds):
            for _ in self._at_work:
                name, figure = await asyncio.to_thread(self._told.get)
                self.figures[name] = figure
            for process in self._at_work:
                await asyncio.to_thread(process.join)
        self._at_work.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._at_work:
            process.kill()
        self._told.close()
