"""Recorded data sets, released privately: what ``eyestream privatize`` does.

Every chunk of every recording goes through the same order of effects as in the sidecar: reserved first, all of them,
then released, once. Another run on the same recordings is another release and adds as much again.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from eyestream.claims.guarantee import guarantee_of_recording
from eyestream.core.calibration import Calibration
from eyestream.core.charge import charge_of
from eyestream.core.chunking.settings import DeviceSettings
from eyestream.core.kinds import DifferentialPrivacy, require_differential
from eyestream.core.mechanism import Mechanism, require_real_noise
from eyestream.core.reservation import Granted, LedgerPort, Request, Withheld
from eyestream.core.whole import chunk_count, release_rows
from eyestream.errors import ConfigError
from eyestream.rim.files.recordings import Recording
from eyestream.streams import StreamKey
from eyestream.wire.topics import FEATURE_STREAM
from eyestream_lab.fpa import build_whole
from eyestream_lab.recordings.recording import RecordingRelease
from eyestream_lab.recordings.released import Released, Stretch, released, stretches_of

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
        Of the ledger's lifetime (`eyestream.core.charge`); 1: it does not fade.
    """

    ledger: LedgerPort
    key: StreamKey
    today: int
    levels: int = 1


def privatize(
    recordings: Sequence[Recording],
    calibration: Calibration,
    mechanism: Mechanism,
    booking: Booking | None = None,
    *,
    every: int = 1,
    first_row: int = 0,
    people: Sequence[str] = (),
) -> Iterator[Released]:
    """Release every recording, one after the other, chunk by chunk; with `every`, one in so many alone.

    Of rows before number `first_row` nothing is released: chunks, and a baseline where one is taken, begin there. It is
    public (`eyestream_lab.recordings.worth` derives what choosing it tells).

    Where a history is taken off, the recordings are sessions in the order in which they come: of the person that
    `people` names for each, or all of one person.

    Every kind of claim is taken (`eyestream.core.kinds`), and a `booking` only for differential privacy.

    With a `booking` every chunk of every recording is reserved before the first one is released, on the level of the
    lifetime where the ledger then stands: what is released of a chunk has the epsilon that was charged for it.

    Raises
    ------
    CalibrationError
        A recording has other features than the calibration; nothing is reserved.
    ConfigError
        A ledger is to book another claim than differential privacy, or noise has a seed; nothing is reserved.
    RefusedError
        The ledger does not allow the release; what it had granted stays spent.
    LedgerError
        The ledger cannot be written.
    """
    run = _begun(recordings, _Run(calibration, mechanism, every, first_row), booking)
    for recording, (one, own) in zip(recordings, _booked(run.releases(recordings, people), booking), strict=True):
        yield run.made(recording, one, own)


_NOBODY = StreamKey("recording", FEATURE_STREAM)


def book(
    recordings: Sequence[Recording],
    calibration: Calibration,
    mechanism: Mechanism,
    booking: Booking | None,
    *,
    every: int = 1,
    first_row: int = 0,
) -> tuple[int, list[list[Granted] | None]]:
    """Reserve every chunk of every recording, for `release_one` elsewhere: the first session, and each one's grants.

    None stands for each where there is no ledger. Parameters and errors are those of `privatize`.
    """
    run = _begun(recordings, _Run(calibration, mechanism, every, first_row), booking)
    if booking is None:
        return run.session, [None] * len(recordings)
    return run.session, [_granted(one.requests, booking) for one in run.releases(recordings)]


def release_one(
    recording: Recording,
    calibration: Calibration,
    mechanism: Mechanism,
    answers: list[Granted] | None,
    *,
    key: StreamKey,
    session: int,
    levels: int = 1,
    every: int = 1,
    first_row: int = 0,
) -> Released:
    """Release a recording under what `book` answered, without any history; to be done once for each answer."""
    require_real_noise([mechanism])
    run = _Run(calibration, mechanism, every, first_row, key, session, levels)
    (one,) = run.releases([recording])
    return run.made(recording, one, answers)


@dataclass(frozen=True)
class _Run:
    """How recordings are released: as asked for, under `key` in the ledger from number `session` on."""

    calibration: Calibration
    mechanism: Mechanism
    every: int = 1
    first_row: int = 0
    key: StreamKey = _NOBODY
    session: int = 0
    levels: int = 1

    def releases(self, recordings: Sequence[Recording], people: Sequence[str] = ()) -> Iterator[RecordingRelease]:
        """One for each recording; a history goes from one of a person to their next."""
        settings, last = _settings(self.key, self.calibration), dict[str, RecordingRelease]()
        for place, recording in enumerate(recordings):
            person = people[place] if people else ""
            rows, before, session = recording.features[self.first_row :], last.get(person), self.session + place
            one = RecordingRelease(
                settings, self.mechanism, session, rows, self.levels, every=self.every, before=before
            )
            if self.mechanism.sessions:
                last[person] = one
            yield one

    def made(self, recording: Recording, one: RecordingRelease, answers: list[Granted] | None) -> Released:
        """The release under its grants; None: there is no ledger."""
        mechanism, first_row = self.mechanism, self.first_row
        own = [Granted(request) for request in one.requests] if answers is None else answers
        charges = [answer.spent for answer in own if answer.spent is not None]
        counted = isinstance(mechanism.claim, DifferentialPrivacy)
        made = guarantee_of_recording(mechanism, self.calibration, self.levels)
        stretches = stretches_of(mechanism, own, first_row) if counted else None
        return released(
            recording, mechanism, made, one.release(own), stretches=stretches, charges=charges, first_row=first_row
        )


def _begun(recordings: Sequence[Recording], run: _Run, booking: Booking | None) -> _Run:
    """The run at its place in the ledger. All that can be refused before a booking is refused here."""
    require_real_noise([run.mechanism])
    if booking is not None:
        require_differential(run.mechanism.claim, f"mechanism {run.mechanism.name}", "into a ledger")
    for recording in recordings:
        run.calibration.check_stream(recording.names, recording.rate_hz)
    if booking is None:
        return run
    mark = booking.ledger.mark(booking.key)
    guarantee_of_recording(run.mechanism, run.calibration, booking.levels)  # raises for a level that cannot be
    return replace(run, key=booking.key, session=0 if mark is None else mark.session + 1, levels=booking.levels)


def _booked(
    planned: Iterable[RecordingRelease], booking: Booking | None
) -> Iterator[tuple[RecordingRelease, list[Granted] | None]]:
    """Each release with its grants. With a ledger, all are reserved before the first is given."""
    if booking is None:
        yield from ((one, None) for one in planned)
        return
    granted = deque((one, _granted(one.requests, booking)) for one in planned)
    while granted:  # a release that was given is not held any longer
        yield granted.popleft()


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
        charges = [charge_of(mechanism)] * chunk_count(len(recording.t), mechanism.n)
        stretches = (Stretch(0, len(charges), mechanism.epsilon),)
        yield released(recording, mechanism, made, rows, stretches=stretches, charges=charges)


def _granted(requests: list[Request], booking: Booking) -> list[Granted]:
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
