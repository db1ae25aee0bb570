"""Role: the null relay. ``python -m benchmarks.relay PORT DEVICE N FEATURES``.

A sidecar without its work: the same client library, two links, inbox, QoS and process; what it publishes are the bytes
of a chunk's raw messages, untouched, one after the other (about as many as the released chunk has).
"""

import asyncio
import sys

from eyestream.config import BrokerSettings
from eyestream.service.buffer import DropOldest
from eyestream.service.endpoint import Endpoint
from eyestream.service.transport import Message, connect
from eyestream.wire.messages import decode_raw
from eyestream.wire.topics import private_topic, raw_topic


async def main() -> None:
    """Relay until killed."""
    port, device, n, features = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    endpoint = Endpoint.of(BrokerSettings(f"mqtt://127.0.0.1:{port}"))
    inbox: DropOldest[Message] = DropOldest(4096)
    held: list[bytes] = []
    async with (
        connect(endpoint, client_id="relay-raw", deliver=inbox.put) as raw,
        connect(endpoint, client_id="relay", deliver=lambda message: None) as private,
    ):
        await raw.subscribe(raw_topic(device), 1)
        print("up", flush=True)
        while True:
            message = await inbox.get()
            if message.topic != raw_topic(device):
                continue  # the embedded broker has been seen to deliver what nobody subscribed to
            held.append(message.payload)
            rows = decode_raw(held[-1], features, 1)
            if (rows.seq + len(rows.rows)) % n == 0:
                await private.publish(private_topic(device), b"".join(held), qos=1)
                held.clear()


if __name__ == "__main__":
    asyncio.run(main())
