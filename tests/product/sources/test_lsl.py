"""LSL: which channels are taken, and an outlet's hard life in a network namespace of its own."""

import asyncio
import contextlib
import os
import select
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from eyestream.errors import ConfigError
from eyestream.gaze.outlets import RELAYS, Channel, Outlet, Taking, Wanted, relay_of, taking
from eyestream.gaze.profile import Profile
from eyestream.rim.config import BrokerSettings
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.sources.gaze import Place
from eyestream.rim.sources.lsl import LslOptions, LslSource, connection_to, let_in

PLACE = Place("hmd-1", BrokerSettings("mqtt://localhost"))
ROOT = Path(__file__).resolve().parents[3]


def lsl(rate_hz: float = 200.0) -> Profile:
    return load_profile("lsl").at_rate(rate_hz)


def outlet(*channels: Channel, rate_hz: float = 200.0, numbers: bool = True) -> Outlet:
    return Outlet("o", "Gaze", "s", rate_hz, numbers, channels)


def screen(unit: str = "degrees") -> tuple[Channel, Channel]:
    return Channel("x", "ScreenX", unit, "both"), Channel("y", "ScreenY", unit, "both")


def test_the_convention_is_taken_by_itself() -> None:
    mm = Channel("p", "Diameter", "mm", "left")
    pixels = Channel("q", "Diameter", "pixels", "left")
    found = taking(outlet(Channel("c", "Confidence"), *screen(), pixels, mm), lsl(), Wanted())
    assert found == Taking((1, 2), (4,), 0, 0.6)


def test_an_explicit_mapping_may_name_or_number_channels_without_units() -> None:
    blank = [Channel(label) for label in ("a", "b", "c", "")]
    assert taking(outlet(*blank), lsl(), Wanted(("b", 3), ("a",), "c", 0.5)) == Taking((1, 3), (0,), 2, 0.5)


