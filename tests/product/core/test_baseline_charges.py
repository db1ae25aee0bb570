"""What the withheld chunks of a session's baseline cost: nothing; and nothing leaves that was not charged."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from eyestream.core.anchor import Anchor
from eyestream.core.calibration import Calibration
from eyestream.core.charge import Ceilings, Charge
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.mechanisms import build
from eyestream.core.meter import Odometer
from eyestream.core.release.stream import Outcome, StreamRelease
from eyestream.core.reservation import Granted, LedgerPort, Request, Withheld
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger
from eyestream.streams import StreamKey
from eyestream.wire.raw import RawRows
from eyestream.wire.release import decode_private
from tests.rigs.calibrations import synthetic_joint
from tests.rigs.memory_ledger import MemoryLedger

N, EPSILON, WITHHELD = 8, 0.5, 4
NAMES = synthetic_joint(N).names
CHARGE = Charge.of(EPSILON)
SETTINGS = DeviceSettings(
    id="d", stream="features", schema=1, names=NAMES, rate_hz=2.0, n=N, grace_s=1.0, idle_s=60.0, jump_chunks=16
)
KEY = SETTINGS.key
WIDE = Ceilings.of(2, 100.0, 100.0)


@pytest.fixture(scope="module")
def anchored() -> Calibration:
    steps = np.zeros(len(NAMES), dtype=np.int64)
    return dataclasses.replace(synthetic_joint(N), takes_off=Anchor(WITHHELD, steps, steps))


def fed(stream: StreamRelease, ledger: LedgerPort, session: int, chunks: range, *, end: bool = False) -> list[int]:
    """Indices of what is released of some chunks of a session."""
    rows = np.random.default_rng(session).normal(size=(16 * N, len(NAMES)))[chunks.start * N : chunks.stop * N]
    return answered(stream, ledger, stream.feed(RawRows(session, chunks.start * N, rows, end=end), float(session)))


def answered(stream: StreamRelease, ledger: LedgerPort, outcome: Outcome) -> list[int]:
    payloads = list(outcome.payloads)
    while outcome.requests:
        outcome = stream.answer(ledger.reserve(outcome.requests, 20_000))
        payloads += outcome.payloads
    return [decode_private(payload).chunk for payload in payloads]


def spent(ledger: MemoryLedger | Ledger) -> Odometer:
    odometer = ledger.odometer("d")
    assert odometer is not None
    return odometer


def test_a_session_pays_for_what_it_releases_and_every_chunk_takes_a_slot(anchored: Calibration) -> None:
    ledger, stream = MemoryLedger(WIDE), StreamRelease(SETTINGS, build(anchored, EPSILON), lambda: 1)
    for session in (1, 2):
        assert fed(stream, ledger, session, range(7), end=True) == [4, 5, 6]
    odometer = spent(ledger)
    assert odometer.epsilon == 6 * CHARGE.epsilon
    assert odometer.session_epsilon == 3 * CHARGE.epsilon
    assert (odometer.released, odometer.withheld) == (6, 2 * WITHHELD)


def test_a_ceiling_is_spent_on_releases_alone(anchored: Calibration) -> None:
    """With the baseline charged, of a session of 1.5 nothing would be left behind it."""
    ledger = MemoryLedger(Ceilings.of(1, EPSILON, 3 * EPSILON))
    stream = StreamRelease(SETTINGS, build(anchored, EPSILON), lambda: 1)
    assert fed(stream, ledger, 1, range(9), end=True) == [4, 5, 6]
    assert stream.counters.withheld == {"baseline": WITHHELD, "session": 2}


def test_where_everything_is_spent_a_baseline_is_taken_still_and_nothing_leaves(anchored: Calibration) -> None:
    ledger = MemoryLedger(Ceilings.of(1, EPSILON, 10.0, lifetime=EPSILON))
    stream = StreamRelease(SETTINGS, build(anchored, EPSILON), lambda: 1)
    assert fed(stream, ledger, 1, range(6), end=True) == [4]
    assert fed(stream, ledger, 2, range(6), end=True) == []
    assert spent(ledger).epsilon == CHARGE.epsilon


@pytest.mark.parametrize("crash", [1, 3, 4, 5, 6])
def test_a_restart_takes_a_new_baseline_and_pays_for_releases_alone(
    anchored: Calibration, tmp_path: Path, crash: int
) -> None:
    """A process that ends after some chunks; the next one goes on with the same session of the tracker."""
    create_ledger(path := tmp_path / "ledger", created=20_000 * 86_400)
    released = []
    for part in (range(crash), range(crash, crash + 6)):
        with Ledger(path, ceilings=WIDE) as ledger:
            stream = StreamRelease(SETTINGS, build(anchored, EPSILON), lambda: 1, ledger.mark(KEY))
            released.append(fed(stream, ledger, 1, part))
    assert released == [list(range(WITHHELD, crash)), [4, 5]]
    with Ledger(path, ceilings=WIDE) as ledger:
        # The chunk that was coming when a process ended was asked for already.
        coming = 0 if crash < WITHHELD else 1
        assert spent(ledger).epsilon <= (sum(map(len, released)) + coming + 1) * CHARGE.epsilon
        assert spent(ledger).epsilon >= sum(map(len, released)) * CHARGE.epsilon


def test_what_was_not_charged_does_not_leave(anchored: Calibration, monkeypatch: pytest.MonkeyPatch) -> None:
    """An order that takes one chunk too many for the baseline loses the chunk: it is not released for nothing."""
    mechanism = build(anchored, EPSILON)
    monkeypatch.setattr(type(mechanism), "baseline_chunks", WITHHELD + 1)
    ledger, stream = MemoryLedger(WIDE), StreamRelease(SETTINGS, mechanism, lambda: 1)
    assert fed(stream, ledger, 1, range(7), end=True) == [5, 6]
    assert spent(ledger).epsilon == 2 * CHARGE.epsilon
    assert stream.counters.dropped == {"mechanism": 1}


def test_a_chunk_that_is_charged_may_make_up_for_one_that_the_baseline_lacks(anchored: Calibration) -> None:
    """A chunk that the ledger has refused is not in the baseline; the next one is, which was paid for, and not sent."""
    stream = StreamRelease(SETTINGS, build(anchored, EPSILON), lambda: 1)
    outcome = stream.feed(RawRows(1, 0, np.zeros((6 * N, len(NAMES))), end=True), 0.0)
    requests: list[Request] = outcome.requests
    assert [request.unreleased for request in requests] == [True] * WITHHELD + [False] * 2
    answers: list[Granted | Withheld] = [Withheld(requests[0], "rows"), *map(Granted, requests[1:])]
    assert [decode_private(p).chunk for p in stream.answer(answers).payloads] == [5]


def test_it_takes_its_slot_though_ceilings_are_reached_and_windows_change() -> None:
    """A slot that never fell due would move the window: withheld ones count, so each must be asked for."""
    ledger = MemoryLedger(Ceilings.of(3, EPSILON, 10.0))

    def ask(index: int, *, unreleased: bool) -> str:
        request = Request(StreamKey("d", "s"), 1, N * index, N * index + N - 1, N, CHARGE, unreleased=unreleased)
        [answer] = ledger.reserve([request], 20_000)
        return "granted" if isinstance(answer, Granted) else answer.obstacle

    asked = [ask(i, unreleased=free) for i, free in enumerate((False, True, False, True, False, True))]
    assert asked == ["granted", "granted", "window", "granted", "granted", "granted"]
    assert ask(5, unreleased=True) == "rows"
    assert spent(ledger).window_epsilon == CHARGE.epsilon
    assert (spent(ledger).released, spent(ledger).withheld) == (2, 4)
