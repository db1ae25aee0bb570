"""What the fuzzer drives: bytes become a payload, or the life of a sidecar; any broken promise is an exception.

`read_payload` holds the decoder to the second reading. `live` reads its bytes as a list of orders (rows, jumps, old
sessions, damaged payloads, clocks, restarts, deliveries) to a `World`, asks after each step what must hold at any
quiet moment, and at the end whether the sidecar still works.
"""

import contextlib
import math
import shutil
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

from eyestream.core.charge import Ceilings
from eyestream.errors import PayloadError
from eyestream.rim.sidecar.pipeline import Arrival
from eyestream.wire.envelope import MAX_U64
from eyestream.wire.raw import RawRows, decode_raw
from tests.rigs.hostile.corpus import FEATURES, SCHEMA
from tests.rigs.hostile.judge import judge
from tests.rigs.hostile.readers import read_configuration, read_ledger, read_packets, read_release
from tests.rigs.rig import N, World

__all__ = ["TARGETS", "live", "read_payload"]

T = TypeVar("T")

MOST_ORDERS = 80
MOST_SECONDS = 0.1
PLACES = [0, 1, 2**31 - 1, 2**31, 2**32 - 2, 2**32, 2**53, 2**63 - 3, 2**63, MAX_U64 - 12, MAX_U64 - 5, MAX_U64 - 1]
JUMPS = [-40, -9, -4, -1, 1, 3, 4, 5, 9, 12, 16, 17, 40, 1000]
SECONDS = [0.0, 0.1, 0.5, 1.0, 2.0, 2.5, 7.0, 29.0, 31.0, 3600.0]
ODD_TIMES = [math.nan, math.inf, -math.inf, -1e9, 0.0, 2.0**63, 1e308, -3600.0, 86_400.0, 1e-300]
DAYS = [-86_400, -1, 0, 1, 19_999, 20_000, 20_001, 20_365, 2**31, 2**32 - 1]
FOLDER = "/dev/shm" if Path("/dev/shm").is_dir() else None


def read_payload(data: bytes) -> None:
    """Our decoder and the second reading must say the same of `data`."""
    said = judge(data, FEATURES, SCHEMA)
    word = _timed(lambda: _reason(data))
    assert word == said, f"{word!r}, not {said!r}"


def _read(data: bytes) -> RawRows | str:
    try:
        return decode_raw(data, FEATURES, SCHEMA)
    except PayloadError as error:
        return error.reason


def _reason(data: bytes) -> str:
    read = _read(data)
    return read if isinstance(read, str) else ""


def _timed(step: Callable[[], T]) -> T:
    """Do it; more than `MOST_SECONDS` of this thread's own time is a hang."""
    before = time.thread_time()
    result = step()
    took = time.thread_time() - before
    assert took < MOST_SECONDS, f"hangs for {took:.3f} s"
    return result


