"""Histories of a sidecar that is paused, resumed and killed, each from one seed, in virtual time.

The sidecar, its ledger, its mark and its outbox are the real ones. Threads are short waits of the virtual clock, and a
kill ends everything between two of them. A judge sees what is asked of the ledger, what noise is drawn for, and what is
handed to the link.
"""

import asyncio
import contextlib
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.mechanisms import build
from eyestream.core.release import stream as release_stream
from eyestream.core.release.stream import Outcome, StreamRelease
from eyestream.rim.config import LimitSettings
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.mqtt.transport import Message
from eyestream.rim.sidecar import off as switch
from eyestream.rim.sidecar.off import Off, is_paused, remember_pause
from eyestream.rim.sidecar.pipeline import Pipeline
from eyestream.rim.sidecar.sender import Outbox
from eyestream.rim.sidecar.sidecar import Sidecar
from eyestream.rim.sidecar.spending import Spending
from eyestream.rim.sidecar.worker import FairQueue, Worker
from eyestream.wire.raw import encode_raw
from eyestream.wire.release import encode_private
from eyestream_lab.testing.clocks import simulated
from tests.rigs.calibrations import few_features
from tests.rigs.noise import any_noise_taken
from tests.rigs.sidecar import NO_BROKER, PrivateLink, hand_over, opened, settings_for

NAMES, N = ("a", "b", "c"), 4
WINDOW_S = 1.0


class Judge:
    """What an outsider who sees everything finds wrong."""

    def __init__(self, ledger: Path) -> None:
        self.ledger = ledger
        self.off = self.answered = False
        self.epoch = self.serial = self.last_before = 0
        self.resumed_at = -math.inf
        self.sent_at: dict[int, float] = {}
        self.unheard: set[int] = set()
        self.used: set[int] = set()
        self.born: dict[bytes, int] = {}
        self.counts: Counter[str] = Counter()
        self.found: list[str] = []

    def pause_is_asked(self) -> None:
        self.off, self.epoch, self.last_before = True, self.epoch + 1, self.serial

    def killed(self) -> None:
        """A pause that nobody was answered need not hold."""
        self.off = self.answered
        self.epoch += 1

    def drawn(self, chunk: NDArray[np.float64]) -> None:
        serials = {int(value) for value in chunk[0] if np.isfinite(value)}
        assert not self.off, "noise is drawn while it is paused"
        assert not serials & self.unheard, "a row that came while it was paused is released"
        assert not serials & self.used, "a row is in two chunks"
        assert min(serials, default=self.serial) > self.last_before or not serials, "a row of before the pause"
        first_gaze = min((self.sent_at[serial] for serial in serials), default=math.inf) - WINDOW_S
        assert first_gaze >= self.resumed_at, "a row that has gaze of the pause is released"
        self.used |= serials

    def encoded(self, payload: bytes) -> bytes:
        self.born[payload] = self.epoch
        return payload

    def sent(self, topic: str, payload: bytes) -> None:
        assert not self.off, "a chunk leaves while it is paused"
        assert self.born[payload] == self.epoch, "a chunk leaves that was released before the pause"
        assert not is_paused(self.ledger), "a chunk leaves while the next start would be paused"
        self.counts["released"] += 1

    def asked(self) -> None:
        assert not self.off, "something is to be reserved while it is paused"

    def reserved(self) -> None:
        assert not self.answered, "something is reserved after the answer"


class Tap:
    """A mechanism, and its sessions, whose chunks the judge sees."""

    def __init__(self, inner: Any, judge: Judge) -> None:
        self._inner, self._judge = inner, judge

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def session(self, *given: Any) -> "Tap":
        return Tap(self._inner.session(*given), self._judge)

    def release(self, chunk: NDArray[np.float64]) -> NDArray[np.float64]:
        try:
            self._judge.drawn(chunk)
        except AssertionError as error:  # for the sidecar it is a mechanism that fails: it drops the chunk, and lives
            self._judge.found.append(str(error))
        return np.asarray(self._inner.release(chunk))


