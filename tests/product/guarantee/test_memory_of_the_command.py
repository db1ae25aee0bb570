"""`eyestream run` with less and less memory, from its start or in the middle of its work: nothing raw, nothing lost."""

import resource
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from eyestream.core.charge import Ceilings, Charge
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import read_ledger
from eyestream_lab.embedded import free_port
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.tainting.canary import Canary
from tests.rigs.tainting.capture import Process, Proxy
from tests.rigs.tainting.lives import PLAIN, Life, configuration
from tests.rigs.tainting.tracker import Tracker, hostile

MIB = 1 << 20
CANARY = Canary(128, 52, 7)
FROM_THE_START = (8, 24, 40, 56, 72, 88, 104, 120, 136, 160, 200, 300, 500)
ON_THE_WAY = (0, 16, 64, 256, 1024, 4096, 16384, 65536, 262144)
"""In KiB."""


def life(folder: Path, broker: int, *, start: int | None = None, later: int | None = None) -> str:
    """One life with `start` bytes of memory, or `later` bytes more than it has in the middle; how it ended."""
    folder.mkdir()
    proxy = Proxy(broker)
    path = configuration(Life("scarce"), folder, proxy.port, free_port())
    limit = "" if start is None else f"import resource\nresource.setrlimit(resource.RLIMIT_AS, ({start}, {start}))\n"
    with Tracker(broker, ("hmd-0",), CANARY) as tracker:
        process = Process([sys.executable, "-c", limit + PLAIN, "run", "--config", str(path)], folder, trace=False)
        until = time.monotonic() + 15
        while not tracker.wait(lambda: bool(tracker.ready), 0.05) and process.alive and time.monotonic() < until:
            pass
        if tracker.ready:
            tracker.chunks(1, 64, 3)
            if later is not None:
                pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[0])
                size = pages * resource.getpagesize() + later
                resource.prlimit(process.pid, resource.RLIMIT_AS, (size, size))
            for topic, payload in hostile(CANARY, "hmd-0"):
                tracker.publish(topic, payload)
            tracker.chunks(3, 64, 1)
        if process.alive:
            process.signal(signal.SIGTERM)
        code, _ = process.end()
        tracker.wait(lambda: False, 0.05)
        released = tracker.released
    proxy.close()
    assert not CANARY.hits(b"".join(proxy.sent) + b"".join(process.left()))
    spent = sum(odometer.epsilon for odometer in read_ledger(folder / "ledger").odometers.values())
    assert spent >= released * Charge.of(4.8).epsilon
    Ledger(folder / "ledger", ceilings=Ceilings(2)).close()
    return f"code {code}, {released} released"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_memory_limited_from_the_start(mosquitto: Mosquitto, tmp_path: Path) -> None:
    outcomes = {size: life(tmp_path / str(size), mosquitto.port, start=size * MIB) for size in FROM_THE_START}
    print(outcomes)
    assert outcomes[FROM_THE_START[-1]] == "code 0, 4 released"
    assert len(set(outcomes.values())) > 1


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_memory_limited_on_the_way(mosquitto: Mosquitto, tmp_path: Path) -> None:
    outcomes = {size: life(tmp_path / str(size), mosquitto.port, later=size * 1024) for size in ON_THE_WAY}
    print(outcomes)
    assert Counter(outcomes.values())["code 0, 4 released"] > 0
    assert len(set(outcomes.values())) > 1
