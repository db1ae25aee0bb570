"""The last 30 s: the events that are known, how many samples came, and the row that is made of them."""

import math
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.events import Blink, Event, Fixation, Saccade
from eyestream.gaze.features import NAMES, STEP_S, WINDOW_S
from eyestream.gaze.profile import Profile, ticks

STEP, WINDOW = ticks(STEP_S), ticks(WINDOW_S)

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class WindowEvents:
    """Parts of a row.

    Attributes
    ----------
    fixations
        (f, 5): duration (s), variance of x and of y (deg^2), mean (mm) and variance (mm^2) of the pupil or NaN.
    amplitudes
        s of the saccades, in degrees.
    small, positive
        How many of them are small, and how many go to the right.
    blinks
        b durations in seconds.
    pupil
        Whether the window has any diameter.
    words
        The 24 numbers of the wordbooks.
    """

    fixations: Array
    amplitudes: list[float]
    small: int
    positive: int
    blinks: list[float]
    pupil: bool
    words: list[float]


def _moments(values: Array) -> tuple[list[float], list[float]]:
    """Mean and population variance of each column of (n, c); 0 of nothing."""
    n = len(values)
    if n == 0:
        zeros = [0.0] * values.shape[1]
        return zeros, zeros
    mean = np.add.reduce(values, axis=0) / n
    apart = values - mean
    return mean.tolist(), (np.add.reduce(apart * apart, axis=0) / n).tolist()


def _spread(values: list[float]) -> tuple[float, float]:
    """Mean and population variance; 0 of nothing."""
    if not values:
        return 0.0, 0.0
    mean = math.fsum(values) / len(values)
    return mean, math.fsum([(value - mean) ** 2 for value in values]) / len(values)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def row(events: WindowEvents) -> Array:
    """(52,) the features, in the order of `FEATURES`."""
    f, s, b = len(events.fixations), len(events.amplitudes), len(events.blinks)
    large, negative = s - events.small, s - events.positive
    kinds = (events.small, large, events.positive, negative)
    mean_amplitude, var_amplitude = _spread(events.amplitudes)
    mean_blink, var_blink = _spread(events.blinks)
    mean, var = _moments(events.fixations)
    if events.pupil and math.isnan(mean[3]):  # some fixation has no diameter
        sized = events.fixations[:, 3:]
        without, without_var = _moments(sized[~np.isnan(sized[:, 0])])
        mean[3:], var[3:] = without, without_var
    diameters = [mean[3], var[3], mean[4], var[4]] if events.pupil else [math.nan] * 4
    values = [count / WINDOW_S for count in (f, s, *kinds)]
    values += [_share(s, f), *(_share(kind, s) for kind in kinds)]
    longest = float(np.maximum.reduce(events.fixations[:, 0])) if f else 0.0
    values += [mean_amplitude, var_amplitude, max(events.amplitudes, default=0.0)]
    values += [mean[0], var[0], longest]
    values += [mean[1], mean[2], var[1], var[2], *diameters]
    values += [mean_blink, var_blink, b / WINDOW_S, *events.words]
    return np.array(values, dtype=np.float64)


class Recent:
    """Rows of `width` numbers, each with a time: put at the end, taken from the beginning, seen as one array.

    >>> recent = Recent(1)
    >>> for time in (10, 20, 30):
    ...     recent.put(time, (time / 10,))
    >>> recent.drop(20).tolist(), recent.rows.tolist()
    ([[1.0], [2.0]], [[3.0]])
    """

    def __init__(self, width: int) -> None:
        self._rows = np.empty((64, width))
        self._times = np.empty(64, dtype=np.int64)
        self._begin = self._end = 0

    def put(self, time: int, values: tuple[float, ...]) -> None:
        """Append a row."""
        if self._end == len(self._times):
            count = self._end - self._begin
            room = max(64, 2 * count)
            rows, times = np.empty((room, self._rows.shape[1])), np.empty(room, dtype=np.int64)
            rows[:count], times[:count] = self.rows, self._times[self._begin : self._end]
            self._rows, self._times, self._begin, self._end = rows, times, 0, count
        self._rows[self._end], self._times[self._end] = values, time
        self._end += 1

    def drop(self, time: int) -> Array:
        """Take the rows up to `time`, and return them."""
        count = int(np.searchsorted(self._times[self._begin : self._end], time, side="right"))
        self._begin += count
        return self._rows[self._begin - count : self._begin]

    @property
    def rows(self) -> Array:
        """(n, width), a view."""
        return self._rows[self._begin : self._end]


LARGE_DIRECTIONS, SMALL_DIRECTIONS = 16, 8
LETTERS = SMALL_DIRECTIONS + LARGE_DIRECTIONS
LONGEST_WORD = 4


def letter_of(saccade: Saccade, small_below_deg: float) -> int:
    """0 to 7 for a small saccade to the right, up right, ..., 8 to 23 for a large one.

    Sectors are centred on the axes: noise does not split horizontal saccades between two letters.

    >>> [letter_of(Saccade(0, 1, 2, 0.0, 0.0, *moved), 1.1) for moved in [(1.0, 0.0), (0.0, 1.0), (5.0, -0.1)]]
    [0, 2, 8]
    """
    small = math.hypot(saccade.dx, saccade.dy) < small_below_deg
    directions = SMALL_DIRECTIONS if small else LARGE_DIRECTIONS
    sector = math.floor(math.atan2(saccade.dy, saccade.dx) * directions / math.tau + 0.5) % directions
    return sector if small else SMALL_DIRECTIONS + sector


