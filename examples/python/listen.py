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

LEAVES = ("meta", "status", "odometer", "private")


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


Lives = dict[tuple[str, int], dict[str, Any]]


def went_back(lives: Lives, unsure: Lives, said: dict[str, Any], retained: bool) -> bool:
    """Whether the sidecar goes on with an older copy of its ledger; `lives` is what was heard, by ledger and life."""
    name = said["ledger"], said["life"]
    if name in lives and said["reads"] <= lives[name]["reads"]:
        return False  # it came late, or again
    others = [one for key, one in lives.items() if key[0] == name[0] and key != name]
    overlaps = any(one["began"] < said["reads"] and said["began"] < one["reads"] for one in others)
    below = name not in lives and any(said["began"] < one["reads"] for one in others)
    grows = name in unsure and said["reads"] > unsure[name]["reads"] and not retained
    if below and not overlaps and not grows:
        unsure.clear()
        unsure[name] = said
        return False  # perhaps: the broker may have sent an old message; what is old does not grow
    lives[name] = said
    return overlaps or below


async def main(url: str, device: str, most: str = "0") -> None:
    count, last, meta = 0, None, None
    lives, unsure = Lives(), Lives()
    async with client(url) as broker:
        for leaf in LEAVES:
            await broker.subscribe(f"eyestream/v1/{device}/features/{leaf}", 0 if leaf == "odometer" else 1)
        async for message in broker.messages:
            leaf = message.topic.value.rpartition("/")[2]
            said = decode(leaf, message.payload)
            if leaf == "meta":
                meta = said
            elif leaf == "status":
                print("status", said["state"], said["reason"], flush=True)
            elif leaf == "odometer":
                if went_back(lives, unsure, said, message.retain):
                    print("the ledger went back: what was spent since is spent again", flush=True)
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
