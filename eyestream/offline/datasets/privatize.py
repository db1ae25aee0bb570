"""Recorded data sets, released privately: the use case behind ``eyestream privatize``.

Every chunk of every recording goes through the same order of effects as in the sidecar: reserved first, all of them,
then released, once. Another run on the same recordings is another release and adds as much again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from eyestream.chunking.settings import DeviceSettings
from eyestream.errors import ConfigError
from eyestream.privacy.calibration import Calibration
from eyestream.privacy.correlated import Correlated
from eyestream.privacy.guarantee import Guarantee, guarantee_of_recording
from eyestream.privacy.mechanism import Mechanism
from eyestream.privacy.mechanisms import FPA
from eyestream.privacy.reservation import Granted, Request
from eyestream.privacy.whole import chunk_count, release_rows
from eyestream.release.ports import Ledger
from eyestream.release.recording import RecordingRelease
from eyestream.rim.files.recordings import Recording
from eyestream.streams.key import StreamKey

__all__ = ["Booking", "Released", "privatize", "privatize_whole"]

_GAP = 1.5
"""Rows further apart than so many periods have a gap between them."""

_SLOWEST_S = 1.0
"""No clock runs here: grace and idle times are never reached."""


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
    """

    ledger: Ledger
    key: StreamKey
    today: int


@dataclass(frozen=True)
class Released:
    """A private recording and what it cost.

    Attributes
    ----------
    recording
        Its times are the nominal grid from 0; names as in the original.
    chunks
        Chunks released.
    epsilon, delta
        Of the recording: the sum over its chunks; those of a baseline cost nothing.
    closed_s
        Seconds of gaps in the recording that are closed: what is released has its rows one behind the other.
    calibrated_on_itself
        Share of its rows that the calibration was made from; above 0 there is no guarantee.
    guarantee
        Of one chunk; None where there is none.
    correlated
        What the whole recording tells of one chunk under a class of processes; None where none was named.
    """

    recording: Recording
    chunks: int
    epsilon: float
    delta: float
    closed_s: float
    calibrated_on_itself: float
    guarantee: Guarantee | None
    correlated: Correlated | None = None

    def claim(self) -> dict[str, object]:
        """What is claimed, for machines: plain values that JSON knows."""
        told: dict[str, object] = {
            "chunks": self.chunks,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "closed_gaps_s": self.closed_s,
            "calibrated_on_itself": self.calibrated_on_itself,
            "claim": None if self.guarantee is None else self.guarantee.claim(),
        }
        if self.guarantee is not None and self.correlated is not None:
            told["correlation"] = self.correlated.claim()
        return told


def privatize(
    recordings: Sequence[Recording],
    calibration: Calibration,
    mechanism: Mechanism,
    booking: Booking | None = None,
    *,
    every: int = 1,
) -> Iterator[Released]:
    """Release every recording, one after the other, chunk by chunk; with `every`, one in so many alone.

    With a `booking` every chunk of every recording is reserved before the first one is released.

    Raises
    ------
    CalibrationError
        A recording has other features than the calibration; nothing is reserved.
    ConfigError
        The ledger does not allow the release; what it had granted stays spent.
    LedgerError
        The ledger cannot be written.
    """
    for recording in recordings:
        calibration.check_stream(recording.names, recording.rate_hz)
    key = StreamKey("recording", "features") if booking is None else booking.key
    mark = None if booking is None else booking.ledger.mark(key)
    first = 0 if mark is None else mark.session + 1
    settings = _settings(key, calibration)
    planned = [
        RecordingRelease(settings, mechanism, session, recording.features, every=every)
        for session, recording in enumerate(recordings, start=first)
    ]
    answers = [_granted(one.requests, booking) for one in planned]
    for recording, one, own in zip(recordings, planned, answers, strict=True):
        charged = sum(answer.spent is not None for answer in own)
        yield _released(recording, calibration, mechanism, one.release(own), (len(own), charged))


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
        mechanism = FPA(calibration, epsilon, len(recording.t), k=calibration.k or 1)
        rows = release_rows(mechanism, recording.features)
        chunks = chunk_count(len(recording.t), mechanism.n)
        yield _released(recording, calibration, mechanism, rows, (chunks, chunks))


def _released(
    recording: Recording, calibration: Calibration, mechanism: Mechanism, rows: np.ndarray, chunks: tuple[int, int]
) -> Released:
    """`chunks`: how many there are, and how many of them were charged."""
    number, charged = chunks
    t = np.arange(len(recording.t)) / calibration.rate_hz
    steps = np.diff(recording.t) * calibration.rate_hz
    overlap = calibration.overlap(recording.features)
    return Released(
        recording=replace(recording, t=t, features=rows),
        chunks=number,
        epsilon=charged * mechanism.epsilon,
        delta=charged * mechanism.delta,
        closed_s=float((steps[steps > _GAP] - 1.0).sum()) / calibration.rate_hz,
        calibrated_on_itself=overlap,
        guarantee=guarantee_of_recording(mechanism, calibration) if overlap == 0 else None,
    )


def _granted(requests: list[Request], booking: Booking | None) -> list[Granted]:
    if booking is None:
        return [Granted(request) for request in requests]
    answers = booking.ledger.reserve(requests, booking.today)
    granted = [answer for answer in answers if isinstance(answer, Granted)]
    if len(granted) < len(requests):
        raise ConfigError("the ledger does not allow the release")
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
