"""Asked features: one to three features that an application names, and the whole epsilon of a chunk spent on them.

**Neighbours**: two sessions that differ in one chunk after its baseline, in any way (replace-one), all features of a
row together. **Unit**: one chunk of one device. Which features are asked for is public, and fixed before a session.

A chunk becomes one change for each asked feature: rows less the baseline (`eyestream.core.anchor`; of a rate of blinks
a square root is coded), held to a public clip, their mean. The clip stands behind the baseline, so a constant cancels.
A chunk without a value, also for want of a baseline, counts as the change that is expected: every chunk has a word.

A hidden Markov chain of each feature says, from *released* words, how its change is spread (`asked.chain`). Public
borders cut that into cells, and the numbers of the d cells are the chunk's word w, one of K. The word
meets k-ary randomised response once, with the whole epsilon of the chunk (`eyestream.core.noise.response`).

**Loss.** Let h be the words that the session has released. Borders are a function g(h) of them and of public figures,
so w = f(chunk, g(h)). For any chunks x, x' and any word o, P(o | x, h) <= e^epsilon P(o | x', h): the response holds
that of any two words, whatever f is. What is released is a function of (h, o) alone: post-processing. Losses of chunks
add up, and a row of the baseline, which enters each f, costs the sum over the session. No floating-point number is in
this: f and g may be any functions.

**Use.** A released value is the mean of the chain's belief after the word, the change since the baseline in the
feature's unit: the estimate of least mean square error, if the chain is right. A root's change is read as if its first
minute had been the corpus' mean. With `later` each chunk's word is used to publish the chunk before: what its word and
the next one tell of it. That is a function of the same words, so nothing above changes.
"""

from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.frame import Frame, Page
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms.asked.chain import GRID, MOST, Chains, readings_of, words_of
from eyestream.core.mechanisms.asked.tables import AskedTables
from eyestream.core.noise import Noise
from eyestream.core.noise.response import ResponseLaw
from eyestream.core.portable import total, transposed
from eyestream.core.protection import Fact, Protection
from eyestream.core.release_type import InputDomain, OutputSchema, Summaries
from eyestream.errors import CalibrationError, ConfigError, meant

Array = NDArray[np.float64]

_MOST_FEATURES = 3
_MOST_CELLS = 32
_CELLS = (Decimal("1.25"), Decimal("0.95"), Decimal("0.88"))
"""Cells of each of one, two and three features, over e^(epsilon / (d + 2))."""


class AskedOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of asked features.

    Attributes
    ----------
    features
        Names of the one to three features that are released; public.
    later
        Whether each chunk gives the one before, smoothed by its own word; public.
    """

    features: list[str] | None = None
    later: bool | None = None


class _Page(Page):
    """Takes chunks in as they are, but for the clip: a mean needs no imputation."""

    def __init__(self, frame: Frame, shape: tuple[int, int]) -> None:
        super().__init__(frame, shape)
        self._bounds = frame.range

    def admit(self, chunk: Array) -> Array:
        """(d, n) the asked features of a chunk (F, n), inside the clip; NaN where missing."""
        rows = chunk.take(self._active, axis=0)
        held: Array = np.clip(np.where(np.isfinite(rows), rows, np.nan), *self._bounds)
        return held


class _Core:
    """A core for `eyestream.core.mechanism`, and its own step: it needs no arrays to work."""

    k, delta = (), Fraction(0)

    def __init__(self, frame: Frame, tables: AskedTables, *, later: bool) -> None:
        cells = cells_of(frame.epsilon, len(frame.active))
        self.chains = Chains(tables, frame.active, cells, ResponseLaw(cells, frame.epsilon).replace)
        self.laws = [ResponseLaw(self.chains.cells(turn).tolist(), frame.epsilon) for turn in range(len(cells))]
        self.law = self.laws[0]
        self.gain = self.law.gain
        self.start = self.chains.start
        of, step_s = frame.calibration, frame.n / frame.calibration.rate_hz
        names, units = (tuple(every[feature] for feature in frame.active) for every in (of.names, of.units))
        self.later = later
        published = tuple(f"{name}_before" for name in names) if later else names
        self.schema = OutputSchema(published, units, (len(names), 1), step_s)
        self._unit = tables.unit[frame.active]
        self.values = transposed(tables.changes(np.repeat(GRID[:, None], frame.features, axis=1)))[frame.active]
        self._residual = tables.residual[frame.active]
        self.noise_sd: Array = np.sqrt(self.chains.expected(self.values, later=later) + self._residual)

    @cached_property
    def follows(self) -> Array:
        """(d,) correlation of a released change with the true one within a session, as the chains have it."""
        return self.chains.follows(self.values, self._residual)

    def step(self) -> "_Core":
        return self

    def changes(self, clipped: Array, expected: Array) -> Array:
        """(d,) change of a clipped chunk (d, n), in units; where all of it is missing, what is expected."""
        there = np.isfinite(clipped)
        rows = total(np.where(there, clipped, 0.0).T)
        count = there.sum(axis=1)
        mean = np.where(count > 0, rows / np.maximum(count, 1) / self._unit, expected)
        held: Array = np.minimum(np.maximum(mean, -MOST), MOST)
        return held

    def release(self, admitted: Array, noise: Noise, turn: int, state: Array | None, out: Array) -> Array:
        """See `eyestream.core.mechanism.Step`; the state is the belief after the released words."""
        assert state is not None
        predicted = self.chains.onward(state) if turn else state
        borders = self.chains.borders(predicted, turn)
        word = words_of(self.changes(admitted, readings_of(predicted)), borders)
        drawn = noise.draw(self.laws[turn % len(self.laws)])
        released = np.where(drawn[0], drawn[1:], word)  # the only line that raw data and randomness meet in
        belief = self.chains.told(predicted, borders, released)
        read = belief
        if self.later:
            read = self.chains.smoothed(state, belief) if turn else state
        out[:, 0] = self.read(read)
        return belief

    def read(self, belief: Array) -> Array:
        """(d,) what is published under a belief, in the features' units."""
        return readings_of(belief, self.values)


