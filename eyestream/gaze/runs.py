"""Which runs of fast samples are saccades: not those of the eyelid, and not one saccade in two parts.

A judge decides about runs of 10 to 300 ms. There is one for each `[detection] algorithm`:

1. A run is a saccade unless a loss is beside it.
2. The lid is also seen where the tracker reports gaze in a blink. A lid that comes down covers the pupil from above:
   the middle of what is seen of the pupil moves, gaze follows it down and up again, and the diameter shrinks and grows.

   - *Lid*: of two runs in `LID_S`, at most `CLOSED_S` apart, the second one takes back the first one, both go mostly up
     or down, and the diameter shrinks and grows where it is known; or it does so by `PUPIL_CHANGE`, whatever gaze does;
     or one run ends where it began. None is a saccade, and the time from beginning to end is a blink.
   - *Shaking*: neither of two runs is a saccade that no fixation separates and that end where they began.
   - *Two parts*: runs at most `JOIN_S` apart, in one direction, are one saccade.
   - *Ringing*: a run that no fixation separates from one `LARGER` times as large is part of that movement.

   Each of these compares runs that lie near to each other, and never asks what became of another one, so that what a
   saccade reads is bounded (`Profile.nearby_ticks`).
"""

import math
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.events import Blink, Event, Saccade
from eyestream.gaze.profile import LID_S, Profile, ticks

Array = NDArray[np.float64]

JOIN_S = 0.03
LARGER = 2.0
PUPIL_CHANGE = 0.15
"""Change of the logarithm of the diameter. A turning eye foreshortens its pupil by less."""

SHORTEST_LID_S, SMALLEST_LID_DEG = 0.06, 1.0
CLOSED_S = 0.2
"""How long the lid may rest between down and up: a fixation from which the eye returns mostly lasts longer."""
BACK = 0.4
"""Rest of a movement that was taken back, as a share of the movement."""

_LONG_AGO, _NEVER = -(10**15), 10**15


class Judge(Protocol):
    """Takes runs and losses in their order, and says which runs are saccades."""

    def take(self, start: int, end: int, x: Array, y: Array, pupil: Array) -> None:
        """Take a run [start, end), with all its samples."""

    def begin_loss(self, begin: int) -> None:
        """A loss began, long enough ago to be one."""

    def end_loss(self, end: int) -> None:
        """It ended."""

    def decided(self, tick: int) -> list[Event]:
        """Events that are decided now that everything up to the tick has been seen, and were not before."""
        ...


def judge_of(profile: Profile) -> Judge:
    """The judge of the profile's algorithm."""
    return BesideLosses(profile) if profile.detection.algorithm == 1 else Lids(profile)


class BesideLosses:
    """Algorithm 1."""

    def __init__(self, profile: Profile) -> None:
        self._guard, self._wait = ticks(profile.detection.blink_guard_s), profile.judged_ticks
        self._confirmed = self._wait + profile.delay_ticks
        self._loss_end = _LONG_AGO
        self._waiting: list[Saccade] = []

    def take(self, start: int, end: int, x: Array, y: Array, pupil: Array) -> None:
        """See `Judge`."""
        if start - self._loss_end > self._guard:
            moved = float(x[-1] - x[0]), float(y[-1] - y[0])
            self._waiting.append(Saccade(start, end, end + self._confirmed, float(x[0]), float(y[0]), *moved))

    def begin_loss(self, begin: int) -> None:
        """See `Judge`."""
        self._waiting = [saccade for saccade in self._waiting if begin - saccade.end > self._guard]

    def end_loss(self, end: int) -> None:
        """See `Judge`."""
        self._loss_end = end

    def decided(self, tick: int) -> list[Event]:
        """See `Judge`."""
        decided: list[Event] = [saccade for saccade in self._waiting if saccade.end <= tick - self._wait]
        self._waiting = self._waiting[len(decided) :]
        return decided


class Run(NamedTuple):
    """Fast samples: [start, end), from (x, y) by (dx, dy), `size` degrees, between the first and the last.

    Attributes
    ----------
    far
        How far the furthest sample is from the first one, degrees, in a run that is long enough for a lid.
    pupil
        Logarithm of the last diameter by the first one; NaN where there are none.
    """

    start: int
    end: int
    x: float
    y: float
    dx: float
    dy: float
    size: float
    far: float
    pupil: float


