"""Histories of a sidecar whose wearers change: switches, guests, pauses, restarts and kills, each from one seed.

The sidecar, its ledger and its files are the real ones, in virtual time, as in `test_off_model`. A judge sees what the
ledger grants, what noise is drawn for, and what leaves.
"""

import asyncio
import contextlib
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from eyestream.core.accountant import Account
from eyestream.core.charge import charge_of
from eyestream.core.mechanisms import build
from eyestream.core.release import stream as release_stream
from eyestream.core.release.stream import Outcome, StreamRelease
from eyestream.core.reservation import Granted, Request, Withheld
from eyestream.core.wearers import Wearers
from eyestream.errors import LedgerError
from eyestream.rim.config import LimitSettings, WearerBudgetSettings
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import read_ledger
from eyestream.rim.mqtt.transport import Message
from eyestream.rim.plan import resolved
from eyestream.rim.sidecar import wearing
from eyestream.rim.sidecar.pipeline import Pipeline
from eyestream.rim.sidecar.sidecar import Sidecar
from eyestream.rim.sidecar.wearing import Wearing
from eyestream.rim.sidecar.worker import Worker
from eyestream.wire.raw import encode_raw
from eyestream_lab.testing.clocks import simulated
from tests.rigs.calibrations import few_features
from tests.rigs.noise import any_noise_taken
from tests.rigs.sidecar import NO_BROKER, PrivateLink, hand_over, settings_for

NAMES, N, DEVICE = ("a", "b", "c"), 4, "hmd-1"
RATE_HZ, WINDOW_S = 2.0, 1.0
OF_A_WEARER = {"day_epsilon": 24.0, "lifetime_epsilon": 120.0, "new_a_day": 3}
DAY_EPSILON = 96.0


class Judge:
    """What an outsider who sees everything finds wrong."""

    def __init__(self) -> None:
        self.wearer, self.since = "-", -math.inf
        self.answered = "-"
        self.serial = 0
        self.rows: dict[int, tuple[str, float, float]] = {}
        self.numbers: dict[int, str] = {}
        self.granted: list[tuple[int, int]] = []  # day and wearer of each slot that costs something
        self.first_days: dict[int, int] = {}
        self.sessions: dict[int, int] = {}
        self.counts: Counter[str] = Counter()

    def drawn(self, chunk: NDArray[np.float64], whose: int) -> None:
        rows = [self.rows[int(value)] for value in chunk[0] if np.isfinite(value)]
        handles = {handle for handle, _, _ in rows}
        assert len(handles) < 2, "a chunk has rows of two wearers"
        for handle, sent, since in rows:
            assert sent - WINDOW_S >= since, "a row of one wearer has gaze of the one before"
            known = self.numbers.setdefault(whose, handle) if handle != "-" else handle
            assert known == handle, "rows of one wearer are charged to another one"
            assert (whose > 0) == (handle != "-"), "rows of one wearer are charged to nobody, or of nobody to one"
            assert len(set(self.numbers.values())) == len(self.numbers), "a wearer who comes back is another one"

    def grants(self, answers: Sequence[Granted | Withheld], day: int, epsilon: int) -> None:
        """Every prefix of what is granted is within the ceilings of the device and of each wearer."""
        for answer in answers:
            if isinstance(answer, Withheld) or answer.spent is None:
                self.counts[f"withheld {answer.obstacle}" if isinstance(answer, Withheld) else "free"] += 1
                continue
            whose = answer.request.wearer
            self.granted.append((day, whose))
            if whose:
                self.first_days.setdefault(whose, day)
        today = Counter(whose for at, whose in self.granted if at == day)
        ever = Counter(whose for _, whose in self.granted)
        assert today.total() * epsilon <= DAY_EPSILON * 10**12, "the device's day"
        for whose in today.keys() - {0}:
            assert today[whose] * epsilon <= OF_A_WEARER["day_epsilon"] * 10**12, "a wearer's day"
            assert ever[whose] * epsilon <= OF_A_WEARER["lifetime_epsilon"] * 10**12, "a wearer's lifetime"
        new = Counter(self.first_days.values())
        assert new[day] <= OF_A_WEARER["new_a_day"], "new wearers of a day"


