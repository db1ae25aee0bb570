"""What a worker of a fleet costs beside a sidecar: rows for each second of processor time, by turns, end to end.

    python -m tools.verification.shard_cost

The same rows of 200 devices go through a worker on NATS and through a sidecar on mosquitto, with the same mechanism;
trackers are another process, which speaks MQTT to either. All of a process counts: its client, its threads, its disk.
Exit code 1 when the worker has less than half of the sidecar's rows at 32 rows a message, or 0.35 of them at one, or
when its outbox costs more than 15 %.
"""

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import aiomqtt

from eyestream.core.charge import Ceilings
from eyestream.rim.config import LimitSettings
from eyestream.rim.ledger.second_place import FilePlace, Lengths, Remembered
from eyestream.rim.plan import resolved
from eyestream.wire.topics import raw_topic
from eyestream_fleet.directory import LIVES, create_shard, held_outbox, opened_shard
from eyestream_fleet.frames import Step
from eyestream_fleet.nats.log import NatsLog, connected, make_streams
from eyestream_fleet.outbox import DurableOutbox
from eyestream_fleet.second_place import Life, begin_life, recalled
from eyestream_fleet.worker import ShardWorker
from eyestream_lab.testing.clocks import until
from tests.rigs.fleets import raw_messages
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.nats import NatsServer
from tests.rigs.sidecar import opened, parts_of, running, settings_for

DEVICES = tuple(f"d{number}" for number in range(200))
LEAST = {32: (20, 400.0, 0.5), 1: (2, 2500.0, 0.35)}
"""By rows a message: chunks of each device, messages a second, and the least ratio."""


_OUTBOX = 0.15
"""What the outbox may cost, of a worker's rows."""


async def send(port: int, rows: int) -> None:
    """As trackers, at a steady rate."""
    chunks, rate, _ = LEAST[rows]
    async with aiomqtt.Client("127.0.0.1", port) as client:
        begin = time.monotonic()
        for number, (key, payload) in enumerate(raw_messages(DEVICES, chunks, rows)):
            await client.publish(raw_topic(*key), payload)
            if number % 20 == 0:
                await asyncio.sleep(max(0.0, begin + number / rate - time.monotonic()))


async def rows_a_second(port: int, rows: int, released: Callable[[], int]) -> float:
    """Rows for each second of this process's time, until all chunks are released."""
    begin, chunks = time.process_time(), len(DEVICES) * LEAST[rows][0]
    command = ("-m", "tools.verification.shard_cost", "--send", str(port), str(rows))
    sender = await asyncio.create_subprocess_exec(sys.executable, *command)
    await until(lambda: released() >= chunks, 240.0)
    taken = time.process_time() - begin
    await sender.wait()
    return 32 * chunks / taken


def _forget(self: DurableOutbox, step: Step) -> None:
    """In the place of `DurableOutbox.append`: nothing is written."""
    step.apply(self.contents)
    self._acknowledged = self._acknowledged[len(step.acknowledged) :]


async def without_outbox(folder: Path, rows: int) -> float:
    """Of a shard whose outbox writes nothing: what is missing from a worker's rows is what the outbox costs."""
    with mock.patch.object(DurableOutbox, "append", _forget):
        return await worker(folder, rows)


async def worker(folder: Path, rows: int) -> float:
    """Of a shard on NATS, with a second place."""
    settings = settings_for("mqtt://127.0.0.1:1", folder, devices=DEVICES, grace_s=60.0, idle_s=600.0)
    with opened(settings) as sidecar:
        mechanism, _ = parts_of(sidecar)
    server = NatsServer(folder / "nats", 1)
    server.start()
    name = create_shard(folder / "nats", 0, 1, created=0)
    FilePlace.create(folder / "place")
    with contextlib.closing(FilePlace(folder / "place")) as place:
        place.remember(name, Remembered(Lengths(0, 0)))
    served = resolved(settings, mechanisms={settings.stream[0].name: mechanism}).served
    streams = [(device, stream.mechanism) for device, stream in served.values()]
    try:
        async with connected([server.url]) as client:
            await make_streams(client, [0], 1, replicas=1, raw_age_s=600.0, released_age_s=600.0)
            with (
                held_outbox(folder / "nats", 0, 1) as outbox,
                opened_shard(folder / "nats", outbox, streams, ceilings=Ceilings(), today=lambda: 20_000) as shard,
                contextlib.closing(FilePlace(folder / "place")) as place,
            ):
                remembered = await recalled(place, name)
                token = await begin_life(folder / "nats" / LIVES, remembered, lambda new: place.write(name, new))
                made, stop = ShardWorker(shard, NatsLog(client, 0), Life(place, name, token)), asyncio.Event()
                work = asyncio.create_task(made.run(stop))
                found = await rows_a_second(server.mqtt_port, rows, lambda: made.published)
                stop.set()
                await work
                return found
    finally:
        server.kill()


async def sidecar(folder: Path, rows: int) -> float:
    """Of a sidecar on mosquitto."""
    limits = LimitSettings(raw_messages=100_000, released_chunks=100_000)
    with Mosquitto(folder) as broker:
        settings = settings_for(broker.url, folder, devices=DEVICES, limits=limits, grace_s=60.0, idle_s=600.0)
        async with running(settings) as made:
            await until(lambda: made.raw_stands and made.private_stands)
            return await rows_a_second(broker.port, rows, lambda: made.outbox.delivered)


def compare(rows: int, turns: int) -> bool:
    """Whether a worker has enough of a sidecar's rows."""
    sums = {worker: 0.0, without_outbox: 0.0, sidecar: 0.0}
    for _ in range(turns):
        for kind in sums:
            with tempfile.TemporaryDirectory() as folder:
                sums[kind] += asyncio.run(kind(Path(folder), rows)) / turns
    ratio, outbox = sums[worker] / sums[sidecar], 1 - sums[worker] / sums[without_outbox]
    print(
        f"{rows} rows a message: worker {sums[worker]:,.0f}, sidecar {sums[sidecar]:,.0f} rows for each second of "
        f"processor time, ratio {ratio:.2f}; without the outbox {sums[without_outbox]:,.0f}, it costs {outbox:.0%}",
        flush=True,
    )
    return ratio >= LEAST[rows][2] and outbox <= _OUTBOX


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--send", type=int, nargs=2, metavar=("PORT", "ROWS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.send is not None:
        asyncio.run(send(*options.send))
        return 0
    enough = [compare(rows, options.turns) for rows in LEAST]
    return 0 if all(enough) else 1


if __name__ == "__main__":
    sys.exit(main())
