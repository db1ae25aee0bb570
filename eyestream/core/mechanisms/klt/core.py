"""Joint coding of a chunk: from its scores, by what the session already told, to one code word and back.

The private step is one line: the code word of the raw chunk meets the draw of the randomised response there. Everything
before it may be any function of the chunk and of *released* values; everything after it is post-processing.

What a configuration decides (law, code, directions, gains, expected errors) is the same bits on every processor
(`eyestream.core.portable`). What is made of a chunk is not: its scores, the nearest point of a book and the state
come from products that BLAS adds up in an order of its own. So two machines may find another word for one chunk where
a score lies within about 1e-13 of a border, and what they release of one word agrees to about as much. Privacy rests
on neither: the response protects whatever word there is.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import JointTables
from eyestream.core.frame import Frame, aligned_empty, repeat_column
from eyestream.core.mechanisms.klt.maps import Lines, Nodes, RankMap, Room
from eyestream.core.mechanisms.klt.schedule import Schedule
from eyestream.core.noise import Noise
from eyestream.core.portable import product, total, transposed
from eyestream.errors import CalibrationError, ConfigError, meant

Array = NDArray[np.float64]

FOCUS = 10.0
"""Weight of the squared error of a feature that an application has named, beside 1 of the others."""

LEAST = 1e-3
"""Weight of a feature of whose estimate nothing is released, so that directions have a worth."""


class JointCore:
    """A core for `eyestream.core.mechanism`.

    Attributes
    ----------
    tables, schedule, map : what is public of it; no map: values are coded as they are.
    there, back : the map to standardised levels, and back, as a release evaluates it.
    basis : of the calibration, its features in the order in which `there` gives them.
    expand : of the calibration, each feature's share of it.
    k : the number of scores that a session's first chunk is coded in.
    gain : largest of a chunk's response, over the schedule.
    noise_sd : (A,) expected error of a value late in a session, root mean square, noise and what is not coded together.

    Raises
    ------
    CalibrationError
        when the calibration holds figures of another kind, or they do not fit its features.
    ConfigError
        when the calibration chooses k, or a feature of the focus is not released.
    """

    delta = Fraction(0)

    def __init__(self, frame: Frame, focus: Sequence[str] = ()) -> None:
        tables = frame.calibration.tables
        if not isinstance(tables, JointTables):
            raise CalibrationError("the calibration holds no figures for joint coding")
        if frame.calibration.k is not None:
            raise ConfigError("klt chooses its directions by itself: a calibration with k is not for it")
        if tables.basis.shape[0] != len(frame.active) * len(tables.modes):
            raise CalibrationError("the basis of the calibration is not of its released features")
        self.tables = tables
        shares = np.ones(len(frame.active)) if tables.shares is None else tables.shares[frame.active]
        self.expand = tables.expand * np.repeat(shares, len(tables.modes))
        self.schedule = Schedule(tables, frame.epsilon, _importance(frame, focus, shares, len(tables.modes)))
        self.gain = max(step.law.gain for step in self.schedule.steps)
        self.mean, self.sd = tables.mean[frame.active][:, None], tables.sd[frame.active][:, None]
        self.map = self.there = self.back = None
        self.basis = tables.basis
        self.range = frame.range
        self.k = (len(self.schedule.steps[0].directions),)
        unknown, moving = self._unknown(frame), self._of_values(frame, _mixed(np.ones_like(tables.weights), tables))
        left = shares * (2 - shares) * unknown + (1 - shares) * (1 - shares) * moving
        self.noise_sd = tables.sd[frame.active] * np.sqrt(left + tables.residual[frame.active])
        if tables.knots is not None and tables.levels is not None:
            self.map = RankMap(tables.knots[frame.active], tables.levels[frame.active])
            spread = tables.sd[frame.active] * np.sqrt(moving + tables.residual[frame.active])
            self.noise_sd = self.map.error_back(self.mean[:, 0], spread, self.noise_sd)
            levels = (tables.levels[frame.active] - self.mean) / self.sd
            low, high = (bound[:, 0] for bound in frame.range)
            self.there = Lines(tables.knots[frame.active], levels, low, high)
            blocks = tables.basis.reshape(len(levels), -1, tables.basis.shape[1])
            self.basis = blocks[self.there.order].reshape(tables.basis.shape)
            self.back = Nodes(levels, tables.knots[frame.active])
        self.start = np.zeros(len(self.schedule.motion.stays))

    def _unknown(self, frame: Frame) -> Array:
        """(A,) mean square error of a standardised value, as far as the scores describe it, late in a session."""
        return self._of_values(frame, self.schedule.unknown + _mixed((1 - self.tables.weights) ** 2, self.tables))

    def _of_values(self, frame: Frame, covariance: Array) -> Array:
        """(A,) variance of a standardised value, over the rows, of scores with this covariance."""
        expand = self.tables.expand
        modes = total(expand * product(covariance, expand)).reshape(len(frame.active), -1)
        return total(transposed(modes)) / frame.n

    def step(self) -> "JointStep":
        """A step that releases."""
        return JointStep(self)


def _mixed(shares: Array, tables: JointTables) -> Array:
    """(d, d) sum of the components' covariances times `shares` (J,)."""
    parts = shares[:, None, None] * tables.covariances
    return total(parts.reshape(len(parts), -1)).reshape(parts.shape[1:])