class Tap:
    """A mechanism, and its sessions, whose chunks the judge sees."""

    def __init__(self, inner: Any, judge: Judge) -> None:
        self._inner, self._judge = inner, judge

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def session(self, *given: Any) -> "Tap":
        return Tap(self._inner.session(*given), self._judge)

    def release(self, chunk: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self._inner.release(chunk))


class History:
    """One history: lives of a sidecar on one folder."""

    def __init__(self, folder: Path, seed: int, release: str) -> None:
        self.luck, self.judge, self.folder = random.Random(seed), Judge(), folder
        limits = LimitSettings(raw_messages=8, released_chunks=8, deadline_s=20.0)
        settings = settings_for(
            NO_BROKER,
            folder,
            names=NAMES,
            limits=limits,
            rate_hz=RATE_HZ,
            window_s=WINDOW_S,
            release=release,
            grace_s=0.5,
            idle_s=30.0,
            jump_chunks=3,
        )
        budget = msgspec.structs.replace(
            settings.budget, day_epsilon=DAY_EPSILON, wearer=WearerBudgetSettings(**OF_A_WEARER)
        )
        self.settings = msgspec.structs.replace(settings, budget=budget)
        self.mechanism = Tap(build(few_features(N, len(NAMES)), 4.8), self.judge)
        self.epsilon = charge_of(self.mechanism).epsilon
        self.seq, self.session, self.steps, self.day, self.guests = 0, 1, 0, 20_000, 0
        self.unanswered = {"-"}

    async def thread(self, work: Callable[..., Any], *given: Any) -> Any:
        """In the place of a thread: what it does is done at some moment of the wait, and told at its end."""
        await asyncio.sleep(self.luck.choice((0.0, 1 / 512, 1 / 4)))
        done = work(*given)
        await asyncio.sleep(self.luck.choice((0.0, 1 / 512, 1 / 4)))
        return done

    async def lives(self, steps: int) -> None:
        while self.steps < steps:
            self.judge.counts["lives"] += 1
            plan = resolved(self.settings, mechanisms={"features": self.mechanism})  # type: ignore[dict-item]
            clock = lambda: 86_400.0 * (self.day + 1)  # noqa: E731  as much time passes as the days say
            with Ledger(self.settings.sidecar.ledger, ceilings=plan.ceilings, passed=clock) as ledger:
                sidecar = Sidecar(
                    plan,
                    ledger,
                    today=lambda: self.day,
                    ledger_id=ledger.header.ledger_id,
                    former_ledgers=ledger.former_ledgers,
                    beside=self.settings.sidecar.ledger,
                )
                number = sidecar.pipeline.worn.get(DEVICE, 0)
                possible = {0 if one == "-" else sidecar.number(DEVICE, one): one for one in self.unanswered}
                assert number in possible, "who wears the device is not who was answered, nor who was asked for since"
                if self.judge.wearer != possible[number]:  # it was asked for and not answered: it never was
                    self.judge.wearer, self.judge.since = possible[number], -math.inf
                self.judge.answered, self.unanswered = possible[number], {possible[number]}
                await self.life(sidecar, steps)

    def put_on(self, handle: str) -> None:
        if handle != self.judge.wearer:
            self.judge.wearer, self.judge.since = handle, self.now()

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def life(self, sidecar: Sidecar, steps: int) -> None:
        sidecar._moments._sleep = _let_pass
        link, wishes = PrivateLink(), set[asyncio.Task[None]]()
        link.on_send = lambda topic, payload: self.judge.counts.update(released=1)
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
                if step < 0.86:
                    self.rows(sidecar)
                elif step < 0.90 and len(wishes) < 3:
                    wishes.add(asyncio.create_task(self.switch(sidecar)))
                elif step < 0.92 and not wishes:
                    await sidecar.off.pause()
                    self.judge.counts["pauses"] += 1
                elif step < 0.96 and not wishes and sidecar.pipeline.paused:
                    assert await sidecar.off.resume()
                elif step < 0.978:
                    self.go_on(step)
                elif step < 0.984:
                    return
                if self.luck.random() < 0.8:
                    await asyncio.sleep(self.luck.choice((0.0, 0.0, 1 / 64, 1 / 2, 1.0)))
        finally:
            for task in (work, private, *wishes):
                task.cancel()
            await asyncio.gather(work, private, *wishes, return_exceptions=True)

    def go_on(self, step: float) -> None:
        """To another session of the tracker, or to another day by a clock that may be set back."""
        if step < 0.97:
            self.session, self.seq = self.session + 1, 0
        else:
            self.day += self.luck.choice((1, 1, 0, -1))

    def rows(self, sidecar: Sidecar) -> None:
        """Rows of who wears the device; some claim to be another one's, and some come once more."""
        m, first, judge = self.luck.randrange(1, 4), self.judge.serial + 1, self.judge
        judge.serial += m
        rows = np.zeros((m, len(NAMES)), np.float32)
        rows[:, 0] = np.arange(first, first + m)
        other = self.luck.random() < 0.03 and judge.wearer != "-"
        if not other:
            judge.rows |= dict.fromkeys(range(first, first + m), (judge.wearer, self.now(), judge.since))
        payload = encode_raw(self.session, self.seq, rows, 1, wearer=4711 if other else 0)
        self.seq += m
        for _ in range(1 + (self.luck.random() < 0.05)):
            sidecar.worker.receive(Message(f"eyestream/v1/{DEVICE}/features/raw", payload, False))

    async def switch(self, sidecar: Sidecar) -> None:
        """To one of three people, to a guest, to nobody; or by a line that is refused."""
        if self.luck.random() < 0.1:
            wrong = self.luck.choice(("", "0", "x" * 65, "a b", "\xe9", "a\tb", "anna hmd-2"))
            assert (await sidecar.wearing.answer(wrong)).startswith("no")
            return
        handle = self.luck.choice(("anna", "ben", "77", "77", "guest", "-"))
        if handle == "guest":
            self.guests += 1
            handle = f"guest-{self.guests}"
        self.unanswered |= {handle}
        self.put_on(handle)
        assert await sidecar.wearing.answer(handle) == "worn"
        self.judge.counts["switches"] += 1
        if self.judge.wearer == handle:
            self.judge.answered, self.unanswered = handle, {handle}


