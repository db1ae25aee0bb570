"""On every level of a lifetime that fades a chunk is released with what was charged for it, and never with more."""

import dataclasses
import random
from pathlib import Path

import numpy as np
import pytest

from eyestream.core.anchor import Anchor
from eyestream.core.charge import LEVELS, Ceilings, Charge, charge_of, charges_of, faded
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.core.release.stream import Outcome, StreamRelease
from eyestream.core.reservation import Granted, LedgerPort, Request, Withheld
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger
from eyestream.streams import StreamKey
from eyestream.wire.raw import RawRows
from eyestream.wire.release import decode_private
from tests.rigs.calibrations import few_features, synthetic_joint
from tests.rigs.memory_ledger import MemoryLedger

N, F, EPSILON = 4, 3, 4.0
KEYS = [StreamKey("d", "a"), StreamKey("d", "b")]
CEILINGS = Ceilings.of(lifetime=40.0, levels=LEVELS)


@pytest.fixture(scope="module")
def mechanism() -> Mechanism:
    return build(few_features(N, F), EPSILON)


def settings(stream: str = "a", n: int = N, names: tuple[str, ...] = ("a", "b", "c")) -> DeviceSettings:
    return DeviceSettings(
        id="d", stream=stream, schema=1, names=names, rate_hz=2.0, n=n, grace_s=1.0, idle_s=60.0, jump_chunks=9
    )


class Life:
    """Streams of a device, a ledger whose answers come late, and what left, by stream and session's chunk."""

    def __init__(self, mechanism: Mechanism, ledger: LedgerPort) -> None:
        self.ledger = ledger
        self.streams = {
            key: StreamRelease(
                settings(key.stream), mechanism, lambda: random.getrandbits(64), ledger.mark(key), levels=LEVELS
            )
            for key in KEYS
        }
        self.waiting: list[Request] = []
        self.granted: list[Granted] = []
        self.answers: list[Granted | Withheld] = []
        self.left: list[tuple[StreamKey, float]] = []

    def note(self, key: StreamKey, outcome: Outcome) -> None:
        assert outcome.fault is None
        self.waiting += outcome.requests
        self.left += [(key, decode_private(payload).epsilon) for payload in outcome.payloads]

    def feed(self, key: StreamKey, session: int, row: int, rows: int, *, end: bool) -> None:
        self.note(key, self.streams[key].feed(RawRows(session, row, np.full((rows, F), 0.5), end=end), 0.0))

    def reserve(self, count: int) -> None:
        asked, self.waiting = self.waiting[:count], self.waiting[count:]
        answers = self.ledger.reserve(asked, 20_000)
        self.granted += [answer for answer in answers if isinstance(answer, Granted)]
        self.answers += answers

    def answer(self, count: int) -> None:
        told, self.answers = self.answers[:count], self.answers[count:]
        for answer in told:
            key = answer.request.key
            self.note(key, self.streams[key].answer([answer]))

    def check(self) -> None:
        """What left cost what was charged for it, chunk by chunk, as grants of a stream are used in their order."""
        for key in KEYS:
            charged = [g.spent for g in self.granted if g.request.key == key]
            left = [epsilon for own, epsilon in self.left if own == key]
            assert [Charge.of(epsilon) for epsilon in left] == charged[: len(left)]


def live(luck: random.Random, life: Life, row: dict[StreamKey, tuple[int, int]], turns: int) -> None:
    """Rows, reservations and answers of both streams, in a random order."""
    for _ in range(turns):
        key, rows, end = luck.choice(KEYS), luck.randint(1, 9), luck.random() < 0.1
        session, first = row[key]
        life.feed(key, session, first, rows, end=end)
        row[key] = (session + 1, 0) if end else (session, first + rows)
        if luck.random() < 0.7:
            life.reserve(luck.randint(1, 5))
        if luck.random() < 0.7:
            life.answer(luck.randint(1, 5))


@pytest.mark.parametrize("seed", range(6))
def test_whatever_the_order_what_leaves_costs_what_was_charged(mechanism: Mechanism, seed: int) -> None:
    luck = random.Random(seed)
    life, row = Life(mechanism, MemoryLedger(CEILINGS)), dict.fromkeys(KEYS, (1, 0))
    live(luck, life, row, 80)
    life.reserve(1000)
    life.answer(1000)
    life.check()
    assert len(life.left) == len(life.granted)
    assert {granted.level for granted in life.granted} >= {0, 1, 2, 3}
    assert sum(granted.spent.epsilon for granted in life.granted if granted.spent) <= 40 * 10**12


