"""One decision word of a session or a chunk: what a public judge takes it for, released by randomised response.

A *judge* is public: for each of 2 to 64 tasks a linear score of the mean of residual rows, and the task with the
largest score is the word. It learned from public, labelled people. A *span* is what one word is of: all rows of a
session, or those of a chunk.

**Law.** Of K words the released one is (word + s) modulo K, where s is each of 1 .. K - 1 with probability a, else 0:

    a = ceil(2^128 / (e^epsilon + K - 1)) / 2^128,    and  (1 - (K - 1) a) / a <= e^epsilon.

This is Warner's randomised response (JASA 60, 1965; for K words Kairouz, Bonawitz, Ramage, ICML 2016), with integers:
the shift is drawn from 128 uniform bits by comparing and dividing, and the work does not depend on the word.

**Guarantee.** Neighbours: two spans that differ in any way, the history and the released past being the same. Whatever
a span holds, also NaN and infinities, it has one of K words, so the odds of every output differ at most by e^epsilon:
pure epsilon of one span. A session of several words is bounded by their sum. A change in an *earlier* session may
change the words of all later ones of its pseudonym, and the sum over these bounds it (`TASKS.md`).
"""

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from eyestream.core.charge import spendable
from eyestream.core.noise import Bits, Noise
from eyestream.errors import CalibrationError, ConfigError
from eyestream_lab.words.classes import SHRINKAGE, means_and_within

Array = NDArray[np.float64]

_DENOMINATOR = 2**128
_PRECISION = 120
_OUTWARD = Decimal(1) + Decimal(10) ** -100
_LEAST, _MOST = 1e-6, 64.0
"""Bounds of epsilon: below, the integers of the law have no room. Above, they protect nothing."""
_WIDEST = 64
_FAR = 1e9
"""Residual values count no more than this, so that sums of them are finite."""


class DecisionLaw:
    """The shift of one released word.

    Parameters
    ----------
    words
        K, 2 to 64.
    epsilon
        Of one span, replace-one, for every possible input.

    Attributes
    ----------
    shape : (1,) of a draw.
    keep : probability that a word is released as it is, exact.
    gain : factor by which a released word raises the chance of guessing anything about its span, exact
        (`eyestream.core.leakage`): every word is likeliest from itself, so it is K times `keep`.

    Raises
    ------
    ConfigError
        A number is out of range.
    """

    shape = (1,)

    def __init__(self, words: int, epsilon: float) -> None:
        if not 2 <= words <= _WIDEST:
            raise ConfigError(f"a decision has 2 to {_WIDEST} words, not {words}")
        if not spendable(_LEAST) <= epsilon <= _MOST:  # a mechanism has its epsilon rounded down so
            raise ConfigError(f"epsilon of a decision must lie between {_LEAST:g} and {_MOST:g}, not {epsilon}")
        self.words = words
        with localcontext() as context:
            context.prec = _PRECISION
            exact = _DENOMINATOR / (Decimal(epsilon).exp() + words - 1)
            self._each = math.ceil(exact * _OUTWARD)
        self.keep = Fraction(_DENOMINATOR - (words - 1) * self._each, _DENOMINATOR)
        self.gain = words * self.keep

    def sample(self, bits: Bits) -> NDArray[np.int64]:
        """One draw: the shift, 0 to K - 1."""
        uniform = int.from_bytes(bits.words(4).tobytes(), "little")
        return np.array([self.shift(uniform)], dtype=np.int64)

    def shift(self, uniform: int) -> int:
        """That `uniform`, 0 to 2^128 - 1, stands for; a function of it, so that the law can be counted."""
        number = 1 + uniform // self._each
        return number if number < self.words else 0


@dataclass(frozen=True, eq=False, repr=False)
class Judge:
    """Public scores of tasks.

    Attributes
    ----------
    tasks : K names, as they are released.
    mean, sd : (F,) of the public residual levels; sd above 0.
    weights : (K, F) of standardised levels.
    bias : (K,).

    Raises
    ------
    CalibrationError
        They do not fit together, or are not finite.
    """

    tasks: tuple[str, ...]
    mean: Array
    sd: Array
    weights: Array
    bias: Array

    def __post_init__(self) -> None:
        if self.weights.shape != (len(self.tasks), len(self.mean)) or self.bias.shape != (len(self.tasks),):
            raise CalibrationError("the judge's weights are not of its tasks and features")
        figures = (self.mean, self.sd, self.weights, self.bias)
        if self.sd.shape != self.mean.shape or not all(np.isfinite(one).all() for one in figures):
            raise CalibrationError("the judge's figures do not fit together, or are not finite")
        if not (self.sd > 0).all():
            raise CalibrationError("a feature of the judge has no spread")

    @classmethod
    def learned(cls, levels: Array, tasks: NDArray[np.str_], shrinkage: float = SHRINKAGE) -> "Judge":
        """Linear discriminants of public residual levels (N, F), NaN missing, with the covariance shrunk.

        Raises
        ------
        CalibrationError
            There are fewer than two tasks.
        """
        names = np.unique(tasks)
        if len(names) < 2:
            raise CalibrationError("a judge needs sessions of at least two tasks")
        seen = np.where(np.isfinite(levels).any(axis=0), levels, 0.0)
        mean, sd = np.nanmean(seen, axis=0), np.nanstd(seen, axis=0)
        sd = np.where(sd > 0, sd, 1.0)
        standard = _standard(levels, mean, sd)
        centres, within = means_and_within(standard, tasks, shrinkage)
        weights = np.asarray(np.linalg.solve(within + 1e-9 * np.eye(len(within)), centres.T).T, np.float64)
        return cls(tuple(names.tolist()), mean, sd, weights, -0.5 * (weights * centres).sum(axis=1))

    def word(self, level: Array) -> int:
        """Number of the task of a residual level (F,): of any numbers, one of K; what is missing is the public mean."""
        return int(np.argmax(self.weights @ _standard(level, self.mean, self.sd) + self.bias))


class SpanMean:
    """The mean of a span's residual rows, while its chunks come. Raw data."""

    def __init__(self, features: int) -> None:
        self._sum, self._count = np.zeros((2, features))

    def take(self, residual: Array) -> None:
        """The next chunk of residual rows (F, n), each value held to a public range before it counts."""
        there = np.isfinite(residual)
        self._sum = self._sum + np.clip(np.where(there, residual, 0.0), -_FAR, _FAR).sum(axis=1)
        self._count = self._count + there.sum(axis=1)

    @property
    def level(self) -> Array:
        """(F,), NaN of features without a value."""
        return np.divide(self._sum, self._count, out=np.full_like(self._sum, np.nan), where=self._count > 0)


def decide(judge: Judge, law: DecisionLaw, level: Array, noise: Noise) -> int:
    """The released word of a span with this residual level: the only line that raw data and randomness meet in.

    Raises
    ------
    ConfigError
        The law is not for the judge's words.
    """
    if law.words != len(judge.tasks):
        raise ConfigError(f"the law is for {law.words} words, the judge has {len(judge.tasks)}")
    return (judge.word(level) + int(noise.draw(law)[0])) % law.words


def _standard(levels: Array, mean: Array, sd: Array) -> Array:
    """Levels (.., F) in standard deviations, held to 5 of them; 0, the public mean, where missing."""
    with np.errstate(invalid="ignore", over="ignore"):
        standard = (levels - mean) / sd
    return np.clip(np.where(np.isfinite(standard), standard, 0.0), -5.0, 5.0)
