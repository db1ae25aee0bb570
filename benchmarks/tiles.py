"""From a slot's end to the application: the tile response or Kaleido against a null relay, by turns.

python -m benchmarks.tiles [--mechanism tile] [--turns 6] [--slots 300]

One sidecar at a time, with its broker on the loopback: rows of slots come from a source in the sidecar's process, one
each 20 ms, and an application in the same process notes when each slot is in its hands. The relay has the same chunks,
ledger and payloads of the same size, and releases without a mechanism.
"""

import argparse
import asyncio
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.core.mechanisms import build
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
from eyestream.rim.sidecar.assembly import assemble
from eyestream.rim.sources.source import Deliver
from eyestream.sdk.subscriber import subscribe
from eyestream.streams import StreamKey
from eyestream.wire.raw import RawRows
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.relay import Relay
from tests.rigs.sidecar import at_work

STEP_S, KEY = 0.02, StreamKey("hmd-1", "gaze")
MECHANISMS = {"tile": ("everyday-tile", 10.0 / 3.0), "kaleido": ("kaleido-r2", 360.5)}


class NullRelay(Relay):
    """Releases the features of a slot as they are, in the shape that the mechanism has."""

    def __init__(self, like: Any) -> None:
        super().__init__(like.epsilon, like.calibration.names)
        self.schema, self.calibration, self.noise_sd = like.schema, like.calibration, like.noise_sd
        self.domain = like.domain

    def release(self, chunk: np.ndarray[Any, Any], /) -> np.ndarray[Any, Any]:
        return np.resize(chunk, self.schema.shape)


def looks(mechanism: Any, slots: int) -> np.ndarray[Any, Any]:
    """(slots, F) of somebody who looks around: all of a slot on one cell, or each sample anywhere, with some lost."""
    rng, features = np.random.default_rng(1), mechanism.features
    if mechanism.name == "tile":
        return (100 * np.eye(features, dtype=np.float32))[rng.integers(0, features, slots)]
    return rng.uniform(mechanism.calibration.lo, mechanism.calibration.hi, (slots, features)).astype(np.float32)


class Slots:
    """Rows (slots, F), one each `STEP_S`; `ends` has when each came."""

    def __init__(self, rows: np.ndarray[Any, Any], ready: asyncio.Event) -> None:
        self._rows, self._ready, self.ends = rows, ready, [0.0] * len(rows)

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
    names, rate_hz = mechanism.calibration.names, mechanism.calibration.rate_hz
    privacy = PrivacySettings(calibration="everyday-tile", epsilon=mechanism.epsilon)  # not read: `mechanisms` is given
    settings = Settings(
        stream=(StreamSettings(name="gaze", privacy=privacy, names=names, rate_hz=rate_hz, window_s=1 / rate_hz),),
        device=(DeviceEntry("hmd-1"),),
        sidecar=SidecarSettings(ledger=folder / "ledger"),
        private=BrokerSettings(url),
        budget=BudgetSettings(session_epsilon=1e9, day_epsilon=1e9),
    )
    create_ledger(settings.sidecar.ledger, created=0)
    ready, found = asyncio.Event(), [0.0] * slots
    source = Slots(looks(mechanism, slots), ready)
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
    parser.add_argument("--mechanism", choices=MECHANISMS, default="tile")
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--slots", type=int, default=300)
    arguments = parser.parse_args()
    name, (calibration, epsilon) = arguments.mechanism, MECHANISMS[arguments.mechanism]
    own = build(calibrations.load(calibration), epsilon)
    found: dict[str, list[float]] = {"relay": [], name: []}
    with tempfile.TemporaryDirectory() as place, Mosquitto(Path(place), "log_type none") as broker:
        for turn in range(arguments.turns):
            for who, mechanism in (("relay", NullRelay(own)), (name, own))[:: 1 - 2 * (turn % 2)]:
                (folder := Path(place) / f"{who}-{turn}").mkdir()
                life = latencies(broker.url, mechanism, arguments.slots, folder)
                found[who] += asyncio.run(life)[20:]
    figures = {who: np.quantile(times, [0.5, 0.99]) for who, times in found.items()}
    for who, (median, most) in figures.items():
        print(f"{who:7} median {median:.2f} ms, p99 {most:.2f} ms, {len(found[who])} slots")
    times = figures[name] / figures["relay"]
    print(f"{name} against relay: median {times[0]:.2f} times, p99 {times[1]:.2f} times")


if __name__ == "__main__":
    main()
