"""Gaze of programs in the sidecar's process: from the layer, on a socket that says who is there."""

import asyncio
import importlib.metadata
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from eyestream.errors import LinkError
from eyestream.rim.config import BrokerSettings, SourceEntry
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.sources.gaze import Place
from eyestream.rim.sources.registry import named_source
from eyestream_lab.testing.clocks import until
from eyestream_lab.testing.gaze_sources import Heard, hearing
from eyestream_openxr import wire
from eyestream_openxr.source import OPENXR, SILENT_S, OpenXrOptions, OpenXrSource
from tests.openxr.machine import Built, Looking, program

needs_cc = pytest.mark.needs("cc", "make")


def source_in(folder: Path, users: tuple[int, ...] = ()) -> OpenXrSource:
    place = Place("hmd-1", BrokerSettings("mqtt://127.0.0.1:1"))
    return OpenXrSource(OpenXrOptions(folder, users), load_profile("mqtt").at_rate(90.0), place)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "place"


def message(*samples: tuple[int, float, float]) -> bytes:
    return wire.packed(np.array([*samples], wire.SAMPLE))


def connected(folder: Path) -> socket.socket:
    program = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    program.connect(str(folder / "gaze.sock"))
    return program


@asynccontextmanager
async def listening(source: OpenXrSource) -> AsyncIterator[Heard]:
    async with hearing(source) as heard:
        await until(lambda: heard.stands > 0)
        yield heard


async def frames(looking: Looking, more: Callable[[], bool], seconds: float = 5.0) -> None:
    """Frames of a program, a hundred a second, while `more`."""
    ends = time.monotonic() + seconds
    while more():
        assert time.monotonic() < ends, "it did not come to be"
        looking.look()
        await asyncio.sleep(0.01)


@needs_cc
async def test_gaze_of_a_program_comes_against_the_head_with_the_times_of_its_tracker(built: Built) -> None:
    built.head(20.0, yaw_deg_s=40.0)
    built.times(epoch_ns=7_000_000_000_000)
    async with listening(source_in(built.place)) as heard:
        with program(built) as through:
            looking = Looking(through)
            await frames(looking, lambda: heard.samples < 50)
            assert looking.look()[0] == 0
    assert heard.column("gaze") == pytest.approx(np.tile([10.0, -5.0], (heard.samples, 1)), abs=2e-3)
    times = heard.column("time")
    assert (np.diff(times) > 0).all()
    late = [at - part.time[-1] for at, part in zip(heard.arrived, heard.records, strict=True)]
    assert 0.003 <= min(late) < 0.5


@needs_cc
async def test_a_lost_eye_is_sent_like_any_other(built: Built) -> None:
    async with listening(source_in(built.place)) as heard:
        with program(built) as through:
            looking = Looking(through)
            await frames(looking, lambda: heard.samples < 5)
            built.eyes(0.0, 0.0, seen=False)
            await frames(looking, lambda: np.isnan(heard.column("gaze")).sum() < 10)
            before = heard.samples
            built.eyes(1.0, 2.0)
            await frames(looking, lambda: heard.samples < before + 5)
    gaze = heard.column("gaze")
    assert gaze[0] == pytest.approx([10.0, -5.0], abs=1e-3)
    assert gaze[-1] == pytest.approx([1.0, 2.0], abs=1e-3)
    assert np.diff(heard.column("time")).max() < 1.0


@needs_cc
@pytest.mark.parametrize("lie_ns", [10**12, -(10**12), 10**9])
async def test_a_runtime_that_lies_about_times_has_lost_the_eye(built: Built, lie_ns: int) -> None:
    built.times(lie_ns=lie_ns)
    async with listening(source_in(built.place)) as heard:
        with program(built) as through:
            await frames(Looking(through), lambda: heard.samples < 5)
    assert np.isnan(heard.column("gaze")).all()


@needs_cc
async def test_the_sidecar_comes_goes_and_comes_again(built: Built) -> None:
    with program(built) as through:
        looking = Looking(through)
        looking.look()
        for _ in range(2):
            async with listening(source_in(built.place)) as heard:
                await frames(looking, lambda heard=heard: heard.samples < 3)


@needs_cc
async def test_of_two_sessions_one_hands_gaze_on_and_then_the_other(built: Built) -> None:
    async with listening(source_in(built.place)) as heard:
        with program(built) as through:
            one, two = Looking(through), Looking(through)
            await frames(one, lambda: heard.samples < 3)
            through.destroy("Session", one.session)
            before = heard.samples
            await frames(two, lambda: heard.samples < before + 3)


@needs_cc
async def test_a_program_that_never_synchronises_gives_none(built: Built) -> None:
    async with listening(source_in(built.place)) as heard:
        with program(built) as through:
            looking = Looking(through)
            for _ in range(150):
                through.locate(looking.space, looking.view)
                await asyncio.sleep(0.01)
    assert heard.samples == 0


