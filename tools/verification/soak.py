"""Let a sidecar work for long under everything at once, faster than life, and watch what the process holds.

    python -m tools.verification.soak --seconds 3600

Four trackers send rows as fast as the sidecar takes them (10^5 rows a second stand for 24 hours of four trackers of
1,000 Hz in one hour). In between come, in turn: hostile payloads, replays and new sessions, floods of 64 KiB messages
many times faster than they can be taken, and a broker that does not acknowledge for longer than the deadline. There is
no network: messages go in where the raw link delivers them. Ten times a second the counters must balance; at the end
the exit code is 1 unless

- resident memory never passed 150 MB;
- neither resident memory nor what the heap holds, read in the quiet moment at the end of each round, rises by more than
  1 MB a minute; with --no-floods, the heap by no more than 1 MB an hour, and resident memory, which grows in pieces and
  holds room for later, by no more than that in an hour of the trackers: tests.rigs.trend has slope and bounds;
- the number of open files is what it was;
- in = rejected + dropped + taken + held for messages, rows, chunks and released chunks, at every look;
- no chunk was handed over past its deadline, and after a flood the event loop is late by less than 50 ms (p99).

It is 2 when nothing was wrong but the time too short to judge so small a slope; the figures say below what. --leak
plants a leak, to see that it is found. SIGTERM ends the run early, with its figures.

The last line is a JSON object with the figures. The ledger grows by 64 bytes a chunk; --folder says where.
"""

import argparse
import asyncio
import gc
import itertools
import json
import math
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eyestream.rim.config import LimitSettings
from eyestream.rim.sidecar.pipeline import Arrival, RowArrival
from eyestream.streams import StreamKey
from eyestream.wire.envelope import MAX_PAYLOAD_BYTES
from tests.rigs.footprint import heap_bytes, note_lags, open_files, p99, rss_bytes
from tests.rigs.hostile.corpus import every, payload
from tests.rigs.sidecar import MOST_ROWS, Flood, N, flooding
from tests.rigs.trend import Trend, trend

DEVICES = 4
TRACKERS_ROWS_A_SECOND = 1000 * DEVICES
MB = 1e6
MOST_RSS = 150 * MB
MOST_PER_HOUR = {True: 60 * MB, False: 1 * MB}
"""With floods, and without."""
STEPS = {"rss": 0.25 * MB, "heap": 0.02 * MB}
"""What may come at once without being a leak: a new piece of an arena; a table that doubles."""
MOST_LAG_S = 0.05
LIMITS = LimitSettings(raw_messages=512, released_chunks=128, deadline_s=1.0)


@dataclass
class Watch:
    """What was seen from outside."""

    began: float = field(default_factory=time.monotonic)
    rss_peak: float = 0.0
    quiet: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: {"rss": [], "heap": []})
    looks: int = 0
    faults: list[str] = field(default_factory=list)
    lags: dict[str, deque[float]] = field(default_factory=lambda: {p: deque(maxlen=4096) for p in ("calm", "flood")})
    phase: str = "calm"

    def note_lag(self, seconds: float) -> None:
        """The event loop was late by so much in this phase."""
        self.lags[self.phase].append(seconds)

    def look(self, flood: Flood, *, quiet: bool = False) -> None:
        """Ten times a second, and at the end of each round."""
        self.looks += 1
        rss = rss_bytes()
        self.rss_peak = max(self.rss_peak, rss)
        try:
            flood.check(quiet=quiet)
        except AssertionError as error:
            self.faults.append(f"do not balance: {error}")
        if quiet:
            at = time.monotonic() - self.began
            self.quiet["rss"].append((at, rss))
            self.quiet["heap"].append((at, heap_bytes()))


