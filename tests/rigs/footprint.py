"""What this process holds, pages, blocks in use, files; and how late its event loop is."""

import asyncio
import ctypes
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

__all__ = ["heap_bytes", "note_lags", "open_files", "p99", "rss_bytes"]

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def rss_bytes() -> int:
    """Resident memory now: with all that the allocators keep for later, in which a small leak hides for hours."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES


def heap_bytes() -> int:
    """Bytes in use now, of Python's small blocks and of malloc's in all threads: exact, nothing kept for later."""
    with tempfile.TemporaryFile() as told:
        stderr = os.dup(2)
        os.dup2(told.fileno(), 2)
        try:
            sys._debugmallocstats()
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        told.seek(0)
        small = re.search(rb"bytes in allocated blocks\s*=\s*([\d,]+)", told.read())
    assert small is not None, "another Python's statistics"
    other = _malloc().mallinfo2()
    return int(small[1].replace(b",", b"")) + int(other.in_use) + int(other.mapped)


def open_files() -> int:
    """File descriptors now."""
    return len(os.listdir("/proc/self/fd"))


class _Mallinfo(ctypes.Structure):
    _fields_ = [
        ("arena", ctypes.c_size_t),
        ("free_chunks", ctypes.c_size_t),
        ("fast_chunks", ctypes.c_size_t),
        ("mappings", ctypes.c_size_t),
        ("mapped", ctypes.c_size_t),
        ("unused", ctypes.c_size_t),
        ("fast_free", ctypes.c_size_t),
        ("in_use", ctypes.c_size_t),
        ("free", ctypes.c_size_t),
        ("keep", ctypes.c_size_t),
    ]


def _malloc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = _Mallinfo
    return libc


async def note_lags(note: Callable[[float], None]) -> None:
    """Tell, a hundred times a second and until cancelled, by how many seconds the event loop was late."""
    loop = asyncio.get_running_loop()
    while True:
        before, busy = loop.time(), time.thread_time()
        await asyncio.sleep(0.01)
        busy = time.thread_time() - busy  # what other programs took of the machine is not the loop's fault
        note(max(0.0, min(busy, loop.time() - before) - 0.01))


def p99(values: Iterable[float]) -> float:
    """The 99th percentile; 0 of nothing."""
    ordered = sorted(values)
    return ordered[int(0.99 * len(ordered))] if ordered else 0.0