@pytest.mark.parametrize(
    ("made", "wanted", "said"),
    [
        (outlet(), Wanted(), "0 channels of type ScreenX"),
        (outlet(*screen(), *screen()), Wanted(), "2 channels of type ScreenX"),
        (outlet(*screen("furlongs")), Wanted(), "unit 'furlongs', where the profile has deg"),
        (outlet(*screen("pixels")), Wanted(("x", "y")), "unit 'pixels', where the profile has deg"),
        (outlet(*screen("")), Wanted(), "has no unit, where the profile has deg"),
        (outlet(*screen(), rate_hz=60.0), Wanted(), "60 samples a second, the profile 200"),
        (outlet(*screen(), numbers=False), Wanted(), "texts, not numbers"),
        (outlet(*screen()), Wanted(("x", "z")), "0 channels have the label 'z'"),
        (outlet(*screen(), *screen()), Wanted(("x", "y")), "2 channels have the label 'x'"),
        (outlet(*screen()), Wanted((0, 2)), "there is no channel 2: it has 2"),
        (outlet(*screen()), Wanted((0, -1)), "there is no channel -1"),
        (outlet(*screen()), Wanted((0,)), "1 channels, where profile lsl has 2"),
        (outlet(*screen(), Channel("p", "", "px")), Wanted(("x", "y"), ("p",)), "unit 'px', where the profile has mm"),
    ],
)
def test_what_cannot_be_taken_is_refused(made: Outlet, wanted: Wanted, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        taking(made, lsl(), wanted)


def capture() -> Outlet:
    """As Pupil Capture's relay describes itself: gaze normals are called positions in mm."""
    channels = [Channel("confidence", "Confidence", "normalized", "both")]
    channels += [Channel(f"norm_pos_{a}", f"Screen{a.upper()}", "normalized", "both") for a in "xy"]
    channels += [Channel(f"gaze_point_3d_{a}", f"Direction{a.upper()}", "mm", "both") for a in "xyz"]
    for eye in range(2):
        channels += [Channel(f"gaze_normal{eye}_{a}", f"Position{a.upper()}", "mm") for a in "xyz"]
    channels += [Channel(f"diameter{eye}_2d", "Diameter", "pixels") for eye in range(2)]
    channels += [Channel(f"diameter{eye}_3d", "Diameter", "mm") for eye in range(2)]
    return outlet(*channels, rate_hz=0.0)


def test_known_relays_are_known_and_taken() -> None:
    assert relay_of(capture()) == "pupil-capture"
    found = taking(capture(), load_profile("core"), RELAYS["pupil-capture"].wanted)
    assert found == Taking((3, 4, 5), (14, 15), 0, 0.6)
    assert taking(capture(), load_profile("core"), Wanted()) == found
    companion = outlet(*screen("pixels"), rate_hz=0.0)
    assert relay_of(companion) == "pupil-companion"
    assert taking(companion, load_profile("neon"), RELAYS["pupil-companion"].wanted) == Taking((0, 1), (), None, 0.6)
    assert relay_of(outlet(Channel(), Channel())) is None
    assert relay_of(outlet(*screen("degrees"))) is None
    assert relay_of(outlet()) is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (LslOptions("o", preset="nothing"), "is none of pupil-capture"),
        (LslOptions("o", preset="pupil-capture", gaze=(0, 1)), "a preset, or channels"),
    ],
)
def test_options_that_contradict_are_refused(options: LslOptions, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        LslSource(options, lsl(), PLACE)


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pylsl", None)
    with pytest.raises(ConfigError, match=r"pip install 'eyestream\[lsl\]'"):
        LslSource(LslOptions("o"), lsl(), PLACE)


async def test_a_reader_wakes_only_while_it_is_let_in() -> None:
    """The reader is a thread that sleeps until its socket has something, as liblsl's does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ours = socket.create_connection(("127.0.0.1", port))
        theirs = server.accept()[0]
    with ours, theirs:
        assert connection_to([port - 1]) is None
        ours.setblocking(False)
        found = connection_to([port])
        assert found is not None
        assert not os.get_blocking(ours.fileno())  # liblsl's thread would wait in a read, and never be ended
        read: list[bytes] = []

        def reader() -> None:
            watched = select.epoll()
            watched.register(ours, select.EPOLLIN)
            while not read or read[-1]:
                watched.poll()
                read.append(ours.recv(4096))

        theirs.sendall(b"ab")
        await let_in(found)  # nobody has come to read
        assert select.select([ours], [], [], 1)[0]
        assert ours.recv(2) == b"ab"
        await let_in(found)
        thread = threading.Thread(target=reader)
        thread.start()
        for turn in range(3):
            for word in b"abc":
                theirs.sendall(bytes([word]))
                await asyncio.sleep(0.02)
            assert len(read) == turn
            while len(read) == turn:
                await let_in(found)
            await let_in(found)  # where it was still open: nothing waits any more
            assert read == [b"abc"] * (turn + 1)
        theirs.close()  # who hangs up wakes it, also when it is not let in
        await asyncio.to_thread(thread.join, 5)
        assert read.pop() == b""
        found.close()


def test_two_outlets_at_one_port_have_a_connection_each() -> None:
    """As of two hosts: a source that took the other's would leave its own without anybody who lets liblsl in."""
    with socket.create_server(("127.0.0.1", 0)) as server, contextlib.ExitStack() as opened:
        at = server.getsockname()
        found: list[socket.socket] = []
        for _ in range(2):
            ours = opened.enter_context(socket.create_connection(at))
            opened.enter_context(server.accept()[0])
            one = connection_to([at[1]])
            assert one is not None
            found.append(opened.enter_context(one))
            assert one.getsockname() == ours.getsockname()
        assert connection_to([at[1]]) is None
        found[0].close()
        again = connection_to([at[1]])
        assert again is not None
        assert opened.enter_context(again).getsockname() != found[1].getsockname()


@pytest.mark.alone  # a hurried clock: a pause of the machine is a jump of the tracker's clock there
@pytest.mark.needs("ip", "namespaces", "mosquitto")
def test_lives_of_outlets_in_a_namespace_of_their_own(tmp_path: Path) -> None:
    """LSL's sockets are open to every interface, so they get interfaces of their own."""
    up = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && ip link set lo multicast on && exec "$@"', "sh"]
    done = subprocess.run(
        [*up, sys.executable, "-m", "tests.product.sources.lsl_life", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    lived = ["a hard life", "refusals", "an explicit mapping", "a silent outlet stands", "what an application reads"]
    assert done.stdout.split("\n")[:5] == lived
