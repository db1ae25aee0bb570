"""The control socket and the indicator: who may, what is answered, and in which order things are shown."""

import asyncio
import contextlib
import os
import socket
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from eyestream.cli.main import main
from eyestream.cli.pause import ask
from eyestream.errors import ConfigError, LedgerError
from eyestream.rim.config import ControlSettings, Settings
from eyestream.rim.files.gaze_columns import GazeColumns
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.plan import resolved
from eyestream.rim.sidecar import control
from eyestream.rim.sidecar.control import MOST_BYTES, MOST_CLIENTS, control_socket, serving
from eyestream.rim.sidecar.off import Off, is_paused, mark_beside, remember_pause
from eyestream.rim.sidecar.sidecar import Sidecar
from eyestream.rim.sources.gaze import GazeFeeder
from eyestream.rim.sources.source import Deliver, Feeder
from eyestream.sdk.publisher import Publisher
from eyestream.streams import StreamKey
from eyestream.wire.raw import RawRows
from eyestream_lab.testing.clocks import until
from tests.rigs.gaze_people import gaze, profile
from tests.rigs.mosquitto import Mosquitto
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.sidecar import NO_BROKER, at_work, ceilings_of, opened, running, settings_for
from tests.rigs.spy import spying
from tests.rigs.storms import NAMES


def settings_in(folder: Path, **table: object) -> Settings:
    return msgspec.structs.replace(settings_for(NO_BROKER, folder), control=ControlSettings(**table))  # type: ignore[arg-type]


async def nothing() -> None:
    """Nothing is asked of the ledger."""


class Steps:
    """A switch whose steps are told, in order."""

    def __init__(self, ledger: Path | None) -> None:
        self.told: list[str] = []
        self.off = Off(
            ledger,
            halt=lambda: self.told.append("halt"),
            come_round=nothing,
            go=lambda: self.told.append("go"),
        )


async def said(path: Path, *lines: bytes) -> list[str]:
    """The answers to lines of one client."""
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(b"".join(lines))
    writer.write_eof()
    answers = (await reader.read()).decode().splitlines()
    writer.close()
    return answers


async def test_lines_are_answered_and_what_nobody_knows_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings, steps = settings_in(tmp_path), Steps(tmp_path / "ledger")
    path = control_socket(settings)
    async with serving(settings, steps.off):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert await said(path, b"pause\n") == ["paused"]
        assert is_paused(tmp_path / "ledger")
        assert await said(path, b"indicator\n", b"resume\n") == ["off", "on", "on"]
        assert not is_paused(tmp_path / "ledger")
        steps.told.clear()
        refused = [b"secret-4711\n", b"\xff\xfe\n", b"\n", b"pause now\n", b"resume secret-4711\n"]
        answers = await said(path, *refused)
        assert len(answers) == len(refused)
        assert all(answer.startswith("no") for answer in answers)
        assert (await said(path, b"x" * 3 * MOST_BYTES))[0].startswith("no")
        assert (await said(path, b"pause"))[0].startswith("no"), "a line ends"
        assert steps.told == []
        assert "4711" not in caplog.text
    assert not path.exists()


async def test_another_user_is_refused_and_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings, steps = settings_in(tmp_path), Steps(tmp_path / "ledger")
    async with serving(settings, steps.off) as made:
        assert made is not None
        made._may = frozenset({4_000_000_001})
        with contextlib.suppress(ConnectionResetError):  # it may be cut off before its line is read
            assert await said(control_socket(settings), b"pause\n") == ["no: this user may not"]
        for _ in range(20):
            with pytest.raises(ConfigError, match=r"no: this user may not|reset by peer"):
                await asyncio.to_thread(ask, control_socket(settings), "pause")
    assert steps.told == []
    assert "may not" in caplog.text


async def test_of_too_many_clients_the_oldest_is_cut_off_so_a_pause_always_comes_through(tmp_path: Path) -> None:
    """And no indicator: who shows one would else take releases for over."""
    settings, steps = settings_in(tmp_path), Steps(tmp_path / "ledger")
    path = control_socket(settings)
    async with serving(settings, steps.off):
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"indicator\nresume\n")
        assert [await reader.readline() for _ in range(3)] == [b"off\n", b"on\n", b"on\n"]
        idle = [await asyncio.open_unix_connection(path) for _ in range(MOST_CLIENTS + 3)]
        assert await said(path, b"pause\n") == ["paused"]
        assert await idle[0][0].read() == b""
        assert await reader.readline() == b"off\n"
        for _, other in [*idle, (reader, writer)]:
            other.close()


