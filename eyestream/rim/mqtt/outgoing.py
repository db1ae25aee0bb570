"""What we published at QoS 1 and the broker has not acknowledged: within its limits, and again on a new link.

A session of MQTT 5 that outlives its connection is continued: the library sends what was under way again, in its order,
under its packet ids, with the DUP flag (4.4.0-1). In every other case a link begins with nothing under way.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from paho.mqtt.enums import MQTTErrorCode
from paho.mqtt.properties import Properties as PahoProperties

from eyestream.rim.mqtt.carrier import Paho

__all__ = ["Outgoing", "Waiting"]

_MOST_UNDER_WAY = 1 << 15
"""Whatever a broker takes: packet ids are 16 bits, and subscriptions need some too."""


class Waiting(NamedTuple):
    """One message, and whom to call when it is acknowledged, or refused for a reason."""

    topic: str
    payload: bytes
    retain: bool
    said: PahoProperties | None
    acknowledged: Callable[[], None]
    refused: Callable[[str], None]


class Outgoing:
    """Messages of one session, in order. The caller bounds how many there are."""

    def __init__(self) -> None:
        self._paho: Paho | None = None
        self._sent: dict[int, Waiting] = {}
        self._waiting: deque[Waiting] = deque()
        self._receive_maximum = 0

    @property
    def oldest(self) -> int:
        """Packet id of what is owed an acknowledgement for the longest time; 0: nothing is."""
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

    def publish(self, message: Waiting) -> None:
        """Take a message, and send it at once where the broker has room."""
        self._waiting.append(message)
        self.flush()

    def flush(self) -> None:
        """Send what there is room for."""
        while self._waiting and len(self._sent) < self._receive_maximum and self._paho is not None:
            message = self._waiting.popleft()
            in_use = True
            while in_use:  # the packet id: paho takes the next one then
                info = self._paho.publish(message.topic, message.payload, 1, message.retain, message.said)
                in_use = info.rc == MQTTErrorCode.MQTT_ERR_QUEUE_SIZE
            self._sent[info.mid] = message

    def settle(self, packet_id: int) -> Waiting | None:
        """The message that the broker has answered to; None: nobody waits for that."""
        return self._sent.pop(packet_id, None)