class History:
    """One history: lives of a sidecar on one folder."""

    def __init__(self, folder: Path, seed: int, release: str) -> None:
        self.luck, self.judge = random.Random(seed), Judge(folder / "ledger")
        limits = LimitSettings(raw_messages=8, released_chunks=8, deadline_s=20.0)
        self.settings = settings_for(
            NO_BROKER,
            folder,
            names=NAMES,
            limits=limits,
            rate_hz=2.0,
            window_s=WINDOW_S,
            release=release,
            grace_s=0.5,
            idle_s=30.0,
            jump_chunks=3,
        )
        self.mechanism = Tap(build(few_features(N, len(NAMES)), 4.8), self.judge)
        self.seq, self.steps = 0, 0

    async def thread(self, work: Callable[..., Any], *given: Any) -> Any:
        """In the place of a thread: what it does is done at some moment of the wait, and told at its end."""
        await asyncio.sleep(self.luck.choice((0.0, 1 / 512, 1 / 4)))
        done = work(*given)
        await asyncio.sleep(self.luck.choice((0.0, 1 / 512, 1 / 4)))
        return done

    async def lives(self, steps: int) -> None:
        while self.steps < steps:
            self.judge.counts["lives"] += 1
            with opened(self.settings, mechanism=self.mechanism) as sidecar:  # type: ignore[arg-type]
                assert sidecar.pipeline.paused or not self.judge.answered, "a pause does not outlive a kill"
                self.judge.answered = self.judge.off = sidecar.pipeline.paused
                await self.life(sidecar, steps)
            self.judge.killed()

    async def life(self, sidecar: Sidecar, steps: int) -> None:
        sidecar._moments._sleep = _let_pass
        link, wishes = PrivateLink(), set[asyncio.Task[None]]()
        link.on_send = self.judge.sent
        work = asyncio.create_task(sidecar.worker.run())
        private = asyncio.create_task(hand_over(sidecar, link))
        try:
            while self.steps < steps:
                self.steps += 1
                for task in (work, private, *wishes):
                    if task.done():
                        task.result()
                wishes = {task for task in wishes if not task.done()}
                step = self.luck.random()
                if step < 0.70:
                    self.rows(sidecar)
                elif step < 0.76 and not wishes:
                    wishes.add(asyncio.create_task(self.pause(sidecar)))
                elif step < 0.90 and not wishes:
                    wishes.add(asyncio.create_task(self.resume(sidecar)))
                elif step < 0.93:
                    link.block(self.luck.random() < 0.5)
                elif step < 0.95:
                    private.cancel()
                    await asyncio.gather(private, return_exceptions=True)
                    link = PrivateLink()
                    link.on_send = self.judge.sent
                    private = asyncio.create_task(hand_over(sidecar, link))
                elif step < 0.96:
                    return
                if self.luck.random() < 0.8:
                    await asyncio.sleep(self.luck.choice((0.0, 0.0, 1 / 64, 1 / 2, 1.0)))
        finally:
            for task in (work, private, *wishes):
                task.cancel()
            await asyncio.gather(work, private, *wishes, return_exceptions=True)

    def rows(self, sidecar: Sidecar) -> None:
        m = self.luck.randrange(1, 4)
        first = self.judge.serial + 1
        self.judge.serial += m
        self.judge.sent_at |= dict.fromkeys(range(first, first + m), asyncio.get_running_loop().time())
        rows = np.zeros((m, len(NAMES)), np.float32)
        rows[:, 0] = np.arange(first, first + m)
        if self.judge.off:
            self.judge.unheard |= set(range(first, first + m))
            self.judge.counts["unheard"] += m
        payload = encode_raw(1, self.seq, rows, 1)
        self.seq += m
        sidecar.worker.receive(Message("eyestream/v1/hmd-1/features/raw", payload, False))

    async def pause(self, sidecar: Sidecar) -> None:
        self.judge.pause_is_asked()
        await sidecar.off.pause()
        self.judge.answered = True
        self.judge.counts["pauses"] += 1

    async def resume(self, sidecar: Sidecar) -> None:
        if self.judge.off:
            self.judge.resumed_at = asyncio.get_running_loop().time()
        self.judge.off = self.judge.answered = False
        assert await sidecar.off.resume()
        self.judge.counts["resumes"] += 1


def _let_pass(seconds: float) -> None:
    asyncio.get_running_loop()._passing.now_ns += round(1e9 * seconds)  # type: ignore[attr-defined]


