"""A fleet under test: a log, workers as real processes that are killed, trackers, and what an outsider saw."""

import asyncio
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from eyestream.rim.files import calibrations
from eyestream.rim.ledger.reading import read_ledger
from eyestream.streams import StreamKey
from eyestream.wire.raw import encode_raw
from eyestream.wire.release import decode_private
from eyestream_fleet.frames import unpack
from eyestream_fleet.log import partition_of
from eyestream_lab.testing.clocks import until

__all__ = ["Seen", "Workers", "fleet_config", "kill_at_work", "raw_messages"]

_CALIBRATION = "everyday-cfpa-32"
_COMMAND = [sys.executable, "-c", "from eyestream.cli.main import main; main()", "shard"]


def fleet_config(
    folder: Path,
    servers: Sequence[str],
    partitions: int,
    devices: Sequence[str],
    *,
    private: str = "mqtt://127.0.0.1:1",
    pages: Sequence[str] = (),
) -> Path:
    """A configuration of a fleet, whose ceilings do not bind; applications are at `private`, by default at none.

    Two chunks of a device that are lost break its session, which an outsider sees. Rows are kept so long that a busy
    machine does not let them grow old. The second place is a folder, or, with `pages` of its servers, a bucket of NATS.
    """
    names = ", ".join(f'"{name}"' for name in calibrations.load(_CALIBRATION).names)
    text = f"""
        [sidecar]
        name = "fleet"
        [private]
        url = "{private}"
        [fleet]
        servers = [{", ".join(f'"{server}"' for server in servers)}]
        partitions = {partitions}
        folder = "./shards"
        {f"monitoring = {json.dumps(list(pages))}" if pages else 'second_place = "./second"'}
        replicas = {min(len(servers), 3)}
        raw_age_s = 900.0
        [[stream]]
        name = "features"
        schema = 1
        rate_hz = 2.0
        window_s = 30.0
        names = [{names}]
        grace_s = 60.0
        idle_s = 600.0
        jump_chunks = 1
        release = "on_row"
        [stream.privacy]
        calibration = "{_CALIBRATION}"
        epsilon = 4.8
        [budget]
        window_chunks = 2
        window_epsilon = 1e6
        session_epsilon = 1e6
        day_epsilon = 1e6
        """ + "".join(f'[[device]]\nid = "{device}"\n' for device in devices)
    path = folder / "fleet.toml"
    path.write_text("\n".join(line.strip() for line in text.splitlines()))
    return path


def raw_messages(
    devices: Sequence[str], chunks: int, rows: int, first: int = 0, *, end: bool = False
) -> list[tuple[StreamKey, bytes]]:
    """Messages of `rows` rows, device by device in turn, in the order of each, from chunk `first` on.

    `end`: with the last one each session ends, so that the clock closes no chunk after it.
    """
    shape, made, last = (rows, len(calibrations.load(_CALIBRATION).names)), [], 32 * (first + chunks)
    for row in range(32 * first, last, rows):
        payload = encode_raw(1, row, np.full(shape, 0.5, np.float32), 1, end=end and row + rows >= last)
        made += [(StreamKey(device, "features"), payload) for device in devices]
    return made