class Lids:
    """Algorithm 2."""

    def __init__(self, profile: Profile) -> None:
        d = profile.detection
        self._guard, self._longest = ticks(d.blink_guard_s), ticks(d.saccade_max_s)
        self._rest = ticks(d.fixation_min_s)
        self._shortest, self._closed = ticks(SHORTEST_LID_S), ticks(CLOSED_S)
        self._lid, self._join = ticks(LID_S), ticks(JOIN_S)
        self._nearby, self._wait = profile.nearby_ticks, profile.judged_ticks
        self._confirmed = self._wait + profile.delay_ticks
        self._runs: list[Run] = []
        self._losses: list[list[int]] = []
        self._next = 0
        self._decided: list[Event] = []

    def take(self, start: int, end: int, x: Array, y: Array, pupil: Array) -> None:
        """See `Judge`."""
        x0, y0 = float(x[0]), float(y[0])
        dx, dy = float(x[-1]) - x0, float(y[-1]) - y0
        size = far = math.hypot(dx, dy)
        if end - start >= self._shortest:
            to_x, to_y = x - x0, y - y0
            far = math.sqrt((to_x * to_x + to_y * to_y).max())
        one, other = float(pupil[0]), float(pupil[-1])
        if math.isnan(one + other):
            sized = pupil[~np.isnan(pupil)]
            one, other = (float(sized[0]), float(sized[-1])) if len(sized) else (math.nan, math.nan)
        self._runs.append(Run(start, end, x0, y0, dx, dy, size, far, math.log(other / one)))
        self._judge(end)

    def begin_loss(self, begin: int) -> None:
        """See `Judge`."""
        self._judge(begin)  # about what the forgotten losses may lie beside
        self._losses = [loss for loss in self._losses if loss[1] > begin - self._wait - self._longest - self._guard]
        self._losses.append([begin, _NEVER])

    def end_loss(self, end: int) -> None:
        """See `Judge`."""
        self._losses[-1][1] = end

    def decided(self, tick: int) -> list[Event]:
        """See `Judge`."""
        self._judge(tick)
        decided, self._decided = self._decided, []
        return decided

    def _judge(self, tick: int) -> None:
        """Decide about the runs of which everything nearby has been seen, and forget those that no other one needs."""
        until = tick - self._wait
        if self._next == len(self._runs) or self._runs[self._next].end > until:
            return
        while self._next < len(self._runs) and self._runs[self._next].end <= until:
            self._decided += self._blinks(self._runs[self._next]) + self._saccades(self._next)
            self._next += 1
        forgotten = until - self._longest - 2 * self._nearby
        old = sum(run.end <= forgotten for run in self._runs)
        self._runs, self._next = self._runs[old:], self._next - old

    def _blinks(self, run: Run) -> list[Event]:
        """The blink that begins with the run, if the tracker reported gaze in it."""
        near = self._near(run.start, run.end)
        ends = [later.end for later in near if later.start >= run.start and self._lid_in(run, later)]
        if not ends:
            return []
        start, end = run.start, ends[0]
        if any(a.start < start < b.end and self._lid_in(a, b) for a in near for b in near):
            return []
        return [] if self._beside_loss(start, end) else [Blink(start, end, run.end + self._confirmed)]

    def _saccades(self, index: int) -> list[Event]:
        """The saccade that ends with a run."""
        if index + 1 < len(self._runs) and self._joined(self._runs[index], self._runs[index + 1]):
            return []
        first = index
        while first and self._joined(self._runs[first - 1], self._runs[first]):
            first -= 1
        parts = self._runs[first : index + 1]
        a, b = parts[0], parts[-1]
        if b.end - a.start > self._longest or self._beside_loss(a.start, b.end):
            return []
        dx, dy, near = b.x + b.dx - a.x, b.y + b.dy - a.y, self._near(a.start, b.end)
        least = LARGER * math.hypot(dx, dy)
        if any(run.size > least and self._at_once(a, run, b) for run in near):
            return []
        if any(self._no_saccade(part, other) for part in parts for other in near):
            return []
        return [Saccade(a.start, b.end, b.end + self._confirmed, a.x, a.y, dx, dy)]

    def _near(self, start: int, end: int) -> list[Run]:
        """All runs that may bear on what is in [start, end)."""
        return [run for run in self._runs if run.start - end < self._lid and start - run.end < self._lid]

    def _beside_loss(self, start: int, end: int) -> bool:
        return any(begin - end <= self._guard and start - over <= self._guard for begin, over in self._losses)

    def _joined(self, a: Run, b: Run) -> bool:
        """Whether two runs, one after the other, are parts of one saccade."""
        return b.start - a.end <= self._join and a.dx * b.dx + a.dy * b.dy > 0.5 * a.size * b.size

    def _at_once(self, first: Run, run: Run, last: Run) -> bool:
        """Whether no fixation lies between a run and those from `first` to `last`."""
        return run.start - last.end < self._rest and first.start - run.end < self._rest

    def _no_saccade(self, run: Run, other: Run) -> bool:
        """Whether the lid made a run and another one, or the same, or they only shake."""
        a, b = (run, other) if run.start <= other.start else (other, run)
        shaken = a is not b and self._at_once(a, b, a) and _left(a, b) <= BACK * max(a.size, b.size)
        return shaken or self._lid_in(a, b)

    def _lid_in(self, a: Run, b: Run) -> bool:
        """Whether the lid came down and went up in a run and a later one, or in a single one."""
        if b.end - a.start > self._lid or b.start - a.end > self._closed:
            return False
        if a is b:
            return a.far >= SMALLEST_LID_DEG and a.size <= BACK * a.far
        if a.pupil <= -PUPIL_CHANGE and b.pupil >= PUPIL_CHANGE:
            return True
        if a.pupil >= 0.0 or b.pupil <= 0.0:  # NaN compares false
            return False
        upright = abs(a.dy) >= abs(a.dx) and abs(b.dy) >= abs(b.dx) and a.dy * b.dy < 0.0
        large = min(a.size, b.size) >= SMALLEST_LID_DEG
        return upright and large and _left(a, b) <= BACK * max(a.size, b.size)


def _left(a: Run, b: Run) -> float:
    """Degrees from the beginning of a run to the end of a later one."""
    return math.hypot(b.x + b.dx - a.x, b.y + b.dy - a.y)
