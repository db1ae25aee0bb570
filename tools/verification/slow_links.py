"""Slow and blocked links for an hour, or an hour's worth in minutes: memory is bounded, nothing stale is sent.

    python -m tools.verification.slow_links --seconds 3600
    python -m tools.verification.slow_links --seconds 3600 --factor 20

A tracker sends a chunk a second. The sidecar's link to the private broker gets 2 KB/s for a minute (a chunk has 7), is
blocked for a minute, delayed by 0.5 s +- 0.3 s for half a minute, and free for half a minute, round and round. Beside
an application that listens well there is one behind 2 KB/s for all the time. With --factor K all of it is K times
faster: rows, faults, bandwidth, the deadline of 5 s; so an hour takes 3600 / K seconds. The exit code is 1 unless

- memory passed neither 150 MB nor, where the run was long enough to judge, rose by more than 1 MB a minute;
- never more chunks waited than the limit, and the oldest were dropped: what was heard is in order, and of all the
  released chunks each was heard, dropped and counted, or is held;
- no chunk was handed to the link past its deadline; none came to the application later than that and the time on the
  way, but for the one that was under way when a link was blocked;
- in each free half minute fresh chunks flowed;
- no two payloads of a chunk; the ledger holds what was released; the number of open files is what it was.
"""

import argparse
import asyncio
import gc
import hashlib
import json
import logging
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eyestream.rim.config import LimitSettings
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.sidecar.sidecar import Sidecar
from eyestream.sdk.subscriber import subscribe
from eyestream_lab.testing.clocks import until
from tests.rigs.footprint import open_files, rss_bytes
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.proxy import Fault, FaultProxy
from tests.rigs.sidecar import running, settings_for
from tests.rigs.storms import Ear, ear, lawful, settled, traffic
from tests.rigs.trend import trend

MB = 1e6
MOST_RSS = 150 * MB
MOST_PER_HOUR = 60 * MB
STEP = 0.25 * MB
DEADLINE_S = 5.0
BYTES_PER_SECOND = 2000.0
CHUNK_BYTES = 7000
MOST_WAITING = 8
READING_S = 0.02
"""The clock is read here after the outbox has read it: a busy machine may do something else in between."""
MARGIN_S = 0.25
"""For the machine, whatever the factor."""


def phases(factor: float) -> list[tuple[str, Fault, float]]:
    """Name, fault and seconds of each part of a round."""
    return [
        ("slow", Fault(bytes_per_second=factor * BYTES_PER_SECOND), 60 / factor),
        ("blocked", Fault(stalled=True), 60 / factor),
        ("late", Fault(latency_s=0.5 / factor, jitter_s=0.3 / factor), 30 / factor),
        ("free", Fault(), 30 / factor),
    ]


@dataclass
class Watch:
    """What was seen."""

    released: dict[str, float] = field(default_factory=dict)
    """When, by digest of the payload."""
    oldest_sent_s: float = 0.0
    most_waiting: int = 0
    broken: int = 0
    rss: list[tuple[float, float]] = field(default_factory=list)
    free: list[int] = field(default_factory=list)
    """Chunks delivered in each free time."""
    faults: int = 0
    on_the_way_s: float = 0.0
    ages: list[float] = field(default_factory=list)
    """Of each chunk that was heard."""


def note(sidecar: Sidecar, heard: Ear, watch: Watch) -> None:
    """Let the outbox and the ear say when each chunk was released, handed over and heard."""
    outbox, clock = sidecar.outbox, asyncio.get_running_loop().time
    put, first = outbox.put, outbox.first

    def noted_put(topic: str, payload: bytes, now: float) -> None:
        watch.released[hashlib.sha256(payload).hexdigest()] = now
        put(topic, payload, now)

    def noted_first(now: float) -> Any:
        entry = first(now)
        if entry is not None:
            watch.oldest_sent_s = max(watch.oldest_sent_s, clock() - entry.deadline + outbox._lifetime_s)
        return entry

    def noted_payload(payload: bytes) -> None:
        released = watch.released.pop(hashlib.sha256(payload).hexdigest(), None)
        if released is not None:
            watch.ages.append(clock() - released)

    outbox.put = noted_put  # type: ignore[method-assign]
    outbox.first = noted_first  # type: ignore[method-assign]
    heard.on_payload = noted_payload


async def sample(sidecar: Sidecar, watch: Watch) -> None:
    """Ten times a second: memory, what waits, and the laws."""
    clock = asyncio.get_running_loop().time
    while True:
        watch.rss.append((clock(), float(rss_bytes())))
        watch.most_waiting = max(watch.most_waiting, len(sidecar.outbox))
        watch.broken += not lawful(sidecar)
        await asyncio.sleep(0.1)