class Workers:
    """One process for each shard; none is left when the body ends.

    Parameters
    ----------
    config
        Of the fleet.
    partitions
        How many shards; they are made.
    """

    def __init__(self, config: Path, partitions: int) -> None:
        self._config, self._folder = config, config.parent
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._beside: list[subprocess.Popen[bytes]] = []
        self.kills = 0
        for partition in range(partitions):
            subprocess.run([*_COMMAND, *self._given(partition), "--new"], check=True)
        for partition in range(partitions):
            self.start(partition)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failed: object) -> None:
        for process in (*self._running.values(), *self._beside):
            process.kill()
            process.wait()

    def _given(self, partition: int) -> list[str]:
        return ["--config", str(self._config), "--partition", str(partition)]

    def start(self, partition: int, dying: tuple[str, int] | None = None) -> None:
        """Let a life begin; `dying`: it is gone after so many calls of a point of `tests.rigs.dying`."""
        command = _COMMAND if dying is None else [sys.executable, "-m", "tests.rigs.dying", *map(str, dying), "shard"]
        with (self._folder / f"worker-{partition}.log").open("ab") as log:
            self._running[partition] = subprocess.Popen(
                [*command, *self._given(partition)], stdout=log, stderr=log, process_group=0
            )

    def pid(self, partition: int) -> int:
        """Of the process of a shard."""
        return self._running[partition].pid

    def gone(self, partition: int) -> bool:
        """Whether its life has ended by SIGKILL; it may end in no other way."""
        code = self._running[partition].poll()
        assert code in (None, -signal.SIGKILL), self._log(partition)
        return code is not None

    def _log(self, partition: int) -> str:
        return (self._folder / f"worker-{partition}.log").read_text()

    def end(self, partition: int) -> None:
        """It is gone, if it was not before."""
        if not self.gone(partition):
            self._running[partition].kill()
            self._running[partition].wait()
        self.kills += 1

    def kill(self, partition: int) -> None:
        """One of them is gone, and another takes its place."""
        self.end(partition)
        self.start(partition)

    def pause(self, partition: int) -> None:
        """Let a worker stand still, as a machine does that is out of memory or is moved, until it is resumed."""
        os.kill(self.pid(partition), signal.SIGSTOP)

    def resume(self, partition: int) -> None:
        """Let it go on, in the middle of what it did."""
        os.kill(self.pid(partition), signal.SIGCONT)

    def copy(self, partition: int) -> int:
        """Copy the shard's folder, whose worker stands still, into the folder of copies; gives how many chunks wait."""
        shutil.rmtree(self._copy_of(partition), ignore_errors=True)
        shutil.copytree(self._folder_of(partition), self._copy_of(partition))
        return len(unpack((self._copy_of(partition) / "outbox").read_bytes())[0].waiting)

    def copy_takes_over(self, partition: int) -> subprocess.Popen[bytes]:
        """A worker begins on the copy; gives the process of the one on the shard's own folder."""
        beside = self._config.with_name("copies.toml")
        beside.write_text(self._config.read_text().replace('folder = "./shards"', 'folder = "./copies"'))
        before = self._running[partition]
        self._beside.append(before)
        given = ["--config", str(beside), "--partition", str(partition)]
        with (self._folder / f"worker-{partition}.log").open("ab") as log:
            self._running[partition] = subprocess.Popen([*_COMMAND, *given], stdout=log, stderr=log, process_group=0)
        return before

    def swap(self, partition: int) -> None:
        """The copy is in the place of the shard's own folder, and that one in the copy's; no worker may be at work."""
        own, copy = self._folder_of(partition), self._copy_of(partition)
        beside = own.with_name("moved")
        own.rename(beside)
        copy.rename(own)
        beside.rename(copy)

    def check_refused(self, partition: int, process: subprocess.Popen[bytes] | None = None) -> None:
        """A worker on an older copy, by default the one that was started last: it ends by itself, and says why."""
        code = (process or self._running[partition]).wait(timeout=120)
        said = self._log(partition)[-2000:]
        words = ("older than what was released", "another copy was opened", "another worker is at work on a copy")
        assert code > 0, f"exit code {code}: {said}"
        assert any(one in said for one in words), said

    def one_of_two(self, partition: int, before: subprocess.Popen[bytes]) -> bool:
        """Wait until `before` or the worker that was started last is refused; gives whether it is the latter."""
        two = {before: False, self._running[partition]: True}
        for _ in range(1200):
            for one, later in two.items():
                if one.poll() is not None:
                    self.check_refused(partition, one)
                    if later:
                        self._running[partition] = before
                    return later
            time.sleep(0.1)
        raise AssertionError(f"both workers go on: {self._log(partition)[-4000:]}")

    def _folder_of(self, partition: int) -> Path:
        return self._folder / "shards" / f"shard-{partition}"

    def _copy_of(self, partition: int) -> Path:
        return self._folder / "copies" / f"shard-{partition}"

    def stop(self) -> None:
        """End all of them in order; one that has not begun yet ends by the signal."""
        for process in self._running.values():
            process.send_signal(signal.SIGTERM)
        for partition, process in self._running.items():
            assert process.wait(timeout=30) in (0, -signal.SIGTERM), self._log(partition)

    def losses(self) -> dict[str, int]:
        """What the log has lost, in the words of the workers."""
        logs = "".join(map(self._log, self._running))
        words = ("the log was cut off", "the log is a new one", "the log has forgotten")
        return {one: logs.count(one) for one in words if one in logs}

    def waiting(self) -> set[str]:
        """Ids of released chunks in all outboxes: of those the log may have the last ones."""
        outboxes = (self._folder / "shards").glob("*/outbox")
        return {chunk.id for path in outboxes for chunk in unpack(path.read_bytes())[0].waiting}

    def released(self) -> int:
        """Chunks in all ledgers."""
        ledgers = (self._folder / "shards").glob("*/ledger")
        return sum(odometer.released for path in ledgers for odometer in read_ledger(path).odometers.values())


