"""Figures of a public judge of tasks, as a calibration stores them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import CalibrationError
from eyestream_lab.words.decision import Judge

Array = NDArray[np.float64]

_LONGEST = 64


@dataclass(frozen=True, eq=False, repr=False)
class WordTables:
    """A judge (`eyestream_lab.words.decision.Judge`) of all features; a feature without spread is a constant."""

    tasks: NDArray[np.uint8]
    """Names of the K tasks in UTF-8, with a line end between two."""
    mean: Array
    """(F,) of the public levels of chunks, in residual rows."""
    sd: Array
    """(F,)."""
    weights: Array
    """(K, F) of standardised levels."""
    bias: Array
    """(K,)."""

    @classmethod
    def of(cls, judge: Judge, active: NDArray[np.bool_]) -> "WordTables":
        """The tables of a judge of the features that are `active` (F,), whose tasks have names of one line."""
        text = np.frombuffer("\n".join(judge.tasks).encode(), np.uint8)
        mean, sd, weights = np.zeros(len(active)), np.zeros(len(active)), np.zeros((len(judge.tasks), len(active)))
        mean[active], sd[active], weights[:, active] = judge.mean, judge.sd, judge.weights
        return cls(text, mean, sd, weights, judge.bias)

    @property
    def scale(self) -> Array:
        """(F,) `sd`."""
        return self.sd

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tasks; raises CalibrationError where they are no text."""
        try:
            return tuple(self.tasks.tobytes().decode().split("\n"))
        except UnicodeDecodeError:
            raise CalibrationError("the names of the tasks are no text") from None

    def check(self, features: int, n: int) -> None:
        """Raise CalibrationError when the figures are not of so many features, or the names not of the tasks."""
        check_tasks(self.names)
        if self.mean.shape != (features,):
            raise CalibrationError(f"the judge of the calibration is not of {features} features")
        self.judge(np.flatnonzero(self.sd > 0))

    def judge(self, features: NDArray[np.intp]) -> Judge:
        """The judge of these features alone; the others count as their public mean."""
        kept = (self.mean[features], self.sd[features], self.weights[:, features])
        return Judge(self.names, *kept, self.bias)


def check_tasks(names: Sequence[str]) -> None:
    """Raise CalibrationError unless these are names of tasks, each once, as applications read them."""
    for name in names:
        if not (1 <= len(name) <= _LONGEST and name.isprintable() and name == name.strip()):
            raise CalibrationError(f"a task needs a name of 1 to {_LONGEST} letters in one line, not {name!r}")
    if len(set(names)) != len(names) or len(names) < 2:
        raise CalibrationError("a judge needs the names of at least two tasks, each once")