@asynccontextmanager
async def watching(flood: Flood, watch: Watch) -> AsyncIterator[None]:
    """Looks and lags beside the body."""

    async def look() -> None:
        while True:
            await asyncio.sleep(0.1)
            watch.look(flood)

    lags = note_lags(watch.note_lag)
    tasks = [asyncio.create_task(look(), name="look"), asyncio.create_task(lags, name="lag")]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def calm(flood: Flood, seconds: float) -> None:
    """Rows of all trackers, in messages of a chunk, as fast as they are taken."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for device in flood.devices:
            flood.send(flood.rows(N, device), device)
        await flood.room(16)


async def hostile(flood: Flood, seconds: float, junk: "itertools.cycle[bytes]") -> None:
    """The corpus, replays, disorder and new sessions among good rows."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for device in flood.devices:
            good = flood.rows(N + 3, device)
            for data in (next(junk), good, good, next(junk)):
                flood.send(data, device)
        flood.send(flood.rows(5, flood.devices[0]), flood.devices[0], retain=True)
        flood.send(bytes(2**22), flood.devices[2])
        if flood.sidecar.worker.received % 7 == 0:
            flood.next_session(flood.devices[1])
            flood.send(flood.rows(9, flood.devices[1], end=True), flood.devices[1])
            flood.next_session(flood.devices[1])
        await flood.room(16)


async def pour(flood: Flood, seconds: float) -> None:
    """The largest messages, each a new object and a new session, in bursts that the inbox cannot hold."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(2 * LIMITS.raw_messages // DEVICES):
            for device in flood.devices:
                flood.next_session(device)
                flood.send(flood.rows(MOST_ROWS, device), device)
        await asyncio.sleep(0)
    for device in flood.devices:
        flood.next_session(device)


async def blocked(flood: Flood, seconds: float) -> None:
    """A broker that does not acknowledge, for longer than the deadline: first few chunks wait, then too many."""
    flood.link.block(True)
    for _ in range(50):
        flood.send(flood.rows(N))
        await asyncio.sleep(1.5 * LIMITS.deadline_s / 50)
    flood.link.block(False)
    await flood.quiet()
    flood.link.block(True)
    before = flood.sidecar.outbox.overflow
    await calm(flood, max(seconds - 1.5 * LIMITS.deadline_s, 0.5))
    while flood.sidecar.outbox.overflow == before:  # a busy machine has not released too many yet
        await calm(flood, 0.1)
    flood.link.block(False)


def small_junk() -> list[bytes]:
    """The corpus but for the largest: what we hold counts as the sidecar's."""
    payloads = (payload(case) for case in every() if case["reason"] is not None)
    return [data for data in payloads if len(data) <= 2 * MAX_PAYLOAD_BYTES]


def plant(flood: Flood, per_hour: float) -> None:
    """A leak in the pipeline of so many bytes an hour, in objects of 300."""
    kept: list[bytes] = []
    began, take = time.monotonic(), flood.sidecar.pipeline.run_turn

    async def leaky(arrivals: Iterable[Arrival | RowArrival], now: float) -> None:
        await take(arrivals, now)
        while 300 * len(kept) < per_hour * (time.monotonic() - began) / 3600:
            kept.append(bytes(300 - sys.getsizeof(b"") - 8))  # and 8 for the list

    flood.sidecar.pipeline.run_turn = leaky  # type: ignore[method-assign]


async def soak(folder: Path, seconds: float, round_s: float, floods: bool, leak: float) -> dict[str, Any]:
    watch = Watch()
    junk, stop = itertools.cycle(small_junk()), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with flooding(folder, devices=DEVICES, limits=LIMITS) as flood:
        await asyncio.gather(*[asyncio.to_thread(time.sleep, 0.1) for _ in range(32)])  # each thread has its own heap
        await calm(flood, 0.5)
        files = open_files()
        async with watching(flood, watch):
            if leak:
                plant(flood, leak)
            while time.monotonic() < watch.began + seconds and not stop.is_set():
                await calm(flood, 0.5 * round_s)
                await hostile(flood, 0.2 * round_s, junk)
                if floods:
                    watch.phase = "flood"
                    await pour(flood, 0.1 * round_s)
                    await flood.quiet()
                    watch.phase = "calm"
                await blocked(flood, 0.2 * round_s)
                await flood.quiet()
                gc.collect()
                watch.look(flood, quiet=True)
        return report(flood, watch, files, floods)


