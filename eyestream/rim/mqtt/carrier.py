"""Paho on asyncio: what the library takes for its socket, the one private method of it that we replace, its session.

A broker's bytes are cut into packets before anybody reads them (`Frames`, pure and bounded). The library would hold a
packet of any size, and a message at QoS 2 until the broker releases it. So what is too large is cut while it comes in,
and a packet that a broker may not send to us ends the link. Messages are not for the library
(`eyestream.rim.mqtt.incoming`).

Sources: MQTT Version 3.1.1 (OASIS Standard, 29 October 2014) and MQTT Version 5.0 (OASIS Standard, 7 March 2019),
section 2 of both.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode
from paho.mqtt.properties import Properties as PahoProperties

from eyestream.errors import LinkError
from eyestream.wire.envelope import MAX_RELEASE_BYTES

CONNACK = 0x20

MAX_PROPERTIES_BYTES = 512
"""Bytes of the properties of one message that are read at most."""

_PUBLISH = frozenset({0x30, 0x31, 0x32, 0x33, 0x3A, 0x3B})
"""First bytes of PUBLISH: QoS 0 and 1, with and without the flags for retained and sent again."""

_ANSWERS = frozenset({CONNACK, 0x40, 0x90, 0xD0, 0xE0})
"""First bytes of CONNACK, PUBACK, SUBACK, PINGRESP and DISCONNECT."""

_MOST_HEADER = 2 + 65_535 + 2
"""Bytes of a topic and a packet id."""

_MOST_MESSAGE = _MOST_HEADER + 2 + MAX_PROPERTIES_BYTES + MAX_RELEASE_BYTES
_MOST_ANSWER = 16_384

MOST_HELD = 5 + _MOST_MESSAGE
"""Bytes of an unfinished packet, at most."""


class Frames:
    """A broker's bytes to packets; holds one unfinished packet at most.

    >>> frames = Frames()
    >>> [*frames.feed(bytes.fromhex("d000 40"))], [*frames.feed(bytes.fromhex("02 0007"))]
    ([(b'\\xd0\\x00', False)], [(b'@\\x02\\x00\\x07', False)])
    """

    def __init__(self) -> None:
        self._held = bytearray()
        self._needed = 0
        self._skip = 0

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bool]]:
        """Packets that `data`, any number of bytes, completes; to be read to the end before more is fed.

        Yields
        ------
        tuple[bytes, bool]
            A packet, and whether it is a message that was too large: then what follows its packet id is left out.

        Raises
        ------
        LinkError
            No packet of a broker; nothing may be fed any more.
        """
        if self._held:
            self._held += data
            if len(self._held) < self._needed:
                return
            data = bytes(self._held)
            self._held.clear()
        at, size = 0, len(data)
        while True:
            passed = min(self._skip, size - at)
            self._skip -= passed
            at += passed
            if at == size:
                return
            head = data[at]
            message = head in _PUBLISH
            if not message and head not in _ANSWERS:
                raise broken("no packet that a broker may send to us")
            body, end = _frame(data, at)
            whole = end - body <= (_MOST_MESSAGE if message else _MOST_ANSWER)
            if not whole and not message:
                raise broken("a packet that is too large")
            kept = end if whole else body + _MOST_HEADER
            if kept > size:
                self._held += data[at:]
                self._needed = kept - at
                return
            if whole:
                yield data[at:end], False
            else:
                yield _header(data, at, body), True
            self._skip = end - kept
            at = kept


def broken(what: str) -> LinkError:
    """The error for `what` is wrong with a broker's bytes; it holds nothing of their content."""
    return LinkError(f"the broker does not speak MQTT as we know it: {what}")


def _header(data: bytes, at: int, body: int) -> bytes:
    """The message at `at` up to its packet id, as a packet."""
    rest = data[body : body + 2 + int.from_bytes(data[body : body + 2]) + 2 * (data[at] & 0x06 != 0)]
    return bytes([data[at], len(rest) & 0x7F | 0x80, len(rest) >> 7 & 0x7F | 0x80, len(rest) >> 14]) + rest


def _frame(data: bytes, at: int) -> tuple[int, int]:
    """Where the body of the packet at `at` begins and ends; beyond `data` when that is not known yet."""
    body, length = at + 1, 0
    while body < len(data):
        digit = data[body]
        length |= (digit & 0x7F) << 7 * (body - at - 1)
        body += 1
        if digit < 0x80:
            return body, body + length
        if body - at > 4:
            raise broken("a length of more than four bytes")
    return body, len(data) + 1


