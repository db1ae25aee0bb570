"""One MQTT connection as an asyncio protocol: packets out, packets in, and what waits for an answer.

Ours, because the path of every row and chunk goes through it: of the processor time of a message, `benchmarks` found
several times as much in the library that stood here (CHOICES.md there). What it does not do: reconnect
(`eyestream.rim.mqtt.reconnecting`), keep anything for later (`eyestream.rim.sidecar.outbox`), QoS 2.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar, cast

from eyestream.errors import LinkError
from eyestream.rim.mqtt.dialect import Dialect
from eyestream.rim.mqtt.outgoing import Outgoing
from eyestream.wire import mqtt, mqtt5
from eyestream.wire.mqtt5_reasons import reason
from eyestream.wire.mqtt_packets import (
    NO_PROPERTIES,
    PINGREQ,
    Connack,
    Disconnect,
    Limits,
    Message,
    Packet,
    PacketError,
    Properties,
    Puback,
    Suback,
)

__all__ = ["Client"]

MAX_UNREAD_BYTES = 1 << 20
"""Acknowledgements that wait for a peer which sends and does not read; with more the link is given up."""

MAX_OWED_PERIODS = 6
"""Halves of the keep-alive, one minute in all, for which a broker that is there may owe an acknowledgement."""

Answer = TypeVar("Answer")


class Client(asyncio.Protocol):
    """A connection from its first byte to its last; never used again after that.

    Parameters
    ----------
    deliver
        Called with each message as it arrives; must not block. What it raises ends the connection, and comes out of
        `greet` or `ended`.
    keepalive_s
        A link that is silent for so long is lost; a question after half of it makes the broker speak. So is one on
        which a broker owes an acknowledgement for three times as long, whatever else it says.
    dialect
        The version of MQTT.
    outgoing
        Of the session that the broker shall continue; where it does not, it begins anew.
    """

    def __init__(
        self,
        deliver: Callable[[Message], None],
        keepalive_s: float,
        dialect: Dialect = mqtt,
        outgoing: Outgoing | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._deliver = deliver
        self._period_s = keepalive_s / 2
        self._dialect = dialect
        self._decoder = dialect.Decoder()
        self._transport: asyncio.Transport | None = None
        self._look: asyncio.TimerHandle | None = None
        self._heard = True
        self._reason: Exception | None = None
        self._oldest = self._owed_periods = 0
        self._outgoing = Outgoing() if outgoing is None else outgoing
        self._granted: dict[int, asyncio.Future[Suback]] = {}
        self._greeting: asyncio.Future[Connack] = loop.create_future()
        self._room = asyncio.Event()
        self._room.set()
        self.limits = Limits()
        """What the broker takes."""
        self.resumed = False
        """Whether the broker continues an earlier session."""
        self.ended: asyncio.Future[None] = loop.create_future()
        """Fails when the connection has ended, whoever ended it: with `LinkError`, or with what `deliver` raised."""

    @property
    def version(self) -> str:
        """The version of MQTT, in words."""
        return self._dialect.NAME

    @property
    def reason(self) -> Exception | None:
        """Why we ended the connection: a fault of the broker's, or what `deliver` raised; None: we did not."""
        return self._reason

    # What we say

    async def greet(self, connect: bytes) -> Connack:
        """Send CONNECT; the answer. Raises LinkError when the peer hangs up instead, or as `subscribe`."""
        self._write(connect)
        return await self._greeting

    async def subscribe(self, topic_filters: Sequence[str], qos: int) -> Suback:
        """Subscribe, with one packet; whether each filter was granted.

        Raises LinkError when the link is lost, a filter cannot be written or not all are answered; what `deliver`
        raised, as it is.
        """
        packet_id = self._outgoing.new_id(self._granted)
        answer: asyncio.Future[Suback] = asyncio.get_running_loop().create_future()
        try:
            packet = self._dialect.encode_subscribe(packet_id, topic_filters, qos)
        except ValueError as error:
            raise LinkError(f"cannot subscribe: {error}") from None
        if why := self._too_much(packet, retain=False):
            raise LinkError(f"cannot subscribe: a packet {why}")
        self._granted[packet_id] = answer
        try:
            self._write(packet)
            granted = await answer
        finally:
            self._granted.pop(packet_id, None)
        if len(granted.granted) != len(topic_filters):  # 3.8.4-5
            raise LinkError("the broker does not answer for each topic filter")
        return granted

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
        transport = self._check()
        number = self._outgoing.new_id(self._granted)
        packet = self._dialect.encode_publish(topic, payload, packet_id=number, retain=retain, more=more)
        why = self._too_much(packet, retain) if self.limits.qos_1 else "it takes QoS 0 only"
        if why is not None:
            asyncio.get_running_loop().call_soon(refused, why)
        elif packet := self._outgoing.add(number, (packet, acknowledged, refused)):
            transport.write(packet)

    async def publish_at_most_once(
        self, topic: str, payload: bytes, retain: bool, more: Properties = NO_PROPERTIES
    ) -> None:
        """Publish at QoS 0; waits while the socket has no room. Raises as `publish`, ValueError also for too much."""
        packet = self._dialect.encode_publish(topic, payload, packet_id=0, retain=retain, more=more)
        if why := self._too_much(packet, retain):
            raise ValueError(why)
        self._write(packet)
        await self._room.wait()

    def _too_much(self, packet: bytes, retain: bool) -> str | None:
        """Why the broker has said that it would not take `packet`."""
        limits = self.limits
        if len(packet) > limits.packet_bytes:
            return f"of {len(packet)} bytes, and it takes {limits.packet_bytes} (max_packet_size)"
        return "it keeps no retained messages" if retain and not limits.retain else None

    async def leave(self, wait_s: float, *, goodbye: bytes) -> None:
        """Close the socket, by force after `wait_s` seconds; without a `goodbye` the last will is said (3.1.2-8)."""
        if self._transport is None:
            return
        try:
            if not self._transport.is_closing():
                if goodbye:
                    self._transport.write(goodbye)
                self._transport.close()
            await asyncio.wait({self.ended}, timeout=wait_s)
        finally:
            self._transport.abort()

    def _check(self) -> asyncio.Transport:
        if self._transport is None or self._transport.is_closing():
            raise LinkError("the link to the broker is lost")
        return self._transport

    def _write(self, data: bytes) -> None:
        self._check().write(data)

    # What we hear

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is open, TLS agreed on."""
        self._transport = cast(asyncio.Transport, transport)
        self._look_later()

    def _look_later(self) -> None:
        if self._look is not None:
            self._look.cancel()
        self._look = asyncio.get_running_loop().call_later(self._period_s, self._ask)

    def data_received(self, data: bytes) -> None:
        """Bytes of the broker: each packet goes where it is waited for."""
        self._heard = True
        try:
            received = self._sort(self._decoder.feed(data))
        except Exception as error:  # the broker's fault, or one of ours behind `deliver`: raised to who has the link
            self._end(error)
            return
        if received and self._transport is not None and not self._transport.is_closing():
            self._transport.write(mqtt.encode_pubacks(received))
            if self._transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
                self._end(LinkError("the broker sends and does not read"))

    def _sort(self, packets: Iterable[Packet]) -> list[int]:
        """Hand on what came; packet ids of what is to be acknowledged."""
        received: list[int] = []
        for packet in packets:
            if isinstance(packet, Message):
                self._deliver(packet)
                if packet.packet_id:
                    received.append(packet.packet_id)
            elif isinstance(packet, Puback):
                for waiting in self._outgoing.settle(packet):
                    self._write(waiting)
            elif isinstance(packet, Suback):
                _answer(self._granted.get(packet.packet_id), packet)
            elif isinstance(packet, Connack):
                self._begin(packet)
            elif isinstance(packet, Disconnect):
                raise LinkError(f"the broker ends the link: {reason(packet.code, packet.words)}")
        return received

    def _begin(self, answer: Connack) -> None:
        """The broker has answered: from now on its limits hold."""
        if answer.code == 0:
            self.limits, self.resumed = answer.limits, answer.resumed
            if answer.limits.keepalive_s:  # 3.1.2-21; it may be asked more often
                self._period_s = min(self._period_s, answer.limits.keepalive_s / 2)
                self._look_later()
            for packet in self._outgoing.begin(answer.limits.receive_maximum, resumed=answer.resumed):
                self._write(packet)
        _answer(self._greeting, answer)

    def _end(self, error: Exception) -> None:
        """End the link over `error`; a broker of MQTT 5 is told what it did wrong (4.13)."""
        self._reason = error
        if self._transport is not None:
            if isinstance(error, PacketError) and self._dialect is mqtt5:
                self._transport.write(mqtt5.encode_disconnect(error.code))
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """Nothing more will come: whoever waits for an answer is told."""
        if self._look is not None:
            self._look.cancel()
        self._room.set()
        if error is not None and not isinstance(error, OSError):
            self._reason = error  # no weather: a fault between us and the socket
        _fail(self._greeting, self._reason or LinkError("it hung up before it answered"))
        lost = self._reason or LinkError("the link to the broker is lost")
        _fail(self.ended, lost)
        for answer in self._granted.values():
            _fail(answer, lost)

    def pause_writing(self) -> None:
        """The socket takes no more for now."""
        self._room.clear()

    def resume_writing(self) -> None:
        """It does again."""
        self._room.set()

    def _ask(self) -> None:
        """Half of the keep-alive has passed: give up, or make the broker speak."""
        oldest = self._outgoing.oldest
        self._owed_periods = self._owed_periods + 1 if oldest and oldest == self._oldest else 0
        self._oldest = oldest
        if self._transport is None or self._transport.is_closing():
            return
        if self._owed_periods >= MAX_OWED_PERIODS:
            self._reason = LinkError("the broker does not acknowledge what it is sent")
        if not self._heard or self._reason is not None:
            self._transport.abort()
            return
        self._heard = False
        self._transport.write(PINGREQ)
        self._look_later()


def _answer(future: "asyncio.Future[Answer] | None", answer: Answer) -> None:
    if future is not None and not future.done():
        future.set_result(answer)


def _fail(future: "asyncio.Future[Answer]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # looked at: where nobody waits for it, nobody has to know
