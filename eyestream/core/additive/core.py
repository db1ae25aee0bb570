"""The one way in which a mechanism adds noise to coordinates of a chunk.

Take the admitted chunk into the space of the ball, project it onto the ball, take coordinates, snap them to integers of
the lattice ball, add integer noise, clamp to a public interval: the private step. Everything after that is
post-processing, composed of parts: shrink (a gain toward the corpus mean), smooth (a filter over the session), clip.
(The projection scales a feature, and so do the coordinates: the one multiplication is done with the snap.) Mechanisms
differ in the transform, the ball, the lattice and the law of the noise.

**Each feature by itself.** A feature is a block, and its share of epsilon is eps_f = epsilon / A: by sequential
composition the chunk costs epsilon. That the losses of all features and of the sampler sum to no more is checked in
rational arithmetic.

**Smoothing.** The mean of a chunk, minus that of the corpus, is u + v_t + noise, u stable within the person
and v transient, its correlation halving from chunk to chunk (variances from the corpus). A Kalman filter estimates
u + v_t from the released chunks of the session; what a released chunk says beyond its mean is shrunk by the gain that
minimises its own expected error. Nothing but released values and public figures enters.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from eyestream.core.additive.leakage import ball_gain
from eyestream.core.additive.signals import Transform
from eyestream.core.calibration import PerFeatureTables
from eyestream.core.frame import Frame
from eyestream.core.leakage import composed_gain
from eyestream.core.noise import Noise
from eyestream.core.noise.laws import COORDINATE_DEVIATION, DIGIT_DEVIATION, LaplaceLaw, ideal_rate
from eyestream.core.portable import total
from eyestream.errors import CalibrationError, ConfigError

Array = NDArray[np.float64]

STEPS = 64
TRANSIENT_POLE = 0.5
"""Correlation of the transient part from a chunk to the next."""
_POLES = np.array([1.0, TRANSIENT_POLE])


class Smoother:
    """Gains of the filter, the same for every session; A features, n rows.

    Parameters
    ----------
    mean
        (A, n) of the corpus' chunks.
    components
        (A, 2) variances of u and v.
    detail
        (A,) variance of a value around the mean of its chunk.
    level_noise, detail_noise
        (A,) variance of the noise in a chunk's mean, and in a value around it.

    Attributes
    ----------
    start : (A, 2) state of the filter before the first chunk: estimates of u and v.
    sd : (A,) expected error of a value late in a session, root mean square.
    """

    def __init__(self, mean: Array, components: Array, detail: Array, level_noise: Array, detail_noise: Array) -> None:
        self.mean = mean
        self.start = np.zeros((len(mean), 2))
        self.detail_gain = (detail / np.maximum(detail + detail_noise, np.finfo(float).tiny))[:, None]
        state = np.zeros((len(mean), 2, 2))
        state[:, [0, 1], [0, 1]] = components
        drive = state * (1 - np.multiply.outer(_POLES, _POLES))
        gains = []
        for turn in range(STEPS):
            if turn:
                state = state * np.multiply.outer(_POLES, _POLES) + drive
            seen = state[:, :, 0] + state[:, :, 1]  # covariance of (u, v) with their sum
            gain = seen / np.maximum(seen[:, 0] + seen[:, 1] + level_noise, np.finfo(float).tiny)[:, None]
            state = state - gain[:, :, None] * seen[:, None, :]
            gains.append(gain)
        self.gains = tuple(gains)
        left = (1 - self.detail_gain[:, 0]) ** 2 * detail + self.detail_gain[:, 0] ** 2 * detail_noise
        unknown = state[:, 0, 0] + state[:, 1, 1] + (state[:, 0, 1] + state[:, 1, 0])
        self.sd = np.sqrt(np.maximum(unknown, 0.0) + left)

    def smooth(self, released: Array, turn: int, state: Array) -> tuple[Array, Array]:
        """Better estimate (A, n) of chunk `turn` of a session from its plain release (A, n), and the state after it."""
        beyond = released - self.mean
        level = beyond.mean(axis=1)
        predicted = state * _POLES if turn else state
        gain = self.gains[min(turn, STEPS - 1)]
        state = predicted + gain * (level - predicted.sum(axis=1))[:, None]
        detail = self.detail_gain * (beyond - level[:, None])
        better: Array = self.mean + state.sum(axis=1)[:, None] + detail
        return better, state


Integers = NDArray[np.int64]


class Lattice(Protocol):
    """Face of the balls of integers."""

    largest: int
    l1_diameter: Integers

    def snap(self, coordinates: Array, factor: Array) -> Integers:
        """Integers of the ball next to real coordinates, both (B, M), times a factor (B, 1)."""
        ...


class Factor(Protocol):
    """Factors that bring residuals (B, m) into balls of radius (B,)."""

    def __call__(self, residual: Array, radius: Array, /) -> Array:
        """(B, 1) factors between 0 and 1."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class PrivateStep:
    """From an admitted chunk (A, n) to noisy integers (B, M); A features are released, in B blocks of M coordinates.

    Attributes
    ----------
    transform : makes a transform with buffers of its own.
    factor : the projection of the residuals.
    radius : (B,) of the ball that the residuals are projected onto.
    lattice, law : the ball of integers, and the noise on them.
    steps : (B, 1) or (B, M) grid steps; 0 for a coordinate of the block that is not released.
    noise_sd : (A,) standard deviation of the noise in a released value before any gain, root mean square over the rows.
    k : coefficients kept of each released feature; empty where nothing is cut.
    """

    transform: Callable[[], Transform]
    factor: Factor
    radius: Array
    lattice: Lattice
    law: LaplaceLaw
    steps: Array
    noise_sd: Array
    k: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Output:
    """Post-processing into a chunk: clip(smooth(offset + gain * chunk(coordinates))), for the released features.

    Attributes
    ----------
    offset : (A, n) what is released when all coordinates are those of the centre.
    gain : (A, 1) shrinkage of each feature; ones for the plain form.
    smoother : filters the chunks of a session.
    clip : (A, 1) lowest and highest released value.
    """

    offset: Array
    gain: Array
    smoother: Smoother | None = None
    clip: tuple[Array, Array] | None = None


