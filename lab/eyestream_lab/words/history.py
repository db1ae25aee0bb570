"""The history of a pseudonym: what stays the same in a wearer cancels, what differs between sessions is left.

The first session of a pseudonym is withheld. From every row of a later session the expected level is taken off, feature
by feature, as the earlier sessions alone tell it. What is left are *residual rows*. After `sessions` sessions, a number
that is public and depends on no value, the pseudonym ends, and so does its history. `TASKS.md` beside this file has
derivation, theorems and what they do not say.

**Level.** Of a session's levels x_1, x_2, .. (means over its rows) the expected level is x_1 + o, and o moves by

    o <- o + gain (x_t - x_1 - o),   gain = p / (p + 1),   then p <- gain + drift,

p the variance of the error of x_1 + o, in variances of one session's level, and `drift` that of the wearer's own move
from session to session. This is the Kalman filter of a wearer of whom nothing is known before. Without drift p is 1 /
t, and x_1 + o is the mean of all earlier sessions.

**Exact.** Rows are rounded down to a grid, and only differences of whole numbers enter: row less x_1, x_t less x_1.
Let a constant of the grid be added to every value of a feature, in all sessions of a pseudonym. Then all of these
stay the same, hence residual rows stay the same to the last bit, and the loss about such a constant is 0 over any
number of sessions.

**Spread.** Residual rows are divided by how far the wearer's rows went about their session's mean in earlier
sessions, beside what is usual. With `trust` 0 a factor common to all rows of a pseudonym cancels, up to rounding.
Larger values trust the earlier sessions less. Infinity leaves the spread as it is.

**Stated tasks.** Where the application states a session's task, that task's public mean is taken off the session's
level before it enters the history, and stays in the residual rows.

**The other side.** A history is a function of raw rows, and outlives their session. Whoever has the raw rows of one
session, and what was released of all, finds the levels of the others.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from eyestream.core.protection import Fact
from eyestream.core.scopes import Reach
from eyestream.errors import CalibrationError, SnapshotError

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

_LARGEST = 2.0**44
"""Grid steps that a value may lie from 0: differences stay whole in float64, sums over 256 rows too."""


@dataclass(frozen=True, eq=False, repr=False)
class Remembering:
    """The public part of all histories.

    Attributes
    ----------
    sessions : of a pseudonym, the first one included; at least 2.
    shift : (F,) a feature's grid has steps of 2^-shift (`eyestream_lab.calibration.anchors.grid_of`).
    spread : (F,) usual standard deviation of a row about its session's mean; above 0.
    drift : variance of a wearer's own move from session to session, in variances of one session's level.
    trust : how many sessions the usual spread counts, beside those of the wearer; infinity: spread is left alone.

    Raises
    ------
    CalibrationError
        A figure is out of range, or they are not of the same features.
    """

    sessions: int
    shift: Integers
    spread: Array
    drift: float = 0.0
    trust: float = 0.0

    def __post_init__(self) -> None:
        if self.shift.ndim != 1 or self.shift.shape != self.spread.shape or self.shift.dtype != np.int64:
            raise CalibrationError("the figures of a history are not of the same features")
        if self.sessions < 2:
            raise CalibrationError(f"a pseudonym needs at least 2 sessions, not {self.sessions}: the first is withheld")
        if not (np.isfinite(self.spread).all() and (self.spread > 0).all() and (np.abs(self.shift) <= 1000).all()):
            raise CalibrationError("the usual spread or the grid of a history is out of range")
        if not (0 <= self.drift < np.inf and self.trust >= 0):
            raise CalibrationError("drift must be 0 or more and finite, trust 0 or more")

    @property
    def chunks(self) -> int:
        """Withheld of each session: none, but all of the first one."""
        return 0

    @property
    def reach(self) -> Reach:
        """Into all that its pseudonym releases: each session but the first is within the session's ceiling."""
        of, entered = self.sessions - 1, "it enters the history of the later sessions of its pseudonym too"
        why = f"the sum over the {of} released sessions"
        given = "one chunk, given the earlier sessions of its pseudonym,"
        return Reach(given, f"{entered}: {why}", "in its own session", of, ("pseudonym", why))

    def check(self, features: int, n: int) -> None:
        """Raise CalibrationError when it is not for so many features."""
        if len(self.shift) != features:
            raise CalibrationError(f"the history of the calibration is not of {features} features")

    def header(self) -> dict[str, object]:
        """The history's key in the header of a calibration."""
        return {"history": {"sessions": self.sessions, "drift": self.drift, "trust": self.trust}}

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """The history's arrays with their names in a calibration."""
        yield "history.shift", self.shift
        yield "history.spread", self.spread

    def restored(self, numbers: Array) -> NoReturn:
        """Refuse: histories are not kept."""
        raise SnapshotError("sessions that take a history off are not kept")

    def fact(self, n: int, seconds: float) -> Fact:
        """A guarantee's fact: what a history hides, what it does not, and what it costs."""
        return Fact(
            "pseudonym's history",
            "the level and the spread of a wearer's earlier sessions are removed from the rows before anything is "
            "released. A pseudonym is a wearer whom the tracker names, or the device where it names nobody: a device "
            f"that is shared then mixes people. It ends after {self.sessions} sessions, whatever is in them, and with "
            "the sidecar's process, which keeps no history. Of its first session nothing is released. Hidden: a "
            "constant that is added to a feature in all rows of a pseudonym, in whole steps of its grid, changes "
            "nothing that is released, so of it the loss is 0 over any number of chunks. Not hidden: which tasks are "
            "done, how often and in which order, what a person does otherwise in one task than in the others, and "
            "slow change. Simulated people with a tenth of such a part beside their sessions' own variance were "
            "linked over two pseudonyms of ten sessions with an area of 0.57, with a quarter 0.62 (chance 0.5, 18 "
            "epsilon a minute, the strongest of five attackers); over fifty sessions a word a session was linked with"
            " 0.78. Seven real people who did the same tasks under both pseudonyms were linked with 0.73, at 4.5 a "
            "minute with 0.66. The price: a change in a session, the first one included, changes the input of every "
            "later release of its pseudonym, and costs up to the sum over them. A session of the tracker must not "
            "share gaze with the one before",
            {
                "pseudonyms": {
                    "sessions": self.sessions,
                    "released": self.sessions - 1,
                    "kept": "in memory alone",
                    "hidden": ["constant level of a pseudonym"],
                    "not_hidden": ["tasks and how often", "a person's own way of a task", "slow change"],
                }
            },
        )

    def session(self, before: Any = None) -> "OverHistory":
        """The session after `before`; None: the first one of a new pseudonym."""
        return OverHistory(History.begun(self) if before is None else before.after())

    def steps(self, values: Array) -> Array:
        """(F, ..) values rounded down to whole steps of the grid; 0 where a value is not finite."""
        held = np.where(np.isfinite(values), values, 0.0)
        with np.errstate(over="ignore"):
            whole = np.floor(np.ldexp(held, self.shift.reshape(-1, *[1] * (values.ndim - 1))))
        return np.clip(whole, -_LARGEST, _LARGEST)

    def values(self, steps: Array) -> Array:
        """(F, ..) values of steps."""
        return np.asarray(np.ldexp(steps, -self.shift.reshape(-1, *[1] * (steps.ndim - 1))))


