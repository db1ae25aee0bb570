"""`eyestream pause` and `resume`, and a sidecar that is killed at any moment of a pause."""

import asyncio
import random
import re
import signal
import time
from pathlib import Path

import pytest

from eyestream.rim.files import calibrations
from eyestream.rim.ledger.reading import read_ledger
from eyestream.sdk.publisher import Publisher
from eyestream_lab.testing.clocks import until
from tests.product.cli.test_live_commands import complaint, deployment, edit, eyestream, sidecar
from tests.rigs.calibrations import few_features
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.spy import Spy, spying

__all__ = ["deployment"]


def listens(path: Path) -> None:
    """Wait until the sidecar of the configuration listens."""
    end = time.monotonic() + 20
    while not (path.parent / "ledger.control").exists():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_pause_outlives_a_kill_and_needs_no_sidecar(deployment: Path) -> None:
    """Without a broker: it is waited for, and the switch works."""
    edit(deployment, ("mqtt://localhost:1883", "mqtt://localhost:1"))
    mark = deployment.parent / "ledger.paused"
    there = ("--config", deployment)
    assert eyestream("pause", *there).stdout == "no sidecar runs; the next start is paused\n"
    assert mark.exists()
    with sidecar(deployment) as process:
        listens(deployment)
        assert eyestream("resume", *there).stdout == "on\n"
        assert mark.read_text() == "resumed\n"
        assert eyestream("pause", "--socket", deployment.parent / "ledger.control").stdout == "paused\n"
        assert mark.read_text() == "paused\n"
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=10)
    assert mark.exists()
    assert "nobody listens there" in complaint("pause", "--socket", deployment.parent / "ledger.control")
    with sidecar(deployment) as process:
        listens(deployment)
        assert mark.exists()
    assert eyestream("resume", *there).stdout == "no sidecar runs; the next start is not paused\n"
    assert mark.read_text() == "resumed\n"


def of_few_features(path: Path) -> tuple[str, ...]:
    """A configuration of a few features, each of one second of gaze, so that a pause is over soon; their names."""
    few = few_features()
    calibrations.save(few, path.parent / "few.npz")
    text = re.sub(r"^names = \[.*?^\]\n", "", path.read_text(), flags=re.M | re.S)
    path.write_text(text)
    edit(
        path,
        ('"everyday-klt-anchored-64"', '"./few.npz"'),
        ("window_s = 30.0", "window_s = 1.0"),
        ("session_epsilon = 1152.0", "session_epsilon = 1e9"),
        ("day_epsilon = 2304.0", "day_epsilon = 1e9"),
    )
    return few.names


def counted(ledger: Path) -> int:
    """Chunks that were ever reserved."""
    return sum(odometer.released for odometer in read_ledger(ledger).odometers.values())


@pytest.mark.long
@pytest.mark.parametrize("pauses", [2, pytest.param(12, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
async def test_nothing_leaves_while_it_is_paused_wherever_it_is_killed(
    pauses: int, mosquitto: Mosquitto, deployment: Path
) -> None:
    """Real processes, SIGKILL at random moments around each pause; the tracker never stops."""
    edit(deployment, ("mqtt://localhost:1883", mosquitto.url))
    names = of_few_features(deployment)
    ledger, luck, device = deployment.parent / "ledger", random.Random(7), deployed_device(deployment)
    released = 0

    async def track(publisher: Publisher) -> None:
        while True:
            await publisher.send(rows_of_a_stranger(8, len(names)))
            await asyncio.sleep(0.01)

    async def heard_more(spy: Spy, heard: int) -> None:
        await until(lambda: len(spy.chunks(device)) > heard, 40)  # for 2 s rows may describe gaze of the pause

    async with spying(mosquitto.url) as spy, Publisher(mosquitto.url, device, names, 2.0) as publisher:
        tracker = asyncio.create_task(track(publisher))
        for _ in range(pauses):
            with sidecar(deployment) as process:
                await asyncio.to_thread(listens, deployment)
                await asyncio.to_thread(eyestream, "resume", "--config", deployment)
                await heard_more(spy, len(spy.chunks(device)))
                pausing = asyncio.create_task(asyncio.to_thread(eyestream, "pause", "--config", deployment))
                if luck.random() < 0.5:
                    await asyncio.sleep(luck.random())
                    process.send_signal(signal.SIGKILL)
                answer = await pausing
                assert answer.returncode == 0, answer
                process.send_signal(signal.SIGKILL)  # the answer has come: whatever happens now, it is off
                process.wait(timeout=10)
            await asyncio.sleep(0.3)  # what had left arrives
            heard, spent = len(spy.chunks(device)), counted(ledger)
            with sidecar(deployment) as process:
                await asyncio.to_thread(listens, deployment)
                await until(lambda: spy.states(device)[-1:] == [("paused", "paused")], 20)
                await asyncio.sleep(1.0)  # some hundreds of rows come
                process.send_signal(signal.SIGKILL)
                process.wait(timeout=10)
            assert len(spy.chunks(device)) == heard
            assert counted(ledger) == spent
            released = heard
        tracker.cancel()
        await asyncio.gather(tracker, return_exceptions=True)
    assert released >= pauses


def deployed_device(path: Path) -> str:
    """The pseudonym in the configuration."""
    return next(line.split('"')[1] for line in path.read_text().splitlines() if line.startswith("id = "))
