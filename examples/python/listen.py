"""Print private chunks of a device, without eyestream: aiomqtt for MQTT, msgpack for payloads.

    pip install aiomqtt msgpack
    python listen.py mqtt://localhost:1883 hmd-1 [CHUNKS]

Login and certificates come from MQTT_USERNAME, MQTT_PASSWORD and MQTT_CA_FILE. The address mqtts:// takes TLS.
"""

import asyncio
import os
import sys
from typing import Any
from urllib.parse import urlsplit

import aiomqtt
from payloads import decode

LEAVES = ("meta", "status", "private")


def client(url: str) -> aiomqtt.Client:
    address = urlsplit(url)
    secure = address.scheme == "mqtts"
    return aiomqtt.Client(
        address.hostname or "localhost",
        address.port or (8883 if secure else 1883),
        username=os.environ.get("MQTT_USERNAME"),
        password=os.environ.get("MQTT_PASSWORD"),
        tls_params=aiomqtt.TLSParameters(ca_certs=os.environ.get("MQTT_CA_FILE")) if secure else None,
    )


def line(chunk: dict[str, Any], meta: dict[str, Any]) -> str:
    """The mean of the first feature."""
    first = chunk["values"][: chunk["shape"][1]]
    mean = sum(first) / len(first)
    return f"chunk {chunk['chunk']} epsilon {chunk['epsilon']:g}: {meta['names'][0]} {mean:.3f} {meta['units'][0]}"


async def main(url: str, device: str, most: str = "0") -> None:
    count, last, meta = 0, None, None
    async with client(url) as broker:
        await broker.subscribe([(f"eyestream/v1/{device}/features/{leaf}", 1) for leaf in LEAVES])
        async for message in broker.messages:
            leaf = message.topic.value.rpartition("/")[2]
            said = decode(leaf, message.payload)
            if leaf == "meta":
                meta = said
            elif leaf == "status":
                print("status", said["state"], said["reason"], flush=True)
            elif meta is not None and (said["session"], said["chunk"]) != last:  # the same may come twice
                last = (said["session"], said["chunk"])
                print(line(said, meta), flush=True)
                count += 1
                if count == int(most):
                    return


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:4]))
    except aiomqtt.MqttError as error:
        sys.exit(f"the broker: {error}")