def _let_pass(seconds: float) -> None:
    asyncio.get_running_loop()._passing.now_ns += round(1e9 * seconds)  # type: ignore[attr-defined]


def history(folder: Path, seed: int, steps: int, release: str) -> Counter[str]:
    """What happened; AssertionError where the judge finds something."""
    folder.mkdir(exist_ok=True)
    one = History(folder, seed, release)
    judge, reserve, sleep, carry_out = one.judge, Ledger.reserve, Worker._sleep, StreamRelease._release

    async def slept(self: Worker, until: float | None) -> None:
        await sleep(self, until)
        _let_pass(1e-6)  # a deadline may lie a rounding after the moment that reached it

    def reserved(self: Ledger, requests: Sequence[Request], day: int) -> list[Granted | Withheld]:
        answers = reserve(self, requests, day)
        judge.grants(answers, self._day, one.epsilon)
        return answers

    def released(self: StreamRelease, chunk: Any, granted: Granted, outcome: Outcome) -> bytes | None:
        judge.drawn(chunk.values, granted.request.wearer)
        return carry_out(self, chunk, granted, outcome)

    with contextlib.ExitStack() as stack:
        for name in ("fsync", "fdatasync"):
            stack.enter_context(mock.patch(f"os.{name}"))
        stack.enter_context(mock.patch.object(asyncio, "to_thread", one.thread))
        stack.enter_context(mock.patch.object(Worker, "_sleep", slept))
        stack.enter_context(mock.patch.object(Ledger, "reserve", reserved))
        stack.enter_context(mock.patch.object(release_stream.StreamRelease, "_release", released))
        stack.enter_context(any_noise_taken())
        simulated(one.lives(steps))
    odometer = read_ledger(folder / "ledger").odometers[DEVICE]
    spent = Counter(whose for _, whose in judge.granted)
    assert odometer.epsilon == spent.total() * one.epsilon, "the ledger has what was granted, and nothing else"
    for whose in spent.keys() - {0}:
        assert odometer.wearers[whose].epsilon == spent[whose] * one.epsilon, "of each wearer too"
    assert odometer.released >= judge.counts["released"]
    handles = [handle.encode() for handle in ("anna", "ben", "guest")]
    for file in folder.iterdir():
        assert not any(handle in file.read_bytes() for handle in handles), f"{file.name} has a handle in clear"
    return judge.counts


