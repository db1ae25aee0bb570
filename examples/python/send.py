"""A tracker without eyestream: send made-up rows of features as one session of a device.

    pip install aiomqtt msgpack
    python send.py mqtt://localhost:1883 hmd-1 [ROWS] [FEATURES] [RATE_HZ]

Without a rate the rows come at once. Login and certificates come from the same variables as those of listen.py.
"""

import asyncio
import math
import sys
import time
from array import array

import aiomqtt
import msgpack
from listen import client

SCHEMA = 1
ROWS_A_MESSAGE = 16


def message(session: int, seq: int, rows: list[list[float]]) -> bytes:
    """Rows with the numbers `seq` and following; what is missing is NaN."""
    values = array("f", [value for row in rows for value in row])
    if sys.byteorder == "big":
        values.byteswap()
    shape = [len(rows), len(rows[0])]
    said = {"v": 1, "schema": SCHEMA, "session": session, "seq": seq, "shape": shape, "values": values.tobytes()}
    return msgpack.packb(said)


async def send(broker: aiomqtt.Client, device: str, rows: list[list[float]], rate_hz: float | None = None) -> None:
    """Publish `rows` as one session."""
    session = time.time_ns()  # must be larger than that of the session before
    step = 1 if rate_hz else ROWS_A_MESSAGE
    for seq in range(0, len(rows), step):
        if rate_hz:
            await asyncio.sleep(1 / rate_hz)
        payload = message(session, seq, rows[seq : seq + step])
        await broker.publish(f"eyestream/v1/{device}/features/raw", payload, qos=1)


async def main(url: str, device: str, rows: str = "96", features: str = "52", rate_hz: str = "") -> None:
    made = [[math.sin(i / 9 + feature) for feature in range(int(features))] for i in range(int(rows))]
    async with client(url) as broker:
        await send(broker, device, made, float(rate_hz) if rate_hz else None)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:6]))