class Wordbooks:
    """How often each sequence of 1 to 4 saccades occurs in the window (Bulling et al. 2011), in whole numbers.

    A word is so many consecutive letters of a sequence that grows at its end and shrinks at its beginning. Here it is
    the number whose digits in base `LETTERS` are its letters.
    """

    def __init__(self) -> None:
        self._letters: deque[int] = deque()
        self._counts: list[dict[int, int]] = [{} for _ in range(LONGEST_WORD)]
        # Sum of the squares of the counts, for the variance: as c becomes c + 1, it grows by 2 c + 1.
        self._squares = [0] * LONGEST_WORD

    def push(self, letter: int) -> None:
        """Append a letter: one new word of each length ends with it."""
        self._letters.append(letter)
        word = 0
        for n in range(1, min(LONGEST_WORD, len(self._letters)) + 1):
            word += self._letters[-n] * LETTERS ** (n - 1)
            counts = self._counts[n - 1]
            before = counts.get(word, 0)
            counts[word] = before + 1
            self._squares[n - 1] += 2 * before + 1

    def pop(self) -> None:
        """Remove the first letter, and the words that begin with it."""
        word = 0
        for n in range(1, min(LONGEST_WORD, len(self._letters)) + 1):
            word = word * LETTERS + self._letters[n - 1]
            counts = self._counts[n - 1]
            before = counts[word]
            if before == 1:
                del counts[word]
            else:
                counts[word] = before - 1
            self._squares[n - 1] -= 2 * before - 1
        self._letters.popleft()

    def features(self) -> list[float]:
        """For n = 1 to 4, over all 24^n words: number that occur, most, least, most - least, mean, variance."""
        out: list[float] = []
        for n, counts in enumerate(self._counts, start=1):
            words = LETTERS**n
            most = max(counts.values(), default=0)
            least = min(counts.values()) if len(counts) == words else 0
            mean = max(len(self._letters) - n + 1, 0) / words
            out += [len(counts), most, least, most - least, mean, self._squares[n - 1] / words - mean * mean]
        return out


class Window:
    """The window of one session: it moves from step to step, and gives the row of each.

    Samples are counted by cell, the step in whose time they lie: how many came, were tracked, and have a diameter.
    """

    def __init__(self, profile: Profile) -> None:
        self._small_below = profile.detection.small_below_deg
        self._due = round(WINDOW_S * profile.fixed_rate_hz)
        self._ahead: deque[Event] = deque()  # confirmed after the window's end, the earliest first
        self._fixations, self._saccades, self._blinks = Recent(5), Recent(4), Recent(1)
        self._words = Wordbooks()
        self._small = self._positive = 0
        self._cells: dict[int, list[int]] = {}  # those after the window, by number
        self._inside: deque[list[int]] = deque([[0, 0, 0]] * (WINDOW // STEP))  # those in it, the oldest first
        self._samples = [0, 0, 0]  # the sum of `_inside`

    @property
    def came(self) -> int:
        """How many samples are in the window, tracked or not."""
        return self._samples[0]

    def count(self, t: NDArray[np.int64], tracked: NDArray[np.bool_], sized: NDArray[np.bool_]) -> None:
        """Count samples at the ticks `t`, in order: all, those `tracked`, and those `sized`, with a diameter."""
        if len(t) == 0:
            return
        cell = -(-t // STEP)  # (te - step, te] is the cell of te
        first = int(cell[0])
        numbers = [np.bincount(cell[which] - first).tolist() for which in (slice(None), tracked, sized)]
        for kind, counts in enumerate(numbers):
            for i, count in enumerate(counts):
                self._cells.setdefault(first + i, [0, 0, 0])[kind] += count

    def put(self, events: list[Event]) -> None:
        """Take events, in any order. None may be confirmed before an event that a row has counted."""
        self._ahead.extend(sorted(events, key=lambda event: event.confirmed))

    def move(self, end: int) -> None:
        """Move the window on by one step, to (end - 30 s, end]; `end` of the first call is the first step."""
        entering = self._cells.pop(end // STEP, [0, 0, 0])
        self._cells.pop(0, None)  # the session's first sample, which is in no window
        leaving = self._inside.popleft()
        self._inside.append(entering)
        self._samples = [n + a - b for n, a, b in zip(self._samples, entering, leaving, strict=True)]
        while self._ahead and self._ahead[0].confirmed <= end:
            self._enter(self._ahead.popleft())
        self._fixations.drop(end - WINDOW)
        self._blinks.drop(end - WINDOW)
        for _, small, positive, _ in self._saccades.drop(end - WINDOW).tolist():
            self._words.pop()
            self._small -= int(small)
            self._positive -= int(positive)

    def row(self) -> Array:
        """(52,) the features of the window, in the order of `NAMES`.

        NaN where at least half of the samples that came, or that were due at the nominal rate, were not tracked.
        """
        came, tracked, sized = self._samples
        if 2 * tracked <= max(came, self._due):
            return np.full(len(NAMES), np.nan)
        return row(
            WindowEvents(
                fixations=self._fixations.rows,
                amplitudes=self._saccades.rows[:, 0].tolist(),
                small=self._small,
                positive=self._positive,
                blinks=self._blinks.rows[:, 0].tolist(),
                pupil=sized > 0,
                words=self._words.features(),
            )
        )

    def _enter(self, event: Event) -> None:
        if isinstance(event, Fixation):
            moments = (event.var_x, event.var_y, event.pupil, event.var_pupil)
            self._fixations.put(event.confirmed, (event.duration_s, *moments))
        elif isinstance(event, Blink):
            self._blinks.put(event.confirmed, (event.duration_s,))
        else:
            amplitude = math.hypot(event.dx, event.dy)
            small, positive = amplitude < self._small_below, event.dx > 0
            letter = letter_of(event, self._small_below)
            self._saccades.put(event.confirmed, (amplitude, small, positive, letter))
            self._words.push(letter)
            self._small += small
            self._positive += positive