SEEN = ("released", "switches", "pauses", "lives", "withheld wearer", "withheld day")


@pytest.mark.parametrize("release", ["on_row", "on_clock"])
def test_wearers_who_change_stay_apart_and_within_their_ceilings(tmp_path: Path, release: str) -> None:
    counts = history(tmp_path, 1, 4_000, release)
    assert min(counts[what] for what in SEEN[:5]) > 5, counts


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(6, 20), marks=pytest.mark.slow)])
@pytest.mark.parametrize("release", ["on_row", "on_clock"])
def test_wearers_who_change_stay_apart_in_many_histories(tmp_path: Path, release: str, seeds: range) -> None:
    counts: Counter[str] = Counter()
    for seed in seeds:
        counts += history(tmp_path / str(seed), seed, 2_500, release)
    assert min(counts[what] for what in SEEN) > len(seeds), counts


@pytest.mark.parametrize(
    "data", [b"hmd-1 123", b"hmd-1 123\nhmd-2 4", b"hmd-1", b"hmd-1 x\n", b"hmd-1 -1\n", b"\xff\n"]
)
def test_who_wears_it_is_not_read_from_a_file_that_is_cut_off(tmp_path: Path, data: bytes) -> None:
    """As a disk that lies about a sync leaves it: a part of a number would be another person's."""
    path = wearing.worn_beside(tmp_path / "ledger")
    path.write_bytes(data)
    told = Wearing(tmp_path / "ledger", [DEVICE], number=hash, switch=hash, come_round=asyncio.Event().wait, wear=print)  # type: ignore[arg-type]
    with pytest.raises(LedgerError, match="is damaged"):
        told.remembered()
    path.write_bytes(b"hmd-1 123\nhmd-2 4\n")
    assert told.remembered() == {DEVICE: 123}


async def _answers_first(self: Wearing, device: str, wearer: int) -> None:
    self._wanted[device] = wearer
    switch = self._switch(device)
    self._wear(device, switch, wearer)


def _keeps_the_session(self: Pipeline, device: str, now: float) -> int:
    self._switches += 1
    self._between[device] = self._switches
    return self._switches


WRONG: dict[str, tuple[Any, str, Any]] = {
    "a wearer's rows under another one: the session goes on": (Pipeline, "switch", _keeps_the_session),
    "a switch is not remembered": (Wearing, "put_on", _answers_first),
    "rows that were on their way are the next wearer's": (
        Pipeline,
        "_of_wearer",
        lambda self, served, rows, at: msgspec.structs.replace(rows, wearer=self.worn.get(served.stream.key.device, 0)),
    ),
    "a handle that comes back is a new one": (
        Sidecar,
        "number",
        lambda self, device, handle: random.getrandbits(31) + 1,
    ),
    "a switch mints budget of the device": (
        Account,
        "obstacle",
        lambda self, request, *given, **named: None if request.wearer else "day",
    ),
    "a wearer who comes back has spent nothing": (Wearers, "forbids", lambda self, *given: False),
    "who wears the device is written in clear": (
        wearing,
        "_write",
        lambda path, worn: path.write_text("hmd-1 0\nanna 1\n"),
    ),
}


@contextlib.contextmanager
def _planted(what: str) -> Iterator[None]:
    home, name, wrong = WRONG[what]
    with mock.patch.object(home, name, wrong):
        yield


@pytest.mark.parametrize("what", WRONG)
def test_a_planted_wrong_version_is_found(tmp_path: Path, what: str) -> None:
    for seed in range(20):
        try:
            with _planted(what):
                history(tmp_path / str(seed), seed, 1_000, ("on_clock", "on_row")[seed % 2])
        except AssertionError:
            return
    pytest.fail("was not found in 20,000 steps")
