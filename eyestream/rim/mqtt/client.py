"""What we say on one MQTT connection: greet, subscribe, publish, leave.

What it does not do: reconnect (`eyestream.rim.mqtt.reconnecting`), keep anything for later
(`eyestream.rim.sidecar.outbox`), QoS 2.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import cast

from paho.mqtt.properties import Properties as PahoProperties

from eyestream.errors import LinkError
from eyestream.rim.mqtt.connection import Connection
from eyestream.rim.mqtt.greeting import disconnect, greet
from eyestream.rim.mqtt.messages import NO_PROPERTIES, Properties, check_text, topic_bytes
from eyestream.rim.mqtt.outgoing import Waiting
from eyestream.rim.mqtt.words import said_properties

__all__ = ["FIVE", "THREE", "Client", "groups"]

SUBSCRIBE_BYTES = 8192
"""Topic filters in one packet, at most: far below the least packet that the brokers of a deployment take."""

_AROUND = 16
"""Bytes of SUBSCRIBE around its filters, or more."""


def groups(topic_filters: Iterable[str], packet_bytes: int) -> Iterator[list[str]]:
    """The filters in their order, in groups that one packet has room for where a broker takes `packet_bytes`."""
    most = min(SUBSCRIBE_BYTES, packet_bytes - _AROUND)
    group: list[str] = []
    room = most
    for topic_filter in topic_filters:
        size = len(topic_filter.encode(errors="replace")) + 3  # its length before it, the QoS after it (3.8.3)
        if group and size > room:
            yield group
            group, room = [], most
        group.append(topic_filter)
        room -= size
    if group:
        yield group


FIVE, THREE = "MQTT 5", "MQTT 3.1.1"


class Client(Connection):
    """A connection from its first byte to its last; never used again after that."""

    @property
    def version(self) -> str:
        """The version of MQTT, in words."""
        return FIVE if self._five else THREE

    async def greet(self, username: str | None, password: str | None) -> None:
        """Send CONNECT; returns when the broker welcomes us.

        Raises
        ------
        OtherVersionError
            The broker may speak 3.1.1.
        LinkError
            The peer refuses, hangs up, or is no broker.
        ValueError
            Something cannot be written.
        """
        paho = self._paho
        paho.carrier = self._carrier
        paho.on_connect, paho.on_disconnect = self._on_connect, self._on_disconnect
        paho.on_subscribe, paho.on_publish = self._on_subscribe, self._on_publish
        greet(paho, self._said, username, password)
        await self._greeting

    async def subscribe(self, topic_filters: Sequence[str], qos: int) -> list[str | None]:
        """Subscribe, with one packet; why each filter is refused, None for one that is granted.

        Raises LinkError when the link is lost, a filter cannot be written or not all are answered; what `deliver`
        raised, as it is.
        """
        self._check()
        try:
            size = 8 + sum(check_text(name) + 3 for name in topic_filters)
            if why := self._too_much(size, retain=False):
                raise LinkError(f"cannot subscribe: a packet {why}")
            _, packet_id = self._paho.subscribe([(name, qos) for name in topic_filters])
        except ValueError as error:
            raise LinkError(f"cannot subscribe: {error}") from None
        number = cast(int, packet_id)
        answer: asyncio.Future[list[str | None]] = asyncio.get_running_loop().create_future()
        self._granted[number] = answer
        try:
            refusals = await answer
        finally:
            self._granted.pop(number, None)
        if len(refusals) != len(topic_filters):  # 3.8.4-5
            raise LinkError("the broker does not answer for each topic filter")
        return refusals

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
        """Publish at QoS 1; later one of the two functions is called, or neither when the link is lost before.

        The caller bounds how many are under way; those for which the broker has no room yet wait here. Raises
        LinkError when the link is lost already, ValueError for what cannot be published.
        """
        self._check()
        said, size = self._weigh(topic, payload, more, 2)
        why = self._too_much(size, retain) if self.limits.qos_1 else "it takes QoS 0 only"
        if why is not None:
            asyncio.get_running_loop().call_soon(refused, why)
        else:
            self._outgoing.publish(Waiting(topic, payload, retain, said, acknowledged, refused))

    async def publish_at_most_once(
        self, topic: str, payload: bytes, retain: bool, more: Properties = NO_PROPERTIES
    ) -> None:
        """Publish at QoS 0; waits while the socket has no room. Raises as `publish`, ValueError also for too much."""
        self._check()
        said, size = self._weigh(topic, payload, more, 0)
        if why := self._too_much(size, retain):
            raise ValueError(why)
        self._at_most_once = True  # paho says that it is written, under a number that may be a packet id at QoS 1 too
        try:
            self._paho.publish(topic, payload, 0, retain, said)
        finally:
            self._at_most_once = False
        await self._room.wait()

    def _weigh(self, topic: str, payload: bytes, more: Properties, extra: int) -> tuple[PahoProperties | None, int]:
        """Properties in paho's words, and the bytes of the packet."""
        said, length = said_properties(more) if self._five else (None, 0)
        body = 2 + topic_bytes(topic) + extra + length + len(payload)
        return said, 2 + body + (body > 0x7F) + (body > 0x3FFF) + (body > 0x1F_FFFF)

    def _too_much(self, size: int, retain: bool) -> str | None:
        """Why the broker has said that it would not take a packet of `size` bytes."""
        limits = self.limits
        if size > limits.packet_bytes:
            return f"of {size} bytes, and it takes {limits.packet_bytes} (max_packet_size)"
        return "it keeps no retained messages" if retain and not limits.retain else None

    async def leave(self, wait_s: float, *, in_order: bool) -> None:
        """Close the socket, by force after `wait_s` seconds.

        After work that was not done `in_order` the last will is said (3.1.2-8). One that the broker would delay we say
        ourselves: that the link is lost is no question any more.
        """
        if self._transport is None:
            return
        try:
            if self._welcome and not self._transport.is_closing():
                disconnect(self._paho, self._said, in_order=in_order)
            self._carrier.close()
            await asyncio.wait({self.ended}, timeout=wait_s)
        finally:
            self._transport.abort()

    def _check(self) -> None:
        if self._transport is None or self._transport.is_closing():
            raise LinkError("the link to the broker is lost")
