"""A gatekeeper at work: an application of released gaze that answers the questions of others.

It subscribes as every application does. So it needs no right that they do not have, but to read questions and to
publish answers, and whoever asks learns nothing that released gaze would not have told.
"""

import asyncio
from collections.abc import Iterator

import numpy as np

from eyestream.gaze.desk import Desk
from eyestream.gaze.gatekeeper import Expected, Slot
from eyestream.privacy.calibration import Calibration
from eyestream.privacy.mechanisms.tile.tables import tiles_of
from eyestream.privacy.tiles.reader import Code, Reader
from eyestream.rim.buffer import DropOldest
from eyestream.rim.config import BrokerSettings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.reconnecting import ReconnectingLink
from eyestream.rim.mqtt.transport import Link, Message
from eyestream.rim.sdk.subscriber import Chunk, subscribe
from eyestream.wire.topics import GAZE_STREAM, answer_topic, ask_topic

__all__ = ["answer_questions"]

_WAITING = 256
"""Questions and answers that wait at most; of more, the oldest go first."""


class _Reading:
    """The model's expectation for the next slot, while every slot of a session has come."""

    def __init__(self, calibration: Calibration) -> None:
        self._tiles = tiles_of(calibration)
        self._reader: Reader | None = None
        self.slot_s = self._tiles.slot_s
        self._session, self._next = -1, 0

    def expected(self, chunk: Chunk) -> Expected | None:
        """After a chunk; None once one of its session is missing, or where it does not read as it was released."""
        if chunk.session != self._session:
            self._session, self._next = chunk.session, 0
            self._reader = Reader(Code(self._tiles, chunk.epsilon))
        if self._reader is not None:
            gaze = self._reader.take(int(chunk.values[chunk.names.index("word"), 0]))
            same = np.array_equal(chunk.gaze[0], np.array([gaze.x_deg, gaze.y_deg], np.float32))
            self._reader = self._reader if same and chunk.index == self._next else None
        self._next += 1
        if self._reader is None:
            return None
        field = self._tiles.field
        return Expected(self._reader.code.motion.predicted(self._reader.belief).seen, field.x_deg, field.y_deg)


async def answer_questions(
    broker: str | BrokerSettings,
    device: str,
    *,
    calibration: Calibration,
    stream: str = GAZE_STREAM,
    wait_s: float = 10.0,
) -> None:
    """Answer the questions about the gaze of `device` until cancelled.

    Parameters
    ----------
    broker, device, stream, wait_s
        As for `eyestream.subscribe`.
    calibration
        Of the stream: the public model of the next slot.

    Raises
    ------
    LinkError
        The broker cannot be reached within `wait_s`.
    """
    desk, endpoint = Desk(), Endpoint.of(BrokerSettings(broker) if isinstance(broker, str) else broker)
    asked, answers = ask_topic(device, stream), answer_topic(device, stream)
    outbox: DropOldest[bytes] = DropOldest(_WAITING)
    loop, reading = asyncio.get_running_loop(), _Reading(calibration)

    def heard(message: Message) -> None:
        if not message.retain and (reply := desk.ask(message.payload, loop.time())) is not None:
            outbox.put(reply)

    async def serve(link: Link) -> None:
        await link.subscribe(asked, 0)
        while True:
            await link.publish(answers, await outbox.get(), qos=0)

    link = ReconnectingLink(endpoint, serve, what="questions", client_id=None, deliver=heard)
    async with link.beside(wait_s), subscribe(broker, device, stream=stream, wait_s=wait_s) as chunks:
        async for chunk in chunks:
            for reply in _told(desk, reading, chunk):
                outbox.put(reply)


def _told(desk: Desk, reading: _Reading, chunk: Chunk) -> Iterator[bytes]:
    """The answers that a released slot gives."""
    end_s, (x, y) = float(chunk.times[-1]), chunk.gaze[-1].tolist()
    lost = float(chunk.values[chunk.names.index("lost"), -1])
    return desk.take(chunk.session, Slot(end_s - reading.slot_s, end_s, x, y, lost), reading.expected(chunk))
