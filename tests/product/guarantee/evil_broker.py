"""A raw broker that redelivers: a few packets of MQTT 3.1.1, sent by whoever wants to average the noise away."""

import asyncio
import contextlib
import random
from collections.abc import Sequence

from tests.rigs.listener import Listener, reset

__all__ = ["EvilBroker"]

_CONNECT, _SUBSCRIBE, _PINGREQ, _PUBACK = 1, 8, 12, 4
_CONNACK_OF_A_KEPT_SESSION = b"\x20\x02\x01\x00"


class EvilBroker(Listener):
    """Sends `payloads` on `topic` to every subscriber, `times` over and in any order, as messages not acknowledged yet.

    After each round but the last the connection is reset; whatever was acknowledged before is sent again all the same,
    with the same number and the DUP flag, until `rounds` connections have had it.
    """

    def __init__(self, topic: str, payloads: Sequence[bytes], *, times: int, rounds: int, seed: int) -> None:
        super().__init__()
        self._topic, self._payloads, self._times, self._rounds = topic, payloads, times, rounds
        self._random = random.Random(seed)
        self.sent = 0
        self.acknowledged = 0
        self.done = asyncio.Event()
        """All rounds are over; the last connection stays up."""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                kind, body = await _packet(reader)
                if kind == _CONNECT:
                    writer.write(_CONNACK_OF_A_KEPT_SESSION)
                elif kind == _SUBSCRIBE:
                    writer.write(b"\x90\x03" + body[:2] + b"\x01")
                    await self._redeliver(writer)
                elif kind == _PINGREQ:
                    writer.write(b"\xd0\x00")
                elif kind == _PUBACK:
                    self.acknowledged += 1
                await writer.drain()
        writer.close()

    async def _redeliver(self, writer: asyncio.StreamWriter) -> None:
        """One round."""
        if self._rounds == 0:
            return
        self._rounds -= 1
        for _ in range(self._times):
            order = self._random.sample(range(len(self._payloads)), len(self._payloads))
            if self.sent == 0:
                order.sort()
            for number in order:
                writer.write(_publish(self._topic, self._payloads[number], number + 1, again=self.sent > 0))
                self.sent += 1
            await writer.drain()
            await asyncio.sleep(0)
        if self._rounds:
            await asyncio.sleep(0.02)
            reset(writer)
        else:
            self.done.set()


def _publish(topic: str, payload: bytes, number: int, *, again: bool) -> bytes:
    body = len(topic).to_bytes(2, "big") + topic.encode() + number.to_bytes(2, "big") + payload
    length, size = b"", len(body)
    while True:
        size, digit = divmod(size, 128)
        length += bytes([digit | 128 if size else digit])
        if not size:
            return bytes([0x32 | (again << 3)]) + length + body


async def _packet(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Kind and body of the next packet."""
    [first] = await reader.readexactly(1)
    size = shift = 0
    while True:
        [digit] = await reader.readexactly(1)
        size |= (digit & 127) << shift
        shift += 7
        if digit < 128:
            return first >> 4, await reader.readexactly(size)
