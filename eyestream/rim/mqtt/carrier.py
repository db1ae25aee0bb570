"""The face of a client: what a link needs of one connection, whoever made it."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from eyestream.wire.mqtt_packets import NO_PROPERTIES, Limits, Properties, Suback

__all__ = ["Carrier"]


class Carrier(Protocol):
    """One open connection; `eyestream.rim.mqtt.client.Client` says what each part means."""

    @property
    def version(self) -> str:
        """The version of MQTT, in words."""

    @property
    def reason(self) -> Exception | None:
        """Why we ended the connection; None: we did not."""

    @property
    def resumed(self) -> bool:
        """Whether the broker continues an earlier session."""

    @property
    def limits(self) -> Limits:
        """What the broker takes, as far as it is known."""

    @property
    def ended(self) -> "asyncio.Future[None]":
        """Fails when the connection has ended."""

    async def subscribe(self, topic_filters: Sequence[str], qos: int) -> Suback:
        """Subscribe with one packet."""

    def publish(
        self,
        topic: str,
        payload: bytes,
        retain: bool,
        *,
        acknowledged: Callable[[], None],
        refused: Callable[[str], None],
        more: Properties = NO_PROPERTIES,
    ) -> None:
        """Publish at QoS 1."""

    async def publish_at_most_once(
        self, topic: str, payload: bytes, retain: bool, more: Properties = NO_PROPERTIES
    ) -> None:
        """Publish at QoS 0."""
