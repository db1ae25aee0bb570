"""Streams that are served on a private broker: what its sidecars have described, and what comes while we listen."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from eyestream.errors import PayloadError
from eyestream.rim.config import BrokerSettings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.reconnecting import ReconnectingLink
from eyestream.rim.mqtt.transport import Link, Message, RefusedError
from eyestream.sdk.odometer import OdometerWatch
from eyestream.wire.release import Meta, decode_meta, decode_private
from eyestream.wire.status import Budget, Status, decode_budget, decode_reading, decode_status
from eyestream.wire.topics import QOS, SIDECAR_STREAM, every_topic, parse_topic

MOST_FOUND = 10_000
"""Streams and sidecars of a broker that are remembered; whoever may write there could invent more."""


@dataclass(slots=True)
class Found:
    """A stream of a device, or a sidecar itself.

    Attributes
    ----------
    device
        The tracker's pseudonym; for a sidecar its name.
    stream
        Name of the stream; ``sidecar`` for a sidecar.
    status
        Its last word; None where it said none that can be read.
    meta
        What the stream is; None for a sidecar, and where it was not described.
    budget
        What is left of its budget.
    chunk
        Number of the last chunk that came while we listened.
    at
        When that chunk came, in seconds of `time.monotonic`.
    said_at
        When its status came, in the same seconds; None where the broker had kept it.
    unreadable
        Messages that could not be read.
    odometer
        Whether its ledger went back.
    """

    device: str
    stream: str
    status: Status | None = None
    meta: Meta | None = field(default=None, repr=False)
    budget: Budget | None = None
    chunk: int | None = None
    at: float = 0.0
    said_at: float | None = None
    unreadable: int = 0
    odometer: OdometerWatch = field(default_factory=OdometerWatch, repr=False)

    @property
    def is_sidecar(self) -> bool:
        """Whether it is a sidecar and no stream."""
        return self.stream == SIDECAR_STREAM

    def note(self, leaf: str, payload: bytes, *, kept: bool = False) -> None:
        """Keep what a message says, which the broker may have kept; one that is none of ours is counted."""
        try:
            match leaf:
                case "status":
                    self.status = decode_status(payload)
                    self.said_at = None if kept else time.monotonic()
                case "meta":
                    self.meta = decode_meta(payload)
                case "budget":
                    self.budget = decode_budget(payload)
                case "odometer":
                    self.odometer.note(decode_reading(payload), kept=kept)
                case "private":
                    self.chunk, self.at = decode_private(payload).chunk, time.monotonic()
        except PayloadError:
            self.unreadable += 1


async def discover(
    broker: str | BrokerSettings,
    *,
    seconds: float = 2.0,
    wait_s: float = 10.0,
    odometers: Mapping[tuple[str, str], OdometerWatch] = MappingProxyType({}),
) -> list[Found]:
    """Listen to a private broker for some seconds; gives streams and sidecars, by name.

    What a stream says stays at the broker when its sidecar is gone: the status of the sidecar is then offline, lost.

    Parameters
    ----------
    broker
        URL of the private broker, or its settings when it asks for a login or TLS.
    seconds
        How long to listen. What is retained comes at once. Chunks come every 16 to 64 s with the shipped calibrations.
    wait_s
        How long to wait for the first connection.
    odometers
        What was heard before, by device and stream.

    Raises
    ------
    ConfigError
        The broker's settings cannot be used.
    LinkError
        It cannot be reached within `wait_s`.

    Examples
    --------
    >>> async def devices():
    ...     return [found.device for found in await discover("mqtt://localhost") if not found.is_sidecar]
    """
    async with discovering(broker, wait_s=wait_s, odometers=odometers) as seen:
        await asyncio.sleep(seconds)
    return [seen[place] for place in sorted(seen)]


@contextlib.asynccontextmanager
async def discovering(
    broker: str | BrokerSettings,
    *,
    wait_s: float,
    odometers: Mapping[tuple[str, str], OdometerWatch] = MappingProxyType({}),
) -> AsyncIterator[Mapping[tuple[str, str], Found]]:
    """Streams heard of so far, by device and stream, kept up to date while the body runs. Raises as `discover`."""
    endpoint = Endpoint.of(BrokerSettings(broker) if isinstance(broker, str) else broker)
    seen: dict[tuple[str, str], Found] = {}

    async def serve(link: Link) -> None:
        await link.subscribe_all([every_topic("meta"), every_topic("status"), every_topic("private")], QOS)
        with contextlib.suppress(RefusedError):  # rights of before there was this topic
            await link.subscribe(every_topic("budget"), QOS)
        with contextlib.suppress(RefusedError):
            await link.subscribe(every_topic("odometer"), 0)  # of QoS 0 nothing comes again
        await asyncio.Event().wait()

    def deliver(message: Message) -> None:
        with contextlib.suppress(PayloadError):  # somebody else's topic
            topic = parse_topic(message.topic)
            place = topic.device, topic.stream
            if place in seen or len(seen) < MOST_FOUND:
                if place not in seen:
                    seen[place] = Found(*place, odometer=odometers.get(place) or OdometerWatch())
                seen[place].note(topic.leaf, message.payload, kept=message.retain)

    link = ReconnectingLink(endpoint, serve, what="private broker", client_id=None, deliver=deliver)
    async with link.beside(wait_s):
        yield seen
