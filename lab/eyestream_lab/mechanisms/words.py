"""The laboratory's part of task words: its trial. Two neighbours have the words farthest apart there are: two tasks."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.core.noise import Noise
from eyestream_lab.audit.estimate import safe_bound
from eyestream_lab.audit.trials import SHARP, AuditPart, Case, Cells, made_by_hand
from eyestream_lab.words import TaskWords, WordTables
from eyestream_lab.words.decision import Judge
from eyestream_lab.words.history import Remembering

_WORDS = 3
_TOGETHER = 400
"""Releases of either neighbour at once."""


def synthetic_words(n: int, features: int, width: float = 1e9) -> Calibration:
    """A calibration made by hand: three tasks, of which the sign of all features together decides."""
    weights = np.outer([-1.0, 0.0, 1.0], np.ones(features))
    judge = Judge(("left", "none", "right"), np.zeros(features), np.ones(features), weights, np.zeros(_WORDS))
    tables = WordTables.of(judge, np.ones(features, dtype=np.bool_))
    remembering = Remembering(10, np.full(features, 10, dtype=np.int64), np.ones(features), trust=np.inf)
    return made_by_hand(TaskWords.name, n, features, width, tables, takes_off=remembering)


class WordTrial:
    """Released words of two neighbouring chunks, given the same history."""

    def __init__(self, case: Case, noise: Noise | None = None) -> None:
        self._case = case
        self._mechanism: Mechanism = build(synthetic_words(case.n, 2), case.epsilon, noise=noise)

    @property
    def partitions(self) -> Mapping[str, int]:
        """The words."""
        return {"word": _WORDS}

    def sharp(self, draws: int) -> bool:
        """Whether so many draws show `SHARP` of epsilon, by the law that is claimed."""
        keep = float(np.exp(self._case.epsilon) / (np.exp(self._case.epsilon) + _WORDS - 1))
        odds = np.array([keep]), np.array([(1 - keep) / (_WORDS - 1)])
        return safe_bound(*odds, draws) >= SHARP * self._case.epsilon

    def observe(self) -> tuple[Cells, Cells]:
        """Words of `_TOGETHER` releases of either neighbour."""
        low, high = (np.full((2, self._case.n), value) for value in (-50.0, 50.0))
        return {"word": self._words(low)}, {"word": self._words(high)}

    def _words(self, chunk: NDArray[np.float64]) -> NDArray[np.int64]:
        first = self._mechanism.session_after(None)
        first.anchor(np.zeros_like(chunk))
        session = self._mechanism.session_after(first)
        return np.array([int(session.release(chunk).argmax()) for _ in range(_TOGETHER)])


def _few(k: int | None, epsilon: float) -> int:
    return 8_000


def _many(k: int | None, epsilon: float) -> int:
    return 1_000_000


AUDIT = AuditPart(trial=WordTrial, shapes=((2, None),), draws=(_few, _many), synthetic=synthetic_words)