def history(folder: Path, seed: int, steps: int, release: str) -> Counter[str]:
    """What happened; AssertionError where the judge finds something."""
    folder.mkdir(exist_ok=True)
    one = History(folder, seed, release)
    judge, encode, reserve = one.judge, encode_private, Ledger.reserve
    ask, sleep = Spending.reserve, Worker._sleep

    async def slept(self: Worker, until: float | None) -> None:
        await sleep(self, until)
        _let_pass(1e-6)  # a deadline may lie a rounding after the moment that reached it

    def asked(self: Spending, *given: Any) -> Any:
        judge.asked()
        return ask(self, *given)

    def reserved(self: Ledger, *given: Any) -> Any:
        judge.reserved()
        return reserve(self, *given)

    with contextlib.ExitStack() as stack:
        for name in ("fsync", "fdatasync"):
            stack.enter_context(mock.patch(f"os.{name}"))
        stack.enter_context(mock.patch.object(asyncio, "to_thread", one.thread))
        stack.enter_context(mock.patch.object(Worker, "_sleep", slept))
        stack.enter_context(
            mock.patch.object(release_stream, "encode_private", lambda chunk: judge.encoded(encode(chunk)))
        )
        stack.enter_context(mock.patch.object(Ledger, "reserve", reserved))
        stack.enter_context(mock.patch.object(Spending, "reserve", asked))
        stack.enter_context(any_noise_taken())
        simulated(one.lives(steps))
    assert judge.found == []
    spent = read_ledger(folder / "ledger").odometers["hmd-1"]
    assert spent.released >= judge.counts["released"], "the ledger has what was released"
    return judge.counts


@pytest.mark.parametrize("release", ["on_row", "on_clock"])
def test_nothing_is_released_or_reserved_while_it_is_paused(tmp_path: Path, release: str) -> None:
    counts = history(tmp_path, 1, 3_000, release)
    assert min(counts[what] for what in ("released", "pauses", "resumes", "lives", "unheard")) > 10, counts


@pytest.mark.long
@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(6, 20), marks=pytest.mark.slow)])
@pytest.mark.parametrize("release", ["on_row", "on_clock"])
def test_nothing_is_released_or_reserved_while_it_is_paused_in_many_histories(
    tmp_path: Path, release: str, seeds: range
) -> None:
    counts: Counter[str] = Counter()
    for seed in seeds:
        counts += history(tmp_path / str(seed), seed, 2_500, release)
    assert min(counts[what] for what in ("released", "pauses", "resumes", "lives", "unheard")) > 15 * len(seeds), counts


async def _answers_first(self: Off) -> None:
    self._halt()
    mark = self._ledger
    assert mark is not None

    async def later() -> None:
        await asyncio.sleep(0.3)
        remember_pause(mark)

    _late.append(asyncio.create_task(later()))


_late: list[asyncio.Task[None]] = []


async def _goes_first(self: Off) -> bool:
    self._go()
    assert self._ledger is not None
    await asyncio.sleep(4 * WINDOW_S)  # rows that may describe gaze of the pause are over
    await asyncio.to_thread(switch.forget_pause, self._ledger)
    return True


def _drops_requests_never(self: Pipeline, now: float) -> None:
    self.paused = True
    for served in self._served.values():
        served.stream.pause(now)


WRONG: dict[str, tuple[Any, str, Any]] = {
    "the mark is written after the answer": (Off, "pause", _answers_first),
    "rows are taken before the mark is gone": (Off, "resume", _goes_first),
    "the open chunk goes on after the pause": (StreamRelease, "pause", lambda self, now: Outcome()),
    "what waits for the link leaves after the pause": (Outbox, "pause", lambda self: None),
    "a reserved chunk is published after the pause": (
        Sidecar,
        "_publish",
        lambda self, topic, payload: self._sender.post(topic, payload),
    ),
    "rows after the pause have gaze of it": (Pipeline, "resume", lambda self, now: setattr(self, "paused", False)),
    "rows that wait are kept": (FairQueue, "clear", lambda self: 0),
    "what was about to be reserved is reserved": (Pipeline, "pause", _drops_requests_never),
}


@contextlib.contextmanager
def _planted(what: str) -> Iterator[None]:
    home, name, wrong = WRONG[what]
    with mock.patch.object(home, name, wrong):
        yield


@pytest.mark.parametrize("what", WRONG)
def test_a_planted_wrong_version_is_found(tmp_path: Path, what: str) -> None:
    for seed in range(40):
        try:
            with _planted(what):
                history(tmp_path / str(seed), seed, 1_000, ("on_clock", "on_row")[seed % 2])
        except AssertionError:
            return
    pytest.fail("was not found in 40,000 steps")
