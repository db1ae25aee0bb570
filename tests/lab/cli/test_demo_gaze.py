"""The gaze of the demo, and what it says of a tracker that it cannot take."""

import asyncio
import re
import sys

import numpy as np
import pytest

from eyestream import Publisher
from eyestream.errors import ConfigError
from eyestream.gaze.samples import Samples
from eyestream.rim.files import calibrations
from eyestream.rim.sources.neon import NeonSource
from eyestream.wire.raw import RawRows
from eyestream_lab.demo.gaze import GazeSeen, real_source, simulated_gaze

CALIBRATION = calibrations.load("everyday-klt-one-32")


def test_what_is_seen_is_said_and_drawn() -> None:
    seen = GazeSeen()
    assert seen.line() == "gaze   0 samples, no eye yet"
    seen.watch(Samples.of([0.0, 0.1, 0.2], [0.0, np.nan, -20.0], [0.0, np.nan, 12.0], [3.0, np.nan, 3.5]))
    assert "3 samples, 1 of them lost   20.0 deg left, 12.0 deg up   pupil 3.5 mm" in seen.line()
    lines = seen.picture(13)
    assert lines[1][1] == "@"
    assert lines[len(lines) // 2][len(lines[0]) // 2] == "o"
    seen.watch(Samples.of([0.3], [170.0], [0.0]))
    assert "@" not in "".join(seen.picture(13))


async def test_simulated_gaze_makes_as_many_rows_as_it_says() -> None:
    seen, rows = GazeSeen(), 0
    player, told = simulated_gaze(40.0, 1000.0, seen)

    def deliver(message: RawRows) -> None:
        nonlocal rows
        rows += len(message.rows)

    await asyncio.wait_for(player.run(deliver), 20)
    assert rows == told == 21
    assert seen.samples == 40 * 120 + 1
    with pytest.raises(ConfigError, match="at least 30"):
        simulated_gaze(29.0, 1.0, seen)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("neon", "expected mqtt, lsl:NAME"),
        ("neon:", "expected mqtt, lsl:NAME"),
        ("tobii:x", "takes mqtt, lsl, neon or core"),
        ("lsl:x", r"no such outlet; there is none; .*eyestream\[lsl\]"),
        ("neon:a b", "host"),
        ("mqtt", "rate_hz: missing"),
    ],
)
async def test_a_tracker_that_cannot_be_taken_is_said_so(monkeypatch: pytest.MonkeyPatch, told: str, said: str) -> None:
    monkeypatch.setitem(sys.modules, "pylsl", None)
    with pytest.raises(ConfigError, match=said):
        await real_source(told, None, None, CALIBRATION)


async def test_a_tracker_that_publishes_gaze_is_shown() -> None:
    """And nothing is refused of what the demo's broker has retained at other topics."""
    words = [
        "-c",
        "from eyestream.cli.main import main; main()",
        "demo",
        "--source",
        "mqtt",
        "--rate-hz",
        "90",
        "--seconds",
        "0.5",
    ]
    pipe = asyncio.subprocess.PIPE
    demo = await asyncio.create_subprocess_exec(sys.executable, *words, stdout=pipe, stderr=pipe)
    assert demo.stdout is not None
    async with asyncio.timeout(60):
        while (
            place := re.search(r"at (\S+), topic eyestream/v1/(\S+)/gaze/raw", line := await line_of(demo.stdout))
        ) is None:
            assert line, "it ended"
        async with Publisher(place[1], place[2]) as publisher:
            ended, i = asyncio.create_task(demo.communicate()), 0
            while not ended.done():
                await publisher.send_gaze(np.arange(i, i + 9) / 90, np.full((9, 2), 5.0))
                await asyncio.sleep(0.1)
                i += 9
        said, faults = await ended
    assert "samples, 0 of them lost   5.0 deg right, 5.0 deg up" in said.decode()
    assert (demo.returncode, b"refused" in faults) == (0, False), faults


async def line_of(stream: asyncio.StreamReader) -> str:
    return (await stream.readline()).decode()


async def test_a_phone_is_taken() -> None:
    feeder = await real_source("neon:127.0.0.1:9999", None, None, CALIBRATION)
    assert isinstance(feeder.source, NeonSource)
