"""A tracker and an application without eyestream: aiomqtt for MQTT, msgpack for payloads.

Any MQTT client will do, in any language: docs/protocol.md has the format.

    pip install aiomqtt msgpack numpy
    python other_client.py localhost hmd-1
"""

import asyncio
import secrets
import sys
from collections.abc import AsyncIterator

import aiomqtt
import msgpack
import numpy as np


async def send(client: aiomqtt.Client, device: str, blocks: list[np.ndarray], schema: int = 1) -> None:
    """Publish rows of features, (m, F) a block, as one session of a tracker."""
    session, seq = secrets.randbits(63), 0
    for rows in blocks:
        message = {"v": 1, "schema": schema, "session": session, "seq": seq, "shape": rows.shape}
        message["values"] = rows.astype("<f4").tobytes()
        await client.publish(f"eyestream/v1/{device}/features/raw", msgpack.packb(message), qos=0)
        seq += len(rows)


async def chunks(client: aiomqtt.Client, device: str) -> AsyncIterator[tuple[int, np.ndarray]]:
    """Released chunks, each with its number: (F, n) values."""
    await client.subscribe(f"eyestream/v1/{device}/features/private", qos=1)
    async for message in client.messages:
        chunk = msgpack.unpackb(message.payload)
        yield chunk["chunk"], np.frombuffer(chunk["values"], "<f4").reshape(chunk["shape"])


async def main(host: str, device: str) -> None:
    """Print the mean of each chunk's first feature."""
    async with aiomqtt.Client(host) as client:
        async for number, values in chunks(client, device):
            print(number, values[0].mean())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
