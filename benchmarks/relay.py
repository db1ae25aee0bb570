"""Role: the null relay. ``python -m benchmarks.relay PORT DEVICE N FEATURES``.

A sidecar without its work: the same client, two links, QoS and process, and it publishes where it is handed the last
message; what it publishes are the bytes of a chunk's raw messages, untouched, one after the other (about as many as
the released chunk has).
"""

import asyncio
import sys

from eyestream.errors import LinkError
from eyestream.rim.config import BrokerSettings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Link, Message, connect
from eyestream.wire.raw import decode_raw
from eyestream.wire.topics import private_topic, raw_topic


class Relay:
    """Republishes the messages of a chunk when its last row is there."""

    def __init__(self, device: str, n: int, features: int) -> None:
        self._device, self._n, self._features = device, n, features
        self._held: list[bytes] = []
        self.private: Link | None = None

    def take(self, message: Message) -> None:
        """From the raw link, in the event loop."""
        if message.topic != raw_topic(self._device):
            return  # the embedded broker has been seen to deliver what nobody subscribed to
        self._held.append(message.payload)
        rows = decode_raw(message.payload, self._features, 1)
        if (rows.seq + len(rows.rows)) % self._n == 0 and self.private is not None:
            self.private.send(private_topic(self._device), b"".join(self._held), lambda: None)
            self._held.clear()


async def main() -> None:
    """Relay until killed."""
    port, device, n, features = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    endpoint = Endpoint.of(BrokerSettings(f"mqtt://127.0.0.1:{port}"))
    relay = Relay(device, n, features)
    while True:
        try:
            async with (
                connect(endpoint, client_id="relay-raw", deliver=relay.take) as raw,
                connect(endpoint, client_id="relay", deliver=lambda message: None) as relay.private,
            ):
                await raw.subscribe(raw_topic(device), 1)
                print("up", flush=True)
                await asyncio.Event().wait()
        except LinkError:  # amqtt drops links when somebody subscribes beside them; a sidecar comes back, too
            relay.private = None
            await asyncio.sleep(0.1)


if __name__ == "__main__":
    asyncio.run(main())
