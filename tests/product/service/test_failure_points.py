"""A fault at every call of the release path, once and for ever: nothing raw leaves, and nothing goes uncounted."""

import contextlib
import logging
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyestream.core.mechanisms import KLT
from eyestream.errors import MechanismError
from eyestream.rim.files import calibrations
from eyestream.rim.sidecar.pipeline import PipelineCounters
from eyestream.wire.release import decode_private
from tests.rigs.payloads import rows_of_a_stranger
from tests.rigs.rig import Rig
from tests.rigs.seams import original, replaced

CALLS = (
    "Domain.admit",
    "transform residual",
    "transform coordinates",
    "transform chunk",
    "L2Lattice.snap",
    "LaplaceLaw.sample",
    "ResponseLaw.sample",
    "SystemBits.words",
    "SecureNoise.draw",
    "additive finish",
    "KLT scores",
    "KLT chunk",
    "mechanism completes",
    "stream encoder",
    "Ledger.reserve",
)
"""Seams: every step of a release."""


def pairs_of(rows: np.ndarray) -> set[bytes]:
    """Neighbouring raw values as bytes: of a row, as they came, and of a feature, as chunks hold them."""
    pairs = [*rows[:, :2].tolist(), *rows[:32].T[:, :2].tolist()]
    return {struct.pack("<2f", *pair) for pair in pairs}


class BoomError(RuntimeError):
    """Carries raw values, as the worst exception of a library might."""


class FaultAt:
    """Raises at the `number`-th call of any of `CALLS`, or from it on."""

    def __init__(self, number: int, for_ever: bool, rows: np.ndarray) -> None:
        self.calls = 0
        self._number, self._for_ever, self._rows = number, for_ever, rows

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self.calls += 1
            if self.calls == self._number or (self._for_ever and self.calls > self._number):
                raise BoomError(self._rows[:3].tolist())
            return function(*arguments, **named)

        return call


async def life(folder: Path, name: str, rows: np.ndarray) -> tuple[PipelineCounters, list[bytes], bool]:
    """Four chunks through a pipeline; whether it lived to its end."""
    times = {"grace_s": 1.0, "idle_s": 60.0, "jump_chunks": 16}
    with Rig(folder, calibration=calibrations.load(name), **times) as rig:
        lived = True
        try:
            for first in range(0, len(rows), 16):
                rig.clock.now = float(first)
                await rig.take(rig.sent(rows[first : first + 16], first))
            rig.clock.now = float(len(rows))
            rig.close()
        except BoomError:
            lived = False
        return rig.counters, [topic.encode() + payload for topic, payload in rig.published], lived


@pytest.mark.long
@pytest.mark.parametrize("for_ever", [False, True])
@pytest.mark.parametrize("name", ["everyday-cfpa-32", "everyday-klt-32"])
async def test_a_fault_at_every_call(
    tmp_path: Path, name: str, for_ever: bool, caplog: pytest.LogCaptureFixture
) -> None:
    rows = rows_of_a_stranger(128, 52)
    words = pairs_of(rows)
    caplog.set_level(logging.DEBUG)
    number, ended, faults = 0, 0, 0
    while True:
        number += 1
        fault = FaultAt(number, for_ever, rows)
        with contextlib.ExitStack() as planted:
            for seam in CALLS:
                planted.enter_context(replaced(seam, fault.around(original(seam))))
            try:
                counters, published, lived = await life(tmp_path / str(number), name, rows)
            except (BoomError, MechanismError) as error:  # before the first row: noise or mechanism could not be made
                if not isinstance(error, BoomError) and not isinstance(error.__cause__, BoomError):
                    raise
                continue
        everything = b"".join(published)
        assert not any(word in everything for word in words)
        for payload in published:
            assert decode_private(payload.partition(b"/private")[2]).values.shape == (52, 32)
        if lived:
            assert counters.due == 4
            assert counters.released + counters.withheld.total() + counters.dropped.total() == 4
            assert len(published) == counters.released
        else:
            ended += 1
        if fault.calls < number:
            break
        faults += 1
        assert counters.released < 4 or not lived
    assert faults > 20
    assert ended < faults  # a chunk is lost, seldom the process
    assert counters.released == 4  # the last life, without a fault
    assert str(float(rows[0, 0])) not in caplog.text


async def test_control_a_pass_through_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test above looks for is there when a mechanism hands raw values on."""
    rows = rows_of_a_stranger(128, 52)
    monkeypatch.setattr(KLT, "release", lambda self, chunk: chunk)
    monkeypatch.setattr(KLT, "session", lambda self, snapshot=None: self)
    monkeypatch.setattr(KLT, "awaits_baseline", False, raising=False)
    _, published, _ = await life(tmp_path, "everyday-klt-32", rows)
    assert any(word in b"".join(published) for word in pairs_of(rows))
