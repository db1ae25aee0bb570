"""Components, samples and inspector at work, in a scene of our own stubs of the engine."""

import asyncio
import contextlib
import math
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from eyestream_lab.embedded import free_port
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.pages import code_of
from tests.rigs.spoken import speaking_to
from tests.rigs.unity import PACKAGE
from tests.unity.compiling import HERE, compiled, sources_of

pytestmark = pytest.mark.needs("mono", "mosquitto")

GAZE = {"gaze_x": "deg", "gaze_y": "deg", "gaze_error": "deg", "lost": "1", "word": "1"}


@pytest.fixture(scope="module")
def scene(core: Path) -> Path:
    """The scene; each assembly is compiled as Unity would, with what its definition refers to and no more."""
    folder = core.parent
    stubs = compiled(folder, "UnityStubs.dll", [HERE / "UnityStubs.cs"], [])
    unity = compiled(folder, "Eyestream.Unity.dll", sources_of("Eyestream.Unity"), [core, stubs])
    editor = compiled(folder, "Eyestream.Editor.dll", sources_of("Eyestream.Editor"), [core, unity, stubs])
    parts = [core, unity, stubs]
    samples = compiled(folder, "Samples.dll", sorted(PACKAGE.glob("Samples~/*/*.cs")), parts)
    script = folder / "Attention.cs"
    script.write_text(code_of("docs/unity.md", "csharp"))
    return compiled(folder, "scene.exe", [HERE / "Scene.cs", script], [*parts, editor, samples])


@dataclass
class Player:
    """The running scene."""

    process: asyncio.subprocess.Process

    async def until(self, last: str) -> list[str]:
        """All lines up to one that begins with `last`."""
        assert self.process.stdout is not None
        lines: list[str] = []
        while not lines or not lines[-1].startswith(last):
            line = await asyncio.wait_for(self.process.stdout.readline(), 30)
            assert line, lines
            lines.append(line.decode().rstrip())
        return lines

    def do(self, command: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{command}\n".encode())


@contextlib.asynccontextmanager
async def playing(scene: Path, port: int, stream: str, folder: Path, *more: str) -> AsyncIterator[Player]:
    words, pipe = ("mono", str(scene), str(port), stream, str(folder), *more), asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe)
    try:
        yield Player(process)
    finally:
        process.kill()
        await process.wait()


def marker(degrees: float, size: float) -> str:
    """Of a head at 1.5 m that looks to its right (+x): what is ahead is x, what is to the right is -z."""
    angle, radius = math.radians(degrees), 2 * math.tan(math.radians(size))
    ahead, right, up = math.cos(angle) ** 2, math.sin(angle) * math.cos(angle), math.sin(angle)
    place = f"{2 * ahead:.4f} {1.5 + 2 * up:.4f} {-2 * right:.4f}"
    return f"marker {place} of {2 * radius:.4f} {2 * radius:.4f} {2 * radius:.4f}"


async def test_the_marker_is_where_the_gaze_is_and_as_large_as_its_error(
    scene: Path, mosquitto: Mosquitto, tmp_path: Path
) -> None:
    async with (
        speaking_to(mosquitto.url, stream="gaze", names=tuple(GAZE), units=tuple(GAZE.values())) as spoken,
        playing(scene, mosquitto.port, "gaze", tmp_path) as player,
    ):
        await player.until("status Online")
        await spoken.chunk(0)  # the last of four slots: 0.3 degrees, within 0.3 degrees, lost by 0.3
        shown = await player.until("marker 1.")
        assert shown[-1] == marker(0.3, 0.3)
        assert "log (1.00, 0.01, -0.01) within 0.3 degrees" in shown
        await spoken.chunk(2)  # lost by more than a half
        hidden = await player.until("marker")
        assert hidden[-1].endswith("of 0.0000 0.0000 0.0000")
        player.do("inspect")
        inspected = await player.until("inspected")
        assert {"label Status: online: ready", "label Budget: 120 min of this session"} <= set(inspected)
        assert "label Gaze: 2.3, 2.3 within 2.3 degrees" in inspected
        assert "box Error: a pin is '12': expected 64 hexadecimal digits" in inspected
        await spoken.chunk(0, session=5)
        await player.until("marker 1.")
        player.do("later")  # nothing has come for a minute
        assert (await player.until("marker"))[-1].endswith("of 0.0000 0.0000 0.0000")


async def test_the_panel_has_two_features_their_errors_and_the_budget(
    scene: Path, mosquitto: Mosquitto, tmp_path: Path
) -> None:
    async with (
        speaking_to(mosquitto.url) as spoken,
        playing(scene, mosquitto.port, "features", tmp_path) as player,
    ):
        await player.until("status Online")
        await spoken.chunk(1)
        features = "rate_fixations 1.3 ± 0.5 1/s | blink_rate 1.3 ± 0.5"
        said = f"panel online: ready | {features} | 2 h 00 min left of this session"
        assert (await player.until("panel online: ready | rate"))[-1] == said
        await spoken.status("paused", "paused")
        paused = await player.until("panel paused")
        assert paused[-1].startswith("panel paused | rate_fixations")
        assert "log the wearer has paused: no chunks until they resume" in paused
        player.do("OnDisable")
        player.do("OnEnable")
        await player.until("status Paused")
        await spoken.chunk(2)
        assert (await player.until("panel paused | rate_fixations 2.3"))[-1].count("|") == 3


async def test_a_scene_without_a_broker_goes_on_and_says_so_once(scene: Path, tmp_path: Path) -> None:
    async with playing(scene, free_port(), "gaze", tmp_path) as player:
        await player.until("warning eyestream: Network: no broker answers")
        await asyncio.sleep(2)  # it tries again meanwhile
        player.do("inspect")
        found = await player.until("inspected")
        assert [line for line in found if line.startswith("warning")] == []
        assert any(line.startswith("label Status: not linked: no broker answers") for line in found)


@pytest.mark.parametrize(("text", "said"), [(None, "the file with the password"), ("\n", "has an empty first line")])
async def test_a_password_that_is_not_there_is_a_fault(
    scene: Path, tmp_path: Path, text: str | None, said: str
) -> None:
    if text is not None:
        (tmp_path / "password").write_text(text)
    async with playing(scene, free_port(), "gaze", tmp_path, "password") as player:
        assert said in (await player.until("warning eyestream: Settings"))[-1]


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Mosquitto]:
    """A broker that knows one login."""
    passwords = tmp_path / "passwords"
    passwords.touch(0o600)
    subprocess.run(["mosquitto_passwd", "-b", passwords, "application", "right"], check=True, capture_output=True)
    broker = Mosquitto(tmp_path, f"password_file {passwords}")
    broker.start()
    yield broker
    broker.stop()


@pytest.mark.parametrize(
    ("text", "last"), [("right\nand a remark\n", "status Waiting"), ("wrong\n", "warning eyestream: Login")]
)
async def test_the_password_is_the_first_line_of_its_file(
    scene: Path, locked: Mosquitto, tmp_path: Path, text: str, last: str
) -> None:
    (tmp_path / "password").write_text(text)
    async with playing(scene, locked.port, "gaze", tmp_path, "password") as player:
        found = await player.until(last)
    assert [line for line in found if line.startswith("warning")] == found[-1:] * last.startswith("warning")
