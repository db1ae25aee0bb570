"""A fault at every call of the release path, once and for ever: nothing raw leaves, and nothing goes uncounted."""

import logging
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eyestream.chunking.settings import DeviceSettings
from eyestream.privacy.additive.ball import L2Lattice
from eyestream.privacy.additive.core import AdditiveStep
from eyestream.privacy.additive.transforms import FourierTransform
from eyestream.privacy.charge import Ceilings
from eyestream.privacy.domain import Domain
from eyestream.privacy.frame import Page
from eyestream.privacy.joint.core import JointStep
from eyestream.privacy.mechanisms import KLT, build
from eyestream.privacy.noise import SecureNoise
from eyestream.privacy.noise.bits import SystemBits
from eyestream.privacy.noise.laws import LaplaceLaw
from eyestream.privacy.noise.response import ResponseLaw
from eyestream.release import stream as stream_module
from eyestream.rim.files import calibrations
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.ledger.reading import create_ledger
from eyestream.rim.sidecar.pipeline import Arrival, Pipeline
from eyestream.testing.payloads import rows_of_a_stranger
from eyestream.wire.messages import decode_private, encode_raw

CALLS: tuple[tuple[Any, str], ...] = (
    (Domain, "admit"),
    (FourierTransform, "residual"),
    (FourierTransform, "coordinates"),
    (FourierTransform, "chunk"),
    (L2Lattice, "snap"),
    (LaplaceLaw, "sample"),
    (ResponseLaw, "sample"),
    (SystemBits, "words"),
    (SecureNoise, "draw"),
    (AdditiveStep, "plain"),
    (JointStep, "scores"),
    (JointStep, "chunk"),
    (Page, "complete"),
    (stream_module, "encode_private"),
    (Ledger, "reserve"),
)


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


async def life(folder: Path, name: str, rows: np.ndarray) -> tuple[Pipeline, list[bytes], bool]:
    """Four chunks through a pipeline; whether it lived to its end."""
    calibration = calibrations.load(name)
    settings = DeviceSettings("a", "features", 1, calibration.names, 2.0, 32, 1.0, 60.0, 16, "on_row")
    create_ledger(folder / "ledger", created=0)
    published: list[bytes] = []
    with Ledger(folder / "ledger", ceilings=Ceilings()) as ledger:
        pipe = Pipeline(
            [(settings, build(calibration, 4.8, noise=SecureNoise()))],
            ledger,
            today=lambda: 20_000,
            publish=lambda topic, payload: published.append(topic.encode() + payload),
            changed=lambda: None,
        )
        try:
            for first in range(0, len(rows), 16):
                payload = encode_raw(1, first, rows[first : first + 16], 1)
                await pipe.take([Arrival("eyestream/v1/a/features/raw", payload, float(first))], float(first))
            pipe.close(float(len(rows)))
        except BoomError:
            return pipe, published, False
    return pipe, published, True


@pytest.mark.parametrize("for_ever", [False, True])
@pytest.mark.parametrize("name", ["everyday-cfpa-32", "everyday-klt-32"])
async def test_a_fault_at_every_call(
    tmp_path: Path, name: str, for_ever: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rows = rows_of_a_stranger(128, 52)
    words = pairs_of(rows)
    caplog.set_level(logging.DEBUG)
    number, ended, faults = 0, 0, 0
    while True:
        number += 1
        fault = FaultAt(number, for_ever, rows)
        with monkeypatch.context() as patch:
            for owner, attribute in CALLS:
                patch.setattr(owner, attribute, fault.around(getattr(owner, attribute)))
            try:
                (tmp_path / str(number)).mkdir()
                pipe, published, lived = await life(tmp_path / str(number), name, rows)
            except BoomError:  # before the first row: the source of noise could not be made
                continue
        counters = pipe.counters
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
    _, published, _ = await life(tmp_path, "everyday-klt-32", rows)
    assert any(word in b"".join(published) for word in pairs_of(rows))
