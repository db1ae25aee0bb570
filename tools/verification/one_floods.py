"""What a device that floods costs the others: their latency beside it and without it, by turns.

    python -m tools.verification.one_floods --turns 3

Twenty devices of one sidecar each complete a chunk about five times a second. By turns another device is silent, or
sends a thousand messages a second of one kind: random bytes, maps of 20,000 entries, rows at 150,000 times its rate, or
a new session with each. Messages go in where the raw link delivers them, at most 64 in a turn of the loop, as it reads
them. A chunk's latency is from the moment when its last row was due to come until the chunk is handed to the private
link. What the broker and the reading of packets cost is not in it.

One JSON object on stdout. The exit code is 1 if the median of all turns with a kind of flood is more than twice that of
all calm turns, or if a message of the others was dropped.
"""

import argparse
import asyncio
import json
import logging
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eyestream.rim.config import LimitSettings
from eyestream.streams import StreamKey
from tests.rigs.sidecar import MOST_ROWS, Flood, N, flooding

CALM = 20
LOUD = f"d{CALM}"
RATE_HZ = 1000.0
AT_ONCE = 64
MOST_TIMES = 2.0
LIMITS = LimitSettings(raw_messages=512, released_chunks=512, deadline_s=60.0)
ENTRIES = b"\xde\x4e\x20\xa1v\x01" + b"\xa1x\xc0" * 19_999


def _new_session(flood: Flood) -> bytes:
    flood.next_session(LOUD)
    return flood.rows(1, LOUD)


KINDS: dict[str, Callable[[Flood], bytes] | None] = {
    "calm": None,
    "random": lambda flood: os.urandom(100),
    "entries": lambda flood: ENTRIES,
    "rows": lambda flood: flood.rows(MOST_ROWS, LOUD),
    "sessions": _new_session,
}


async def turn(make: Callable[[Flood], bytes] | None, seconds: float, folder: Path) -> tuple[list[float], int]:
    """Latencies in milliseconds of the chunks of all others, and how many of their messages were dropped."""
    rng, clock = random.Random(1), time.perf_counter
    sent: dict[str, float] = {}
    found: list[float] = []
    count = 0
    async with flooding(folder, devices=CALM + 1, limits=LIMITS) as flood:

        def leave(topic: str, payload: bytes) -> None:
            due = sent.pop(topic.split("/")[2], None)
            if due is not None:
                found.append(1e3 * (clock() - due))

        flood.link.on_send = leave
        began = clock()
        loud, calm = began, [began + rng.random() for _ in range(CALM)]
        waiting: list[tuple[float, str]] = []
        while (now := clock()) < began + seconds:
            while make is not None and loud <= now:
                waiting.append((loud, LOUD))
                loud += 1 / RATE_HZ
            for number, due in enumerate(calm):
                if due <= now:
                    waiting.append((due, f"d{number}"))
                    calm[number] += rng.uniform(0.1, 0.3)
            waiting.sort()
            for due, device in waiting[:AT_ONCE]:
                if device != LOUD:
                    sent[device], count = due, count + 1
                    flood.send(flood.rows(N, device), device)
                elif make is not None:
                    flood.send(make(flood), device)
            del waiting[:AT_ONCE]
            await asyncio.sleep(0 if waiting else 0.0003)
        await flood.room(0)
        rows = sum(flood.sidecar.pipeline.rows(StreamKey(f"d{number}", "features")).rows for number in range(CALM))
    return found, count - rows // N


def main() -> None:
    """Turns, and the verdict."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    dropped = 0
    for _ in range(options.turns):
        for kind, make in KINDS.items():
            with tempfile.TemporaryDirectory() as folder:
                latencies, lost = asyncio.run(turn(make, options.seconds, Path(folder)))
            found[kind] += latencies
            dropped += lost
    medians = {kind: statistics.median(latencies) for kind, latencies in found.items()}
    times = {kind: round(median / medians["calm"], 2) for kind, median in medians.items()}
    report: dict[str, Any] = {"median ms": {kind: round(median, 2) for kind, median in medians.items()}}
    print(json.dumps(report | {"times calm": times, "messages of others dropped": dropped}, indent=1))
    sys.exit(max(times.values()) > MOST_TIMES or dropped > 0)


if __name__ == "__main__":
    main()
