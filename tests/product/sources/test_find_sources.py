"""What `eyestream sources` finds."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from eyestream.cli.main import main
from eyestream.errors import ConfigError
from eyestream.gaze.outlets import Channel, Outlet
from eyestream.ops.find_sources import find_sources, outlet_found
from eyestream.rim.sources.lsl import pylsl_module
from eyestream_lab.embedded import free_port
from tests.rigs.core import FakeCapture
from tests.rigs.neon import FakeNeon


async def test_a_phone_and_capture_are_found_at_their_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pylsl", None)
    phone, capture, mute = FakeNeon(), FakeCapture(), FakeNeon()
    mute.length = 13
    for one in (phone, capture, mute):
        await one.start()
    try:
        hosts = [f"127.0.0.1:{port}" for port in (phone.port, capture.port, mute.port, free_port())]
        found, missing = await find_sources(hosts, 1.0)
    finally:
        for one in (phone, capture, mute):
            await one.stop()
    assert [one.kind for one in found] == ["neon", "neon", "core"]
    assert found[0].source == {"kind": "neon", "options": {"host": "127.0.0.1", "port": phone.port}}
    assert found[2].source["options"]["port"] == capture.port
    assert found[0].rate_hz == pytest.approx(200.0, rel=0.3)
    assert found[1].refused == "it answers, and sends no gaze; what came was payloads of a length that is not known"
    assert len(missing) == 1
    assert "eyestream[lsl]" in missing[0]


def test_a_host_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="--host"):
        asyncio.run(find_sources(["phone:http"], 0.1))


DEGREES = (Channel("a", "ScreenX", "deg"), Channel("b", "ScreenY", "deg"))


@pytest.mark.parametrize(
    ("outlet", "taken", "said"),
    [
        (Outlet("o", "Gaze", "s", 250.0, True, DEGREES), True, ""),
        (Outlet("o", "Gaze", "s", 0.0, True, DEGREES), False, "its rate is irregular"),
        (Outlet("o", "gaze", "s", 0.0, True, (Channel(), Channel())), False, "0 channels of type ScreenX"),
        (Outlet("o", "EEG", "s", 5e6, True, (Channel(), Channel())), False, "rate_hz"),
    ],
)
def test_outlets_are_judged(outlet: Outlet, taken: bool, said: str) -> None:
    found = outlet_found(outlet)
    assert bool(found.source) == taken
    assert said in found.refused


def test_the_command_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "pylsl", None)
    monkeypatch.setitem(sys.modules, "zmq", None)
    words = ["sources", "--host", f"127.0.0.1:{free_port()}", "--wait", "0.2"]
    main(words)
    told = capsys.readouterr().out
    assert told.startswith("no tracker found\n")
    assert "eyestream[core]" in told
    assert "eyestream[lsl]" in told
    main([*words, "--json"])
    assert json.loads(capsys.readouterr().out)["found"] == []


def test_pylsl_without_its_library_is_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its wheels for some machines have no liblsl: then to install the extra again would not help."""
    (tmp_path / "pylsl.py").write_text("raise RuntimeError('no library')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pylsl", raising=False)
    with pytest.raises(ConfigError, match=r"liblsl.*PYLSL_LIB") as refusal:
        pylsl_module()
    assert "eyestream[lsl]" not in str(refusal.value)
