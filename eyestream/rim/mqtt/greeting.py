"""What we say of ourselves when a link begins, whichever client says it."""

from typing import NamedTuple

from eyestream.errors import LinkError
from eyestream.rim.mqtt.outgoing import Outgoing
from eyestream.wire.mqtt_packets import Will

__all__ = ["Greeting", "OtherVersionError"]


class Greeting(NamedTuple):
    """As for `eyestream.rim.mqtt.transport.connect`."""

    client_id: str | None
    keepalive_s: int
    clean_session: bool
    will: Will | None
    outgoing: Outgoing
    resume: bool

    @property
    def will_delay_s(self) -> int:
        """So long a session must live on in MQTT 5 for its will to wait (3.1.3.2.2)."""
        return 0 if self.will is None else self.will.delay_s


class OtherVersionError(LinkError):
    """The broker may speak 3.1.1."""