def cells_of(epsilon: float, features: int) -> list[int]:
    """Cells of each feature: at epsilon 4.8, 6 of one feature, 3 x 3 of two, and 2 x 2 x 3 of three by turns.

    c cells of each of d features leave about a / c^2 of a variance, and c^d e^-epsilon of all words are replaced. The
    sum is least where c goes as e^(epsilon / (d + 2)); the factors are those that leave least of normal numbers.
    """
    context = Context(prec=40)
    power = context.divide(Decimal(min(epsilon, 60.0)), features + 2).exp(context)
    best = context.multiply(_CELLS[features - 1], power)
    placed = (context.add(best, context.divide(2 * place + 1, 2 * features)) for place in range(features))
    return [max(2, min(_MOST_CELLS, int(one))) for one in placed]


class Asked(Mechanism):
    """The change of one to three asked features since the session's baseline, one value a chunk.

    Parameters
    ----------
    calibration, epsilon, noise
        As for every mechanism.
    features
        Of `AskedOptions`; must be given.

    Raises
    ------
    ConfigError
        when the features are none, too many, unknown, or cannot be measured.
    CalibrationError
        when the calibration was made for another mechanism.
    """

    name = "asked"
    domain: ClassVar[InputDomain] = Summaries()
    protection = Protection(
        law="each chunk is one word out of K, released by k-ary randomised response with the whole epsilon: with a "
        "probability that epsilon fixes it is replaced by a word drawn from all K",
        exact="the probability is an integer multiple of 2^-128, rounded toward more privacy, and enough for the word "
        "drawn least often: the law is exact integers. Floating point decides which word a chunk has and what a word "
        "stands for; neither is part of the proof, which holds for every word",
        sampler="nothing is charged for the sampler: what is drawn has the law itself",
        floating_point="integers",
        use="how one to three features change through a session. It is not for levels: these are subtracted",
    )

    def __init__(
        self,
        calibration: Calibration,
        epsilon: float,
        *,
        noise: Noise | None = None,
        features: Sequence[str] | None = None,
        later: bool | None = None,
    ) -> None:
        frame, tables = Frame.of(self.name, calibration, epsilon), calibration.tables
        if not isinstance(tables, AskedTables) or calibration.anchor is None:
            raise CalibrationError("a calibration of asked features needs chains and a baseline")
        asked = _asked(calibration, features or ())
        frame = Frame(calibration, frame.epsilon, np.array(asked, dtype=np.intp))
        self._own = _Core(frame, tables, later=bool(later))
        options: dict[str, object] = {"features": list(features or ())} | ({"later": True} if later else {})
        super().__init__(frame, self._own, noise, options)

    def page(self) -> Page:
        """The arrays in which one chunk is taken in and put together."""
        return _Page(self.frame, self.schema.shape)

    @property
    def follows(self) -> Array:
        """(d,) correlation to expect of a released change with the true one; people outside had up to 0.13 less."""
        return self._own.follows

    def facts(self, seconds: float) -> tuple[Fact, ...]:
        """Facts for a guarantee, of this mechanism alone; its chunks are of so many seconds."""
        names = [self.calibration.names[feature] for feature in self.frame.active]
        words = (
            f"{', '.join(names)}: the whole epsilon of a chunk is spent on {'them' if len(names) > 1 else 'it'}. No "
            "other feature is released. Which features are asked for is public: it must be fixed before a session, "
            "without a look at raw data. What an application asks for can be a trait: how often somebody blinks, and "
            "how wide pupils are, were seen to tell people apart"
        )
        facts = [Fact("asked features", words, {"features": names})]
        if "later" in self.options:
            said = (
                "a chunk's values are of the chunk before it, smoothed by its own word; the first one's are of nobody"
            )
            facts.append(Fact("later", said, {"later_chunks": 1}))
        return (*facts, *super().facts(seconds))


def _asked(calibration: Calibration, features: Sequence[str]) -> list[int]:
    """Indices of the asked features; raises ConfigError."""
    expected = f"features: expected one to {_MOST_FEATURES} names of features"
    if not features:
        raise ConfigError(f'{expected}, as in features = ["blink_rate"]; none is given')
    if len(features) > _MOST_FEATURES:
        raise ConfigError(
            f"{expected}, not {len(features)}: epsilon would be too thin. For more take a calibration of all features, "
            "such as everyday-klt-anchored-64, and name those that matter in focus"
        )
    for number, name in enumerate(features):
        if name not in calibration.names:
            raise ConfigError(f"{expected}, not {name!r}{meant(name, calibration.names)}")
        if name in features[:number]:
            raise ConfigError(f"{expected}, each once; {name} is there twice")
        if calibration.constant[calibration.names.index(name)]:
            raise ConfigError(
                f"features: {name} does not vary in the recordings that the calibration was made from, or their "
                "tracker cannot measure it"
            )
    return [calibration.names.index(name) for name in features]
