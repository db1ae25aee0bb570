"""One MQTT connection as a protocol of asyncio, on paho-mqtt: what we say on it, and what is heard.

Paho is the codec of all but the messages that come in, and the session where one is continued. asyncio has the socket,
and this module the time: paho counts in whole seconds. What a connection does not do: reconnect
(`eyestream.rim.mqtt.reconnecting`), keep anything for later (`eyestream.rim.sidecar.sender`), QoS 2.
"""

import asyncio
import ssl
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from paho.mqtt.client import ConnectFlags, DisconnectFlags
from paho.mqtt.properties import Properties as PahoProperties
from paho.mqtt.reasoncodes import ReasonCode

from eyestream.errors import LinkError
from eyestream.rim.mqtt.carrier import Carrier, Frames, WaitingMessage, broken
from eyestream.rim.mqtt.endpoint import tls_fault
from eyestream.rim.mqtt.greeting import (
    OTHER_VERSION,
    Greeting,
    HungUpError,
    OtherVersionError,
    check_first_packet,
    disconnect,
    greet,
    limits_of,
    paho_properties,
    reason,
)
from eyestream.rim.mqtt.incoming import read_message
from eyestream.rim.mqtt.messages import NO_PROPERTIES, Limits, Message, Properties, check_text, topic_bytes

if TYPE_CHECKING:
    from eyestream.rim.mqtt.portions import DeliverPortion, Portions

MAX_UNREAD_BYTES = 1 << 20
"""Acknowledgements that wait for a peer which sends and does not read; with more the link is given up."""

MAX_OWED_PERIODS = 6
"""Halves of the keep-alive, a minute in all: a broker that answers may owe an acknowledgement for so long."""

AT_ONCE = 64
"""Packets that are read in one turn of the loop: of rows, some two milliseconds."""

_LOGIN = frozenset({0x86, 0x87})
"""Reason codes of CONNACK: a bad user name or password, not authorized. Paho says them for 4 and 5 of 3.1.1 too."""

PINGREQ = b"\xc0\x00"

_PUBACK = b"\x40\x02"
"""Before the packet id; without a reason it is the same in both versions."""

_PUBLISH = 3
"""Type of a packet, in the upper half of its first byte."""

Answer = TypeVar("Answer")

SUBSCRIBE_BYTES = 8192
"""Topic filters in one packet, at most: far below the least packet that the brokers of a deployment take."""

_AROUND = 16
"""Bytes of SUBSCRIBE around its filters, or more."""

FIVE, THREE = "MQTT 5", "MQTT 3.1.1"


def groups(topic_filters: Iterable[str], packet_bytes: int) -> Iterator[list[str]]:
    """The filters in their order, in groups that one packet has room for where a broker takes `packet_bytes`.

    >>> [*groups(["a/b", "c/d", "e/f"], 30)]
    [['a/b', 'c/d'], ['e/f']]
    """
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


