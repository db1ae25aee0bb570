"""Pupil Capture on the loopback, as far as a subscriber to its gaze can tell. Needs pyzmq and msgpack."""

import asyncio
import contextlib
from typing import Any

import msgpack
import numpy as np
import zmq
import zmq.asyncio
from numpy.typing import NDArray

from eyestream_lab.embedded import free_port
from eyestream_lab.testing.gaze_lives import TrackerClock

__all__ = ["FakeCapture", "datum"]


def datum(t: float, confidence: float = 0.95, point: Any = (10.0, -20.0, 600.0), nested: bool = True) -> bytes:
    """A binocular datum; `nested`: the pupils' data as Capture writes a datum in another one."""
    pupils: list[Any] = [
        {"id": eye, "diameter": 40.0, "diameter_3d": 3.0 + eye, "topic": f"pupil.{eye}.3d"} for eye in (0, 1)
    ]
    if nested:
        pupils = [msgpack.ExtType(13, msgpack.packb(pupil)) for pupil in pupils]
    told = {"topic": "gaze.3d.01.", "timestamp": t, "confidence": confidence, "norm_pos": [0.5, 0.5]}
    told |= {"eye_centers_3d": {"0": [1.0, 2.0, 3.0], "1": [1.0, 2.0, 3.0]}, "base_data": pupils}
    return bytes(msgpack.packb(told | ({} if point is None else {"gaze_point_3d": list(point)})))


class FakeCapture:
    """One Capture.

    Parameters
    ----------
    rate_hz
        Data a second.
    gaze
        (k, 3) points, one after the other and from the beginning again; a usual one by default.

    Attributes
    ----------
    port : of its Network API.
    clock : of Capture.
    silent : publishes no gaze, and still answers.
    lost : publishes gaze without a point, as of an eye that is not seen.
    """

    def __init__(self, rate_hz: float = 200.0, gaze: NDArray[np.float64] | None = None) -> None:
        self._gaze = np.array([[10.0, -20.0, 600.0]]) if gaze is None else gaze
        self.rate_hz, self.port = rate_hz, free_port()
        self.clock = TrackerClock(offset_s=-300.0)
        self.silent = self.lost = False
        self._context: Any = None
        self._socket: Any = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Answer, and publish at another port than before."""
        self._context = zmq.asyncio.Context()
        self._socket = self._context.socket(zmq.PUB)
        published = self._socket.bind_to_random_port("tcp://127.0.0.1")
        self._tasks = [asyncio.create_task(self._answer(published)), asyncio.create_task(self._publish())]

    async def stop(self) -> None:
        """Gone, without a goodbye."""
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._context.destroy(0)

    async def flood(self) -> None:
        """Five thousand data of now."""
        for index in range(5_000):
            await self._socket.send_multipart([b"gaze.3d.01.", datum(self._now())])
            if index % 100 == 0:
                await asyncio.sleep(0)

    async def nonsense(self) -> None:
        """What is no datum, or none of gaze in space."""
        good = datum(self._now())
        for parts in (
            [b"gaze."],
            [b"gaze.", b""],
            [b"gaze.", b"\xc1"],
            [b"gaze.", good[:-5]],
            [b"gaze.", b"\x91" * 30_000],
            [b"gaze.", msgpack.packb({"timestamp": "now", "confidence": 1.0})],
            [b"gaze.2d.0.", datum(self._now(), point=None)],
            [b"gaze.3d.0.", datum(float("nan")), b"frame"],
            [b"gaze.3d.0.", datum(self._now(), point=(1e308, float("inf"), 0.0))],
            [b"gaze.3d.0.", datum(self._now(), confidence=float("nan"), nested=False)],
        ):
            await self._socket.send_multipart(parts)

    def _now(self) -> float:
        return self.clock.show(asyncio.get_running_loop().time())

    async def _answer(self, published: int) -> None:
        socket = self._context.socket(zmq.REP)
        socket.bind(f"tcp://127.0.0.1:{self.port}")
        while True:
            question = await socket.recv()
            await socket.send(str(published).encode() if question == b"SUB_PORT" else b"unknown")

    async def _publish(self) -> None:
        loop = asyncio.get_running_loop()
        began, number = loop.time(), 0
        while True:
            point = None if self.lost else self._gaze[number % len(self._gaze), :3].tolist()
            if not self.silent:
                await self._socket.send_multipart([b"gaze.3d.01.", datum(self._now(), point=point)])
            number += 1
            await asyncio.sleep(max(0.0, began + number / self.rate_hz - loop.time()))
