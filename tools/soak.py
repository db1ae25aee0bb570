"""Let a sidecar work for long under everything at once, faster than life, and watch what the process holds.

    python tools/soak.py --seconds 3600

Four trackers send rows as fast as the sidecar takes them (10^5 rows a second stand for 24 hours of four trackers of
1,000 Hz in one hour). In between come, in turn: hostile payloads, replays and new sessions, floods of 64 KiB messages
many times faster than they can be taken, and a broker that does not acknowledge for longer than the deadline. There is
no network: messages go in where the raw link delivers them. Ten times a second the counters must balance; at the end
the exit code is 1 unless

- resident memory never passed 150 MB, and in the quiet moments at the end of each round of the second half, when the
  heap has settled, it rose by less than 1 MB a minute, by less than 1 MB an hour with --no-floods, or by less than 1 MB
  in all;
- the number of open files is what it was;
- in = rejected + dropped + taken + held for messages, rows, chunks and released chunks, at every look;
- no chunk was handed over past its deadline, and after a flood the event loop is late by less than 50 ms (p99).

The last line is a JSON object with the figures. The ledger grows by 64 bytes a chunk; --folder says where.
"""

import argparse
import asyncio
import gc
import itertools
import json
import sys
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "hostile"), str(ROOT)]

from cases import every, payload  # noqa: E402  found beside the tests
from flood import MOST_ROWS, Flood, N, flooding, open_files, rss_bytes, slope  # noqa: E402

from eyestream.config import LimitSettings  # noqa: E402
from eyestream.wire.messages import MAX_PAYLOAD_BYTES  # noqa: E402

DEVICES = 4
MB = 1e6
MOST_RSS = 150 * MB
MOST_RISE = 1 * MB
MOST_PER_HOUR = {True: 60 * MB, False: 1 * MB}
"""With floods, and without."""
MOST_LAG_S = 0.05
LIMITS = LimitSettings(raw_messages=512, released_chunks=512, deadline_s=1.0)


@dataclass
class Watch:
    """What was seen from outside."""

    began: float = field(default_factory=time.monotonic)
    rss_peak: float = 0.0
    quiet_rss: list[tuple[float, float]] = field(default_factory=list)
    looks: int = 0
    faults: list[str] = field(default_factory=list)
    lags: dict[str, deque[float]] = field(default_factory=lambda: {p: deque(maxlen=4096) for p in ("calm", "flood")})
    phase: str = "calm"

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
            self.quiet_rss.append((time.monotonic() - self.began, rss))


@asynccontextmanager
async def watching(flood: Flood, watch: Watch) -> AsyncIterator[None]:
    """Looks and lags beside the body."""

    async def look() -> None:
        while True:
            await asyncio.sleep(0.1)
            watch.look(flood)

    async def lag() -> None:
        loop = asyncio.get_running_loop()
        while True:
            before, busy = loop.time(), time.thread_time()
            await asyncio.sleep(0.01)
            busy = time.thread_time() - busy  # what other programs took of the machine is not the loop's fault
            watch.lags[watch.phase].append(max(0.0, min(busy, loop.time() - before) - 0.01))

    tasks = [asyncio.create_task(look(), name="look"), asyncio.create_task(lag(), name="lag")]
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
        if flood.sidecar.received % 7 == 0:
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
    await calm(flood, max(seconds - 1.5 * LIMITS.deadline_s, 0.5))
    flood.link.block(False)


def small_junk() -> list[bytes]:
    """The corpus but for the largest: what we hold counts as the sidecar's."""
    payloads = (payload(case) for case in every() if case["reason"] is not None)
    return [data for data in payloads if len(data) <= 2 * MAX_PAYLOAD_BYTES]


async def soak(folder: Path, seconds: float, round_s: float, floods: bool) -> dict[str, Any]:
    watch = Watch()
    junk = itertools.cycle(small_junk())
    async with flooding(folder, devices=DEVICES, limits=LIMITS) as flood:
        await asyncio.gather(*[asyncio.to_thread(time.sleep, 0.1) for _ in range(32)])  # each thread has its own heap
        await calm(flood, 0.5)
        files = open_files()
        async with watching(flood, watch):
            while time.monotonic() < watch.began + seconds:
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
        return report(flood, watch, files, MOST_PER_HOUR[floods])


def p99(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return ordered[int(0.99 * len(ordered))] if ordered else 0.0


def report(flood: Flood, watch: Watch, files: int, most_per_hour: float) -> dict[str, Any]:
    """Figures and faults."""
    sidecar, seconds = flood.sidecar, time.monotonic() - watch.began
    counters, outbox = sidecar.pipeline.counters, sidecar.outbox
    later = watch.quiet_rss[len(watch.quiet_rss) // 2 :]
    per_hour = 3600 * slope(later) if len(later) > 2 else 0.0
    rise = per_hour * (later[-1][0] - later[0][0]) / 3600
    rows = sum(sidecar.pipeline.rows(device).rows for device in flood.devices)
    faults = sorted(set(watch.faults))
    if watch.rss_peak > MOST_RSS:
        faults.append("memory passed the bound")
    if per_hour > most_per_hour and rise > MOST_RISE:
        faults.append("memory rises")
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
        "rss_first_half_last_mb": [round(at[1] / MB, 2) for at in (watch.quiet_rss[0], later[0], later[-1])],
        "rss_mb_per_hour": round(per_hour / MB, 3),
        "open_files": [files, open_files()],
        "messages": sidecar.received,
        "rejected": counters.rejected.total(),
        "inbox_dropped": sidecar.inbox_dropped,
        "rows": rows,
        "hours_of_4_at_1000_hz": round(rows / 4000 / 3600, 2),
        "chunks": counters.due,
        "released": counters.released,
        "delivered": outbox.delivered,
        "overflow": outbox.overflow,
        "expired": outbox.expired,
        "oldest_delivered_s": round(flood.link.oldest_s, 3),
        "lag_p99_ms": {phase: round(1e3 * p99(lags), 1) for phase, lags in watch.lags.items()},
        "faults": faults,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--round", type=float, default=10.0, help="seconds of one round of everything")
    parser.add_argument("--no-floods", action="store_true", help="the soak proper: no messages that cannot be held")
    parser.add_argument("--folder", type=Path, help="where the ledger goes (default: a temporary one)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        figures = asyncio.run(soak(Path(folder), args.seconds, args.round, not args.no_floods))
    print(json.dumps(figures))
    return 1 if figures["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
