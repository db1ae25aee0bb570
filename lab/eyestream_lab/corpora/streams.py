"""Mechanisms of the sidecar over a corpus: every chunk of every recording, as `eyestream_lab.recordings` releases
it."""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eyestream.core.calibration import Calibration
from eyestream.core.kinds import DifferentialPrivacy
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.core.whole import chunk_count
from eyestream.errors import CalibrationError
from eyestream.rim.files.recordings import Recording
from eyestream_lab.corpora.claims import PUBLIC, Promise, exact, of_person
from eyestream_lab.corpora.corpus import Dataset, Part, Survey
from eyestream_lab.corpora.draws import Draws
from eyestream_lab.corpora.system import Unit, recordings_alone
from eyestream_lab.fpa import WHOLE
from eyestream_lab.recordings.privatize import privatize, privatize_whole
from eyestream_lab.recordings.worth import refuse_own_people


@functools.lru_cache(maxsize=2)
def built(calibration: Calibration, epsilon: float, draws: Draws, given: tuple[tuple[str, Any], ...] = ()) -> Mechanism:
    """The mechanism of a calibration, made once for a run: that can take a second."""
    return build(calibration, epsilon, noise=draws, **dict(given))


def check_calibration(calibration: Calibration, corpus: Dataset[Recording], survey: Survey) -> None:
    """Raise CalibrationError where a calibration is for other rows, or was made from rows of the corpus."""
    for part in corpus.parts:
        calibration.check_stream(survey.extents[part].names, survey.extents[part].rate_hz)
        recording = corpus.load(part)
        if recording.front_end is not None:
            calibration.check_front_end(recording.front_end)
        refuse_own_people(calibration, recording, part.recording)


def _on_public_times(recording: Recording, calibration: Calibration) -> Recording:
    """The rows at the calibration's rate, and nothing else of the file: its times, and what it says of its tracker, are
    the person's."""
    t = np.arange(1, len(recording.t) + 1) / calibration.rate_hz
    return Recording(t, recording.features, recording.names)


def recordings_of(corpus: Dataset[Recording], calibration: Calibration, survey: Survey) -> list[Unit]:
    """A unit for each recording; CalibrationError where the calibration cannot be used for them."""
    check_calibration(calibration, corpus, survey)
    return recordings_alone(corpus)


@dataclass(frozen=True)
class ChunkByChunk:
    """The mechanism that a calibration was made for.

    Attributes
    ----------
    calibration
        Of other people.
    epsilon
        Of a chunk.
    given
        Options of the mechanism.
    """

    calibration: Calibration
    epsilon: float
    given: Mapping[str, Any] = field(default_factory=dict)
    released_kind = None

    def __post_init__(self) -> None:
        build(self.calibration, self.epsilon, **self.given)

    @property
    def name(self) -> str:
        """Name of the mechanism."""
        return self.calibration.mechanism

    @property
    def options(self) -> dict[str, object]:
        """Options as given."""
        return {"calibration": self.calibration.content_hash, "epsilon": self.epsilon, **self.given}

    def units(self, corpus: Dataset[Recording], survey: Survey) -> list[Unit]:
        """A recording each."""
        return recordings_of(corpus, self.calibration, survey)

    def promise(self, corpus: Dataset[Recording], survey: Survey) -> Promise:
        """Loss of all recordings of the person with the most chunks."""
        mechanism = build(self.calibration, self.epsilon, **self.given)
        most = corpus.most(
            lambda part: max(chunk_count(survey.extents[part].rows, mechanism.n) - mechanism.baseline_chunks, 0)
        )
        if not isinstance(mechanism.claim, DifferentialPrivacy):
            return Promise(mechanism.claim, (), PUBLIC)
        one = mechanism.claim.loss
        return Promise(of_person(one, most, self.name), (), PUBLIC, (one,))

    def release(
        self, corpus: Dataset[Recording], survey: Survey, unit: Unit, draws: Draws
    ) -> Iterator[tuple[Part, Recording]]:
        """Chunk by chunk, in one session."""
        mechanism = built(self.calibration, self.epsilon, draws, tuple(self.given.items()))
        for part in unit.parts:
            for released in privatize(
                [_on_public_times(corpus.load(part), self.calibration)], self.calibration, mechanism
            ):
                yield part, released.recording


def chunks_of(mechanism: str, calibration: Calibration, epsilon: float, **given: Any) -> ChunkByChunk:
    """`ChunkByChunk` of the mechanism of this name; CalibrationError when the calibration is of another one."""
    if calibration.mechanism != mechanism:
        raise CalibrationError(
            f"{mechanism}: the calibration is of {calibration.mechanism}: expected one of {mechanism}, such as "
            f"everyday-{mechanism}-32"
        )
    return ChunkByChunk(calibration, epsilon, given)


@dataclass(frozen=True)
class WholeRecordings:
    """FPA: each recording as one chunk.

    Attributes
    ----------
    calibration
        Public ranges.
    epsilon
        Of a recording.
    """

    calibration: Calibration
    epsilon: float
    name = WHOLE
    released_kind = None

    @property
    def options(self) -> dict[str, object]:
        """Options as given."""
        return {"calibration": self.calibration.content_hash, "epsilon": self.epsilon}

    def units(self, corpus: Dataset[Recording], survey: Survey) -> list[Unit]:
        """A recording each."""
        return recordings_of(corpus, self.calibration, survey)

    def promise(self, corpus: Dataset[Recording], survey: Survey) -> Promise:
        """Loss of all recordings of a person."""
        one = exact("recording", self.epsilon)
        return Promise(of_person(one, corpus.most(), self.name), (), PUBLIC, (one,))

    def release(
        self, corpus: Dataset[Recording], survey: Survey, unit: Unit, draws: Draws
    ) -> Iterator[tuple[Part, Recording]]:
        """Each whole."""
        for part in unit.parts:
            own = _on_public_times(corpus.load(part), self.calibration)
            for released in privatize_whole([own], self.calibration, self.epsilon):
                yield part, released.recording
