"""The ledger: how long it takes to open after a month of many devices, to reserve, to be rewritten, to write ahead."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.measure import of_samples
from benchmarks.report import Result, Table, amount
from eyestream.core.charge import Ceilings, Charge
from eyestream.core.reservation import Request
from eyestream.rim.ledger import writer
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger, read_ledger
from eyestream.streams import StreamKey

__all__ = ["run"]

DEVICES, DAYS, N, FEATURES = 10_000, 30, 64, 52
CHUNKS_A_DAY = 8 * 3600 // 16
CEILINGS = Ceilings.of(2, 9.6, 1e7, 1e7, 1e9)
CHARGE = Charge.of(4.8)
FIRST_DAY = 20_000
MANY = 64
"""Requests in one call: chunks of that many devices open at a time."""


def run(quick: bool) -> Result:
    """10,000 devices and 30 days; `quick`: every device at work on three of the days, and fewer repetitions."""
    result = Result("ledger")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger"
        create_ledger(path, created=FIRST_DAY * 86_400)
        with _noted(writer.Writer, "_rewrite") as rewritten, Ledger(path, ceilings=CEILINGS) as ledger:
            reserved = _live(ledger, (0, DAYS // 2, DAYS - 1) if quick else range(DAYS))
            _lengthen(ledger, writer._TOO_MANY_RECORDS - 2 * MANY)
            longest = path.read_bytes()
            _lengthen(ledger, writer._TOO_MANY_RECORDS)
        opened, looked = _openings(path, longest, 3 if quick else 9)
        calls = {
            "open, with rewriting": opened,
            "read without a lock": looked,
            f"reserve {MANY} chunks, durably": reserved,
            "rewrite while at work": rewritten,
        }
        _open_and_reserve(result, calls, len(longest))
        _writing_ahead(result, Path(folder) / "appended", 300 if quick else 2000)
    result.notes.append(
        f"{DEVICES:,} devices on {DAYS} days: {DEVICES * DAYS * CHUNKS_A_DAY:,} chunks of 16 s at 8 hours a day would "
        f"be {DEVICES * DAYS * CHUNKS_A_DAY * 64 / 1e9:.1f} GB of records; the file has a snapshot of the accounts and "
        f"the records since, here the most there can be, {writer._TOO_MANY_RECORDS:,}: the chunks of a day do not "
        "matter, so every device is at work for one"
    )
    return result


def _live(ledger: Ledger, days: "range | tuple[int, ...]") -> list[int]:
    """Every device has a session on each of the `days`, one chunk long; nanoseconds of the calls."""
    keys = [StreamKey(f"hmd-{i:010x}", "features") for i in range(DEVICES)]
    taken = []
    for day in days:
        for start in range(0, DEVICES, MANY):
            requests = [Request(key, day, 0, N - 1, N, CHARGE) for key in keys[start : start + MANY]]
            begin = time.perf_counter_ns()
            ledger.reserve(requests, FIRST_DAY + day)
            taken.append(time.perf_counter_ns() - begin)
    return taken


def _lengthen(ledger: Ledger, records: int) -> None:
    """Go on until so many records are behind the snapshot, or the ledger has been rewritten."""
    tail = ledger._book.tail
    while tail.records < records and tail is ledger._book.tail:
        chunk = tail.records
        keys = (StreamKey(f"hmd-{(MANY * chunk + i) % DEVICES:010x}", "features") for i in range(MANY))
        requests = [Request(key, DAYS - 1, N * chunk, N * chunk + N - 1, N, CHARGE) for key in keys]
        ledger.reserve(requests, FIRST_DAY + DAYS)


def _openings(path: Path, data: bytes, times: int) -> tuple[list[int], list[int]]:
    """Nanoseconds to open the same bytes for use, which rewrites them, and to read them without a lock."""
    opened, looked = [], []
    for _ in range(times):
        path.write_bytes(data)
        begin = time.perf_counter_ns()
        found = read_ledger(path)
        looked.append(time.perf_counter_ns() - begin)
        assert len(found.odometers) == DEVICES
        begin = time.perf_counter_ns()
        with Ledger(path, ceilings=CEILINGS):
            opened.append(time.perf_counter_ns() - begin)
    return opened, looked


@contextmanager
def _noted(owner: type, name: str) -> Iterator[list[int]]:
    """Nanoseconds of every call of a method, which stays as it is."""
    taken: list[int] = []
    method = getattr(owner, name)

    def timed(*given: object, **named: object) -> object:
        begin = time.perf_counter_ns()
        try:
            return method(*given, **named)
        finally:
            taken.append(time.perf_counter_ns() - begin)

    setattr(owner, name, timed)
    try:
        yield taken
    finally:
        setattr(owner, name, method)


def _open_and_reserve(result: Result, calls: dict[str, list[int]], size: int) -> None:
    common = {"benchmark": "ledger", "mechanism": "ledger", "n": N, "F": FEATURES, "devices": DEVICES, "days": DAYS}
    opened, looked, reserved, _ = calls.values()
    rows = []
    for what, samples in calls.items():
        timing = of_samples(np.array(samples))
        rows.append([what, amount(timing.median_us / 1e3), amount(timing.p99_us / 1e3), str(len(samples))])
        result.records.append(common | {"what": what, "bytes": size} | timing.record())
    open_s = float(np.median(opened)) / 1e9
    reserve_s = MANY * len(reserved) / (sum(reserved) / 1e9)
    read_s = writer._TOO_MANY_RECORDS / (float(np.median(looked)) / 1e9)
    result.records[0] |= {"open_s": open_s, "reserved_per_s": reserve_s, "records_per_s": read_s}
    result.tables.append(Table(f"{DEVICES:,} devices, {DAYS} days, ms", ["", "median", "p99", "times"], rows))
    result.notes.append(
        f"open_s {open_s:.2f}, {size / 1e6:.1f} MB; {reserve_s:,.0f} chunks reserved a second, {read_s:,.0f} records "
        "read a second, with the snapshot's devices"
    )


def _writing_ahead(result: Result, path: Path, times: int) -> None:
    """One record made durable, against one record and the payload of its chunk: what an outbox on disk would cost."""
    payload = os.urandom(64 + 4 * FEATURES * N)
    ways: dict[str, Callable[[int], object]] = {
        "a record of 64 bytes": lambda fd: os.write(fd, payload[:64]),
        f"and a payload, {len(payload) / 1e3:.1f} kB": lambda fd: os.write(fd, payload),
    }
    taken: dict[str, list[int]] = {name: [] for name in ways}
    files = {name: os.open(f"{path}-{i}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) for i, name in enumerate(ways)}
    for _ in range(times):
        for name, write in ways.items():
            begin = time.perf_counter_ns()
            write(files[name])
            os.fdatasync(files[name])
            taken[name].append(time.perf_counter_ns() - begin)
    rows = []
    for name, samples in taken.items():
        os.close(files[name])
        timing = of_samples(np.array(samples))
        rows.append([name, amount(timing.median_us), amount(timing.p99_us)])
        common = {"benchmark": "ledger", "mechanism": "ledger", "n": N, "F": FEATURES, "what": f"durable: {name}"}
        result.records.append(common | timing.record())
    result.tables.append(Table("append and fdatasync, us", ["", "median", "p99"], rows))