def _importance(frame: Frame, focus: Sequence[str], shares: Array, modes: int) -> Array | None:
    """(A M,) what every mode's squared error counts, its share of it; None: all the same."""
    if not focus and (shares == 1).all():
        return None
    names = [frame.calibration.names[feature] for feature in frame.active]
    unknown = next((name for name in focus if name not in names), None)
    if unknown is not None:
        raise ConfigError(f"focus: expected names of released features, not {unknown!r}{meant(unknown, names)}")
    return np.repeat(np.where(np.isin(names, list(focus)), FOCUS, 1.0) * np.maximum(shares * shares, LEAST), modes)


class JointStep:
    """One release at a time."""

    def __init__(self, core: JointCore) -> None:
        self.core = core
        features, n = len(core.mean), core.tables.modes.shape[1]
        self._values, self._modes = aligned_empty((features, n)), np.empty((features, len(core.tables.modes)))
        shared = None if core.map is None else Room(features, n)
        self._there = None if shared is None or core.there is None else core.there.worker(shared)
        self._back = None if shared is None or core.back is None else core.back.worker(shared)
        self._lo, self._hi = (repeat_column(column, n) for column in core.range)
        self._mean, self._sd = (repeat_column(column, n) for column in (core.mean, core.sd))

    def scores(self, admitted: Array) -> Array:
        """(d,) scores of an admitted chunk (A, n)."""
        tables, standard = self.core.tables, self._values
        if self._there is None:
            np.subtract(admitted, self._mean, out=standard)
            np.divide(standard, self._sd, out=standard)
        else:
            self._there(admitted, standard)
        scores: Array = np.matmul(standard, tables.modes.T, out=self._modes).reshape(-1) @ self.core.basis
        return scores

    def chunk(self, scores: Array, out: Array) -> None:
        """Write the chunk (A, n) that scores (d,) stand for to `out`, inside the range."""
        tables, values = self.core.tables, self._values
        np.matmul((scores @ self.core.expand).reshape(len(out), -1), tables.modes, out=values)
        if self._back is None:
            np.multiply(values, self._sd, out=values)
            np.add(values, self._mean, out=values)
        else:
            self._back(values, values)
        np.maximum(values, self._lo, out=values)
        np.minimum(values, self._hi, out=out)

    def release(self, admitted: Array, noise: Noise, turn: int, state: Array | None, out: Array) -> Array | None:
        """See `eyestream.core.mechanism.Step`; the state is an estimate of the scores' components."""
        assert state is not None
        schedule, tables = self.core.schedule, self.core.tables
        step = schedule.steps[min(turn, len(schedule.steps) - 1)]
        predicted = schedule.motion.forward(state) if turn else state
        expected = predicted.reshape(len(tables.poles), -1).sum(axis=0)
        innovation = step.directions @ (self.scores(admitted) - expected)
        word = step.word(innovation)
        drawn = noise.draw(step.law)
        released = np.where(drawn[0], drawn[1:], word)  # the only line that raw data and randomness meet in
        state = predicted + step.gain @ step.value(released)
        self.chunk(tables.weights @ state.reshape(len(tables.poles), -1), out)
        return state
