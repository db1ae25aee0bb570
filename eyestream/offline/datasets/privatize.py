"""Recorded data sets, released privately: the use case behind ``eyestream privatize``.

Every chunk of every recording goes through the same order of effects as in the sidecar: reserved first, all of them,
then released, once. Another run on the same recordings is another release and adds as much again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby

import numpy as np

from eyestream.chunking.settings import DeviceSettings
from eyestream.errors import ConfigError
from eyestream.privacy.calibration import Calibration
from eyestream.privacy.charge import DELTA_UNITS, EPSILON_UNITS, Charge
from eyestream.privacy.claims.kinds import DifferentialPrivacy, only_differential
from eyestream.privacy.guarantee import Guarantee, guarantee_of_recording
from eyestream.privacy.mechanism import Mechanism
from eyestream.privacy.mechanisms.registry import build_whole
from eyestream.privacy.reservation import Granted, Request, Withheld
from eyestream.privacy.whole import chunk_count, release_rows
from eyestream.release.ports import Ledger
from eyestream.release.recording import RecordingRelease
from eyestream.rim.files.recordings import Recording
from eyestream.streams import StreamKey
from eyestream.wire.topics import FEATURE_STREAM

__all__ = ["Booking", "RefusedError", "Released", "Stretch", "privatize", "privatize_whole"]

_SLOWEST_S = 1.0
"""No clock runs here: grace and idle times are never reached."""


class RefusedError(ConfigError):
    """The ledger does not allow the release."""


@dataclass(frozen=True)
class Booking:
    """Where the release of a person's recordings is booked.

    Attributes
    ----------
    ledger
        Open.
    key
        The person's device, and the stream.
    today
        Days since 1970, UTC.
    levels
        Of the ledger's lifetime (`eyestream.privacy.charge`); 1: it does not fade.
    """

    ledger: Ledger
    key: StreamKey
    today: int
    levels: int = 1


@dataclass(frozen=True)
class Stretch:
    """Chunks of a recording, one behind the other, that cost the same each."""

    first_row: int
    chunks: int
    epsilon: float
    """Of a chunk."""


@dataclass(frozen=True)
class Released:
    """A private recording and what it cost.

    Attributes
    ----------
    recording
        Its times are the nominal grid from 0, names as in the original. Where the mechanism releases features of its
        own, names are theirs, and times the middles of the original's slots.
    chunks
        Chunks released: not those that are left out, nor those of a baseline.
    epsilon, delta
        Of the recording: the sum over its chunks, as a ledger books it. None where no differential privacy is claimed.
    stretches
        What its chunks cost, in order: one, or on a lifetime that fades one for each level that it reached. None where
        no differential privacy is claimed.
    guarantee
        Of one chunk, on the first of the levels.
    """

    recording: Recording
    chunks: int
    epsilon: float | None
    delta: float | None
    stretches: tuple[Stretch, ...]
    guarantee: Guarantee

    def claim(self) -> dict[str, object]:
        """What is claimed, for machines: plain values that JSON knows.

        It is published with the recording, and has no noise: it is a function of the number of rows, the mechanism and
        the ledger. Two recordings with as many rows have the same claim, whatever is in them.
        """
        return {
            "chunks": self.chunks,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "epsilon_of_chunks": [asdict(stretch) for stretch in self.stretches],
            "claim": self.guarantee.claim(),
        }


def privatize(
    recordings: Sequence[Recording],
    calibration: Calibration,
    mechanism: Mechanism,
    booking: Booking | None = None,
    *,
    every: int = 1,
) -> Iterator[Released]:
    """Release every recording, one after the other, chunk by chunk; with `every`, one in so many alone.

    Every kind of claim is taken (`eyestream.privacy.claims.kinds`), and a `booking` only for differential privacy.

    With a `booking` every chunk of every recording is reserved before the first one is released, on the level of the
    lifetime where the ledger then stands: what is released of a chunk has the epsilon that was charged for it.

    Raises
    ------
    CalibrationError
        A recording has other features than the calibration; nothing is reserved.
    ConfigError
        A ledger is to book another claim than differential privacy; nothing is reserved.
    RefusedError
        The ledger does not allow the release; what it had granted stays spent.
    LedgerError
        The ledger cannot be written.
    """
    if booking is not None:
        only_differential(mechanism.claim, f"mechanism {mechanism.name}", "into a ledger")
    for recording in recordings:
        calibration.check_stream(recording.names, recording.rate_hz)
    key = StreamKey("recording", FEATURE_STREAM) if booking is None else booking.key
    mark = None if booking is None else booking.ledger.mark(key)
    first = 0 if mark is None else mark.session + 1
    settings, levels = _settings(key, calibration), 1 if booking is None else booking.levels
    planned = [
        RecordingRelease(settings, mechanism, session, recording.features, levels, every=every)
        for session, recording in enumerate(recordings, start=first)
    ]
    counted = isinstance(mechanism.claim, DifferentialPrivacy)
    made = guarantee_of_recording(mechanism, calibration, levels)  # a level that cannot be is said before the booking
    answers = [_granted(one.requests, booking) for one in planned]
    for recording, one, own in zip(recordings, planned, answers, strict=True):
        charges = [answer.spent for answer in own if answer.spent is not None]
        rows, stretches = one.release(own), _stretches(mechanism, own) if counted else None
        released = _released(recording, calibration, made, rows, stretches=stretches, charges=charges)
        yield released if mechanism.domain.keeps else _own_features(released, recording, mechanism)


def _own_features(released: Released, recording: Recording, mechanism: Mechanism) -> Released:
    """Under the names of what was released, each slot at its middle; the recording's times are the ends of slots."""
    t = recording.t - mechanism.schema.step_s / 2
    return replace(released, recording=replace(released.recording, t=t, names=mechanism.schema.names))


