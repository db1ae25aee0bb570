"""One MQTT connection as an asyncio protocol: packets out, packets in, and what waits for an answer.

Ours, because the path of every row and chunk goes through it: of the processor time of a message, `benchmarks` found
several times as much in the library that stood here (CHOICES.md there). What it does not do: reconnect
(`eyestream.rim.mqtt.reconnecting`), keep anything for later (`eyestream.rim.sidecar.outbox`), QoS 2, MQTT 5.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar, cast

from eyestream.errors import LinkError
from eyestream.wire import mqtt
from eyestream.wire.mqtt import Connack, Decoder, Message, Packet, Puback, Suback

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
    """

    def __init__(self, deliver: Callable[[Message], None], keepalive_s: float) -> None:
        loop = asyncio.get_running_loop()
        self._deliver = deliver
        self._period_s = keepalive_s / 2
        self._decoder = Decoder()
        self._transport: asyncio.Transport | None = None
        self._look: asyncio.TimerHandle | None = None
        self._heard = True
        self._reason: Exception | None = None
        self._last_id = 0
        self._oldest = self._owed_periods = 0
        self._acknowledged: dict[int, Callable[[], None]] = {}
        self._granted: dict[int, asyncio.Future[tuple[bool, ...]]] = {}
        self._greeting: asyncio.Future[int] = loop.create_future()
        self._room = asyncio.Event()
        self._room.set()
        self.ended: asyncio.Future[None] = loop.create_future()
        """Fails when the connection has ended, whoever ended it: with `LinkError`, or with what `deliver` raised."""

    @property
    def reason(self) -> Exception | None:
        """Why we ended the connection: a fault of the broker's, or what `deliver` raised; None: we did not."""
        return self._reason

    # What we say

    async def greet(self, connect: bytes) -> int:
        """Send CONNECT; the code of the answer. Raises LinkError when the peer hangs up instead, or as `subscribe`."""
        self._write(connect)
        return await self._greeting

    async def subscribe(self, topic_filters: Sequence[str], qos: int) -> tuple[bool, ...]:
        """Subscribe, with one packet; whether each filter was granted.

        Raises LinkError when the link is lost, a filter cannot be written or not all are answered; what `deliver`
        raised, as it is.
        """
        packet_id = self._next_id()
        answer: asyncio.Future[tuple[bool, ...]] = asyncio.get_running_loop().create_future()
        try:
            packet = mqtt.encode_subscribe(packet_id, topic_filters, qos)
        except ValueError as error:
            raise LinkError(f"cannot subscribe: {error}") from None
        self._granted[packet_id] = answer
        try:
            self._write(packet)
            granted = await answer
        finally:
            self._granted.pop(packet_id, None)
        if len(granted) != len(topic_filters):  # 3.8.4-5
            raise LinkError("the broker does not answer for each topic filter")
        return granted

    def publish(self, topic: str, payload: bytes, retain: bool, acknowledged: Callable[[], None]) -> None:
        """Publish at QoS 1; `acknowledged` is called when the broker has it, and never when the link is lost before.

        The caller bounds how many are under way. Raises LinkError when the link is lost already, ValueError for what
        cannot be published.
        """
        packet_id = self._next_id()
        self._write(mqtt.encode_publish(topic, payload, packet_id=packet_id, retain=retain))
        self._acknowledged[packet_id] = acknowledged

    async def publish_at_most_once(self, topic: str, payload: bytes, retain: bool) -> None:
        """Publish at QoS 0; waits while the socket has no room."""
        self._write(mqtt.encode_publish(topic, payload, packet_id=0, retain=retain))
        await self._room.wait()

    async def leave(self, wait_s: float, *, goodbye: bool) -> None:
        """Close the socket, by force after `wait_s` seconds; without a `goodbye` the last will is said (3.1.2-8)."""
        if self._transport is None:
            return
        try:
            if not self._transport.is_closing():
                if goodbye:
                    self._transport.write(mqtt.DISCONNECT)
                self._transport.close()
            await asyncio.wait({self.ended}, timeout=wait_s)
        finally:
            self._transport.abort()

    def _write(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            raise LinkError("the link to the broker is lost")
        self._transport.write(data)

    def _next_id(self) -> int:
        while True:
            self._last_id = self._last_id % 0xFFFF + 1
            if self._last_id not in self._acknowledged and self._last_id not in self._granted:
                return self._last_id

    # What we hear

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is open, TLS agreed on."""
        self._transport = cast(asyncio.Transport, transport)
        self._look = asyncio.get_running_loop().call_later(self._period_s, self._ask)

    def data_received(self, data: bytes) -> None:
        """Bytes of the broker: each packet goes where it is waited for."""
        self._heard = True
        try:
            received = self._sort(self._decoder.feed(data))
        except Exception as error:  # the broker's fault, or one of ours behind `deliver`: raised to who has the link
            self._reason = error
            if self._transport is not None:
                self._transport.abort()
            return
        if received and self._transport is not None and not self._transport.is_closing():
            self._transport.write(mqtt.encode_pubacks(received))
            if self._transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
                self._reason = LinkError("the broker sends and does not read")
                self._transport.abort()

    def _sort(self, packets: Iterable[Packet]) -> list[int]:
        """Hand on what came; packet ids of what is to be acknowledged."""
        received: list[int] = []
        for packet in packets:
            if isinstance(packet, Message):
                self._deliver(packet)
                if packet.packet_id:
                    received.append(packet.packet_id)
            elif isinstance(packet, Puback):
                acknowledged = self._acknowledged.pop(packet.packet_id, None)
                if acknowledged is not None:
                    acknowledged()
            elif isinstance(packet, Suback):
                _answer(self._granted.get(packet.packet_id), packet.granted)
            elif isinstance(packet, Connack):
                _answer(self._greeting, packet.code)
        return received

    def connection_lost(self, error: Exception | None) -> None:
        """Nothing more will come: whoever waits for an answer is told."""
        if self._look is not None:
            self._look.cancel()
        self._acknowledged.clear()
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
        oldest = next(iter(self._acknowledged), 0)
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
        self._transport.write(mqtt.PINGREQ)
        self._look = asyncio.get_running_loop().call_later(self._period_s, self._ask)


def _answer(future: "asyncio.Future[Answer] | None", answer: Answer) -> None:
    if future is not None and not future.done():
        future.set_result(answer)


def _fail(future: "asyncio.Future[Answer]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # looked at: where nobody waits for it, nobody has to know
