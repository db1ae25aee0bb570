"""The rig as the audit uses it: a small mechanism, devices d and e, rows that say which they are, a watched disk."""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

from eyestream.core.charge import Ceilings, Charge
from eyestream.core.chunking.settings import DeviceSettings
from tests.rigs import rig
from tests.rigs.calibrations import synthetic
from tests.rigs.payloads import tagged
from tests.rigs.rig import Rig

__all__ = ["CHARGE", "EPSILON", "FEATURES", "WIDE", "Station", "device_settings", "folder"]

FEATURES = 2
EPSILON = 0.5
WIDE = Ceilings.of(2, 1e6, 1e6, 1e6)
CHARGE = Charge.of(EPSILON).epsilon
_LIFE: dict[str, Any] = {"schema": 1, "grace_s": 1.0, "idle_s": 600.0, "jump_chunks": 8}


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A place for ledgers, in memory where there is such a place."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as name:
        yield Path(name)


def device_settings(n: int, device: str = "d") -> DeviceSettings:
    """A device with chunks of `n` rows."""
    return rig.device_settings([f"feature{i}" for i in range(FEATURES)], n, device, **_LIFE)


class Station(Rig):
    """One process's life on the ledger in `place`: devices d and e."""

    def __init__(self, place: Path, n: int = 4, ceilings: Ceilings = WIDE) -> None:
        super().__init__(
            place,
            devices="de",
            ceilings=ceilings,
            calibration=synthetic("cfpa", n, FEATURES),
            epsilon=EPSILON,
            watch_disk=True,
            **_LIFE,
        )

    async def send(self, session: int, rows: Sequence[int], at: float, device: str = "d", end: bool = False) -> None:
        """Rows of a tracker, consecutive, arrive at `at`."""
        self.clock.now = at
        first = rows[0] if rows else 0
        await self.take(self.sent(tagged(session, rows, FEATURES), first, session, end=end, device=device))

    def run(self, life: Callable[["Station"], Coroutine[Any, Any, None]]) -> None:
        """Run `life` to its end; then the process is gone."""
        with self:
            asyncio.run(life(self))