async def rounds(sidecar: Sidecar, proxy: FaultProxy, watch: Watch, seconds: float, factor: float) -> None:
    """One fault after the other, at least one round."""
    clock = asyncio.get_running_loop().time
    end = clock() + seconds
    while not watch.free or clock() < end:
        for name, fault, lasts_s in phases(factor):
            proxy.fault = fault
            watch.faults += name != "free"
            if name == "free":
                await until(lambda: sidecar.private_stands, 10)
            before = sidecar.outbox.delivered
            await asyncio.sleep(lasts_s)
            if name == "free":
                watch.free.append(sidecar.outbox.delivered - before)


async def run(folder: Path, seconds: float, factor: float) -> dict[str, Any]:
    watch = Watch(on_the_way_s=CHUNK_BYTES / (factor * BYTES_PER_SECOND) + MARGIN_S)
    limits = LimitSettings(released_chunks=MOST_WAITING, deadline_s=DEADLINE_S / factor)
    with Mosquitto(folder, "log_type none") as broker:
        async with FaultProxy(broker.port) as proxy, FaultProxy(broker.port) as application, ear(broker.url) as heard:
            settings = settings_for(proxy.url, folder, raw_url=broker.url, limits=limits)
            async with (
                running(settings) as sidecar,
                traffic(broker.url, pause_s=1 / factor),
                subscribe(application.url, "hmd-1", buffer=16) as slow,
            ):
                note(sidecar, heard, watch)
                await until(lambda: len(heard.payloads) > 2, 30)
                application.fault = Fault(bytes_per_second=factor * BYTES_PER_SECOND)
                gc.collect()
                files = open_files()
                task = asyncio.create_task(sample(sidecar, watch), name="samples")
                await rounds(sidecar, proxy, watch, seconds / factor, factor)
                task.cancel()
                files = open_files() - files
                proxy.fault = application.fault = Fault()
            await asyncio.sleep(0.5)
        spent = read_ledger(settings.sidecar.ledger).odometers["hmd-1"].released
        figures = {"files more": files, "spent": spent, "slow application": [len(slow._arrived), slow.dropped]}
        return report(sidecar, heard, watch, figures, limits.deadline_s)


def report(sidecar: Sidecar, heard: Ear, watch: Watch, figures: dict[str, Any], deadline_s: float) -> dict[str, Any]:
    """Figures and faults."""
    counters, outbox = sidecar.pipeline.counters, sidecar.outbox
    growth, peak = trend(watch.rss, STEP), max(rss for _, rss in watch.rss)
    late = sum(age > deadline_s + watch.on_the_way_s for age in watch.ages)
    wrong = {
        "memory": peak > MOST_RSS or growth.verdict(MOST_PER_HOUR) == "above",
        "too many waited": watch.most_waiting > MOST_WAITING,
        "laws": watch.broken > 0,
        "handed over past the deadline": watch.oldest_sent_s > deadline_s + READING_S,
        "heard late": late > watch.faults,
        "nothing in a free time": min(watch.free) == 0,
        "conflicts": heard.conflicts > 0,
        "disorder": heard.disorder > 0,
        "spent and not released": figures["spent"] != counters.released,
        "due and not settled": counters.due != settled(sidecar),
        "nothing dropped": min(outbox.expired, outbox.overflow) == 0,
        "files": figures["files more"] > 0,
    }
    return figures | {
        "faults": watch.faults,
        "released": counters.released,
        "delivered": outbox.delivered,
        "expired": outbox.expired,
        "overflow": outbox.overflow,
        "heard": len(heard.payloads),
        "heard late": late,
        "oldest handed over s": round(watch.oldest_sent_s, 3),
        "oldest heard s": round(max(watch.ages), 2),
        "deadline s": deadline_s,
        "delivered in each free time": [min(watch.free), max(watch.free)],
        "links": sidecar.links,
        "peak MB": round(peak / MB, 1),
        "slope": growth.verdict(MOST_PER_HOUR),
        "wrong": [name for name, is_so in wrong.items() if is_so],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600, help="of the real thing; at least one round is made")
    parser.add_argument("--factor", type=float, default=1.0, metavar="K", help="how much faster than that")
    options = parser.parse_args()
    logging.getLogger("eyestream").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="slow-links-") as folder:
        figures = asyncio.run(run(Path(folder), options.seconds, options.factor))
    print(json.dumps(figures))
    return 1 if figures["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
