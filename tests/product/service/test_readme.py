"""The README and the how-to pages are run: their commands are the ones that CI runs, their code works as it stands."""

import asyncio
import re
from pathlib import Path
from typing import Any

import aiomqtt
import numpy as np

import eyestream
from eyestream.wire.gaze import decode_gaze
from eyestream_lab.embedded import embedded_broker
from eyestream_lab.testing.clocks import PATIENCE_S
from tests.rigs.pages import ROOT, blocks, body_of, code_of
from tests.rigs.sidecar import running, settings_for

README = (ROOT / "README.md").read_text(encoding="utf-8")
SHELL = [block.text for block in blocks(README) if block.language == "sh"]


def test_it_opens_with_the_two_commands() -> None:
    assert "./lab" in SHELL[0]
    assert SHELL[0].strip().endswith(".venv/bin/eyestream demo")
    assert "-e '.[test]'" in SHELL[1]
    assert SHELL[1].strip().endswith(".venv/bin/python -m pytest -q -n auto")
    assert README.index(SHELL[1]) < README.index("## ")


def test_it_is_a_door_and_no_corridor() -> None:
    assert 600 <= len(README.split()) <= 900


def test_every_command_that_it_names_exists() -> None:
    from eyestream.cli.main import commands

    named = set(re.findall(r"(?:`|/|^)eyestream ([a-z]+)\b", README, re.M))
    assert {"demo", "init", "run", "privatize"} <= named <= set(commands())


def vendors_code() -> list[str]:
    """The blocks of Python on the vendor's page: a publisher of gaze, and one of rows."""
    page = (ROOT / "docs" / "vendor.md").read_text(encoding="utf-8")
    return [block.text for block in blocks(page) if block.language == "python"]


async def test_publisher_of_gaze() -> None:
    publish, _ = vendors_code()
    times = np.arange(9) / 90
    async with embedded_broker(None) as url, aiomqtt.Client("127.0.0.1", int(url.rpartition(":")[2])) as client:
        await client.subscribe("eyestream/v1/hmd-1/gaze/raw")
        names = {"eyestream": eyestream, "device": "hmd-1", "t": times, "x": 1.0, "y": 2.0, "pupil": 3.5}
        await body_of(publish.replace("mqtt://localhost", url).replace("[x, y, pupil]", "[[x, y, pupil]] * 9"), names)
        async with asyncio.timeout(PATIENCE_S):
            message = await anext(client.messages)
    heard, values = decode_gaze(message.payload, (2, 3), 1)
    assert heard.tolist() == times.tolist()
    assert values.tolist() == [[1.0, 2.0, 3.5]] * 9


async def test_publisher_and_subscriber(tmp_path: Path, capsys: Any) -> None:
    (_, publish), subscribe = vendors_code(), code_of("docs/application.md")
    assert subscribe == code_of("README.md")
    rows = np.random.default_rng(3).normal(1.0, 0.1, (64, 52))
    async with embedded_broker(None) as url:
        settings = settings_for(url, tmp_path, calibration="everyday-klt-32")
        names = {"eyestream": eyestream, "device": "hmd-1", "names": settings.stream[0].names, "rows": rows}
        async with running(settings):
            listener = asyncio.create_task(body_of(subscribe.replace("mqtt://localhost", url), names))
            said = ""
            async with asyncio.timeout(PATIENCE_S):
                while "(52, 32)" not in said:  # each run of the publisher is a session of its own
                    await body_of(publish.replace("mqtt://localhost", url), names)
                    await asyncio.sleep(0.2)
                    said += capsys.readouterr().out
            listener.cancel()
    assert "rate_fixations" in said
    assert "4.8-differential privacy" in said


def test_mechanisms_without_mqtt() -> None:
    space: dict[str, Any] = {"chunk": np.full((52, 32), 0.5)}
    exec(code_of("docs/research.md"), space)
    assert space["private"].shape == (52, 32)
    assert not np.array_equal(space["private"], space["chunk"])
