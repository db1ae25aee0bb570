"""What we published at QoS 1 and the broker has not acknowledged: numbered, within its limits, and again on a new link.

A session of MQTT 5 that outlives its connection is continued: what was under way is sent again, in its order, under
its packet ids, with the DUP flag (4.4.0-1). In every other case a link begins with nothing under way.
"""

from collections.abc import Callable, Container

from eyestream.wire.mqtt5_reasons import reason
from eyestream.wire.mqtt_packets import Limits, Puback

__all__ = ["Outgoing", "Sent"]

Sent = tuple[bytes, Callable[[], None], Callable[[str], None]]
"""One message: its packet, whom to call when it is acknowledged, and whom when it is refused."""


class Outgoing:
    """Messages of one session, in order. The caller bounds how many there are."""

    def __init__(self) -> None:
        self.sent: dict[int, Sent] = {}
        """By packet id; those that wait for room at the broker are among them."""
        self._waiting: dict[int, None] = {}
        self._receive_maximum = Limits().receive_maximum
        self._last_id = 0

    @property
    def oldest(self) -> int:
        """Packet id of what is owed an acknowledgement for the longest time; 0: nothing is."""
        return next(iter(self.sent), 0)

    def begin(self, receive_maximum: int, *, resumed: bool) -> list[bytes]:
        """A new link: forget everything, or continue. What is to be sent at once."""
        self._receive_maximum = receive_maximum
        if not resumed:
            self.sent.clear()
            self._waiting.clear()
        for number in self.sent.keys() - self._waiting.keys():
            packet, acknowledged, refused = self.sent[number]
            self.sent[number] = (bytes([packet[0] | 8]) + packet[1:], acknowledged, refused)
        self._waiting = dict.fromkeys(self.sent)
        return self._flush()

    def new_id(self, also_taken: Container[int]) -> int:
        """A packet id that is not in use."""
        while True:
            self._last_id = self._last_id % 0xFFFF + 1
            if self._last_id not in self.sent and self._last_id not in also_taken:
                return self._last_id

    def add(self, number: int, sent: Sent) -> bytes:
        """Take a message; its packet when it may go out at once, else nothing."""
        waits = self._waiting or len(self.sent) >= self._receive_maximum
        self.sent[number] = sent
        if waits:
            self._waiting[number] = None
            return b""
        return sent[0]

    def settle(self, answer: Puback) -> list[bytes]:
        """The broker's answer to one of them; what it makes room for."""
        number = answer.packet_id
        sent = None if number in self._waiting else self.sent.pop(number, None)
        if sent is None:
            return []
        _, acknowledged, refused = sent
        if answer.code < 0x80:
            acknowledged()
        else:
            refused(reason(answer.code, answer.words))
        return self._flush() if self._waiting else []

    def _flush(self) -> list[bytes]:
        room = self._receive_maximum - len(self.sent) + len(self._waiting)
        numbers = [number for number, _ in zip(self._waiting, range(room), strict=False)]
        for number in numbers:
            del self._waiting[number]
        return [self.sent[number][0] for number in numbers]
