"""What the mechanisms share that code every feature by itself: one block a feature, each with its share of epsilon.

The share is eps_f = epsilon / A, and by sequential composition the chunk costs epsilon. That the losses of all features
and of the sampler sum to no more is checked in rational arithmetic.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

import msgspec
import numpy as np
from numpy.typing import NDArray

from eyestream.core.additive.core import AdditiveCore, Output, PrivateStep
from eyestream.core.additive.smoothing import Smoother
from eyestream.core.calibration import PerFeatureTables
from eyestream.core.frame import Frame
from eyestream.core.noise.laws import COORDINATE_DEVIATION, LaplaceLaw, ideal_rate
from eyestream.core.portable import total
from eyestream.errors import CalibrationError, ConfigError

__all__ = ["SHOWN_BY", "Columns", "PostProcessing", "core_of", "given", "law_of"]

Array = NDArray[np.float64]

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
        Filter the chunks of a session (`eyestream.core.additive.smoothing`), which shrinks too.

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
class Columns:
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
    def of(cls, frame: Frame) -> "Columns":
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

    def need_corpus(self) -> None:
        """Raise CalibrationError when the figures come from a range and not from a corpus."""
        if not self.spread.all():
            raise CalibrationError("shrink and smooth need figures of a corpus; this calibration has a range alone")

    def gain(self, noise: Array | float, k: NDArray[np.intp]) -> Array:
        """(A, 1) gains toward the corpus mean for N (A,) times squared scale, and k (A,)."""
        self.need_corpus()
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
    smoother = _smoother(Columns.of(frame), private) if post.smooth else None
    return AdditiveCore(private, replace(output, smoother=smoother, clip=frame.range if post.clip else None))


def _smoother(columns: Columns, private: PrivateStep) -> Smoother:
    columns.need_corpus()
    components = np.stack([columns.stable_variance, columns.transient_variance], axis=1)
    moved = np.broadcast_to(private.law.sd[:, None] * private.steps, private.law.shape) * private.transform().levels()
    level = total((moved * moved).T)  # variance of a chunk's mean
    around = np.maximum(private.noise_sd**2 - level, 0.0)
    return Smoother(columns.mean, components, columns.detail, level, around)