async def test_a_socket_that_is_in_use_is_refused_and_one_that_a_crash_left_is_replaced(tmp_path: Path) -> None:
    settings, steps = settings_in(tmp_path), Steps(tmp_path / "ledger")
    path = control_socket(settings)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    async with serving(settings, steps.off):
        with pytest.raises(ConfigError, match="another process listens"):
            async with serving(settings, Steps(None).off):
                pass
        assert await said(path, b"pause\n") == ["paused"]
    path.write_text("something")
    with pytest.raises(ConfigError, match="something else than a socket"):
        async with serving(settings, steps.off):
            pass
    with pytest.raises(ConfigError, match="longer than"):
        async with serving(settings_in(tmp_path, socket=tmp_path / ("x" * 120)), steps.off):
            pass
    with pytest.raises(ConfigError, match="no user"):
        async with serving(settings_in(tmp_path, users=("nobody-of-this-name",)), steps.off):
            pass


def indicator(folder: Path, *, ends: str = "exit 0") -> Path:
    """A program that notes what it is started with."""
    program = folder / "light"
    program.write_text(f'#!/bin/sh\necho "$1" >> {folder}/shown\n{ends}\n')
    program.chmod(0o700)
    return program


async def test_the_indicator_is_on_before_rows_are_taken_and_off_before_the_answer(tmp_path: Path) -> None:
    settings, steps = settings_in(tmp_path, indicator=indicator(tmp_path)), Steps(tmp_path / "ledger")
    shown = tmp_path / "shown"
    async with serving(settings, steps.off):
        await steps.off.begin(paused=False)
        assert shown.read_text().split() == ["on"]
        await steps.off.pause()
        assert shown.read_text().split() == ["on", "off"]
        steps.off._go = lambda: steps.told.append(shown.read_text().split()[-1])
        assert await steps.off.resume()
        assert steps.told == ["halt", "on"]
        await steps.off.end()
    assert shown.read_text().split() == ["on", "off", "on", "off"]


@pytest.mark.parametrize("ends", ["exit 3", "exec sleep 60"])
async def test_an_indicator_that_fails_keeps_it_off(tmp_path: Path, ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "SHOWN_S", 0.3)
    settings, steps = settings_in(tmp_path, indicator=indicator(tmp_path, ends=ends)), Steps(tmp_path / "ledger")
    async with serving(settings, steps.off):
        await steps.off.begin(paused=False)
        assert steps.told == ["halt"]
        assert await said(control_socket(settings), b"resume\n") == ["paused"]
        assert "go" not in steps.told


async def test_a_pause_that_comes_during_a_resume_wins(tmp_path: Path) -> None:
    steps, began = Steps(tmp_path / "ledger"), asyncio.Event()

    async def slow(on: bool) -> bool:
        began.set()
        await asyncio.sleep(0.05)
        return True

    steps.off.show = slow
    resuming = asyncio.create_task(steps.off.resume())
    await began.wait()
    await steps.off.pause()
    assert not await resuming
    assert "go" not in steps.told
    assert is_paused(tmp_path / "ledger")


async def test_a_disk_that_fails_leaves_it_off(tmp_path: Path) -> None:
    for fails in ("pause", "resume"):
        ledger = tmp_path / fails / "ledger"
        steps = Steps(ledger)
        if fails == "resume":
            ledger.parent.mkdir()
            await steps.off.pause()
            (ledger.parent / ".ledger.paused.rewritten").mkdir()
        with pytest.raises(LedgerError):
            await getattr(steps.off, fails)()
        assert steps.told == ["halt"]


def test_whatever_stands_at_the_mark_is_a_pause(tmp_path: Path) -> None:
    mark = mark_beside(tmp_path / "ledger")
    (tmp_path / "resumed").write_bytes(b"resumed\n")
    mark.symlink_to(tmp_path / "resumed")
    assert is_paused(tmp_path / "ledger")
    mark.unlink()
    for data in (b"", b"resumed", b"resumed\nx"):
        mark.write_bytes(data)
        assert is_paused(tmp_path / "ledger")
    mark.unlink()
    assert not is_paused(tmp_path / "ledger")
    mark.mkdir()
    assert is_paused(tmp_path / "ledger")


