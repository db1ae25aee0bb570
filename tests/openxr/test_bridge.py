"""Released gaze on the page: what is shown, for how long, and what the commands say."""

import asyncio
import json
import random
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.errors import ConfigError
from eyestream.rim.config import BrokerSettings
from eyestream.sdk.chunk import Chunk
from eyestream_openxr.bridge import HOLD_S, PageFile, bridging, page_of
from eyestream_openxr.commands import COMMANDS
from eyestream_openxr.wire import Page, read_page
from tests.openxr.machine import VALID, Built, Looking, program

NAMES = ("gaze_x", "gaze_y", "gaze_error", "lost", "word")


def chunk(middle_s: float, lost: float = 0.1, at: bool = True) -> Chunk:
    values = np.array([[-20.0], [12.0], [4.0], [lost], [7.0]], np.float32)
    end = middle_s + 0.5
    return Chunk(1, 0, NAMES, np.array([end]), values, 3.3, 0.0, "words", at=end if at else None)


def test_the_page_says_the_middle_of_the_slot_and_until_when() -> None:
    now = 100_000_000_000
    page = page_of(chunk(98.5), now)
    assert page == Page(now, now + int(HOLD_S * 1e9), 98_500_000_000, -20.0, 12.0)
    assert read_page(page.packed(2)) == page
    assert page_of(chunk(98.5, lost=0.9), now) == Page(now)


def test_slots_of_another_clock_are_refused() -> None:
    for wrong in (chunk(1000.0), chunk(10.0), chunk(98.0, at=False)):
        with pytest.raises(ConfigError, match=r"clock|time"):
            page_of(wrong, 100_000_000_000)


def test_nobody_reads_half_a_page(tmp_path: Path) -> None:
    path, over = tmp_path / "page", threading.Event()
    file = PageFile(path)

    def write() -> None:
        numbers = random.Random(1)
        while not over.is_set():
            n = numbers.randrange(1, 2**40)
            file.write(Page(n, n, n, float(n % 80), float(n % 80)))

    writing = threading.Thread(target=write)
    writing.start()
    whole = 0
    for _ in range(3000):
        page = read_page(path.read_bytes())
        if page is not None:
            assert page.beat_ns == page.until_ns == page.gaze_ns
            assert page.x_deg == page.y_deg == page.beat_ns % 80
            whole += 1
    over.set()
    writing.join()
    assert whole > 100
    file.close()
    assert read_page(path.read_bytes()) == Page(0)


def test_a_page_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("link", "."):
        with pytest.raises(ConfigError):
            PageFile(tmp_path / name)


class Served:
    """Stands for a subscription."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[Chunk] = asyncio.Queue()

    async def __aenter__(self) -> "Served":
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    def __aiter__(self) -> "Served":
        return self

    async def __anext__(self) -> Chunk:
        return await self.queue.get()


@pytest.mark.needs("cc", "make")
async def test_a_tile_is_shown_until_the_sidecar_or_the_bridge_has_gone(
    built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert HOLD_S < 2.0
    served = Served()
    monkeypatch.setattr("eyestream_openxr.bridge.subscribe", lambda *_, **__: served)
    bridge = asyncio.create_task(bridging(BrokerSettings("mqtt://127.0.0.1"), "hmd-1", "gaze", built.place))
    with program(built) as through:
        looking = Looking(through)

        async def until(flags: int) -> None:
            begun = time.monotonic()
            while looking.look()[0] != flags:
                assert time.monotonic() < begun + 5
                await asyncio.sleep(0.01)

        assert looking.look()[0] == 0
        served.queue.put_nowait(chunk(time.monotonic() - 1.5))
        await until(VALID)
        await until(0)  # no other tile follows
        served.queue.put_nowait(chunk(time.monotonic() - 1.5))
        await until(VALID)
        served.queue.put_nowait(chunk(time.monotonic() - 1.5, lost=0.9))
        await until(0)
        served.queue.put_nowait(chunk(time.monotonic() - 1.5))
        await until(VALID)
        bridge.cancel()
        await until(0)  # ended well
        await asyncio.wait([bridge])
    assert bridge.cancelled()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_DIRS", raising=False)
    monkeypatch.delenv("XDG_DATA_DIRS", raising=False)
    monkeypatch.setattr("eyestream.cli.main.commands", lambda: COMMANDS)
    return tmp_path


@pytest.mark.needs("cc", "make")
def test_the_layer_is_installed_for_this_user_and_taken_away(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["openxr", "install"])
    manifest = home / "openxr/1/api_layers/implicit.d/eyestream.json"
    said = json.loads(manifest.read_text())["api_layer"]
    assert Path(said["library_path"]).is_file()
    assert said["disable_environment"] == "EYESTREAM_XR_DISABLE"
    spy = home / "openxr/1/api_layers/explicit.d/spy.json"
    spy.parent.mkdir()
    spy.write_text('{"api_layer": {"name": "XR_APILAYER_TEST_spy"}}')
    main(["openxr", "status", "--folder", str(home)])
    text = capsys.readouterr().out
    assert "layer: installed" in text
    assert "XR_APILAYER_TEST_spy, explicit: below" in text
    assert f"sidecar: no socket in {home}" in text
    assert "bridge: no page: programs see no gaze" in text
    main(["openxr", "remove"])
    main(["openxr", "remove"])
    assert "the layer was not installed" in capsys.readouterr().out
    assert [path for path in home.rglob("*") if path.is_file()] == [spy]


def test_status_says_who_is_at_work(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for page, words in (
        (Page(time.monotonic_ns(), time.monotonic_ns() + 10**10, 1), "at work, and gaze is shown"),
        (Page(time.monotonic_ns()), "at work, and nothing is released"),
        (Page(time.monotonic_ns() - 10**10), "has ended"),
    ):
        (home / "page").write_bytes(page.packed(2))
        main(["openxr", "status", "--folder", str(home)])
        assert words in capsys.readouterr().out