def stored(public: Any, arrays: Mapping[str, NDArray[Any]]) -> Remembering:
    """The object that a calibration has stored under the key of `Remembering.header`, with its arrays."""
    known = (int(public["sessions"]), arrays["history.shift"], arrays["history.spread"])
    return Remembering(*known, drift=float(public["drift"]), trust=float(public["trust"]))


class SessionLevel:
    """Level and spread of one session, while its chunks come. What it holds is raw data.

    Parameters
    ----------
    remembering
        What is public.
    """

    __slots__ = ("_count", "_reference", "_remembering", "_squares", "_sum")

    def __init__(self, remembering: Remembering) -> None:
        self._remembering = remembering
        self._reference, self._sum, self._squares, self._count = np.zeros((4, len(remembering.shift)))

    def take(self, chunk: Array) -> None:
        """The next chunk (F, n); what is not finite is missing."""
        there = np.isfinite(chunk)
        steps = self._remembering.steps(chunk)
        first = np.take_along_axis(steps, there.argmax(axis=1)[:, None], axis=1)[:, 0]
        self._reference = np.where(self._count == 0, np.where(there.any(axis=1), first, 0.0), self._reference)
        apart = np.where(there, steps - self._reference[:, None], 0.0)
        self._sum = self._sum + apart.sum(axis=1)
        self._squares = self._squares + (apart * apart).sum(axis=1)
        self._count = self._count + there.sum(axis=1)

    def erase(self) -> None:
        """Overwrite it with nothing."""
        for array in (self._reference, self._sum, self._squares, self._count):
            array.fill(0.0)

    def figures(self) -> tuple[Array, Array]:
        """(F,) level in whole grid steps, and mean square of a row about it; NaN of features without a value."""
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = self._sum / self._count
            square = np.maximum(self._squares / self._count - mean * mean, 0.0)
        return self._reference + np.floor(mean), self._remembering.values(self._remembering.values(square))


