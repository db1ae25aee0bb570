"""A disk that remembers what was durable, and what may be left of the rest when the power goes.

`TracedFile` stands in for `LedgerFile`: it does the same on the real file, and writes down every append and sync. From
that trace, `images` makes the files that a power cut after any prefix of it may leave.
"""

import random
from collections.abc import Iterator

from eyestream.rim.ledger.file import LedgerFile

SECTOR = 512


class TracedFile(LedgerFile):
    """A real ledger file; `trace` gets ("write", bytes) and ("sync", b""), the tests add ("seen", ...)."""

    trace: list[tuple[str, object]]
    """Set by the test before the ledger opens."""

    def append(self, data: bytes) -> None:
        self.trace.append(("write", data))
        super().append(data)

    def sync(self) -> None:
        super().sync()
        self.trace.append(("sync", b""))


def images(
    durable: bytes, trace: list[tuple[str, object]], cut: int, rng: random.Random, damages: int
) -> Iterator[bytes]:
    """Files that may be left when the power goes after `cut` steps on a file that was `durable` before them."""
    waiting = b""
    for step, data in trace[:cut]:
        if step == "write":
            assert isinstance(data, bytes)
            waiting += data
        elif step == "sync":
            durable, waiting = durable + waiting, b""
    yield durable
    if not waiting:
        return
    yield durable + waiting
    yield durable + bytes(len(waiting))
    for _ in range(damages):
        yield durable + damaged(waiting, len(durable), rng)


def damaged(waiting: bytes, start: int, rng: random.Random) -> bytes:
    """Some sectors lost (zeros or noise), in any order, one of them torn; the end cut off anywhere."""
    data = bytearray(waiting)
    sector = rng.choice((SECTOR, 64, 8))
    for begin in range(-(start % sector), len(data), sector):
        fate, part = rng.random(), slice(max(begin, 0), begin + sector)
        if fate < 0.3:
            data[part] = bytes(len(data[part]))
        elif fate < 0.4:
            data[part] = rng.randbytes(len(data[part]))
        elif fate < 0.5:
            torn = slice(max(begin, 0) + rng.randrange(sector), begin + sector)
            data[torn] = bytes(len(data[torn]))
    return bytes(data[: rng.randint(0, len(data))] if rng.random() < 0.5 else data)
