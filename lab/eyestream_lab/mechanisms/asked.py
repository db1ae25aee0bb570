"""The laboratory's part of asked features: a trial of neighbours as far up and down as can be, and a reader."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms.asked import Asked
from eyestream.core.mechanisms.asked.chain import parts_of
from eyestream.core.mechanisms.asked.tables import AskedTables
from eyestream.core.noise import Noise
from eyestream_lab.audit.estimate import safe_bound
from eyestream_lab.audit.trials import SHARP, AuditPart, Case, Cells, made_by_hand
from eyestream_lab.calibration.anchors import anchor_of
from eyestream_lab.study.ways import Few, StudyPart

Array = NDArray[np.float64]

_TOGETHER = 100


def synthetic_asked(n: int, features: int, width: float = 1e9) -> Calibration:
    """A calibration made by hand: equal features whose chunk means go a tenth of the width from chunk to chunk."""
    ones, steps = np.ones(features), np.ones((features, 1))
    tables = AskedTables(width / 10 * ones, 0 * ones, 0 * ones, ones, steps, 0.5 * steps, steps)
    anchor = anchor_of(-width * ones, width * ones, 0 * ones, n, 2.0)
    return made_by_hand(Asked.name, n, features, width, tables, takes_off=anchor)


class AskedTrial:
    """The first chunk of a session, of two features; a cell for each state that its word leads to."""

    def __init__(self, case: Case, noise: Noise | None = None) -> None:
        calibration = synthetic_asked(case.n, 2)
        self.mechanism = Asked(calibration, case.epsilon, noise=noise, features=calibration.names)
        self._epsilon, core = case.epsilon, self.mechanism.core
        chains = core.chains  # type: ignore[attr-defined]
        borders = chains.borders(core.start, 0)
        words = product(*map(range, chains.cells(0)))
        self._cells = {chains.told(core.start, borders, np.array(word)).tobytes(): i for i, word in enumerate(words)}
        self._words = len(self._cells)
        self.partitions = {"word": 3 * self._words}  # more, for what a wrong coder makes

    def sharp(self, draws: int) -> bool:
        """By the own word, and by one other."""
        other = 1 / (np.exp(self._epsilon) + self._words - 1)
        p = np.array([other * np.exp(self._epsilon), 1 - other])
        return safe_bound(p, np.array([other, 1 - p[0]]), draws // 2) >= SHARP * self._epsilon

    def observe(self) -> tuple[Cells, Cells]:
        """Cells of some releases of either neighbour."""
        return self._observed(-1e300), self._observed(1e300)

    def _observed(self, value: float) -> Cells:
        found, chunk = np.empty(_TOGETHER, dtype=np.int64), np.full((2, self.mechanism.n), value)
        for number in range(_TOGETHER):
            session = self.mechanism.session()
            while session.awaits_baseline:
                session.anchor(0 * chunk)
            session.release(chunk)
            state = session.state
            assert state is not None
            cell = self._cells.setdefault(state.tobytes(), len(self._cells))
            found[number] = min(cell, 3 * self._words - 1)
        return {"word": found}


AUDIT = AuditPart(
    trial=AskedTrial,
    shapes=((64, None),),
    draws=(lambda k, epsilon: 2_000, lambda k, epsilon: 200_000),
    synthetic=synthetic_asked,
)


def read(mechanism: Mechanism, published: Sequence[Array]) -> Few:
    """Words of a session, from the chunks (d, 1) that were published: by the public chain each word has one value."""
    core: Any = mechanism.core
    chains, belief, words, likely = core.chains, core.start, [], []
    for turn, chunk in enumerate(published):
        predicted = chains.onward(belief) if turn else belief
        borders = chains.borders(predicted, turn)
        word = _nearest(core, predicted, borders, turn, chunk[:, 0])
        belief = chains.told(predicted, borders, word)
        words.append(word * 8 // max(borders.shape[1] + 1, 8))
        likely.append(chains.odds(predicted, borders, word))
    return Few(np.array(published)[:, :, 0], np.array(words), np.array(likely))


def _nearest(core: Any, predicted: Array, borders: Array, turn: int, seen: Array) -> NDArray[np.int64]:
    """The word (d,) whose readings are nearest to what was published (d,); all words are tried at once."""
    parts = parts_of(borders)
    held, sums = (np.einsum("fg,fgc->fc", part, parts) for part in (predicted, predicted * core.values))
    words = np.indices(core.chains.cells(turn)).reshape(len(held), -1)
    own, read = (np.take_along_axis(part, words, axis=1) for part in (held, sums))
    kept, drawn = 1.0 - core.law.replace, core.law.replace / words.shape[1]
    kept = kept * np.array([np.delete(own, feature, axis=0).prod(axis=0) for feature in range(len(held))])
    mean = (predicted * core.values).sum(axis=1)[:, None]
    read = (drawn * mean + kept * read) / (drawn + kept * own)
    return words[:, np.abs(read - seen[:, None]).max(axis=0).argmin()]


STUDY = StudyPart(read=read)
