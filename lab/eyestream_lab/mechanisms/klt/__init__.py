"""The laboratory's part of KLT."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from eyestream.core.additive.signals import CHUNKS
from eyestream.core.calibration import Calibration, JointTables
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms.klt import KLT
from eyestream.core.mechanisms.klt.core import JointCore
from eyestream.core.noise import Noise
from eyestream_lab.audit.estimate import response_bound
from eyestream_lab.audit.trials import FAR, SHARP, AuditPart, Case, Cells
from eyestream_lab.correlation.emissions import Emission, any_cells, box_cells, response
from eyestream_lab.mechanisms.additive import synthetic_additive
from eyestream_lab.mechanisms.klt.words import decode, schedule_step
from eyestream_lab.study.ways import Few, Form, StudyPart, Way

Array = NDArray[np.float64]


def synthetic_joint(n: int) -> Calibration:
    """A calibration for KLT made by hand: three independent features, the mean of each a score."""
    size = 3
    tables = JointTables(
        mean=np.zeros(size),
        sd=np.ones(size),
        modes=np.full((1, n), n**-0.5),
        basis=np.eye(size),
        expand=np.eye(size),
        poles=np.array([1.0, 0.5]),
        covariances=np.stack([n * np.eye(size) / 2] * 2),
        weights=np.ones(2),
        residual=np.full(size, 0.5),
    )
    return replace(synthetic_additive(KLT.name, CHUNKS, n, size), tables=tables)


class KltTrial:
    """Chunks at the two ends of the range, as the first of a session; a cell for each code word."""

    def __init__(self, case: Case, noise: Noise | None) -> None:
        self.mechanism = KLT(synthetic_joint(case.n), case.epsilon, noise=noise)
        self._epsilon = case.epsilon
        core = self.mechanism.core
        assert isinstance(core, JointCore)
        self._words = math.prod(len(points) for points in core.schedule.steps[0].points)
        self._chunk = np.full((self.mechanism.features, case.n), FAR)
        self._known: dict[bytes, int] = {}
        self.partitions = {"word": self._words + 1}

    def sharp(self, draws: int) -> bool:
        """By the own word, and by one other."""
        return response_bound(self._words, self._epsilon, draws // 2) >= SHARP * self._epsilon

    def observe(self) -> tuple[Cells, Cells]:
        """Cells of five hundred releases of either neighbour."""
        return self._cells(self._chunk), self._cells(-self._chunk)

    def _cells(self, chunk: Array) -> Cells:
        known, release = self._known, self.mechanism.release
        return {"word": np.array([known.setdefault(release(chunk).tobytes(), len(known)) for _ in range(500)])}


def emission(mechanism: Mechanism, admitted: Sequence[Array]) -> Emission:
    """One release of one of at most 9 admitted chunks (A, n), as `eyestream_lab.correlation.emissions` derives it."""
    core = mechanism.core
    assert isinstance(core, JointCore)
    step = core.step()
    scores = np.array([step.scores(chunk) for chunk in admitted])
    steps = core.schedule.steps
    found = [any_cells(len(scores))] if any(turn.books for turn in steps) else []
    found += [box_cells(scores @ turn.directions.T) for turn in steps if not turn.books]
    return response(float(mechanism.loss.epsilon), np.unique(np.concatenate(found), axis=0))


def read(mechanism: Mechanism, published: Sequence[Array]) -> Few:
    """Means of the published chunks (F, n) of a session, and the first coordinates of its code words in eighths."""
    core = mechanism.core
    assert isinstance(core, JointCore)
    found = decode(mechanism, [chunk.astype(np.float32) for chunk in published])
    sizes = [[len(points) for points in schedule_step(core, turn).points] for turn in range(len(found))]
    least = min(map(len, sizes))
    words = [own.word[:least] * 8 // np.maximum(of[:least], 8) for own, of in zip(found, sizes, strict=True)]
    means = np.array([chunk[mechanism.frame.active].mean(axis=1) for chunk in published])
    return Few(means, np.maximum(np.array(words), 0))


AUDIT = AuditPart(
    trial=KltTrial,
    shapes=((4, None),),
    draws=(lambda k, epsilon: {1.0: 70_000, 5.0: 100_000}.get(epsilon, 10_000), lambda k, epsilon: 1_000_000),
    synthetic=lambda n, features, width: synthetic_joint(n),
)

STUDY = StudyPart(
    ways={
        "klt": Way(KLT.name, {"ranks": False}, (Form("klt", "#D55E00", "o"),), place=0),
        "klt-one": Way(KLT.name, {"ranks": False, "shed_identity": 1.0}, (Form("klt-one", "#8C2D04", "s"),), place=1),
        "klt-mapped": Way(KLT.name, {}, (Form("klt-mapped", "#CC79A7", "D"),), place=2, traced=True),
        "klt-anchored": Way(
            KLT.name, {"anchored": True}, (Form("klt-anchored", "#6A3D9A", "^"),), place=3, traced=True
        ),
    },
    limit={"ranks": False},
    white_box="eyestream_lab.mechanisms.klt.word_likelihood:WHITE_BOX",
    read=read,
)