def report(flood: Flood, watch: Watch, files: int, floods: bool) -> dict[str, Any]:
    """Figures and faults."""
    sidecar, seconds = flood.sidecar, time.monotonic() - watch.began
    counters, outbox = sidecar.pipeline.counters, sidecar.outbox
    rows = sum(sidecar.pipeline.rows(StreamKey(device, "features")).rows for device in flood.devices)
    faults = sorted(set(watch.faults))
    if watch.rss_peak > MOST_RSS:
        faults.append("memory passed the bound")
    growth = {name: trend(samples, STEPS[name]) for name, samples in watch.quiet.items()}
    faster = rows / seconds / TRACKERS_ROWS_A_SECOND
    most = {"heap": MOST_PER_HOUR[floods], "rss": MOST_PER_HOUR[floods] * (1.0 if floods else max(1.0, faster))}
    faults += [f"{name} rises" for name, seen in growth.items() if seen.verdict(most[name]) == "above"]
    if open_files() != files:
        faults.append("open files changed")
    if flood.link.oldest_s > LIMITS.deadline_s:
        faults.append("a chunk was handed over past its deadline")
    if p99(watch.lags["calm"]) > MOST_LAG_S:
        faults.append("the event loop is late")
    return {
        "seconds": round(seconds),
        "looks": watch.looks,
        "rss_peak_mb": round(watch.rss_peak / MB, 1),
        "quiet_mb": {name: [round(at[1] / MB, 2) for at in quarters(all_)] for name, all_ in watch.quiet.items()},
        "mb_per_hour": {name: in_mb(seen) for name, seen in growth.items()},
        "slope": {name: in_words(seen, most[name]) for name, seen in growth.items()},
        "open_files": [files, open_files()],
        "messages": sidecar.worker.received,
        "rejected": counters.rejected.total(),
        "inbox_dropped": sidecar.worker.dropped,
        "rows": rows,
        "hours_of_4_at_1000_hz": round(rows / TRACKERS_ROWS_A_SECOND / 3600, 2),
        "chunks": counters.due,
        "released": counters.released,
        "delivered": outbox.delivered,
        "overflow": outbox.overflow,
        "expired": outbox.expired,
        "oldest_delivered_s": round(flood.link.oldest_s, 3),
        "lag_p99_ms": {phase: round(1e3 * p99(lags), 1) for phase, lags in watch.lags.items()},
        "faults": faults,
    }


def quarters(samples: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The first, three between, and the last."""
    return [samples[(len(samples) - 1) * i // 4] for i in range(5)] if samples else []


def in_mb(seen: Trend) -> list[float] | None:
    """Bounds and slope; None: nothing can be said."""
    bounds = (seen.low, seen.middle, seen.high)
    return [round(value / MB, 3) for value in bounds] if math.isfinite(seen.high) else None


def in_words(seen: Trend, limit: float) -> str:
    """The verdict, with what the run was long enough for."""
    verdict = seen.verdict(limit)
    if verdict != "undecided":
        return f"{verdict} {limit / MB:.3g} MB/h"
    return f"too short to judge less than {seen.high / MB:.3g} MB/h" if math.isfinite(seen.high) else "too short"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--round", type=float, default=10.0, help="seconds of one round of everything")
    parser.add_argument("--no-floods", action="store_true", help="the soak proper: no messages that cannot be held")
    parser.add_argument("--leak", type=float, default=0.0, metavar="MB", help="plant a leak of so much an hour")
    parser.add_argument("--folder", type=Path, help="where the ledger goes (default: a temporary one)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        figures = asyncio.run(soak(Path(folder), args.seconds, args.round, not args.no_floods, args.leak * MB))
    print(json.dumps(figures))
    if figures["faults"]:
        return 1
    return 2 if any(verdict.startswith("too short") for verdict in figures["slope"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