async def kill_at_work(workers: Workers, seen: "Seen", partitions: int, kills: int, luck: random.Random) -> None:
    """One worker after the other, each soon after somebody has heard of it."""

    def heard(partition: int) -> int:
        return sum(count for device, count in seen.by_device.items() if partition_of(device, partitions) == partition)

    before = [0] * partitions
    while workers.kills < kills:
        partition = workers.kills % partitions
        await until(lambda partition=partition: heard(partition) > before[partition], 60.0)  # type: ignore[misc]
        await asyncio.sleep(luck.uniform(0.0, 0.1))
        await asyncio.to_thread(workers.kill, partition)
        before[partition] = heard(partition)


class Seen:
    """What an outsider saw: every byte string by the id of its message."""

    def __init__(self) -> None:
        self.payloads: dict[str, set[bytes]] = defaultdict(set)
        self.devices: dict[str, str] = {}
        self.messages = 0
        self.by_device: Counter[str] = Counter()
        self.longest_gap_s = 0.0
        self._last = 0.0

    def note(self, name: str, device: str, payload: bytes) -> None:
        """A message of the log."""
        now = time.monotonic()
        self.longest_gap_s = max(self.longest_gap_s, now - (self._last or now))
        self._last = now
        self.payloads[name].add(payload)
        self.devices[name] = device
        self.messages += 1
        self.by_device[device] += 1

    async def wait_for(self, chunks: int, seconds: float) -> None:
        """Return when so many different chunks were seen, or after so long."""
        with contextlib.suppress(TimeoutError):
            await until(lambda: len(self.payloads) >= chunks, seconds)

    def faults(self, sent: Mapping[str, int], charged: int) -> list[str]:
        """What is wrong when each device sent so many chunks, and the ledgers have `charged`."""
        found = [f"{len(data)} byte strings for one chunk" for data in self.payloads.values() if len(data) > 1]
        if len(self.payloads) != sum(sent.values()):
            found.append(f"{len(self.payloads)} of {sum(sent.values())} chunks were seen")
        if charged != len(self.payloads):
            found.append(f"{charged} chunks were charged, {len(self.payloads)} seen")
        sessions: dict[tuple[str, int], list[int]] = defaultdict(list)
        for name, data in self.payloads.items():
            chunk = decode_private(min(data))
            sessions[self.devices[name], chunk.session].append(chunk.chunk)
        for device, count in sent.items():
            own = [Counter(numbers) for (whose, _), numbers in sessions.items() if whose == device]
            if own != [Counter(range(count))]:
                told = (
                    f"{min(one)} to {max(one)} without {max(one) + 1 - len(one)}, {one.total() - len(one)} twice"
                    for one in own
                )
                found.append(f"{device} sent {count} chunks; its sessions have {'; '.join(told)}")
        return found
