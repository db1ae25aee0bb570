"""A sidecar that is stopped for a while (SIGSTOP), as a process of its own, and a copy of its folder that begins."""

import asyncio
import contextlib
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eyestream.sdk.publisher import Publisher
from eyestream_lab.testing.clocks import until
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.sidecar import settings_for
from tests.rigs.spy import spying
from tests.rigs.storms import NAMES

PROGRAM = """
import asyncio, sys
from pathlib import Path
from tests.rigs.sidecar import opened, settings_for
with opened(settings_for(sys.argv[1], Path(sys.argv[2]))) as sidecar:
    asyncio.run(sidecar.run(asyncio.Event()))
"""


@contextlib.contextmanager
def process(url: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A sidecar at work."""
    root = Path(__file__).resolve().parents[3]
    command = [sys.executable, "-c", PROGRAM, url, str(folder)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=root) as started:
        try:
            yield started
        finally:
            started.kill()


@pytest.mark.long
async def test_who_was_stopped_while_a_copy_began_releases_nothing_more_and_ends(
    mosquitto: Mosquitto, tmp_path: Path
) -> None:
    """Rows go on all the time, so that something is due when it goes on; no row is in two chunks."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    settings_for(mosquitto.url, first)
    shutil.copytree(first, second)
    sent = 0

    async def track(publisher: Publisher) -> None:
        nonlocal sent
        while True:
            sent += 8 * await publisher.send(rows_of_a_stranger(8, len(NAMES)))
            await asyncio.sleep(0.02)

    async with spying(mosquitto.url) as spy, Publisher(mosquitto.url, "hmd-1", NAMES, 2.0) as publisher:
        with process(mosquitto.url, first) as one:
            await until(lambda: spy.states()[-1:] == [("online", "ready")], 60)
            tracker = asyncio.create_task(track(publisher))
            await until(lambda: len(spy.chunks()) >= 3, 60)
            one.send_signal(signal.SIGSTOP)
            with process(mosquitto.url, second):
                sessions = len({chunk["session"] for chunk in spy.leaf("private")})
                await until(lambda: len({chunk["session"] for chunk in spy.leaf("private")}) > sessions, 60)
                one.send_signal(signal.SIGCONT)
                _, said = await asyncio.to_thread(one.communicate, timeout=60)
                heard = len(spy.chunks())
                await until(lambda: len(spy.chunks()) >= heard + 3, 60)
                tracker.cancel()
                await asyncio.gather(tracker, return_exceptions=True)
                await asyncio.sleep(0.5)
    assert "is at work already, with a copy of this ledger" in said
    labels = [chunk["session"] for chunk in spy.leaf("private")]
    assert labels == sorted(labels, key=labels.index), "nothing of the first one after the copy's first chunk"
    assert len(labels) <= sent // 32
