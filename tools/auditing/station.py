"""The shipped pipeline and ledger around a small mechanism, watched: what is durable when noise is drawn, and later."""

import asyncio
import contextlib
import logging
import os
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from auditing.mechanisms import Array, synthetic
from numpy.typing import NDArray

from eyestream.chunking.settings import DeviceSettings
from eyestream.privacy.charge import Ceilings, Charge
from eyestream.privacy.mechanism import Mechanism
from eyestream.privacy.mechanisms import build
from eyestream.privacy.noise import SecureNoise
from eyestream.privacy.noise.laws import Law
from eyestream.rim.ledger import book as ledger_book
from eyestream.rim.ledger.ledger import Ledger, create_ledger
from eyestream.rim.sidecar.pipeline import Arrival, Pipeline
from eyestream.wire.messages import encode_raw
from eyestream.wire.topics import raw_topic

__all__ = ["EPSILON", "FEATURES", "WIDE", "Station", "Watch", "device_settings", "folder", "silence", "tagged"]

FEATURES = 2
EPSILON = 0.5
WIDE = Ceilings.of(2, 1e6, 1e6, 1e6)
CHARGE = Charge.of(EPSILON).epsilon


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A place for ledgers, in memory where there is such a place."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as name:
        yield Path(name)


@contextlib.contextmanager
def silence() -> Iterator[list[str]]:
    """Lines that eyestream logs inside; they go nowhere else."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("eyestream")
    before, logger.propagate = (logger.propagate, logger.level), False
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.propagate = before[0]
        logger.setLevel(before[1])


class Watch:
    """Sees every fdatasync: what of the ledger a power cut would leave."""

    def __init__(self, path: Path) -> None:
        self._path, self._sync = path, os.fdatasync
        self._durable = path.stat().st_size

    def __call__(self, fd: int) -> None:
        """In the place of os.fdatasync."""
        self._sync(fd)
        self._durable = self._path.stat().st_size

    def spent(self) -> int:
        """Charges in the durable bytes, in units of one chunk."""
        book = ledger_book.Book([self._path.read_bytes()[: self._durable]])
        return sum(entry.account.odometer().epsilon for entry in book.entries.values()) // CHARGE


class WatchedNoise(SecureNoise):
    """The real noise; notes how many charges were durable at each draw."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch
        self.bound: list[int] = []

    def draw(self, law: Law) -> NDArray[np.int64]:
        """As it is."""
        drawn = super().draw(law)
        self.bound.append(self._watch.spent())
        return drawn


class _Tap:
    """The mechanism, and the tags of the rows that each release was made of."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.epsilon, self.delta = mechanism.epsilon, mechanism.delta
        self.n, self.features = mechanism.n, mechanism.features
        self._mechanism = mechanism
        self.released: list[list[int]] = []

    def session(self) -> "_Tap":
        return self

    def release(self, chunk: Array) -> Array:
        self.released.append([int(tag) for tag in chunk[0] if np.isfinite(tag)])
        return self._mechanism.release(chunk)


def tagged(session: int, rows: Sequence[int]) -> NDArray[np.float32]:
    """(m, F) rows that say which they are."""
    tags = np.array([1000 * session + row for row in rows], dtype=np.float32)
    return np.stack([tags, np.full(len(rows), 4242.5, dtype=np.float32)], axis=1)


def device_settings(n: int, device: str = "d") -> DeviceSettings:
    """A device with chunks of `n` rows."""
    names = tuple(f"feature{i}" for i in range(FEATURES))
    return DeviceSettings(device, "features", 1, names, 2.0, n, grace_s=1.0, idle_s=600.0, jump_chunks=8)


class Station:
    """One process's life on the ledger at `path`: devices d and e.

    Attributes
    ----------
    published : what left, (topic, payload).
    early : how many of those left before their charge was durable.
    watch, noise, rows : what was seen of the ledger, of the noise, and of the rows that were released.
    """

    def __init__(self, path: Path, n: int = 4, ceilings: Ceilings = WIDE) -> None:
        self._path, self._ceilings, self.n = path, ceilings, n
        if not path.exists():
            create_ledger(path, chunk=n, window=ceilings.window_chunks, created=0)
        self.watch = Watch(path)
        self.noise = WatchedNoise(self.watch)
        self.tap = _Tap(build(synthetic("cfpa", n, FEATURES), EPSILON, k=1, noise=self.noise))
        self.published: list[tuple[str, bytes]] = []
        self.early = 0

    @contextlib.contextmanager
    def at_work(self) -> Iterator["Station"]:
        """With its ledger open."""
        with (
            mock.patch("os.fdatasync", self.watch),
            Ledger(self._path, chunk=self.n, ceilings=self._ceilings) as ledger,
        ):
            before = self.watch.spent()
            self.pipeline = Pipeline(
                [device_settings(self.n, device) for device in "de"],
                self.tap,  # type: ignore[arg-type]
                ledger,
                today=lambda: 20_000,
                publish=lambda topic, payload: self._publish(topic, payload, before),
                changed=lambda: None,
            )
            yield self

    def _publish(self, topic: str, payload: bytes, before: int) -> None:
        self.published.append((topic, payload))
        self.early += self.watch.spent() - before < len(self.published)

    async def send(self, session: int, rows: Sequence[int], at: float, device: str = "d", end: bool = False) -> None:
        """Rows of a tracker, consecutive, arrive at `at`."""
        first = rows[0] if rows else 0
        payload = encode_raw(session, first, tagged(session, rows), 1, end)
        await self.pipeline.take([Arrival(raw_topic(device), payload, at)], at)

    def run(self, life: Callable[["Station"], Coroutine[Any, Any, None]]) -> None:
        """Run `life` to its end, at work."""
        with self.at_work():
            asyncio.run(life(self))
