"""What one worker of a fleet of a million costs until it serves its devices: `python -m tools.verification.million`.

A server of NATS has the rolls of 1,000,000 devices in 250 partitions. One worker begins as a process of its own: with
new files, then with a ledger and an outbox that know every device of the partition. It is ready when it reads its log,
and when every device has its description and its status at the broker. Measured are its processor time, which other
work on the machine hardly changes, and the most memory that it held. Its modules are compiled before, as those of an
installed package are. The exit code is 1 over 2 s or 200 MB.
"""

import argparse
import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import aiomqtt

from eyestream.rim.config import load
from eyestream.wire.status import Status, decode_status
from eyestream.wire.topics import raw_topic
from eyestream_fleet.fleet import enrol
from eyestream_fleet.log import partition_of
from eyestream_lab.testing.clocks import until
from tests.rigs.fleets import fleet_config, raw_messages
from tests.rigs.nats import NatsServer

MOST_S, MOST_MB = 2.0, 200.0
_COMMAND = [sys.executable, "-c", "from eyestream.cli.main import main; main()", "shard"]
_GIVEN = ["--partition", "0", "--config"]
_READY = Status("online", "ready")


def compiled(folder: Path) -> dict[str, str]:
    """An environment whose modules are compiled once."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(folder / "compiled")}


class Process:
    """A worker, and what it has cost by now."""

    def __init__(self, config: Path, log: Path) -> None:
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [*_COMMAND, *_GIVEN, str(config)], stdout=file, stderr=file, env=compiled(config.parent)
            )

    def cost(self) -> tuple[float, float]:
        """Seconds of processor, and MB of resident memory at most."""
        place = Path("/proc") / str(self._process.pid)
        ticks = place.joinpath("stat").read_text().rpartition(")")[2].split()[11:13]
        peak = next(one for one in place.joinpath("status").read_text().splitlines() if one.startswith("VmHWM"))
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"), int(peak.split()[1]) * 1024 / 1e6

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=60)


@contextlib.contextmanager
def served(folder: Path, partitions: int) -> Iterator[NatsServer]:
    server = NatsServer(folder / "nats", partitions)
    server.start()
    try:
        yield server
    finally:
        server.kill()


async def ready(server: NatsServer, process: Process, devices: int) -> dict[str, tuple[float, float]]:
    """What it has cost when it reads its log, and when every device has description and status."""
    metas, statuses, costs = set[str](), set[str](), dict[str, tuple[float, float]]()
    async with aiomqtt.Client("127.0.0.1", server.mqtt_port, max_queued_incoming_messages=10**6) as client:
        await client.subscribe("eyestream/v1/+/+/+")
        async for message in client.messages:
            topic = str(message.topic)
            if not isinstance(message.payload, bytes) or message.retain:
                continue  # of the life before
            if topic.endswith("/meta"):
                metas.add(topic)
            elif topic.endswith("/status") and decode_status(message.payload) == _READY:
                if not statuses:
                    costs["its first device is ready"] = process.cost()
                statuses.add(topic)
            if len(metas) == devices and len(statuses) == devices + 1:  # its own
                costs["every device is described and ready"] = process.cost()
                return costs
    raise AssertionError("the broker ended")


async def fill(server: NatsServer, names: list[str], released: int) -> None:
    """A chunk of every device, in a message each."""
    heard = set[str]()

    async def hear(client: aiomqtt.Client) -> None:
        async for message in client.messages:
            heard.add(str(message.topic))

    async with aiomqtt.Client("127.0.0.1", server.mqtt_port, max_queued_incoming_messages=10**6) as client:
        await client.subscribe("eyestream/v1/+/+/private")
        hearing = asyncio.create_task(hear(client))
        for number, (key, payload) in enumerate(raw_messages(names, 1, 32)):
            await client.publish(raw_topic(*key), payload)
            await until(lambda number=number: number - len(heard) < 200, 60.0)  # type: ignore[misc]
        await until(lambda: len(heard) >= released, 60.0)
        hearing.cancel()


async def trial(options: argparse.Namespace, folder: Path) -> bool:
    """Whether a worker is cheap enough."""
    names = [f"hmd-{number:07d}" for number in range(options.devices)]
    own = [name for name in names if partition_of(name, options.partitions) == 0]
    with served(folder, options.partitions) as server:
        config = fleet_config(
            folder, [server.url], options.partitions, [], private=server.mqtt_url, pages=[server.page_url]
        )
        before = time.process_time()
        _, count = await enrol(load(config), names, remove=False, now=int(time.time()))
        spent = time.process_time() - before
        print(f"{count:,} devices enrolled in {options.partitions} rolls: {spent:.1f} s of processor")
        command = [*_COMMAND, *_GIVEN, str(config), "--new"]
        await asyncio.to_thread(subprocess.run, command, env=compiled(folder), check=True)
        good = True
        for files in ("new files", "a ledger and an outbox of every device"):
            process = Process(config, folder / "worker.log")
            try:
                costs = await asyncio.wait_for(ready(server, process, len(own)), 300)
                for what, (seconds, megabytes) in costs.items():
                    print(
                        f"{len(own):,} devices, {files}: {what} after {seconds:.2f} s of processor, {megabytes:.0f} MB"
                    )
                    good = good and seconds <= MOST_S and megabytes <= MOST_MB
                if files == "new files":
                    await fill(server, own, len(own))
            finally:
                process.stop()
        print((folder / "worker.log").read_text(), file=sys.stderr)
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=250)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return 0 if asyncio.run(trial(options, Path(folder))) else 1


if __name__ == "__main__":
    sys.exit(main())
