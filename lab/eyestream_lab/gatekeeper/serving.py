"""A gatekeeper at work: an application of released gaze that answers the questions of others.

It subscribes as every application does. So it needs no right that they do not have, but to read questions and to
publish answers, and whoever asks learns nothing that released gaze would not have told.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

from eyestream.core.calibration import Calibration
from eyestream.core.mechanisms.registry import entry_of
from eyestream.errors import CalibrationError
from eyestream.rim.config import BrokerSettings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.reconnecting import ReconnectingLink
from eyestream.rim.mqtt.transport import Link, Message
from eyestream.sdk.chunks import DropOldest
from eyestream.sdk.subscriber import Chunk, subscribe
from eyestream.streams import GAZE
from eyestream.wire.topics import GAZE_STREAM, answer_topic, ask_topic
from eyestream_lab.gatekeeper.answers import Slot
from eyestream_lab.gatekeeper.desk import Desk
from eyestream_lab.parts import part_of

_WAITING = 256
"""Questions and answers that wait at most; of more, the oldest go first."""


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
        Of the stream; the public model of the next slot, where its mechanism has one.

    Raises
    ------
    CalibrationError
        It is none of gaze.
    LinkError
        The broker cannot be reached within `wait_s`.
    """
    if entry_of(calibration.mechanism).front_end is None:
        raise CalibrationError(f"expected a calibration of gaze, not one of {calibration.mechanism}")
    desk, endpoint = Desk(), Endpoint.of(BrokerSettings(broker) if isinstance(broker, str) else broker)
    asked, answers = ask_topic(device, stream), answer_topic(device, stream)
    outbox: DropOldest[bytes] = DropOldest(_WAITING)
    loop, slot_s = asyncio.get_running_loop(), calibration.n / calibration.rate_hz
    model = part_of(calibration.mechanism).get("expecting", type)
    expecting = None if model is None else model(calibration)

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
            for reply in _told(desk, slot_s, expecting, chunk):
                outbox.put(reply)


def _told(desk: Desk, slot_s: float, expecting: Any, chunk: Chunk) -> Iterator[bytes]:
    """The answers that a released slot gives; none where somebody has described the stream as no gaze."""
    end_s, told = float(chunk.times[-1]), dict(zip(chunk.names, chunk.values[:, -1].tolist(), strict=True))
    if not told.keys() >= set(GAZE):
        return iter(())
    (x, y), lost = (told[name] for name in GAZE), told.get("lost", 0.0)
    expected = None if expecting is None else expecting.take(chunk.session, chunk.index, chunk.epsilon, told)
    return desk.take(chunk.session, Slot(end_s - slot_s, end_s, x, y, lost), expected)