def test_nobody_listens(tmp_path: Path) -> None:
    assert ask(tmp_path / "none", "pause") is None
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "stale"))
    assert ask(tmp_path / "stale", "pause") is None
    if os.geteuid() == 0:
        return
    (tmp_path / "stale").chmod(0)
    with pytest.raises(ConfigError, match="Permission"):
        ask(tmp_path / "stale", "pause")


@pytest.mark.parametrize("read", [False, True], ids=["reset", "closed"])
def test_who_ends_before_it_answers_does_not_listen(tmp_path: Path, read: bool) -> None:
    """A sidecar that is killed while it is asked: then the command writes the mark itself."""

    def end() -> None:
        one, _ = server.accept()
        with one:
            assert one.recv(MOST_BYTES, 0 if read else socket.MSG_PEEK) == b"pause\n"

    with socket.socket(socket.AF_UNIX) as server, ThreadPoolExecutor(1) as beside:
        server.bind(str(tmp_path / "control"))
        server.listen()
        ended = beside.submit(end)
        assert ask(tmp_path / "control", "pause") is None
        ended.result()


async def test_applications_see_paused_and_a_gap_and_then_another_session(mosquitto: Mosquitto, tmp_path: Path) -> None:
    settings = settings_for(mosquitto.url, tmp_path, window_s=0.5)
    ledger = settings.sidecar.ledger

    async with spying(mosquitto.url) as spy, Publisher(mosquitto.url, "hmd-1", NAMES, 2.0) as publisher:
        async with running(settings) as sidecar:
            await until(lambda: spy.states()[-1:] == [("online", "ready")])
            await publisher.send(rows_of_a_stranger(80, len(NAMES)))
            await until(lambda: len(spy.chunks()) == 2)
            await sidecar.off.pause()
            await until(lambda: spy.states()[-1:] == [("paused", "paused")])
            spent = read_ledger(ledger).odometers["hmd-1"].released
            assert spent == 3, "the chunk that was open stays spent"
            await publisher.send(rows_of_a_stranger(100, len(NAMES)))
            await until(lambda: sidecar.unread > 0)
            assert sidecar.pipeline.counters.dropped == {"paused": 1}
            assert len(spy.chunks()) == 2
            assert read_ledger(ledger).odometers["hmd-1"].released == spent
        with opened(settings) as again:
            async with at_work(again):
                await until(lambda: again.raw_stands and again.private_stands)
                await until(lambda: spy.states()[-1:] == [("paused", "paused")])
                await publisher.send(rows_of_a_stranger(100, len(NAMES)))
                await until(lambda: again.unread > 0)
                assert len(spy.chunks()) == 2
                assert await again.off.resume()
                await until(lambda: spy.states()[-1:] == [("online", "ready")])
                await publisher.send(rows_of_a_stranger(160, len(NAMES)))
                await until(lambda: again.pipeline.counters.rejected["paused"] > 0)
                await asyncio.sleep(again.pipeline.settings[0].shared_s)
                assert len(spy.chunks()) == 2, "rows that may describe gaze of the pause"
                await publisher.send(rows_of_a_stranger(160, len(NAMES)))
                await until(lambda: len(spy.chunks()) > 2)
    chunks = spy.leaf("private")
    assert chunks[0]["session"] == chunks[1]["session"] != chunks[2]["session"]
    assert chunks[2]["chunk"] == 0


