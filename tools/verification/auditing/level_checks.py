"""What leaves costs what was charged for it: on the levels of a lifetime that fades, and behind a baseline."""

import dataclasses
from typing import Any

import numpy as np

from eyestream.core.anchor import Anchor
from eyestream.core.charge import LEVELS, Ceilings, bounds, charge_units
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.core.meter import Odometer
from eyestream.core.noise import SecureNoise
from eyestream.core.release.stream import StreamRelease
from eyestream.wire.raw import RawRows
from eyestream.wire.release import decode_private
from tests.rigs import rig
from tests.rigs.calibrations import synthetic, synthetic_joint
from tests.rigs.memory_ledger import MemoryLedger
from tools.verification.auditing.findings import Finding, first_failure
from tools.verification.auditing.station import EPSILON, FEATURES, device_settings

__all__ = ["baseline", "levels"]

_LIFETIME = 20 * EPSILON


class _Noted(SecureNoise):
    """Fresh noise, and the laws that it was drawn from."""

    def __init__(self) -> None:
        super().__init__()
        self.laws: list[object] = []

    def draw(self, law: Any) -> Any:
        self.laws.append(law)
        return super().draw(law)


def levels() -> Finding:
    """Two streams of a device by turns, until nothing leaves any more."""
    noise = _Noted()
    mechanism = build(synthetic("cfpa", 4, FEATURES), EPSILON, k=1, noise=noise)
    own_laws = {mechanism.faded(level).epsilon: _laws(mechanism.faded(level), noise) for level in range(LEVELS)}
    ceilings = Ceilings.of(lifetime=_LIFETIME, levels=LEVELS)
    ledger = MemoryLedger(ceilings)
    shapes = [dataclasses.replace(device_settings(4), stream=name) for name in "ab"]
    streams = [StreamRelease(shape, mechanism, lambda: 1, levels=LEVELS) for shape in shapes]
    told = left = other_law = on_first = 0
    for row in range(0, 4 * 15 * LEVELS, 4):
        for stream in streams:
            outcome = stream.feed(RawRows(1, row, np.zeros((4, FEATURES))), 0.0)
            noise.laws.clear()
            answered = stream.answer(ledger.reserve(outcome.requests, 1))
            said = [decode_private(payload).epsilon for payload in (*outcome.payloads, *answered.payloads)]
            told += sum(map(charge_units, said))
            left += len(said)
            on_first += sum(charge_units(epsilon) for epsilon in said if epsilon == EPSILON)
            other_law += noise.laws != [law for epsilon in said for law in own_laws[epsilon]]
    odometer = ledger.odometer("d")
    assert isinstance(odometer, Odometer)
    assert ceilings.lifetime is not None
    reached = sorted({stream.level for stream in streams})
    return first_failure(
        (told == odometer.epsilon, f"{left} chunks said {told} units, and {odometer.epsilon} were charged"),
        (other_law == 0, f"{other_law} of {left} chunks have the noise of another level than they say"),
        (on_first <= bounds(ceilings.lifetime, LEVELS)[0], f"{on_first} units were told on the first level"),
        (odometer.epsilon <= ceilings.lifetime, f"{odometer.epsilon} units of {ceilings.lifetime} were charged"),
        (reached == [LEVELS - 1], f"the streams ended on the levels {reached}"),
    )


def baseline() -> Finding:
    """Sessions whose first chunk is withheld and taken off the others."""
    joint = synthetic_joint(4)
    steps = np.zeros(len(joint.names), dtype=np.int64)
    mechanism = build(dataclasses.replace(joint, takes_off=Anchor(1, steps, steps)), EPSILON)
    shape = rig.device_settings(list(joint.names), 4, "d", grace_s=1.0, idle_s=60.0, jump_chunks=8)
    ledger, stream = MemoryLedger(Ceilings()), StreamRelease(shape, mechanism, lambda: 1)
    said: list[tuple[int, float]] = []
    for session in range(1, 6):
        rows = np.zeros((4 * session, len(joint.names)))
        outcome = stream.feed(RawRows(session, 0, rows, end=True), float(session))
        answered = stream.answer(ledger.reserve(outcome.requests, 1))
        released = [decode_private(payload) for payload in (*outcome.payloads, *answered.payloads)]
        said += [(chunk.chunk, chunk.epsilon) for chunk in released]
    odometer = ledger.odometer("d")
    assert isinstance(odometer, Odometer)
    told = sum(charge_units(epsilon) for _, epsilon in said)
    return first_failure(
        (told == odometer.epsilon, f"{len(said)} chunks said {told} units, and {odometer.epsilon} were charged"),
        (all(index > 0 for index, _ in said), "a chunk of a baseline has left"),
        (len(said) == 10, f"{len(said)} chunks left, of 10 behind baselines"),
        (odometer.withheld == 5, f"{odometer.withheld} slots cost nothing, of 5 baselines"),
    )


def _laws(mechanism: Mechanism, noise: _Noted) -> list[object]:
    """What a release draws from."""
    noise.laws.clear()
    mechanism.release(np.zeros((FEATURES, 4)))
    return list(noise.laws)
