"""The last 30 s: which events are known, how many samples came, and the row that is made of them."""

import math
from collections import deque

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.events import Blink, Event, Fixation, Saccade
from eyestream.gaze.features import NAMES, STEP_S, WINDOW_S, WindowEvents, row
from eyestream.gaze.profile import Profile, ticks

__all__ = ["LETTERS", "STEP", "WINDOW", "Recent", "Window", "Wordbooks", "letter_of"]

STEP, WINDOW = ticks(STEP_S), ticks(WINDOW_S)

Array = NDArray[np.float64]


class Recent:
    """Rows of `width` numbers, each with a time: put at the end, taken from the beginning, seen as one array."""

    def __init__(self, width: int) -> None:
        self._rows = np.empty((64, width))
        self._times = np.empty(64, dtype=np.int64)
        self._begin = self._end = 0

    def put(self, time: int, values: tuple[float, ...]) -> None:
        """A new last row."""
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
    """
    small = math.hypot(saccade.dx, saccade.dy) < small_below_deg
    directions = SMALL_DIRECTIONS if small else LARGE_DIRECTIONS
    sector = math.floor(math.atan2(saccade.dy, saccade.dx) * directions / math.tau + 0.5) % directions
    return sector if small else SMALL_DIRECTIONS + sector


class Wordbooks:
    """How often each sequence of 1 to 4 saccades occurs in the window (Bulling et al. 2011), in whole numbers.

    A word is so many consecutive letters of a sequence that grows at its end and shrinks at its beginning.
    """

    def __init__(self) -> None:
        self._letters: deque[int] = deque()
        self._counts: list[dict[int, int]] = [{} for _ in range(LONGEST_WORD)]
        self._squares = [0] * LONGEST_WORD

    def push(self, letter: int) -> None:
        """A new last letter: one new word of each length."""
        self._letters.append(letter)
        word = 0
        for n in range(1, min(LONGEST_WORD, len(self._letters)) + 1):
            word += self._letters[-n] * LETTERS ** (n - 1)
            counts = self._counts[n - 1]
            before = counts.get(word, 0)
            counts[word] = before + 1
            self._squares[n - 1] += 2 * before + 1

    def pop(self) -> None:
        """The first letter goes, and the words that begin with it."""
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
    """What the rows of one session need to know."""

    def __init__(self, profile: Profile) -> None:
        self._small_below = profile.detection.small_below_deg
        self._due = round(WINDOW_S * profile.fixed_rate_hz)
        self._ahead: deque[Event] = deque()
        self._fixations, self._saccades, self._blinks = Recent(5), Recent(4), Recent(1)
        self._words = Wordbooks()
        self._small = self._positive = 0
        self._cells: dict[int, list[int]] = {}
        self._inside: deque[list[int]] = deque([[0, 0, 0]] * (WINDOW // STEP))
        self._samples = [0, 0, 0]

    @property
    def came(self) -> int:
        """How many samples are in the window, tracked or not."""
        return self._samples[0]

    def count(self, t: NDArray[np.int64], tracked: NDArray[np.bool_], sized: NDArray[np.bool_]) -> None:
        """Samples at the ticks `t`, in order: which of them were tracked, and which have a diameter."""
        if len(t) == 0:
            return
        cell = -(-t // STEP)  # (te - step, te] is the cell of te
        first = int(cell[0])
        numbers = [np.bincount(cell[which] - first).tolist() for which in (slice(None), tracked, sized)]
        for kind, counts in enumerate(numbers):
            for i, count in enumerate(counts):
                self._cells.setdefault(first + i, [0, 0, 0])[kind] += count

    def put(self, events: list[Event]) -> None:
        """Events that will be confirmed, in any order; none earlier than one that a row has counted."""
        self._ahead.extend(sorted(events, key=lambda event: event.confirmed))

    def move(self, end: int) -> None:
        """Make the window (end - 30 s, end]; `end` is the first step in the first call, and one more in each."""
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
