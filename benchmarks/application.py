"""Role: the application. ``python -m benchmarks.application PORT TOPIC``; says "up", then, told a line, what came.

What came: a JSON list of [topic, chunk index or null, monotonic nanoseconds, `at` or null], noted as it is decoded.
"""

import asyncio
import json
import sys
import time

from eyestream.errors import PayloadError
from eyestream.rim.config import BrokerSettings
from eyestream.rim.mqtt.endpoint import Endpoint
from eyestream.rim.mqtt.transport import Message, connect
from eyestream.wire.release import decode_private


async def main() -> None:
    """Note arrivals until told to say them."""
    endpoint = Endpoint.of(BrokerSettings(f"mqtt://127.0.0.1:{sys.argv[1]}"))
    arrivals: list[tuple[str, int | None, int, float | None]] = []

    def deliver(message: Message) -> None:
        try:
            chunk = decode_private(message.payload)
        except PayloadError:
            arrivals.append((message.topic, None, time.monotonic_ns(), None))
        else:
            arrivals.append((message.topic, chunk.chunk, time.monotonic_ns(), chunk.at))

    async with connect(endpoint, client_id="application", deliver=deliver) as link:
        await link.subscribe(sys.argv[2], 1)
        print("up", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
    print(json.dumps(arrivals), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