def privatize_whole(recordings: Sequence[Recording], calibration: Calibration, epsilon: float) -> Iterator[Released]:
    """Release every recording as one chunk as long as itself (FPA), with the declared range as its domain.

    Raises
    ------
    CalibrationError
        A recording has other features than the calibration.
    ConfigError
        Epsilon is refused.
    """
    for recording in recordings:
        calibration.check_stream(recording.names, recording.rate_hz)
    for recording in recordings:
        mechanism = build_whole(calibration, epsilon, len(recording.t), k=calibration.k or 1)
        rows = release_rows(mechanism, recording.features)
        made = guarantee_of_recording(mechanism, calibration)
        charges = [Charge.of(mechanism.epsilon, mechanism.delta)] * chunk_count(len(recording.t), mechanism.n)
        stretches = (Stretch(0, len(charges), mechanism.epsilon),)
        yield _released(recording, calibration, made, rows, stretches=stretches, charges=charges)


def _stretches(mechanism: Mechanism, answers: Sequence[Granted]) -> tuple[Stretch, ...]:
    """What was charged, in order."""
    found = []
    charged = [answer for answer in answers if answer.spent is not None]
    for level, same in groupby(charged, lambda answer: answer.level):
        chunks = list(same)
        found.append(Stretch(chunks[0].request.first_row, len(chunks), mechanism.faded(level).epsilon))
    return tuple(found)


def _released(
    recording: Recording,
    calibration: Calibration,
    guarantee: Guarantee,
    rows: np.ndarray,
    *,
    stretches: tuple[Stretch, ...] | None,
    charges: Sequence[Charge],
) -> Released:
    """`charges`: one for each chunk that is released; their sum is exact. `stretches`: None where no
    differential privacy is claimed.
    """
    counted = stretches is not None
    return Released(
        recording=replace(recording, t=np.arange(len(recording.t)) / calibration.rate_hz, features=rows),
        chunks=len(charges),
        epsilon=sum(charge.epsilon for charge in charges) / EPSILON_UNITS if counted else None,
        delta=sum(charge.delta for charge in charges) / DELTA_UNITS if counted else None,
        stretches=stretches or (),
        guarantee=guarantee,
    )


def _granted(requests: list[Request], booking: Booking | None) -> list[Granted]:
    if booking is None:
        return [Granted(request) for request in requests]
    answers = booking.ledger.reserve(requests, booking.today)
    granted = [answer for answer in answers if isinstance(answer, Granted)]
    if len(granted) < len(requests):
        obstacle = next(answer.obstacle for answer in answers if isinstance(answer, Withheld))
        raise RefusedError(f"the ledger does not allow the release of every chunk ({obstacle})")
    return granted


def _settings(key: StreamKey, calibration: Calibration) -> DeviceSettings:
    return DeviceSettings(
        id=key.device,
        stream=key.stream,
        schema=0,
        names=calibration.names,
        rate_hz=calibration.rate_hz,
        n=calibration.n,
        grace_s=_SLOWEST_S,
        idle_s=_SLOWEST_S,
        jump_chunks=1,
    )