@dataclass(frozen=True, eq=False, repr=False)
class History:
    """Expectation of a pseudonym's next session by the earlier ones. Raw data: nothing may leave but by `off`.

    A value: `after` gives another history and leaves this one as it is.

    Attributes
    ----------
    remembering : what is public.
    sessions : how many have passed; public.
    first : (F,) level of the first session that had the feature, in whole grid steps; NaN before there is one.
    offset : (F,) from there to the expected level, in the feature's unit.
    square : (F,) expected mean square of a row about its session's mean.
    error : (F,) p, of the expected level and square.
    """

    remembering: Remembering
    sessions: int
    first: Array
    offset: Array
    square: Array
    error: Array

    @classmethod
    def begun(cls, remembering: Remembering) -> "History":
        """The history of a new pseudonym."""
        count = len(remembering.shift)
        return cls(remembering, 0, np.full(count, np.nan), np.zeros(count), np.zeros(count), np.zeros(count))

    @property
    def withholds(self) -> bool:
        """Whether the session that comes is the first of its pseudonym: nothing of it may be released."""
        return self.sessions == 0

    def off(self, chunk: Array) -> Array:
        """The residual rows of a chunk (F, n): a new array, NaN where a value or the history is missing.

        Raises
        ------
        RuntimeError
            when the session is withheld.
        """
        if self.withholds:
            raise RuntimeError("the first session of a pseudonym is withheld")
        apart = self.remembering.steps(chunk) - self.first[:, None]
        residual = (self.remembering.values(apart) - self.offset[:, None]) / self._scale[:, None]
        return np.where(np.isfinite(chunk), residual, np.nan)

    def after(self, level: SessionLevel, stated: Array | None = None) -> "History":
        """The history after a session: a new one, begun again where this session was the last of its pseudonym.

        Parameters
        ----------
        level
            Of the session's rows, all of them.
        stated
            (F,) public mean of the task that the application states for the session.
        """
        if self.sessions + 1 == self.remembering.sessions:
            return History.begun(self.remembering)
        at, square = level.figures()
        if stated is not None:
            at = at - self.remembering.steps(stated)
        seen, known = np.isfinite(at), np.isfinite(self.first)
        later = seen & known
        apart = self.remembering.values(np.where(later, at - self.first, 0.0)) - self.offset
        gain = np.where(later, self.error / (self.error + 1), 0.0)
        began = seen & ~known
        return replace(
            self,
            sessions=self.sessions + 1,
            first=np.where(began, at, self.first),
            offset=self.offset + gain * apart,
            square=np.where(began, square, self.square + gain * np.where(later, square - self.square, 0.0)),
            error=np.where(began, 1.0, np.where(later, gain, self.error)) + self.remembering.drift * (seen | known),
        )

    def erase(self) -> None:
        """Overwrite this history with nothing; copies that were made of it are not reached."""
        for array in (self.first, self.offset, self.square, self.error):
            array.fill(np.nan)

    @property
    def _scale(self) -> Array:
        """(F,) of the wearer's spread beside the usual one; 1 where nothing is known of it."""
        trust, usual = self.remembering.trust, self.remembering.spread**2
        if np.isinf(trust):
            return np.ones_like(usual)
        with np.errstate(divide="ignore", invalid="ignore"):
            told = 1 / self.error
            ratio = (trust + told * self.square / usual) / (trust + told)
        return np.sqrt(np.where(np.isfinite(ratio) & (ratio > 0), ratio, 1.0))


class OverHistory:
    """One session over the history before it. Raw data; not for two threads at once.

    Parameters
    ----------
    history
        Of the pseudonym's earlier sessions.
    """

    __slots__ = ("_history", "_level")

    def __init__(self, history: History) -> None:
        self._history, self._level = history, SessionLevel(history.remembering)

    @property
    def complete(self) -> bool:
        """Whether chunks of the session may be released: it is not the first of its pseudonym."""
        return not self._history.withholds

    def take(self, chunk: Array) -> None:
        """A chunk (F, n) of a session of which nothing is released."""
        self._level.take(chunk)

    def off(self, chunk: Array) -> Array:
        """The residual rows of a chunk (F, n), by the earlier sessions alone; the later ones know the chunk."""
        residual = self._history.off(chunk)
        self._level.take(chunk)
        return residual

    def numbers(self) -> NoReturn:
        """Refuse: histories are not kept."""
        raise RuntimeError("a session that takes a history off has no snapshot")

    def after(self) -> History:
        """The history that is subtracted from the pseudonym's next session."""
        return self._history.after(self._level)

    def erase(self) -> None:
        """Overwrite what it holds."""
        self._history.erase()
        self._level.erase()