class Client(asyncio.Protocol):
    """A connection from its first byte to its last; never used again after that.

    Parameters
    ----------
    deliver
        Called with each message as it arrives; must not block. What it raises ends the connection, and comes out of
        `greet` or `ended`.
    greeting
        What we say of ourselves. A link that is silent for the keep-alive is lost; a question after half of it makes
        the broker speak. So is one on which a broker owes an acknowledgement for three times as long, whatever else it
        says.
    five
        Whether to speak MQTT 5.
    """

    def __init__(self, deliver: Callable[[Message], None], greeting: Greeting, *, five: bool) -> None:
        loop = asyncio.get_running_loop()
        self._deliver, self._greeting, self._five = deliver, greeting, five
        self._period_s = greeting.keepalive_s / 2
        self._outgoing = greeting.outgoing
        self._frames = Frames()
        self._unread: Iterator[tuple[bytes, bool]] = iter(())
        self._portions: Portions | None = None
        self._at_most_once = False
        self._welcome = False
        self._paho = self._outgoing.client(greeting.client_id or "", five=five, clean_start=greeting.clean_start)
        self._carrier: Carrier
        self._transport: asyncio.Transport | None = None
        self._look: asyncio.TimerHandle | None = None
        self._heard = True
        self._oldest = self._owed_periods = 0
        self._granted: dict[int, asyncio.Future[list[str | None]]] = {}
        self._greeted: asyncio.Future[None] = loop.create_future()
        self._room = asyncio.Event()
        self._room.set()
        self.reason: Exception | None = None
        """Why we ended the connection: a fault of the broker's, or what `deliver` raised; None: we did not."""
        self.limits = Limits()
        """Limits of the broker."""
        self.resumed = False
        """Whether the broker continues an earlier session."""
        self.ended: asyncio.Future[None] = loop.create_future()
        """Fails when the connection has ended, whoever ended it: with `LinkError`, or with what `deliver` raised."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is open, TLS agreed on."""
        self._transport = cast(asyncio.Transport, transport)
        self._carrier = Carrier(self._transport)
        self._look_later()

    def data_received(self, data: bytes) -> None:
        """Bytes of the broker: messages, and what paho reads, which calls what is below."""
        self._heard = True
        self._unread = self._frames.feed(data)
        self._go_on()

    def _go_on(self) -> None:
        """Read some packets now, and the rest in the next turn of the loop: others have their turn between."""
        transport, portions = self._transport, self._portions
        if transport is None or transport.is_closing():
            return
        if portions is not None:
            portions.begin()
        self._carrier.hold()
        all_read = False
        try:
            for number, (packet, cut) in enumerate(self._unread, 1):
                if packet[0] >> 4 == _PUBLISH and self._welcome:
                    self._hand_on(read_message(packet, five=self._five, cut=cut))
                else:
                    self._read(packet)
                if transport.is_closing():
                    return
                if number == AT_ONCE:
                    transport.pause_reading()  # else more bytes could come before the rest of these is read
                    asyncio.get_running_loop().call_soon(self._go_on)
                    break
            else:
                all_read = True
                transport.resume_reading()
        except LinkError as error:
            self._end(error)
            return
        if portions is not None:
            portions.turn(all_read=all_read)
        self._write(transport)

    def _write(self, transport: asyncio.Transport) -> None:
        """Write what was published and acknowledged while packets were read."""
        self._outgoing.flush()
        if self._paho.want_write():
            self._paho.loop_write()
        self._carrier.release()
        if transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            self._end(LinkError("the broker sends and does not read"))

    def _hand_on(self, message: Message) -> None:
        """Hand a message on, then acknowledge it, which a broker waits for that keeps it."""
        # In this order: what `deliver` could not take is not acknowledged, so a broker that keeps it sends it again.
        self._call(self._deliver, message)
        if message.packet_id and self.reason is None:
            self._carrier.send(_PUBACK + message.packet_id.to_bytes(2))

    def _read(self, packet: bytes) -> None:
        """Let paho read one packet; what it raises over the broker's bytes, whatever it is, is the broker's fault."""
        if not self._welcome:
            check_first_packet(packet, five=self._five)
        self._carrier.give(packet)
        try:
            self._paho.loop_read()
        except Exception as error:
            raise broken(type(error).__name__) from None

    def _on_connect(
        self, _: Any, __: Any, flags: ConnectFlags, code: ReasonCode, theirs: PahoProperties | None
    ) -> None:
        """The broker has answered: from now on its limits hold."""
        if self._welcome:
            self._end(broken("a second CONNACK"))
        elif code.value == OTHER_VERSION and self._five:
            self._end(OtherVersionError(reason(code, theirs, five=self._five)))
        elif code.is_failure:
            login = ": correct the login (username, password_file)" if code.value in _LOGIN else ""
            self._end(LinkError(reason(code, theirs, five=self._five) + login))
        elif flags.session_present and self._five and self._greeting.clean_start:
            self._end(LinkError("it continues a session though we began a new one"))  # 3.2.2-2
        else:
            self.limits, self.resumed = limits_of(theirs), self._five and flags.session_present
            if self.limits.keepalive_s:  # 3.1.2-21; it may be asked more often
                self._period_s = min(self._period_s, self.limits.keepalive_s / 2)
                self._look_later()
            self._outgoing.begin(self.limits.receive_maximum, resumed=self.resumed)
            self._welcome = True
            _answer(self._greeted, None)

    def _on_disconnect(
        self, _: Any, __: Any, flags: DisconnectFlags, code: ReasonCode, theirs: PahoProperties | None
    ) -> None:
        if flags.is_disconnect_packet_from_server:
            self._end(LinkError(f"the broker ends the link: {reason(code, theirs, five=self._five)}"))
        elif code.is_failure:
            self._end(broken("a packet is malformed"))

    def _on_subscribe(self, _: Any, __: Any, packet_id: int, codes: list[ReasonCode], theirs: PahoProperties) -> None:
        refusals = [reason(code, theirs, five=self._five) if code.is_failure else None for code in codes]
        if answer := self._granted.get(packet_id):
            _answer(answer, refusals)

    def _on_publish(self, _: Any, __: Any, packet_id: int, code: ReasonCode, theirs: PahoProperties | None) -> None:
        message = None if self._at_most_once else self._outgoing.settle(packet_id)
        if message is None:
            return
        if code.is_failure:
            self._call(message.refused, reason(code, theirs, five=self._five))
        else:
            self._call(message.acknowledged)

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        """Call a function of ours. What it raises ends the link as it is: paho would take it for its own to handle."""
        try:
            function(*arguments)
        except Exception as error:  # raised to who has the link
            self._end(error)

    def _end(self, error: Exception) -> None:
        """End the link over `error`; the first one counts."""
        if self.reason is None:
            self.reason = error
        if self._transport is not None:
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """Nothing more will come: whoever waits for an answer is told."""
        if self._look is not None:
            self._look.cancel()
        self._room.set()  # who waits to write finds the link closing
        if self._portions is not None and self.reason is None:
            self._portions.end()
        if error is not None and not isinstance(error, OSError):
            self.reason = error  # no outage: a fault between us and the socket
        elif isinstance(error, ssl.SSLError) and not self._welcome:  # in TLS 1.3 a client certificate is judged last
            self.reason = self.reason or LinkError(tls_fault(error))
        _fail(self._greeted, self.reason or HungUpError("it hung up before it answered"))
        lost = self.reason or LinkError("the link to the broker is lost")
        _fail(self.ended, lost)
        for answer in self._granted.values():
            _fail(answer, lost)

    def pause_writing(self) -> None:
        """The socket takes no more for now."""
        self._room.clear()

    def resume_writing(self) -> None:
        """The socket takes more again."""
        self._room.set()

    def _look_later(self) -> None:
        if self._look is not None:
            self._look.cancel()
        self._look = asyncio.get_running_loop().call_later(self._period_s, self._ask)

    def _ask(self) -> None:
        """Half of the keep-alive has passed: give up, or make the broker speak."""
        oldest = self._outgoing.oldest
        self._owed_periods = self._owed_periods + 1 if oldest and oldest == self._oldest else 0
        self._oldest = oldest
        if self._transport is None or self._transport.is_closing():
            return
        if self._owed_periods >= MAX_OWED_PERIODS:
            self._end(LinkError("the broker does not acknowledge what it is sent"))
        elif not self._heard:
            self._transport.abort()  # not `close`, which would wait for a peer that is gone to read
        else:
            self._heard = False
            self._transport.write(PINGREQ)
            self._look_later()

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
        greet(paho, self._greeting, username, password)
        await self._greeted

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
        finally:  # if the wait is cancelled, a SUBACK that still comes finds nobody
            self._granted.pop(number, None)
        if len(refusals) != len(topic_filters):  # 3.8.4-5
            raise LinkError("the broker does not answer for each topic filter")
        return refusals

    def read_by_the_clock(self, deliver: "DeliverPortion") -> None:
        """From here on read the socket by the clock, and hand messages on to `deliver`, in portions.

        One at QoS 1 is acknowledged when it was read: without a session that goes on, what is not handed on is lost
        with the link, acknowledged or not.
        """
        from eyestream.rim.mqtt.portions import Portions  # noqa: PLC0415  for sources of gaze

        self._check()
        self._portions = Portions(cast(asyncio.Transport, self._transport), partial(self._call, deliver))
        self._deliver = self._portions.put

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
        ours, size = self._weigh(topic, payload, more, 2)
        why = self._too_much(size, retain) if self.limits.qos_1 else "it takes QoS 0 only"
        if why is not None:
            asyncio.get_running_loop().call_soon(refused, why)
        else:
            self._outgoing.publish(WaitingMessage(topic, payload, retain, ours, acknowledged, refused))

    async def publish_at_most_once(
        self, topic: str, payload: bytes, retain: bool, more: Properties = NO_PROPERTIES
    ) -> None:
        """Publish at QoS 0; waits while the socket has no room. Raises as `publish`, ValueError also for too much."""
        self._check()
        ours, size = self._weigh(topic, payload, more, 0)
        if why := self._too_much(size, retain):
            raise ValueError(why)
        self._at_most_once = True  # paho says that it is written, under a number that may be a packet id at QoS 1 too
        try:
            self._paho.publish(topic, payload, 0, retain, ours)
        finally:
            self._at_most_once = False
        await self._room.wait()

    def _weigh(self, topic: str, payload: bytes, more: Properties, extra: int) -> tuple[PahoProperties | None, int]:
        """Properties in paho's words, and the bytes of the packet."""
        ours, length = paho_properties(more) if self._five else (None, 0)
        body = 2 + topic_bytes(topic) + extra + length + len(payload)
        return ours, 2 + body + (body > 0x7F) + (body > 0x3FFF) + (body > 0x1F_FFFF)

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
                disconnect(self._paho, self._greeting, in_order=in_order)
            self._carrier.close()
            await asyncio.wait({self.ended}, timeout=wait_s)
        finally:
            self._transport.abort()

    def _check(self) -> None:
        if self._transport is None or self._transport.is_closing():
            raise LinkError("the link to the broker is lost")


def _answer(future: "asyncio.Future[Answer]", answer: Answer) -> None:
    if not future.done():
        future.set_result(answer)


def _fail(future: "asyncio.Future[Answer]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # looked at: where nobody waits for it, nobody has to know
