"""The face that both versions of MQTT show to a client."""

from collections.abc import Iterable
from typing import Protocol

from eyestream.wire.mqtt_frames import FrameDecoder
from eyestream.wire.mqtt_packets import NO_PROPERTIES, Properties

__all__ = ["Dialect"]


class Dialect(Protocol):
    """A version of MQTT: `eyestream.wire.mqtt` or `eyestream.wire.mqtt5`."""

    NAME: str

    def Decoder(self) -> FrameDecoder:  # noqa: N802  a class in both
        """What reads a broker's bytes."""

    def encode_publish(
        self, topic: str, payload: bytes, *, packet_id: int, retain: bool, more: Properties = NO_PROPERTIES
    ) -> bytes:
        """PUBLISH."""

    def encode_subscribe(self, packet_id: int, topic_filters: Iterable[str], qos: int) -> bytes:
        """SUBSCRIBE."""