class AdditiveCore:
    """Noise on the coordinates of a projected chunk; a core for `eyestream.core.mechanism`.

    Attributes
    ----------
    private, output : what it is made of.
    scale : (B, M) from integers to coordinates, gain included.
    offset : (A, n) of the output; the noise is centred at -1/2, which is made up for here.
    """

    delta = Fraction(0)

    def __init__(self, private: PrivateStep, output: Output) -> None:
        self.private, self.output = private, output
        self.k = private.k
        self.scale = np.broadcast_to(output.gain * private.steps, private.law.shape).copy()
        self.offset = output.offset + private.transform().chunk(0.5 * self.scale)
        self.noise_sd = output.gain[:, 0] * private.noise_sd if output.smoother is None else output.smoother.sd
        self.start = None if output.smoother is None else output.smoother.start

    @property
    def gain(self) -> Fraction:
        """Upper bound on the gain of one chunk, the product over the blocks; computed again each time."""
        lattice, law = self.private.lattice, self.private.law
        _, count = law.shape
        deviation = len(law.digits.words) * DIGIT_DEVIATION

        @functools.cache
        def block(rate: float, l1_diameter: int) -> Fraction:
            radius = Fraction(l1_diameter, 2)
            return ball_gain(rate, [lattice.largest] * count, radius, len(law.digits.words), deviation=deviation)

        return composed_gain(map(block, law.rates.tolist(), lattice.l1_diameter.tolist()))

    def step(self) -> "AdditiveStep":
        """A step that releases, with arrays of its own."""
        return AdditiveStep(self)


class AdditiveStep:
    """One release at a time."""

    def __init__(self, core: AdditiveCore) -> None:
        self.core = core
        self.transform = core.private.transform()
        self.law = core.private.law.own()

    def noisy(self, admitted: Array, noise: Noise) -> Integers:
        """The private step: noisy integers (B, M) of a chunk (A, n); they count from the ball's centre less 1/2."""
        private = self.core.private
        residual = self.transform.residual(admitted)
        factor = private.factor(residual, private.radius)
        integers = private.lattice.snap(self.transform.coordinates(residual), factor)
        integers += noise.draw(self.law)
        return private.law.clamp(integers)

    def plain(self, integers: Integers, out: Array) -> None:
        """Write the features (A, n) that noisy integers stand for to `out`."""
        np.add(self.core.offset, self.transform.chunk(integers * self.core.scale), out=out)

    def release(self, admitted: Array, noise: Noise, turn: int, state: Array | None, out: Array) -> Array | None:
        """See `eyestream.core.mechanism.Step`."""
        self.plain(self.noisy(admitted, noise), out)
        output = self.core.output
        if output.smoother is not None:
            assert state is not None
            out[:], state = output.smoother.smooth(out, turn, state)
        if output.clip is not None:
            np.clip(out, *output.clip, out=out)
        return state


