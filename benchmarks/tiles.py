"""From a slot's end to the application: the tile response against a null relay, by turns.

python -m benchmarks.tiles [--turns 6] [--slots 300]

One sidecar at a time, with its broker on the loopback: rows of counts come from a source in the sidecar's process, one
each 20 ms, and an application in the same process notes when each slot is in its hands. The relay has the same chunks,
ledger and payloads of the same size, and releases without a mechanism.
"""

import argparse
import asyncio
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.privacy.mechanisms import build
from eyestream.rim.config import (
    BrokerSettings,
    BudgetSettings,
    DeviceEntry,
    PrivacySettings,
    Settings,
    SidecarSettings,
    StreamSettings,
)
from eyestream.rim.files import calibrations
from eyestream.rim.ledger.reading import create_ledger
from eyestream.rim.plan import resolved
from eyestream.rim.sdk.subscriber import subscribe
from eyestream.rim.sidecar.assembly import assemble
from eyestream.rim.sources.source import Deliver
from eyestream.streams import StreamKey
from eyestream.wire.messages import RawRows
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.relay import Relay
from tests.rigs.sidecar import at_work

STEP_S, EPSILON, KEY = 0.02, 10.0 / 3.0, StreamKey("hmd-1", "gaze")


class NullRelay(Relay):
    """Releases the first features of a slot as they are, as many as the tile response has."""

    def __init__(self, like: Any) -> None:
        super().__init__(EPSILON, like.calibration.names)
        self.schema, self.calibration, self.noise_sd = like.schema, like.calibration, like.noise_sd
        self.domain = like.domain

    def release(self, chunk: np.ndarray[Any, Any], /) -> np.ndarray[Any, Any]:
        return chunk[: self.schema.shape[0]]


class Counts:
    """Slots of somebody who looks around, one each `STEP_S`; `ends` has when each came."""

    def __init__(self, features: int, slots: int, ready: asyncio.Event) -> None:
        rng = np.random.default_rng(1)
        self._rows = np.zeros((slots, features), dtype=np.float32)
        self._rows[np.arange(slots), rng.integers(0, features, slots)] = 100
        self._ready, self.ends = ready, [0.0] * slots

    async def run(self, deliver: Deliver) -> None:
        await self._ready.wait()
        loop = asyncio.get_running_loop()
        for number, row in enumerate(self._rows):
            await asyncio.sleep(STEP_S)
            self.ends[number] = loop.time()
            deliver(RawRows(1, number, row[None]))
        await asyncio.Event().wait()


async def latencies(url: str, mechanism: Any, slots: int, folder: Path) -> list[float]:
    """(slots,) milliseconds of one sidecar's life."""
    names = mechanism.calibration.names
    privacy = PrivacySettings(calibration="everyday-tile", epsilon=EPSILON)
    settings = Settings(
        stream=(StreamSettings(name="gaze", privacy=privacy, names=names, rate_hz=1.0, window_s=1.0),),
        device=(DeviceEntry("hmd-1"),),
        sidecar=SidecarSettings(ledger=folder / "ledger"),
        private=BrokerSettings(url),
        budget=BudgetSettings(session_epsilon=1e6, day_epsilon=1e6),
    )
    create_ledger(settings.sidecar.ledger, created=0)
    ready, found = asyncio.Event(), [0.0] * slots
    source = Counts(len(names), slots, ready)
    with assemble(resolved(settings, mechanisms={"gaze": mechanism}), lambda: 20_000, {KEY: source}) as made:
        async with at_work(made.sidecar), subscribe(url, "hmd-1", stream="gaze") as chunks:
            loop = asyncio.get_running_loop()
            ready.set()
            async for chunk in chunks:
                found[chunk.index] = 1000 * (loop.time() - source.ends[chunk.index])
                if chunk.index == slots - 1:
                    return found
    raise AssertionError


def main() -> None:
    """Print medians and 99 % quantiles of both, over all turns after the first slots of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--slots", type=int, default=300)
    arguments = parser.parse_args()
    tile = build(calibrations.load("everyday-tile"), EPSILON)
    found: dict[str, list[float]] = {"relay": [], "tile": []}
    with tempfile.TemporaryDirectory() as place:
        broker = Mosquitto(Path(place), "log_type none")
        broker.start()
        try:
            for turn in range(arguments.turns):
                for name, mechanism in (("relay", NullRelay(tile)), ("tile", tile))[:: 1 - 2 * (turn % 2)]:
                    (folder := Path(place) / f"{name}-{turn}").mkdir()
                    life = latencies(broker.url, mechanism, arguments.slots, folder)
                    found[name] += asyncio.run(life)[20:]
        finally:
            broker.stop()
    figures = {name: np.quantile(own, [0.5, 0.99]) for name, own in found.items()}
    for name, (median, most) in figures.items():
        print(f"{name:6} median {median:.2f} ms, p99 {most:.2f} ms, {len(found[name])} slots")
    times = figures["tile"] / figures["relay"]
    print(f"tile against relay: median {times[0]:.2f} times, p99 {times[1]:.2f} times")


if __name__ == "__main__":
    main()
