"""What configurations decide, as digests: `python -m tests.product.tape.decided [FEW|ALL|2/5]` prints them.

Law, code, directions, gains, expected errors, gains of looking back and the claim are digests of every bit. The words
are those that one noise tape gives for fixed chunks, before the release is made of them: scores come from BLAS, so a
word may differ where a score lies within rounding of a border, which those of these chunks do not.
"""

import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import numpy as np

from eyestream.claims.correlation.published import session_claim
from eyestream.claims.guarantee import guarantee_of_recording
from eyestream.core.additive.core import AdditiveCore, AdditiveStep
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.core.mechanisms.asked.mechanism import _Core as AskedCore
from eyestream.core.mechanisms.klt.core import JointCore
from eyestream.core.mechanisms.klt.schedule import ScheduleStep
from eyestream.rim.files import calibrations
from eyestream.rim.files.processes import load_process
from eyestream_lab.hindsight import hindsight
from eyestream_lab.hindsight.klt import backward_gains
from eyestream_lab.testing.noise import WordNoise
from tests.product.tape.cases import Tape, fingerprint, inputs

__all__ = ["ALL", "FEW", "STORED", "configurations", "decided", "part_of"]

T = TypeVar("T")

STORED = Path(__file__).parent / "decided.json"
ALL = "ALL"
FEW = "FEW"

_TURNS = 9
_FEW = (
    "everyday-klt-anchored-64 4",
    "everyday-klt-one-32 9.6",
    "everyday-cfpa-32 4.8",
    "everyday-lpa-32 4.8 smooth",
    "everyday-asked-64 4.8 features",
)


def configurations(which: str) -> dict[str, tuple[str, float, dict[str, Any]]]:
    """Calibration, epsilon and options by name: of every shipped calibration, or of a few.

    Or, for "2/5", every fifth of all: a calibration has three or four, so these are of all mechanisms and epsilons.
    """
    found = {f"{one} {epsilon:g}{_said(own)}": (one, epsilon, own) for one, epsilon, own in _every()}
    return {name: found[name] for name in part_of(list(found), which, _FEW)}


def part_of(every: Sequence[T], which: str, few: Sequence[T]) -> Sequence[T]:
    """All of them, the few, or, for "2/5", every fifth."""
    if which in (ALL, FEW):
        return every if which == ALL else few
    first, _, each = which.partition("/")
    return every[int(first) :: int(each)]


def _every() -> Iterator[tuple[str, float, dict[str, Any]]]:
    for name in calibrations.shipped():
        if "klt" in name:
            yield from ((name, epsilon, {}) for epsilon in (0.4, 4.0, 9.6, 38.0))
        else:
            yield from ((name, 4.8, own) for own in ({}, {"smooth": True}))
            yield name, 48.0, {"shrink": True}
    yield "everyday-klt-anchored-64", 9.6, {"focus": ["blink_rate"]}
    yield "everyday-asked-64", 4.8, {"features": ["blink_rate", "mean_mean_diameter"]}


def _said(options: dict[str, Any]) -> str:
    return "".join(f" {key}" for key in options)


def decided(which: str) -> dict[str, dict[str, str]]:
    """Digests of everything that each configuration decides."""
    wanted = configurations(which).items()
    return {name: _of(build(calibrations.load(one), epsilon, **own)) for name, (one, epsilon, own) in wanted}


def _of(mechanism: Mechanism) -> dict[str, str]:
    core = mechanism.core
    found = {"noise_sd": _digest(mechanism.noise_sd), "claim": _digest(_claim(mechanism))}
    if isinstance(core, JointCore):
        steps = core.schedule.steps
        found["law"] = _digest([(step.law._threshold, (step.law._cells - 1).tolist()) for step in steps])
        found["code"] = _digest([(book.first, book.bits) for step in steps for book in step.books])
        found["directions"] = _digest(*(step.directions for step in steps))
        found["gains"] = _digest(*(step.gain for step in steps))
        found["backward"] = _digest(*backward_gains(core.schedule, _TURNS))
    elif isinstance(core, AdditiveCore):
        law, lattice = core.private.law, core.private.lattice
        found["law"] = _digest(law.digits.thresholds, law.rates, law.sd, np.array([law.limit, lattice.largest]))
        found["code"] = _digest(core.private.steps, lattice.l1_diameter, list(mechanism.k), core.output.gain)
    elif isinstance(core, AskedCore):
        found["law"] = _digest([core.law._threshold, core.law._cells.tolist()])
    return found | {"words": _digest(_words(mechanism))}


def _claim(mechanism: Mechanism) -> dict[str, Any]:
    """Its figures; words of it may change."""
    calibration = mechanism.calibration
    made = guarantee_of_recording(mechanism, calibration).claim()
    figures = {key: made[key] for key in ("loss", "guess_factor", "unit")}
    if calibration.anchor is None:
        seconds = mechanism.n / calibration.rate_hz
        claim = session_claim(mechanism, load_process("everyday"), seconds, chunks=100, touched=3)
        figures["session"] = [claim.most, claim.plain, claim.chunk, claim.second]
    return figures


def _words(mechanism: Mechanism) -> list[Any]:
    """What is drawn and what is kept of a session of fixed chunks under a fixed tape."""
    calibration, noted, states = mechanism.calibration, list[Any](), list[Any]()
    value, noisy = ScheduleStep.value, AdditiveStep.noisy

    def word(self: ScheduleStep, word: Any) -> Any:
        noted.append([int(one) for one in word])
        return value(self, word)

    def integers(self: AdditiveStep, *given: Any) -> Any:
        found = noisy(self, *given)
        noted.append(_digest(found))
        return found

    own = type(mechanism)(calibration, mechanism.epsilon, noise=WordNoise(Tape("processors")), **mechanism.options)
    session = own.session()
    chunks = inputs(calibration.lo, calibration.hi, calibration.n)
    while session.awaits_baseline:
        session.anchor(chunks[0])
    with mock.patch.object(ScheduleStep, "value", word), mock.patch.object(AdditiveStep, "noisy", integers):
        for turn in range(_TURNS):
            released = session.release(chunks[turn % len(chunks)])
            if not mechanism.domain.keeps:
                noted.append(_digest(released))
                states.append(session.state)
    looked_back = hindsight(mechanism, states) if states else None
    noted += [_digest(chunk) for chunk in looked_back or ()]
    assert noted
    return noted


def _digest(*parts: Any) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        bits = np.ascontiguousarray(part).tobytes() if isinstance(part, np.ndarray) else json.dumps(part).encode()
        digest.update(bits)
    return digest.hexdigest()


if __name__ == "__main__":
    which = sys.argv[1] if len(sys.argv) > 1 else ALL
    print(json.dumps({"arithmetic": fingerprint(), "decided": decided(which)}, indent=1, sort_keys=True))
