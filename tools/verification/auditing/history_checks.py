"""Checks of histories: what is taken off a session, and when a pseudonym ends. Exact."""

import numpy as np
from numpy.typing import NDArray

from eyestream.core.charge import Ceilings, charge_units
from eyestream.core.mechanisms import build
from eyestream.core.meter import Odometer
from eyestream.core.release.stream import StreamRelease
from eyestream.wire.raw import RawRows
from eyestream.wire.release import decode_private
from eyestream_lab.mechanisms.words import synthetic_words
from eyestream_lab.testing.noise import FixedNoise
from tests.rigs import rig
from tests.rigs.memory_ledger import MemoryLedger
from tools.verification.auditing.findings import Finding, first_failure

__all__ = ["histories"]

EPSILON, N, SESSIONS = 2.0, 4, 24
_LEVELS = (0.0, 40.0, -7.0, 3.0, -30.0, 12.0, 6.0, -2.0)


def histories() -> Finding:
    """Sessions of one wearer, without noise: counted, charged, and told from one another by earlier sessions alone."""
    calibration = synthetic_words(N, 2)
    each = calibration.sessions
    ledger = MemoryLedger(Ceilings())
    plain, moved = _words(0.0, ledger), _words(1024.0)
    released = {session for session in range(SESSIONS) if session % each}
    odometer = ledger.odometer("d")
    assert isinstance(odometer, Odometer)
    told = charge_units(EPSILON) * len(plain)
    expected = {session: _expected(session, each) for session in released}
    return first_failure(
        (set(plain) == released, f"{len(plain)} sessions left, of {len(released)} that are not the first"),
        (plain == moved, "a constant of all rows of a pseudonym is seen"),
        (plain == expected, "a word is not that of its session less the earlier ones of its pseudonym"),
        (told == odometer.epsilon, f"{told} units are told, and {odometer.epsilon} were charged"),
    )


def _level(session: int) -> float:
    return _LEVELS[session * 5 % len(_LEVELS)]


def _expected(session: int, each: int) -> int:
    """The word of a session: the sign of its level less the mean of the earlier ones of its pseudonym."""
    before = [_level(one) for one in range(session - session % each, session)]
    return int(np.sign(_level(session) - np.mean(before))) + 1


def _words(offset: float, ledger: MemoryLedger | None = None) -> dict[int, int]:
    """By session, of one chunk each."""
    mechanism = build(synthetic_words(N, 2), EPSILON, noise=FixedNoise(0))
    names = list(mechanism.calibration.names)
    shape = rig.device_settings(names, N, "d", grace_s=1.0, idle_s=60.0, jump_chunks=8)
    ledger, stream = ledger or MemoryLedger(Ceilings()), StreamRelease(shape, mechanism, lambda: 1)
    found: dict[int, int] = {}
    for session in range(SESSIONS):
        rows: NDArray[np.float64] = np.full((N, 2), _level(session) + offset)
        outcome = stream.feed(RawRows(session + 1, 0, rows, end=True), float(session))
        answered = stream.answer(ledger.reserve(outcome.requests, 1))
        for payload in (*outcome.payloads, *answered.payloads):
            found[session] = int(decode_private(payload).values.argmax())
    return found