@needs_cc
@pytest.mark.needs("root")
async def test_the_layer_hands_nothing_to_a_peer_of_another_user(built: Built) -> None:
    """Somebody else's socket in a folder of ours: the peer owns no folder, so it gets no gaze."""
    code = (
        "import os, socket, sys, time\n"
        "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.bind(sys.argv[1]); os.chmod(sys.argv[1], 0o666)\n"
        "os.setuid(65534); s.listen(1); print('ready', flush=True); s.settimeout(6)\n"
        "c, _ = s.accept(); c.settimeout(2)\n"
        "print(len(c.recv(4096)), flush=True)\n"
    )
    words = ("-c", code, str(built.place / "gaze.sock"))
    spy = await asyncio.create_subprocess_exec(sys.executable, *words, stdout=subprocess.PIPE)
    assert spy.stdout is not None
    assert await spy.stdout.readline() == b"ready\n"
    with program(built) as through:
        looking = Looking(through)
        for _ in range(30):
            looking.look()
            await asyncio.sleep(0.01)
    assert (await spy.communicate())[0] == b"0\n"


async def test_the_entry_point_names_the_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    point = importlib.metadata.EntryPoint("openxr", "eyestream_openxr.source:OPENXR", "eyestream.sources")
    every = importlib.metadata.entry_points
    monkeypatch.setattr(
        importlib.metadata,
        "entry_points",
        lambda *, group: [point] if group == point.group else every(group=group),
    )
    assert named_source(SourceEntry("openxr", "hmd-1", rate_hz=90.0)).kind is OPENXR


async def test_what_is_no_message_is_refused_and_the_link_stands(folder: Path) -> None:
    source = source_in(folder)
    async with listening(source) as heard:
        with connected(folder) as program:
            now = time.monotonic_ns()
            good = message((now, 1.0, 2.0))
            for wrong in (b"x", good[:-1], good + b"x", b"\0" * 24, good[:4] + b"\2" + good[5:], good[:6] + b"\0\0"):
                program.send(wrong)
            program.send(message((now - 10**10, 1.0, 2.0)))
            program.send(message((now + 10**10, 1.0, 2.0)))
            program.send(message((now, 1.0, 2.0), (now, 1.0, 2.0)))
            program.send(message((now + 1, np.inf, 2.0)))
            await until(lambda: heard.samples == 1)
    assert source.refused == {"no message of this version": 6, "times": 3}
    assert np.isnan(heard.column("gaze")).all()


async def test_of_two_programs_one_is_heard_until_it_is_silent(folder: Path) -> None:
    async with listening(source_in(folder)) as heard:
        with connected(folder) as one, connected(folder) as two:
            one.send(message((time.monotonic_ns(), 1.0, 0.0)))
            await until(lambda: heard.samples == 1)
            two.send(message((time.monotonic_ns(), 2.0, 0.0)))
            one.send(message((time.monotonic_ns(), 1.0, 0.0)))
            await until(lambda: heard.samples == 2)
            await asyncio.sleep(SILENT_S + 0.1)
            two.send(message((time.monotonic_ns(), 2.0, 0.0)))
            await until(lambda: heard.samples == 3)
    assert heard.column("gaze")[:, 0].tolist() == [1.0, 1.0, 2.0]


async def test_a_program_whose_times_cannot_be_true_keeps_no_other_one_from_being_heard(folder: Path) -> None:
    source = source_in(folder)
    async with listening(source) as heard:
        with connected(folder) as wrong, connected(folder) as right:
            wrong.send(message((time.monotonic_ns() - 10**10, 1.0, 0.0)))
            await until(lambda: source.refused["times"] == 1)
            right.send(message((time.monotonic_ns(), 2.0, 0.0)))
            await until(lambda: heard.samples == 1)
    assert heard.column("gaze")[:, 0].tolist() == [2.0]


@pytest.mark.needs("root")
@pytest.mark.parametrize(("users", "samples"), [((), 0), ((65534,), 1)])
async def test_a_program_of_another_user_is_not_heard_unless_it_may(users: tuple[int, ...], samples: int) -> None:
    code = (
        "import os, socket, sys\nos.setuid(65534)\n"
        "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect(sys.argv[1])\n"
        "s.send(bytes.fromhex(sys.argv[2])); s.recv(1)\n"
    )
    with tempfile.TemporaryDirectory() as above:
        os.chmod(above, 0o755)
        folder = Path(above, "place")
        source = source_in(folder, users)
        async with listening(source) as heard:
            os.chmod(folder, 0o755)
            os.chmod(folder / "gaze.sock", 0o666)
            words = (code, str(folder / "gaze.sock"), message((time.monotonic_ns(), 1.0, 2.0)).hex())
            other = await asyncio.create_subprocess_exec(sys.executable, "-c", *words, stderr=subprocess.DEVNULL)
            await until(lambda: source.refused.total() == 1 - samples and heard.samples == samples)
        await other.wait()


@pytest.mark.parametrize("spoilt", ["file", "open"])
def test_a_folder_that_others_may_write_to_is_refused(folder: Path, spoilt: str) -> None:
    if spoilt == "file":
        folder.write_text("")
    else:
        folder.mkdir()
        folder.chmod(0o777)
    with pytest.raises(LinkError, match=r"nobody else may write to|cannot be made"):
        asyncio.run(source_in(folder).run(lambda _: None))