SHOWN_BY = {
    "law": (
        "tests/product/core/test_mechanisms.py::test_neighbours_never_cost_more_than_epsilon",
        "tests/product/core/test_noise_scale.py::test_every_coefficient_has_the_derived_scale",
        "tests/product/core/test_laws.py::test_the_digits_deviate_by_less_than_is_charged",
    ),
    "input": ("tests/product/core/test_mechanisms.py::test_hostile_values_anywhere_give_finite_chunks",),
    "after": ("tests/product/core/test_mechanisms.py::test_release_is_deterministic_in_everything_but_noise",),
    "useful": ("tests/product/core/test_noise_scale.py::test_the_stated_noise_is_the_measured_one",),
    "floats": (
        "tests/product/core/test_ball.py::test_every_input_ends_in_the_taxicab_ball_of_integers",
        "tests/product/core/test_exact.py::test_the_losses_of_all_coordinates_sum_to_at_most_epsilon",
    ),
    "time": ("tests/lab/audit/test_false_alarms.py::test_a_correct_mechanism_is_not_flagged",),
}
"""Tests that show what the guarantee says of each of these mechanisms; see `Entry.shown_by`."""


class PostProcessing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of post-processing, which costs no privacy; None is "not said", and then it is not done.

    Attributes
    ----------
    shrink
        Shrink toward the corpus mean by the gain that minimises the expected error.
    clip
        Clip the released values to the calibrated range.
    smooth
        Filter the chunks of a session (`eyestream.core.additive.core`), which shrinks too.

    Raises
    ------
    ConfigError
        when `smooth` comes with `shrink = false`.
    """

    shrink: bool | None = None
    clip: bool | None = None
    smooth: bool | None = None

    def __post_init__(self) -> None:
        if self.smooth and self.shrink is False:
            raise ConfigError("smooth = true shrinks as well: shrink = false cannot be given beside it")

    @property
    def shrinks(self) -> bool:
        """Whether the plain gain is applied: the filter has gains of its own."""
        return bool(self.shrink and not self.smooth)


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedColumns:
    """The figures of the released features alone, (A, ..) each; see `PerFeatureTables`."""

    centre: Array
    radius: Array
    mean: Array
    spread: Array
    truncation: Array
    overlap: Array
    energy: Array
    stable_variance: Array
    transient_variance: Array
    detail: Array

    @classmethod
    def of(cls, frame: Frame) -> "ReleasedColumns":
        """Those of the frame's calibration.

        Raises
        ------
        CalibrationError
            when it holds figures of another kind.
        """
        tables = frame.calibration.tables
        if not isinstance(tables, PerFeatureTables):
            raise CalibrationError("the calibration holds no figures for features coded by themselves")
        return cls(**{name: getattr(tables, name)[frame.active] for name in cls.__dataclass_fields__})

    def require_corpus(self) -> None:
        """Raise CalibrationError when the figures come from a range and not from a corpus."""
        if not self.spread.all():
            raise CalibrationError("shrink and smooth need figures of a corpus; this calibration has a range alone")

    def gain(self, noise: Array | float, k: NDArray[np.intp]) -> Array:
        """(A, 1) gains toward the corpus mean for N (A,) times squared scale, and k (A,)."""
        self.require_corpus()
        row = np.arange(len(k))
        gain: Array = np.clip(self.overlap[row, k - 1] / (self.energy[row, k - 1] + noise), 0.0, 1.0)[:, None]
        return gain


def given(options: msgspec.Struct) -> dict[str, object]:
    """The options that were said."""
    return {name: value for name, value in msgspec.structs.asdict(options).items() if value is not None}


def law_of(frame: Frame, sensitivity: NDArray[np.int64], count: int, largest: int) -> LaplaceLaw:
    """Discrete Laplace law of every block, from its integer L1 sensitivity (A,) and its count of integers.

    Raises
    ------
    OverflowError
        when epsilon does not fit the arithmetic.
    """
    rates = np.array([ideal_rate(frame.share, float(s), count) for s in sensitivity])
    spent = sum((Fraction(rate) * int(s) for rate, s in zip(rates.tolist(), sensitivity, strict=True)), Fraction(0))
    if spent + len(rates) * count * COORDINATE_DEVIATION > Fraction(frame.epsilon):
        raise OverflowError("the losses of the features sum to more than epsilon")
    return LaplaceLaw(rates, count, largest)


def core_of(frame: Frame, private: PrivateStep, output: Output, post: PostProcessing) -> AdditiveCore:
    """The core of a mechanism that codes features by themselves; `output` with the filter and the clip asked for."""
    smoother = _smoother(ReleasedColumns.of(frame), private) if post.smooth else None
    return AdditiveCore(private, replace(output, smoother=smoother, clip=frame.range if post.clip else None))


def _smoother(columns: ReleasedColumns, private: PrivateStep) -> Smoother:
    columns.require_corpus()
    components = np.stack([columns.stable_variance, columns.transient_variance], axis=1)
    moved = np.broadcast_to(private.law.sd[:, None] * private.steps, private.law.shape) * private.transform().levels()
    level = total((moved * moved).T)  # variance of a chunk's mean
    around = np.maximum(private.noise_sd**2 - level, 0.0)
    return Smoother(columns.mean, components, columns.detail, level, around)
