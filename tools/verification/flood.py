"""A flood and a crowd at a real broker while a sidecar works: nothing grows, all is counted, the tracker is heard.

    python -m tools.verification.flood --seconds 60

Beside a tracker that sends a chunk ten times a second, one publisher sends messages of 64 KiB for another device of the
same sidecar as fast as the machine takes them, and a thousand clients come and go: whole, half, in each other's name,
with a will on the raw topic, with noise, with RST. Then all is quiet again. The exit code is 1 unless

- the sidecar's memory never passed 150 MB, and did not rise by more than 1 MB a minute (2 when that was too short to
  judge: see tests.rigs.trend);
- what came in = rejected + dropped + taken + held, and so on for rows and chunks, ten times a second;
- after the flood its event loop is late by less than 50 ms (p99), and 15 chunks of the tracker come in 3 s;
- during the flood chunks of the tracker came too; no two payloads of a chunk, none out of order; the ledger holds what
  was released.

One JSON object on stdout. mosquitto must be installed.
"""

import argparse
import asyncio
import gc
import json
import logging
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eyestream.rim.config import LimitSettings
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.sidecar.sidecar import Sidecar
from eyestream_lab.testing.clocks import until
from tests.rigs.footprint import note_lags, open_files, p99, rss_bytes
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.sidecar import running, settings_for
from tests.rigs.storms import Ear, ear, lawful, settled, traffic
from tests.rigs.strangers import Strangers, churn, flood
from tests.rigs.trend import trend

TRACKER, FLOODED = "hmd-1", "hmd-2"
MB = 1e6
MOST_RSS = 150 * MB
MOST_PER_HOUR = 60 * MB
MOST_LAG_S = 0.05
STEP = 0.25 * MB
LIMITS = LimitSettings(raw_messages=128, released_chunks=128, deadline_s=2.0)


@dataclass
class Watch:
    """What was seen of the sidecar, ten times a second."""

    rss: list[tuple[float, float]] = field(default_factory=list)
    lags: dict[str, list[float]] = field(default_factory=lambda: {"flood": [], "after": []})
    phase: str = "flood"
    looks: int = 0
    broken: int = 0

    def note_lag(self, seconds: float) -> None:
        """The event loop was late by so much in this phase."""
        self.lags[self.phase].append(seconds)

    def look(self, sidecar: Sidecar) -> None:
        """Memory, and the laws of conservation."""
        self.looks += 1
        self.rss.append((time.monotonic(), float(rss_bytes())))
        self.broken += not lawful(sidecar)


@asynccontextmanager
async def watching(sidecar: Sidecar) -> AsyncIterator[Watch]:
    """Looks and lags beside the body."""
    watch = Watch()

    async def look() -> None:
        while True:
            watch.look(sidecar)
            await asyncio.sleep(0.1)

    works = {"look": look(), "lag": note_lags(watch.note_lag)}
    tasks = [asyncio.create_task(work, name=name) for name, work in works.items()]
    try:
        yield watch
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def run(folder: Path, seconds: float, connections: int) -> dict[str, Any]:
    lines = "log_type none", "max_packet_size 66048", "max_queued_messages 100"
    with Mosquitto(folder, *lines) as broker, Strangers() as strangers:
        settings = settings_for(broker.url, folder, devices=(TRACKER, FLOODED), limits=LIMITS, grace_s=0.2)
        async with ear(broker.url) as heard, running(settings) as sidecar, traffic(broker.url, pause_s=0.1):
            await until(lambda: len(heard.payloads) > 5)
            gc.collect()
            files, before = open_files(), len(heard.payloads)
            async with watching(sidecar) as watch:
                strangers.send(flood, broker.port, seconds, FLOODED)
                strangers.send(churn, broker.port, seconds, connections, FLOODED)
                await strangers.gone(3 * seconds + 60)
                during = len(heard.payloads) - before
                await until(lambda: sidecar.worker.held == 0, 30)
                await asyncio.sleep(1)
                watch.phase = "after"
                mark = len(heard.payloads)
                await asyncio.sleep(3)
                after = len(heard.payloads) - mark
            files = open_files() - files
        await until(lambda: settled(sidecar) == sidecar.pipeline.counters.due)
        ledger = read_ledger(settings.sidecar.ledger).odometers
        figures = strangers.figures | {"heard during": during, "heard in 3 s after": after, "files more": files}
        return report(sidecar, watch, heard, figures, sum(account.released for account in ledger.values()))


def report(sidecar: Sidecar, watch: Watch, heard: Ear, figures: dict[str, Any], spent: int) -> dict[str, Any]:
    """Figures and faults."""
    counters, outbox = sidecar.pipeline.counters, sidecar.outbox
    peak = max(rss for _, rss in watch.rss)
    growth = trend(watch.rss, STEP)
    wrong = {
        "memory": peak > MOST_RSS,
        "memory rises": growth.verdict(MOST_PER_HOUR) == "above",
        "laws": watch.broken > 0,
        "late after the flood": p99(watch.lags["after"]) > MOST_LAG_S,
        "tracker not heard during": figures["heard during"] == 0,
        "tracker not heard after": figures["heard in 3 s after"] < 15,
        "conflicts": heard.conflicts > 0,
        "disorder": heard.disorder > 0,
        "spent and not released": spent != counters.released,
        "due and not settled": counters.due != settled(sidecar),
        "nothing dropped": sidecar.worker.dropped == 0,
        "files": figures["files more"] > 0,
    }
    return figures | {
        "received": sidecar.worker.received,
        "rejected": dict(counters.rejected),
        "dropped unread": sidecar.worker.dropped,
        "chunks released": counters.released,
        "delivered": outbox.delivered,
        "expired": outbox.expired,
        "overflow": outbox.overflow,
        "peak MB": round(peak / MB, 1),
        "slope": growth.verdict(MOST_PER_HOUR),
        "looks": watch.looks,
        "lag p99 ms": {phase: round(1e3 * p99(lags), 1) for phase, lags in watch.lags.items()},
        "links": sidecar.links,
        "wrong": [name for name, is_so in wrong.items() if is_so],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--connections", type=int, default=1000)
    options = parser.parse_args()
    logging.getLogger("eyestream").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="flood-") as folder:
        figures = asyncio.run(run(Path(folder), options.seconds, options.connections))
    print(json.dumps(figures))
    if figures["wrong"]:
        return 1
    return 2 if figures["slope"] == "undecided" else 0


if __name__ == "__main__":
    sys.exit(main())