class Carrier:
    """A socket to the library: it reads one packet at a time, and what it writes goes to a transport of asyncio."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._packet, self._at = b"", 0
        self._held: bytearray | None = None

    def give(self, packet: bytes) -> None:
        """Let the library read `packet` next."""
        self._packet, self._at = packet, 0

    def hold(self) -> None:
        """Keep what the library writes, until `release` writes it all at once."""
        self._held = bytearray()

    def release(self) -> None:
        """Write what was held."""
        held, self._held = self._held, None
        if held:
            self.send(held)

    def recv(self, size: int) -> bytes:
        """Read like a socket that does not block."""
        got = self._packet[self._at : self._at + size]
        if not got:
            raise BlockingIOError
        self._at += len(got)
        return got

    def send(self, data: bytes | bytearray) -> int:
        """Write like a socket that takes everything; what is written after the end is lost, as the protocol is told."""
        if self._held is not None:
            self._held += data
        elif not self._transport.is_closing():
            self._transport.write(data)
        return len(data)

    def close(self) -> None:
        """Close the connection after what was written; one that is closing stays as it is.

        A second `close` takes from a TLS transport of asyncio what `abort` needs: in Python 3.11.2 `abort` raises
        then, and later ones leave the socket open.
        """
        self.release()
        if not self._transport.is_closing():
            self._transport.close()

    def fileno(self) -> int:
        """There is none."""
        return -1

    def setblocking(self, flag: bool) -> None:
        """It never blocks."""


class Paho(paho.Client):
    """The library's client on a carrier. It reads and writes where it is called, and has no thread.

    `connect` begins on `carrier`, which is set before. The library has no public place for a socket of another making:
    `_create_socket` is the private method that is replaced here.
    """

    carrier: Carrier

    def __init__(self, client_id: str, *, five: bool, clean_session: bool) -> None:
        super().__init__(
            CallbackAPIVersion.VERSION2,
            client_id=client_id,
            clean_session=None if five else clean_session,
            protocol=paho.MQTTv5 if five else paho.MQTTv311,
            reconnect_on_failure=False,
        )
        self.five = five
        self.max_inflight_messages_set(0)  # how many may be under way is for `Outgoing` to say: it knows the broker

    def _create_socket(self) -> Carrier:
        return self.carrier


_MOST_UNDER_WAY = 1 << 15
"""Whatever a broker takes: packet ids are 16 bits, and subscriptions need some too."""


class WaitingMessage(NamedTuple):
    """One message, and whom to call when it is acknowledged, or refused for a reason."""

    topic: str
    payload: bytes
    retain: bool
    properties: PahoProperties | None
    acknowledged: Callable[[], None]
    refused: Callable[[str], None]


class Outgoing:
    """Messages of one session at QoS 1 that the broker has not acknowledged, in order; the caller bounds them.

    A session of MQTT 5 that outlives its connection is continued: the library sends what was under way again, in its
    order, under its packet ids, with the DUP flag (4.4.0-1). In every other case a link begins with nothing under way.
    """

    def __init__(self) -> None:
        self._paho: Paho | None = None
        self._sent: dict[int, WaitingMessage] = {}
        self._waiting: deque[WaitingMessage] = deque()
        self._receive_maximum = 0

    @property
    def oldest(self) -> int:
        """Packet id of the oldest unacknowledged message; 0 if there is none."""
        return next(iter(self._sent), 0)

    def client(self, client_id: str, *, five: bool, clean_start: bool) -> Paho:
        """The library's client for the next link: that of the last one where its session shall go on.

        Raises ValueError for a session that shall go on and has no name.
        """
        if not (client_id or clean_start):
            raise ValueError("a session that is kept needs a client id")  # 3.1.3-7
        self._receive_maximum = 0
        if self._paho is None or clean_start or self._paho.five != five:
            self._paho = Paho(client_id, five=five, clean_session=clean_start)
        return self._paho

    def begin(self, receive_maximum: int, *, resumed: bool) -> None:
        """The broker's greeting: forget everything, or let the library send it again."""
        self._receive_maximum = min(receive_maximum, _MOST_UNDER_WAY)
        if not resumed and self._paho is not None:
            self._paho.drop_out_messages()
            self._sent.clear()
            self._waiting.clear()

    def publish(self, message: WaitingMessage) -> None:
        """Take a message, and send it at once where the broker has room."""
        self._waiting.append(message)
        self.flush()

    def flush(self) -> None:
        """Send what there is room for."""
        while self._waiting and len(self._sent) < self._receive_maximum and self._paho is not None:
            message = self._waiting.popleft()
            in_use = True
            while in_use:  # the packet id: paho takes the next one then
                info = self._paho.publish(message.topic, message.payload, 1, message.retain, message.properties)
                in_use = info.rc == MQTTErrorCode.MQTT_ERR_QUEUE_SIZE
            self._sent[info.mid] = message

    def settle(self, packet_id: int) -> WaitingMessage | None:
        """The message that the broker has answered to; None: nobody waits for that."""
        return self._sent.pop(packet_id, None)