@pytest.mark.parametrize("seed", range(3))
def test_processes_that_end_anywhere_go_on_where_the_ledger_stands(
    mechanism: Mechanism, tmp_path: Path, seed: int
) -> None:
    """Processes end between any two steps; the ceiling is lowered on the way, as by SIGHUP."""
    luck = random.Random(seed)
    create_ledger(path := tmp_path / "ledger", created=20_000 * 86_400)
    row, levels, total = dict.fromkeys(KEYS, (1, 0)), [], 0
    for ceiling in (60.0, 55.0, 50.0, 45.0):
        with Ledger(path, ceilings=Ceilings.of(lifetime=ceiling, levels=LEVELS)) as ledger:
            life = Life(mechanism, ledger)
            live(luck, life, row, 12)
            ledger.lower(Ceilings.of(lifetime=ceiling - 5, levels=LEVELS))
            live(luck, life, row, 12)
            life.check()
            before = total
            levels += [granted.level for granted in life.granted]
            total += sum(granted.spent.epsilon for granted in life.granted if granted.spent)
            odometer = ledger.odometer("d")
            assert odometer is not None
            assert odometer.epsilon == total <= max(before, ceiling * 10**12)
    assert levels == sorted(levels)
    assert levels[-1] >= 2


def test_a_mechanism_that_does_not_fade_loses_its_chunks(mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the epsilon of level 0 under the charge of level 1 does not leave."""
    monkeypatch.setattr(Mechanism, "faded", lambda self, level: self)
    ledger, stream = MemoryLedger(CEILINGS), StreamRelease(settings(), mechanism, lambda: 1, levels=LEVELS)
    outcome = stream.feed(RawRows(1, 0, np.full((8 * N, F), 0.5), end=True), 0.0)
    answers = ledger.reserve(outcome.requests, 1)
    assert [answer.level for answer in answers if isinstance(answer, Granted)] == [0] * 5 + [1] * 3
    assert [decode_private(p).chunk for p in stream.answer(answers).payloads] == [0, 1, 2, 3, 4]
    assert stream.counters.dropped == {"mechanism": 3}


def test_the_law_is_that_of_the_level(mechanism: Mechanism) -> None:
    """Not the figure alone: the mechanism of level j is the one that is built with its epsilon."""
    for level in (0, 1, 5):
        own = mechanism.faded(level)
        assert own.epsilon == faded(EPSILON, level)
        assert own.identity == build(mechanism.calibration, own.epsilon).identity
        assert own.noise is mechanism.noise
        assert mechanism.faded(level) is own
    assert [charge_of(mechanism.faded(j)) for j in range(3)] == list(charges_of(mechanism, 3))


def test_a_snapshot_keeps_the_level(mechanism: Mechanism) -> None:
    stream = StreamRelease(settings(), mechanism, lambda: 1, levels=LEVELS)
    outcome = stream.feed(RawRows(1, 0, np.full((6 * N, F), 0.5)), 0.0)
    stream.answer([Granted(request, 3) for request in outcome.requests])
    assert (stream.level, stream.epsilon) == (3, EPSILON / 8)
    again = StreamRelease(settings(), mechanism, lambda: 1, levels=LEVELS)
    again.restore(stream.snapshot())
    with pytest.raises(ValueError, match="as many levels"):
        StreamRelease(settings(), mechanism, lambda: 1).restore(stream.snapshot())


def test_a_baseline_outlives_a_level_and_the_filter_begins_anew() -> None:
    """klt with a baseline: one baseline a session; behind a change of level the schedule is that of its first chunk."""
    joint = synthetic_joint(8)
    steps, rows = np.zeros(len(joint.names), dtype=np.int64), np.random.default_rng(1).normal(size=(72, 3))
    one = build(dataclasses.replace(joint, takes_off=Anchor(4, steps, steps)), EPSILON)
    stream = StreamRelease(settings("features", 8, joint.names), one, lambda: 1, levels=LEVELS)
    outcome = stream.feed(RawRows(1, 0, rows, end=True), 0.0)
    grants = [Granted(request, level) for request, level in zip(outcome.requests, [0] * 6 + [1] * 3, strict=True)]
    released = [decode_private(payload) for payload in stream.answer(grants).payloads]
    assert [(chunk.chunk, chunk.epsilon) for chunk in released] == [(4, 4.0), (5, 4.0), (6, 2.0), (7, 2.0), (8, 2.0)]
    assert stream.counters.withheld == {"baseline": 4}
    session = one.session()
    for chunk in np.split(rows[:32], 4):
        session.anchor(chunk.T)
    session.release(rows[32:40].T)
    moved = one.faded(1).continue_session(session)
    assert not moved.awaits_baseline
    np.testing.assert_array_equal(moved.state, one.faded(1).core.start)