class _Orders:
    """The bytes of an input, one after the other; zeros when there are no more."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1] if self._at <= len(self._data) else 0

    def bytes(self, count: int) -> bytes:
        piece = self._data[self._at : self._at + count]
        self._at += count
        return piece

    def one_of(self, things: list[Any]) -> Any:
        return things[self.byte() % len(things)]


class _Life:
    def __init__(self, world: World, orders: _Orders) -> None:
        self.world, self.orders = world, orders
        self.seq, self.session, self.device = 0, 1, 0
        self.batch: list[Arrival] = []
        self.sent: list[Arrival] = []
        self.highest = [1, 1]

    @property
    def name(self) -> str:
        """Of the device that sends."""
        return f"d{self.device}"

    def send(self, seq: int, m: int, session: int, end: bool = False) -> None:
        self.highest[self.device] = max(self.highest[self.device], session)
        self.batch.append(self.world.rows(min(max(seq, 0), MAX_U64 - m), m, session, end=end, device=self.name))
        self.sent.append(self.batch[-1])

    def next_rows(self) -> None:
        m = self.orders.byte() % 10
        self.send(self.seq, m, self.session)
        self.seq += m

    def jump(self) -> None:
        self.seq = max(0, self.seq + self.orders.one_of(JUMPS))

    def go(self) -> None:
        self.seq = self.orders.one_of(PLACES) + self.orders.byte() % 16

    def change_session(self) -> None:
        self.session = min(max(0, self.session + self.orders.one_of([1, 1, 1, -1, 2, 0])), MAX_U64)
        self.seq = self.seq if self.orders.byte() % 2 else 0

    def far_session(self) -> None:
        self.session = self.orders.one_of(PLACES)

    def end(self) -> None:
        self.send(self.seq, self.orders.byte() % 3, self.session, end=True)

    def junk(self) -> None:
        self.payload(self.orders.bytes(self.orders.byte()))

    def damage(self) -> None:
        data = bytearray(self.world.rows(min(self.seq, MAX_U64 - 2), 2, self.session).payload)
        for _ in range(1 + self.orders.byte() % 3):
            data[self.orders.byte() % len(data)] = self.orders.byte()
        self.payload(bytes(data))

    def payload(self, data: bytes) -> None:
        """Any bytes. What is taken is sent again with values that say where they come from."""
        read_payload(data)
        read = _read(data)
        if isinstance(read, str):
            self.batch.append(self.world.arrival(data, self.name))
        else:
            self.send(read.seq, min(len(read.rows), 32), read.session, read.end)

    def replay(self) -> None:
        if self.sent:
            old = self.sent[-1 - self.orders.byte() % len(self.sent)]
            self.batch.append(Arrival(old.topic, old.payload, self.world.clock.now))

    def odd_time(self) -> None:
        odd = self.orders.one_of(ODD_TIMES)
        self.batch[-1:] = [Arrival(a.topic, a.payload, odd) for a in self.batch[-1:]]
        self.flush(odd)

    def pass_time(self) -> None:
        self.flush()
        _finish(self.world.wait(self.orders.one_of(SECONDS)))

    def stamp(self) -> None:
        self.world.clock.now += self.orders.one_of(SECONDS)

    def flush(self, now: float | None = None) -> None:
        batch, self.batch = self.batch, []
        _finish(self.world.take(*batch, now=now))
        self.world.check()

    def restart(self) -> None:
        if self.orders.byte() % 2:
            self.flush()
            self.world.close()
            self.world.check()
        self.batch = []
        self.world.restart()

    def deliver(self) -> None:
        self.world.deliver(acknowledge=bool(self.orders.byte() % 2))

    def day(self) -> None:
        self.world.clock.day = self.orders.one_of(DAYS)

    def switch(self) -> None:
        self.device = 1 - self.device

    def still_works(self) -> None:
        """Whatever came before: the rows of a newer session make chunks that are released or withheld in time."""
        self.flush()
        _finish(self.world.wait(40.0))
        session = self.highest[self.device] + 1
        if session > MAX_U64 or self.world.pipeline.failed:
            return
        due = self.world.pipeline.counters.due
        for seq in range(2 * N):
            self.world.clock.now += 0.5
            _finish(self.world.wait(0.0))
            self.send(seq, 1, session)
            self.flush()
        _finish(self.world.wait(12.0))
        assert self.world.pipeline.counters.due >= due + 2, "the sidecar stalls"

    def run(self) -> None:
        steps: list[Callable[[], None]] = [
            self.next_rows,
            self.next_rows,
            self.next_rows,
            self.jump,
            self.go,
            self.change_session,
            self.far_session,
            self.end,
            self.junk,
            self.damage,
            self.replay,
            self.odd_time,
            self.pass_time,
            self.stamp,
            self.flush,
            self.restart,
            self.deliver,
            self.day,
            self.switch,
        ]
        for _ in range(MOST_ORDERS):
            if not self.orders:
                break
            _timed(self.orders.one_of(steps))
        self.still_works()
        self.world.close()
        self.world.check()
        self.world.kill()


def _finish(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run it here and now: nothing in it waits, as threads are inline."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise AssertionError("it waits for something")


async def _inline(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="life-", dir=FOLDER))
    try:
        yield path
    finally:
        shutil.rmtree(path)


def live(data: bytes) -> int:
    """A sidecar's life as ordered by `data`; how many chunks it published."""
    orders = _Orders(data)
    ceilings = orders.one_of(
        [Ceilings(), Ceilings.of(2, 4.8), Ceilings.of(3, 9.6, 48.0, 96.0), Ceilings.of(0, None, 14.4, 24.0)]
    )
    changes = {
        "release": orders.one_of(["on_row", "on_clock"]),
        "jump_chunks": orders.one_of([1, 3, 64]),
        "grace_s": orders.one_of([0.0, 0.5, 9.0]),
        "idle_s": orders.one_of([30.0, 1.0]),
    }
    with _folder() as folder, mock.patch("asyncio.to_thread", _inline):
        world = World(folder, devices=2, ceilings=ceilings, held=orders.one_of([64, 1, 3]), **changes)
        try:
            _Life(world, orders).run()
        finally:
            world.kill()
        return len(world.published)


TARGETS: dict[str, Callable[[bytes], object]] = {
    "payload": read_payload,
    "life": live,
    "release": read_release,
    "packets": read_packets,
    "configuration": read_configuration,
    "ledger": read_ledger,
}
