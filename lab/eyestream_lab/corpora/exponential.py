"""Exponential-DP on feature rows (Steil et al., ETRA 2019, as given by David-John, Butler, Jain, ETRA 2022).

**As printed it is not differentially private.** Its noise is r = +-ln(y) / (lambda t_max), where y is a draw of the
exponential law with scale 1 / lambda and lambda = epsilon / (2 t_max delta_i): the logarithm of an exponential draw.
Its density falls doubly exponentially on one flank, so the ratio of two densities is not bounded by e^epsilon. And
delta_i is read from the data. It is here for comparisons, and is refused unless the caller says `as_published`.

**Repaired (`exponential-dp`)**: the exponential mechanism with utility -|x - r| is Laplace noise. A person's sequence
of one feature at one task, padded to the longest, t_max rows, changes by at most t_max (hi - lo) in L1 when it is
exchanged, with a public range [lo, hi]. So noise of scale t_max (hi - lo) / epsilon on every value is
epsilon-differentially private for that person, feature and task. (Steil's lambda has twice this scale, which the
exponential mechanism needs in general and Laplace noise does not.) Noise is made of integers by the house's own exact
law, on a grid of 1024 steps over the range.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.kinds import NoClaim
from eyestream.core.noise.laws import LaplaceLaw, ideal_rate
from eyestream.errors import ConfigError
from eyestream.rim.files.recordings import Recording
from eyestream_lab.corpora.claims import MISSING, ROWS, WHO, Promise, exact, of_person
from eyestream_lab.corpora.corpus import Dataset, Part, Survey
from eyestream_lab.corpora.draws import Draws
from eyestream_lab.corpora.ksame import filled
from eyestream_lab.corpora.streams import check_calibration
from eyestream_lab.corpora.system import Unit, tasks_of

Array = NDArray[np.float64]
LEVELS = 1024


def _longest(survey: Survey, unit: Unit, every: int) -> int:
    return -(-survey.longest(unit.parts) // every)


def _times(rows: int, every: int, rate_hz: float) -> Array:
    """Seconds of the rows that are kept."""
    return np.asarray(np.arange(rows) * (every / rate_hz), np.float64)


def _as_it_is(every: int) -> tuple[str, ...]:
    """The claim about the number of rows, which the number of released rows tells."""
    return (ROWS,) if every == 1 else (f"How many rows each recording has, divided by {every}.",)


def _check(epsilon: float, every: int, name: str) -> None:
    if not (np.isfinite(epsilon) and epsilon > 0):
        raise ConfigError(f"{name}: epsilon must be positive and finite, not {epsilon:g}")
    if every < 1:
        raise ConfigError(f"{name}: every must be 1 or more, not {every}")


@dataclass(frozen=True)
class ExponentialDP:
    """Laplace noise, calibrated for a person's whole sequence.

    Attributes
    ----------
    calibration
        Public ranges.
    epsilon
        Of one person, one feature and one task.
    every
        One row in so many is kept, which lowers t_max and the noise.
    """

    calibration: Calibration
    epsilon: float
    every: int = 1
    name = "exponential-dp"
    released_kind = None

    def __post_init__(self) -> None:
        _check(self.epsilon, self.every, self.name)

    @property
    def options(self) -> dict[str, object]:
        """Options as given."""
        return {"calibration": self.calibration.content_hash, "epsilon": self.epsilon, "every": self.every}

    def law(self, rows: int) -> LaplaceLaw:
        """Law of the noise on sequences of `rows` rows, all released features together, in steps of their grids."""
        active = int((~self.calibration.constant).sum())
        try:
            rate = ideal_rate(self.epsilon, float(rows * LEVELS), rows)
            return LaplaceLaw(np.full(active, rate), rows, LEVELS)
        except OverflowError as error:
            raise ConfigError(f"{self.name}: epsilon {self.epsilon:g} with {rows} rows: {error}") from None

    def units(self, corpus: Dataset[Recording], survey: Survey) -> list[Unit]:
        """A task each."""
        check_calibration(self.calibration, corpus, survey)
        units = tasks_of(corpus)
        for unit in units:
            self.law(_longest(survey, unit, self.every))
        return units

    def promise(self, corpus: Dataset[Recording], survey: Survey) -> Promise:
        """Pure differential privacy of a person."""
        features, one = int((~self.calibration.constant).sum()), exact("feature of a recording", self.epsilon)
        return Promise(of_person(one, features * corpus.most(), self.name), (), (WHO, *_as_it_is(self.every)), (one,))

    def release(
        self, corpus: Dataset[Recording], survey: Survey, unit: Unit, draws: Draws
    ) -> Iterator[tuple[Part, Recording]]:
        """One recording after the other."""
        calibration, longest = self.calibration, _longest(survey, unit, self.every)
        active, law = ~calibration.constant, self.law(longest)
        step = (calibration.hi - calibration.lo)[active] / LEVELS
        for part in unit.parts:
            recording = corpus.load(part)
            rows = filled(recording.features[:: self.every])
            rows = np.clip(np.where(np.isfinite(rows), rows, calibration.fill), calibration.lo, calibration.hi)
            grid = np.rint((rows[:, active] - calibration.lo[active]) / step).astype(np.int64)
            noisy = law.clamp(_padded(grid, longest).T + draws.draw(law))[:, : len(rows)]
            released = np.repeat(calibration.fill[None, :], len(rows), axis=0)
            released[:, active] = calibration.lo[active] + noisy.T * step
            yield part, Recording(_times(len(rows), self.every, self.calibration.rate_hz), released, recording.names)


def _padded(grid: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """Rows (m, A) padded to `length` by the last one."""
    return np.concatenate((grid, np.repeat(grid[-1:], length - len(grid), axis=0)))


def printed_noise(shape: tuple[int, int], rate: Array, rows: int, draws: Draws) -> Array:
    """+-ln(y) / (rate t_max), y exponential with scale 1 / rate: as printed, for rates (F,) of the columns."""
    sign, uniform = draws.uniform(2, *shape)
    drawn = -np.log1p(-np.minimum(uniform, 1.0 - 2.0**-53)) / rate
    return np.asarray(np.where(sign < 0.5, -1.0, 1.0) * np.log(np.maximum(drawn, 1e-300)) / (rate * rows))


@dataclass(frozen=True)
class ExponentialAsPrinted:
    """The printed noise, without any guarantee.

    Attributes
    ----------
    epsilon
        The number that the paper calls so, of a feature.
    as_published
        Whether the caller knows that it is not differentially private.
    every
        One row in so many is kept.
    """

    epsilon: float
    as_published: bool = False
    every: int = 1
    name = "exponential-dp-as-printed"
    released_kind = None

    def __post_init__(self) -> None:
        _check(self.epsilon, self.every, self.name)
        if not self.as_published:
            raise ConfigError(
                f"{self.name}: is not differentially private for any epsilon. Take exponential-dp, or say as_published "
                "to compare with the paper"
            )

    @property
    def options(self) -> dict[str, object]:
        """Options as given."""
        return {"epsilon": self.epsilon, "every": self.every, "as_published": True}

    def units(self, corpus: Dataset[Recording], survey: Survey) -> list[Unit]:
        """A task each."""
        survey.check_rate()
        return tasks_of(corpus)

    def promise(self, corpus: Dataset[Recording], survey: Survey) -> Promise:
        """None."""
        return Promise(
            NoClaim("the published noise does not bound what a release reveals, though the text says that it does"),
            ("The ranges of the features are read from the data, and a feature that does not vary is released.",),
            (WHO, *_as_it_is(self.every), MISSING),
        )

    def release(
        self, corpus: Dataset[Recording], survey: Survey, unit: Unit, draws: Draws
    ) -> Iterator[tuple[Part, Recording]]:
        """One recording after the other; two passes."""
        longest = _longest(survey, unit, self.every)
        lo, hi = np.full(len(survey.names), np.inf), np.full(len(survey.names), -np.inf)
        for part in unit.parts:
            rows = corpus.load(part).features
            lo, hi = np.fmin(lo, np.fmin.reduce(rows)), np.fmax(hi, np.fmax.reduce(rows))
        width = np.where(hi > lo, hi - lo, 0.0)
        rate = self.epsilon / (2.0 * longest * np.where(width > 0, width, 1.0))
        for part in unit.parts:
            recording = corpus.load(part)
            rows = recording.features[:: self.every]
            noise = printed_noise((len(rows), len(width)), rate, longest, draws)
            t = _times(len(rows), self.every, survey.rate_hz)
            yield part, Recording(t, rows + np.where(width > 0, noise, 0.0), recording.names)
