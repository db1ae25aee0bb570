"""Messages of a link that is read by the clock: at the multiples of `PORTION_S`, whatever comes, and in portions.

To wake for each message costs most of a link. So what the broker sends is the kernel's to hold, and all of it is read
when the host's clock shows a multiple. A message then arrives at the first multiple after it came. That moment depends
on this message and the clock alone. If the wait began with a message, one event would move the arrival of all after it.

======= ========================= ================================= ============================================
state   of the socket             what a message does               ends
======= ========================= ================================= ============================================
silent  is read                   is held, begins the wait          with the first message
waiting is not read, or see below is held                           at the multiple: what is held is handed on
open    is read                   is handed on in its turn          with what was there, or the next turn of the loop
======= ========================= ================================= ============================================

Two rules beside. A broker sends so many messages at QoS 1 and waits until they are acknowledged, so after a read with
`WINDOW` of them the socket is read once more after `ROUND_S`, while it waits for the multiple: they are acknowledged at
once and held, of `MOST_BYTES` no more. After a read of `BULK_BYTES` there may be more than one read takes, so the
portion goes on.
"""

import asyncio
from collections.abc import Callable

from eyestream.rim.mqtt.messages import Message

PORTION_S = 0.05

WINDOW = 8
"""Fewer than any known broker sends before it waits: HiveMQ sends 10, mosquitto 20."""

ROUND_S = 0.002
"""For a broker to answer to acknowledgements with its next messages."""

MOST_BYTES = 1 << 20
BULK_BYTES = 1 << 16
"""Bytes of topics and payloads. One read of asyncio takes up to four times as many bytes."""

DeliverPortion = Callable[[list[Message], float], None]
"""Takes messages and when they arrived, on the loop's clock."""


class Portions:
    """When a client reads its socket, and when its messages are handed on. Not to be used outside the event loop.

    Parameters
    ----------
    transport
        The client's.
    deliver
        Takes portions; must not block, and raises nothing.
    """

    def __init__(self, transport: asyncio.Transport, deliver: DeliverPortion) -> None:
        self._transport, self._deliver = transport, deliver
        self._held: list[Message] = []
        self._held_bytes = self._read_bytes = self._owed = 0
        self._is_open, self._all_read = False, True
        self._slot = 0
        self._timer: asyncio.TimerHandle | None = None
        self._again: asyncio.TimerHandle | None = None
        self._at = 0.0

    def begin(self) -> None:
        """The client begins to read packets: what it hands on in this turn of the loop arrives now."""
        self._at = asyncio.get_running_loop().time()

    def put(self, message: Message) -> None:
        """Take a message that the client has read."""
        size = len(message.topic) + len(message.payload)
        self._held.append(message)
        self._held_bytes += size
        self._read_bytes += size
        self._owed += message.packet_id != 0

    def turn(self, *, all_read: bool) -> None:
        """The client has read packets in this turn of the loop: all that there were, or it goes on in the next."""
        self._all_read = all_read
        if not self._read_bytes:
            return  # no message: an answer of the broker's waits for nothing
        if self._is_open:
            self._hand_on()
        else:
            self._wait()
        if not all_read:
            return
        bulk, many = self._read_bytes >= BULK_BYTES, self._owed >= WINDOW
        self._read_bytes = self._owed = 0
        if self._is_open and bulk:
            self._open()
            return
        self._is_open = False
        self._transport.pause_reading()
        self._wait()
        if many and self._held_bytes <= MOST_BYTES:
            self._again = asyncio.get_running_loop().call_later(ROUND_S, self._transport.resume_reading)

    def end(self) -> None:
        """The link is lost: what was read before is handed on."""
        for timer in (self._timer, self._again):
            if timer is not None:
                timer.cancel()
        self.begin()
        self._hand_on()

    def _wait(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._slot = 1 + max(self._slot, int(loop.time() // PORTION_S))  # a timer may be early by its resolution
            self._timer = loop.call_at(self._slot * PORTION_S, self._at_multiple)

    def _at_multiple(self) -> None:
        self._timer = None
        if self._again is not None:
            self._again.cancel()
        if self._transport.is_closing():
            return
        self.begin()
        self._hand_on()
        self._open()
        if self._all_read:  # else the client resumes when it has
            self._transport.resume_reading()

    def _open(self) -> None:
        """Hand on what comes in the next turn of the loop. There the loop looks at the socket before its timers."""
        self._is_open = True
        asyncio.get_running_loop().call_at(self._at, self._shut)

    def _shut(self) -> None:
        """Nothing was there: what comes from here on waits."""
        if self._all_read and not self._timer:
            self._is_open = False

    def _hand_on(self) -> None:
        held, self._held, self._held_bytes = self._held, [], 0
        if held:
            self._deliver(held, self._at)