class Deaf(Feeder):
    """A feeder that delivers gaze at once, and notes what it is given to take."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    async def run(self, deliver: Callable[[Any], None]) -> None:
        for item in ("gaze", "more"):
            deliver(item)
        await asyncio.Event().wait()

    expected_hz, refused = 0.0, 0

    def end(self) -> None:
        """Nothing is kept."""

    def cut(self) -> None:
        """Nothing is kept."""

    def take(self, records: Any) -> None:
        self.taken.append(records)

    async def rows(self, deliver: Deliver) -> None:
        await asyncio.Event().wait()


@pytest.mark.parametrize("paused", [True, False])
async def test_gaze_that_comes_while_it_is_paused_is_dropped_before_any_window(tmp_path: Path, paused: bool) -> None:
    settings, feeder = settings_for(NO_BROKER, tmp_path), Deaf()
    if paused:
        remember_pause(settings.sidecar.ledger)
    with Ledger(settings.sidecar.ledger, ceilings=ceilings_of(settings)) as ledger:
        sidecar = Sidecar(
            resolved(settings),
            ledger,
            today=lambda: 20_000,
            sources={StreamKey("hmd-1", "features"): feeder},
            ledger_id=ledger.header.ledger_id,
            former_ledgers=ledger.former_ledgers,
            beside=settings.sidecar.ledger,
        )
        assert sidecar._sources is not None
        running = asyncio.create_task(sidecar._sources.run())
        await until(lambda: sidecar.unread == 2 if paused else feeder.taken == ["gaze", "more"])
        assert bool(feeder.taken) is not paused
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def rows_after_a_pause(folder: Path, before: int, back_s: float) -> list[RawRows]:
    """Rows that come of another person's gaze, 5 s after somebody said pause whose gaze is of the seed `before`.

    What was seen in the pause is said in the second after it, as by a link that is read by the clock. In the pause the
    tracker's clock is set back by `back_s`.
    """
    folder.mkdir()
    settings, now, made = settings_for(NO_BROKER, folder), [0.0], list[RawRows]()
    feeder = GazeFeeder(None, profile(200.0))  # type: ignore[arg-type]
    feeder._now = lambda: now[0]  # type: ignore[method-assign]
    with Ledger(settings.sidecar.ledger, ceilings=ceilings_of(settings)) as ledger:
        sidecar = Sidecar(
            resolved(settings),
            ledger,
            today=lambda: 20_000,
            sources={StreamKey("hmd-1", "features"): feeder},
            ledger_id=ledger.header.ledger_id,
            former_ledgers=ledger.former_ledgers,
            beside=settings.sidecar.ledger,
        )
        mine, later = gaze(200.0, 50.0, before)[0], gaze(200.0, 110.0, 4)[0]
        for begin in range(0, 110 * 200, 40):
            now[0] = begin / 200.0
            if now[0] == 45.0:
                sidecar._halt()
                assert feeder.live.next_due is None, "what a front end holds is lost at once"
            if now[0] == 50.0:
                sidecar._go()
            if not 45.0 <= now[0] < 50.0:
                seen = (mine if now[0] < 50.8 else later)[max(0, begin - 160) : begin - 120]
                t = seen.t - back_s * (now[0] >= 50.0)
                feeder.take(GazeColumns(t, np.stack([seen.x, seen.y], axis=1), pupil=seen.pupil_mm[:, None]))
            feeder._work()
            made += [feeder._numbered(rows) for rows in feeder.live.due(now[0]) if now[0] >= 50.0]
    return made


@pytest.mark.parametrize("back_s", [0.0, 20.0, 3600.0])
async def test_no_row_after_a_pause_has_gaze_of_before_its_end(tmp_path: Path, back_s: float) -> None:
    told = [rows_after_a_pause(tmp_path / str(seed), seed, back_s) for seed in (5, 6)]
    one, other = (np.concatenate([message.rows for message in made]) for made in told)
    assert np.isfinite(one).any()
    np.testing.assert_array_equal(one, other)


def test_a_fleet_has_no_wearer(capsys: pytest.CaptureFixture[str]) -> None:
    config = Path(__file__).resolve().parents[3] / "config" / "fleet" / "fleet.toml"
    for word in ("pause", "resume"):
        with pytest.raises(SystemExit) as ended:
            main([word, "--config", str(config)])
        assert ended.value.code == 2
        assert "only a sidecar can be paused" in capsys.readouterr().err


async def test_the_indicator_is_off_after_a_run_that_fails(tmp_path: Path) -> None:
    shown: list[bool] = []

    async def show(on: bool) -> bool:
        shown.append(on)
        return True

    async def fails(stop: asyncio.Event) -> None:
        await sidecar.off.begin(paused=False)
        raise ExceptionGroup("of tasks", [ConfigError("another sidecar was there first")])

    with opened(settings_for(NO_BROKER, tmp_path)) as sidecar:
        sidecar.off.show = show
        sidecar._run = fails  # type: ignore[method-assign]
        with pytest.raises(ConfigError):
            await sidecar.run(asyncio.Event())
    assert shown == [True, False]
