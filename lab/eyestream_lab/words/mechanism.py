"""Task words: each chunk is one word, released as how likely each task is now.

**What is released.** A public judge takes the mean of a chunk's residual rows (`eyestream_lab.words.history`) for
one of K tasks. This word is released by k-ary randomised response (`eyestream_lab.words.decision`), with the whole
epsilon of the chunk. The released chunk has the shape (K, 1): for each task the chance that the judge has said it,
where before every word was as likely as another (a uniform prior). So the released word has the value `keep`, every
other one (1 - keep) / (K - 1). The values are a public function of the released word, and nothing else is in them.

Whoever has several chunks of a session and takes their words for independent, multiplies the values and divides by
their sum. Whoever has another prior multiplies with it first. The judge itself errs: the values say what the noise
leaves open, not how often the judge is right (`docs/tasks-figures.md` has figures).

**Neighbours** are two chunks that differ in any way (replace-one), the rows of earlier sessions and the released past
being the same. Whatever the rows are, they have one of K words. So the odds of every release differ by at most
e^epsilon: pure epsilon of one chunk. A change in an earlier session of the pseudonym can change the words of all later
ones (`lab/eyestream_lab/words/TASKS.md`, section 5).

**Error.** Let q = (1 - keep) / (K - 1), and let the judge's word be uniform. Beside the truth, which is 1 for the
judge's word and 0 for the others, a value is `keep` with the chance 1 / K and q otherwise. Its mean squared error is

    (keep (keep - 1)^2 + (1 - keep) (q - 1)^2 + (1 - keep) keep^2 + (K - 1 - (1 - keep)) q^2) / K.
"""

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.frame import Frame, Page
from eyestream.core.mechanism import Mechanism
from eyestream.core.noise import Noise
from eyestream.core.protection import Protection
from eyestream.core.release_type import InputDomain, OutputSchema, Summaries
from eyestream.errors import CalibrationError
from eyestream_lab.words.decision import DecisionLaw, decide
from eyestream_lab.words.history import Remembering
from eyestream_lab.words.tables import WordTables

Array = NDArray[np.float64]


class _Core:
    """Public figures; releasing needs no arrays of its own."""

    k: tuple[int, ...] = ()
    start: Array | None = None
    delta = Fraction(0)

    def __init__(self, frame: Frame, tables: WordTables) -> None:
        self.judge = tables.judge(frame.active)
        count = len(self.judge.tasks)
        self.law = DecisionLaw(count, frame.epsilon)
        self.gain = self.law.gain
        keep = float(self.law.keep)
        other = (1 - keep) / (count - 1)
        self.chances = np.where(np.eye(count) > 0, keep, other)  # row: of each task, given the released word
        own = keep * (keep - 1) ** 2 + (1 - keep) * (other - 1) ** 2
        rest = (1 - keep) * keep**2 + (count - 2 + keep) * other**2
        step_s = frame.n / frame.calibration.rate_hz
        self.schema = OutputSchema(self.judge.tasks, ("probability",) * count, (count, 1), step_s)
        self.noise_sd: Array = np.full(count, math.sqrt((own + rest) / count))

    def step(self) -> "_Core":
        return self

    def release(self, admitted: Array, noise: Noise, turn: int, state: Array | None, out: Array) -> Array | None:
        out[:, 0] = self.chances[decide(self.judge, self.law, admitted.mean(axis=1), noise)]
        return state


class TaskWords(Mechanism):
    """One word a chunk: which of K public tasks it is taken for."""

    name = "task-words"
    domain: ClassVar[InputDomain] = Summaries()
    protection = Protection(
        law="k-ary randomised response on one word, the task that a public judge takes the chunk for: each other word "
        "has the same probability, which epsilon fixes",
        exact="the probability of each other word is an integer multiple of 2^-128, rounded toward more privacy; no "
        "floating point in the proof",
        sampler="nothing is charged for the sampler: what is drawn has the law itself",
        floating_point="integers",
    )

    def __init__(self, calibration: Calibration, epsilon: float, *, noise: Noise | None = None) -> None:
        frame, tables = Frame.of(self.name, calibration, epsilon), calibration.tables
        if not isinstance(tables, WordTables) or not isinstance(calibration.takes_off, Remembering):
            raise CalibrationError("a calibration of task-words needs a judge and a history")
        self.remembering = calibration.takes_off
        super().__init__(frame, _Core(frame, tables), noise)

    def judged(self, residual: Array) -> str:
        """The judge's word of a chunk of residual rows (F, n), without noise: of public people alone."""
        judge = self.core.judge  # type: ignore[attr-defined]
        level = Page(self.frame).admit(residual).mean(axis=1)
        return str(judge.tasks[judge.word(level)])
