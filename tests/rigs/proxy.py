"""A TCP proxy that treats the connections through it badly.

The faults are those of toxiproxy (latency, bandwidth, slicer, slow close, timeout, reset, limited data, down), and one
more: a peer that accepts and hangs up. `fault` may be changed at any time, also while connections stand.
"""

import asyncio
import contextlib
import math
import random
import socket
from dataclasses import dataclass

from tests.rigs.listener import Listener, reset

__all__ = ["TOXICS", "Fault", "FaultProxy"]

_READ_BYTES = 65536


@dataclass(frozen=True)
class Fault:
    """What goes wrong; nothing by default.

    `latency_s` and `jitter_s` delay every piece in both directions. `bytes_per_second` limits each direction,
    `slice_bytes` is the largest segment. `limit_bytes` from the client on, the connection is reset, in the middle of
    whatever is sent. `stalled` is a half-open link: nothing passes and nobody is told. `close_s` is how late one side
    learns that the other has closed. `hangs_up` accepts and closes.
    """

    latency_s: float = 0.0
    jitter_s: float = 0.0
    bytes_per_second: float = math.inf
    slice_bytes: int = _READ_BYTES
    limit_bytes: float = math.inf
    stalled: bool = False
    close_s: float = 0.0
    hangs_up: bool = False


TOXICS = {
    "latency": Fault(latency_s=0.1, jitter_s=0.06),
    "bandwidth": Fault(bytes_per_second=2000),
    "slicer": Fault(slice_bytes=1),
    "slow close": Fault(close_s=0.5),
    "half open": Fault(stalled=True),
    "limited data": Fault(limit_bytes=5000),
    "hangs up": Fault(hangs_up=True),
    "reset": Fault(),
    "down": Fault(),
}
"""One fault of each kind by its name; "reset" and "down" are done to the proxy by its methods."""


class FaultProxy(Listener):
    """Listens on a free port of the loopback and forwards to `port`; an async context manager."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self.fault = Fault()
        self.connections = 0
        """Connections accepted since the start."""
        self._broker_port = port
        self._open: set[asyncio.StreamWriter] = set()

    async def down(self) -> None:
        """Listen no more, and reset what is open."""
        await super().down()
        self.reset()

    def reset(self) -> None:
        """Send RST on every connection, to both sides."""
        for writer in list(self._open):
            reset(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self.fault.hangs_up:
            writer.close()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._broker_port, limit=_READ_BYTES)
        except OSError:
            reset(writer)
            return
        ends = {writer, far_writer}
        for end in ends:
            end.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            end.transport.set_write_buffer_limits(0)
        self._open |= ends
        try:
            limit = self.fault.limit_bytes
            pumps = [
                asyncio.create_task(self._pump(reader, far_writer, limit, ends)),
                asyncio.create_task(self._pump(far_reader, writer, math.inf, ends)),
            ]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(self.fault.close_s)
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
        finally:
            for end in ends:
                end.close()
            self._open -= ends

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        limit: float,
        ends: set[asyncio.StreamWriter],
    ) -> None:
        """Carry bytes one way until the end, or until `limit` of them have passed."""
        with contextlib.suppress(OSError):
            while data := await reader.read(_READ_BYTES):
                fault = self.fault
                if fault.latency_s:
                    await asyncio.sleep(max(0.0, fault.latency_s + random.uniform(-1, 1) * fault.jitter_s))
                while self.fault.stalled:  # noqa: ASYNC110  a fault is a plain attribute, not an event
                    await asyncio.sleep(0.02)
                passing = data[: int(min(len(data), limit))]
                await _write(writer, passing, fault)
                limit -= len(passing)
                if limit < 1:
                    for end in ends:
                        reset(end)
                    return


async def _write(writer: asyncio.StreamWriter, data: bytes, fault: Fault) -> None:
    """Send `data` in pieces, at the pace of `fault`."""
    size = int(min(fault.slice_bytes, max(1, fault.bytes_per_second / 20)))
    for begin in range(0, len(data), size):
        piece = data[begin : begin + size]
        writer.write(piece)
        await writer.drain()
        if math.isfinite(fault.bytes_per_second):
            await asyncio.sleep(len(piece) / fault.bytes_per_second)
        elif size < len(data):
            await asyncio.sleep(0)
