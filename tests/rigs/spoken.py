"""A stream as a sidecar would say it to a private broker, word by word, without a sidecar."""

import contextlib
from collections.abc import AsyncIterator

import numpy as np

from eyestream.rim.config import BrokerSettings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Link, connect
from eyestream.wire import topics
from eyestream.wire.release import Meta, PrivateChunk, encode_meta, encode_private
from eyestream.wire.status import Budget, State, Status, StatusReason, encode_budget, encode_status

__all__ = ["Spoken", "described_as", "speaking_to"]


def described_as(names: tuple[str, ...], units: tuple[str, ...]) -> Meta:
    """A description of two rows a second and four rows a chunk."""
    count = len(names)
    return Meta(
        names=names,
        units=units,
        rate_hz=2.0,
        n=4,
        mechanism="cfpa",
        k=(1,) * count,
        epsilon=1.5,
        delta=0.0,
        noise_sd=np.full(count, 0.5, np.float32),
        guarantee="1.5-differential privacy of a chunk",
        calibration="00",
    )


class Spoken:
    """One stream of one device: two features, four rows a chunk, two rows a second."""

    def __init__(self, link: Link, device: str, stream: str, names: tuple[str, ...], units: tuple[str, ...]) -> None:
        self._link, self._place = link, (device, stream)
        self.names, self.units = names, units

    async def say(self, leaf: str, payload: bytes) -> None:
        """Publish a message, retained unless it is a chunk."""
        topic = {
            "meta": topics.meta_topic,
            "status": topics.status_topic,
            "budget": topics.budget_topic,
            "odometer": topics.odometer_topic,
            "private": topics.private_topic,
        }[leaf](*self._place)
        await self._link.publish(topic, payload, qos=1, retain=leaf != "private")

    async def describe(self) -> None:
        """What the stream is, that it is online, and two hours of budget."""
        meta = described_as(self.names, self.units)
        await self.say("meta", encode_meta(meta))
        await self.status("online", "ready")
        await self.say("budget", encode_budget(Budget(3600, "session")))

    async def status(self, state: State, reason: StatusReason) -> None:
        """How it is."""
        await self.say("status", encode_status(Status(state, reason)))

    async def sidecar(self, state: State, reason: StatusReason) -> None:
        """How a sidecar is, of which nothing else is known."""
        payload = encode_status(Status(state, reason))
        await self._link.publish(topics.sidecar_status_topic("s1"), payload, qos=1, retain=True)

    async def chunk(self, index: int, session: int = 2**63 + 9) -> None:
        """A chunk whose values are its number and the row's."""
        values = (np.full((len(self.names), 4), index) + np.arange(4) / 10).astype(np.float32)
        private = PrivateChunk(session, index, 2.0 * index, 0.5, values, 1.5, 0.0)
        await self.say("private", encode_private(private))


@contextlib.asynccontextmanager
async def speaking_to(
    broker: str | BrokerSettings,
    device: str = "hmd-1",
    stream: str = topics.FEATURE_STREAM,
    names: tuple[str, ...] = ("rate_fixations", "blink_rate"),
    units: tuple[str, ...] = ("1/s", "1"),
) -> AsyncIterator[Spoken]:
    """A stream that is described."""
    settings = BrokerSettings(broker) if isinstance(broker, str) else broker
    async with connect(Endpoint.of(settings), client_id=None, deliver=lambda message: None) as link:
        spoken = Spoken(link, device, stream, names, units)
        await spoken.describe()
        yield spoken
