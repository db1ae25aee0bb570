"""A sidecar in a process of its own, as `eyestream run` has it, with a leak planted where one is asked for.

python -m tools.verification.moments.serving SPEC
"""

import asyncio
import contextlib
import dataclasses
import functools
import json
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from eyestream.core.charge import Ceilings
from eyestream.core.mechanisms import build
from eyestream.rim.files import calibrations
from eyestream.rim.ledger.reading import create_ledger
from eyestream.rim.ledger.second_place import FilePlace, Lengths, Remembered
from eyestream.rim.plan import Plan, load, resolved
from eyestream.rim.sidecar.assembly import assemble
from eyestream.rim.sidecar.operator_log import OperatorLog
from eyestream.rim.sidecar.sidecar import Sidecar
from eyestream.rim.sources import registry
from eyestream.wire.topics import private_topic
from eyestream_fleet.directory import LIVES, create_shard, held_outbox, opened_shard
from eyestream_fleet.nats.log import NatsLog, connected, make_streams
from eyestream_fleet.second_place import Life, begin_life, recalled
from eyestream_fleet.worker import ShardWorker
from eyestream_lab.testing.clocks import until
from tests.rigs.sidecar import at_work, opened, settings_for

__all__ = ["Served"]


@dataclasses.dataclass(frozen=True)
class Served:
    """What a sidecar serves.

    Attributes
    ----------
    url, raw_url
        Of the private broker, and of the raw one: applications shall not hear that the broker of trackers is busy.
    authority
        File of whose certificates the private broker has one; empty: no TLS.
    window_epsilon
        Ceiling of two chunks of rows.
    shard
        Whether a worker of a fleet serves it; `url` is then of its log.
    devices
        How many: d0, d1, ...
    calibration, epsilon, front_end
        As in the configuration; an empty front end: the tracker sends rows, at `rate_hz`, whatever the calibration's.
    release, grace_s
        As there; of rows.
    speed
        So many seconds of the front end's clock pass in one.
    plant_us
        A chunk of rows whose eye is seen leaves so much later than one whose eye is lost: the tool must find it.
    """

    devices: int
    calibration: str
    epsilon: float
    rate_hz: float
    front_end: str = ""
    release: str = "on_row"
    grace_s: float = 0.05
    speed: float = 1.0
    plant_us: float = 0.0
    url: str = ""
    raw_url: str = ""
    authority: str = ""
    window_epsilon: float = 1e6
    shard: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Of the devices."""
        return tuple(f"d{number}" for number in range(self.devices))


_GAZE = """
[private]
url = "{url}"
[raw]
url = "{raw_url}"
{devices}
[[stream]]
name = "gaze"
front_end = "{front_end}"
[stream.privacy]
calibration = "{calibration}"
epsilon = {epsilon}
[budget]
window_chunks = 2
session_epsilon = 1e8
day_epsilon = 1e8
"""
_DEVICE = '[[device]]\nid = "{0}"\n[[source]]\nkind = "mqtt"\ndevice = "{0}"\nrate_hz = {1}\nstreams = ["gaze"]\n'


@contextlib.contextmanager
def _made(served: Served, folder: Path) -> Iterator[tuple[Sidecar, Plan]]:
    if not served.front_end:
        settings = settings_for(
            served.url,
            folder,
            calibration=served.calibration,
            devices=served.names,
            raw_url=served.raw_url,
            rate_hz=served.rate_hz,
            release=served.release,
            grace_s=served.grace_s,
            window_epsilon=served.window_epsilon,
        )
        if served.authority:
            private = msgspec.structs.replace(settings.private, ca_file=Path(served.authority))
            settings = msgspec.structs.replace(settings, private=private)
        known = dataclasses.replace(calibrations.load(served.calibration), rate_hz=served.rate_hz)
        mechanism = build(known, served.epsilon)
        with opened(settings, mechanism=mechanism) as sidecar:
            yield sidecar, resolved(settings, mechanisms={"features": mechanism})
        return
    registry.HOST_SPEED = served.speed
    devices = "".join(_DEVICE.format(name, served.rate_hz) for name in served.names)
    (folder / "sidecar.toml").write_text(_GAZE.format(**dataclasses.asdict(served) | {"devices": devices}))
    plan = load(folder / "sidecar.toml")
    create_ledger(plan.settings.sidecar.ledger, created=0)
    with assemble(plan, lambda: 20_000) as made:
        yield made.sidecar, plan


def plant(sidecar: Sidecar, seconds: float) -> None:
    """Let chunks whose eye is seen leave later than others."""
    late: dict[str, bool] = {}
    for key, one in sidecar.pipeline._served.items():
        written = one.stream._payload

        def write(session: Any, chunk: Any, written: Any = written, topic: str = private_topic(*key)) -> bytes:
            late[topic] = bool(np.isfinite(chunk.values).any())
            payload: bytes = written(session, chunk)
            return payload

        one.stream._payload = write  # type: ignore[method-assign]
    publish = sidecar.pipeline._publish

    def leave(topic: str, payload: bytes) -> None:
        end = time.perf_counter() + seconds * late[topic]
        while time.perf_counter() < end:
            pass
        publish(topic, payload)

    sidecar.pipeline._publish = leave


async def _serve_shard(served: Served, folder: Path) -> None:
    """A worker of a fleet in the sidecar's place: partition 0 of 1, on the log at `url`, with a second place."""
    settings = settings_for(
        served.url,
        folder,
        calibration=served.calibration,
        devices=served.names,
        rate_hz=served.rate_hz,
        release=served.release,
        grace_s=served.grace_s,
    )
    known = dataclasses.replace(calibrations.load(served.calibration), rate_hz=served.rate_hz)
    plan = resolved(settings, mechanisms={"features": build(known, served.epsilon)})
    streams = [(device, stream.mechanism) for device, stream in plan.served.values()]
    own = folder / "shard"
    own.mkdir()
    name = create_shard(own, 0, 1, created=0)
    FilePlace.create(folder / "place")
    with contextlib.closing(FilePlace(folder / "place")) as place:
        place.remember(name, Remembered(Lengths(0, 0)))
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with connected([served.url]) as client:
        await make_streams(client, [0], 1, replicas=1, raw_age_s=600.0, released_age_s=600.0)
        with (
            contextlib.closing(FilePlace(folder / "place")) as place,
            held_outbox(own, 0, 1) as outbox,
            opened_shard(own, outbox, streams, ceilings=Ceilings(), today=lambda: 20_000) as shard,
        ):
            remembered = await recalled(place, name)
            token = await begin_life(own / LIVES, remembered, lambda new: place.write(name, new))
            worker = ShardWorker(shard, NatsLog(client, 0), Life(place, name, token))
            work = asyncio.create_task(worker.run(stop))
            await until(lambda: worker.stands, 20.0)
            print("ready", flush=True)
            await work


async def _serve(served: Served, folder: Path) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    with _made(served, folder) as (sidecar, plan):
        if served.plant_us:
            plant(sidecar, served.plant_us / 1e6)
        talk = OperatorLog(plan, sidecar.pipeline, sidecar.left, feeders=sidecar.feeders)
        async with at_work(sidecar):
            talking = asyncio.create_task(talk.run())
            await until(functools.partial(lambda: sidecar.private_stands and sidecar.raw_stands), 20.0)
            print("ready", flush=True)
            await stop.wait()
            talking.cancel()


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    served = Served(**asked["served"])
    asyncio.run((_serve_shard if served.shard else _serve)(served, Path(asked["folder"])))
