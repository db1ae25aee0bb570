"""The front end a second time, from its definitions alone: whole recordings, plain loops and numpy, no state.

It shares the profile's numbers with the product and nothing else.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.profile import Profile
from eyestream.gaze.samples import Samples

Array = NDArray[Any]
US = 1_000_000


@dataclass
class Found:
    """Columns of events: fixations (start, end, confirmed, var x, var y, pupil, var pupil), saccades (start, end,
    confirmed, dx, dy), blinks (start, end, confirmed); lids without a loss, with the end of their first run."""

    fixations: list[tuple[float, ...]] = field(default_factory=list)
    saccades: list[tuple[float, ...]] = field(default_factory=list)
    blinks: list[tuple[float, ...]] = field(default_factory=list)
    lids: list[tuple[int, int, int]] = field(default_factory=list)


def us(seconds: float) -> int:
    return round(seconds * US)


def speeds(t: Array, x: Array, y: Array, segment: Array, profile: Profile) -> Array:
    """deg/s, from centred sums over a matrix of neighbours."""
    rate, n = profile.rate_hz, len(t)
    assert rate is not None
    half = max(1, math.floor(0.012 * rate + 0.1))
    index = np.arange(n)[:, None] + np.arange(-half, half + 1)[None, :]
    inside = (index >= 0) & (index < n)
    index = index.clip(0, n - 1)
    near = np.abs(t[index] - t[:, None]) <= us(0.012) + us(1 / rate) // 2
    near |= np.abs(np.arange(-half, half + 1)) <= 1
    used = inside & near & (segment[index] == segment[:, None])
    members = used.sum(axis=1)
    tau = np.where(used, (t[index] - t[:, None]) / US, 0.0)
    tau = np.where(used, tau - (tau.sum(axis=1) / members)[:, None], 0.0)
    slopes = []
    for values in (x, y):
        v = np.where(used, values[index] - values[:, None], 0.0)
        v = np.where(used, v - (v.sum(axis=1) / members)[:, None], 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            slopes.append((tau * v).sum(axis=1) / (tau * tau).sum(axis=1))
    return np.where(members > 1, np.hypot(*slopes), 0.0)


def onset(profile: Profile) -> float:
    d, rate = profile.detection, profile.rate_hz
    assert rate is not None
    return d.slow_onset_deg_per_s if rate < d.slow_tracker_hz else d.onset_deg_per_s


def is_fast(t: Array, speed: Array, segment: Array, profile: Profile) -> Array:
    d, rate = profile.detection, profile.rate_hz
    assert rate is not None
    offset = d.slow_offset_deg_per_s if rate < d.slow_tracker_hz else d.offset_deg_per_s
    fast = np.zeros(len(t), dtype=bool)
    for i in range(len(t)):
        j = i
        while j >= 0 and segment[j] == segment[i] and speed[j] >= offset and t[i] - t[j] <= us(d.hysteresis_s):
            if speed[j] >= onset(profile):
                fast[i] = True
                break
            j -= 1
    return fast


def events(t: Array, x: Array, y: Array, pupil: Array, profile: Profile) -> Found:
    """Of tracked samples at whole microseconds."""
    d, found, rate = profile.detection, Found(), profile.rate_hz
    assert rate is not None
    period, path = us(1 / rate), np.column_stack((x, y))
    gap = max(us(0.012) + period // 2, 5 * period // 2)
    segment = np.concatenate(([0], np.cumsum(np.diff(t) > gap)))
    fast = is_fast(t, speeds(t, x, y, segment, profile), segment, profile)
    before = np.concatenate(([-period], t))  # the sample before each, and the last one
    after = np.concatenate((t, [np.inf]))
    lost = [(a + period, b) for a, b in zip(before, after, strict=True) if b - a > gap]
    lost = [(a, b) for a, b in lost if b - a >= us(d.blink_min_s)]
    found.blinks = [(a, b, b + gap) for a, b in lost if b - a <= us(d.blink_max_s)]
    loss_known = max(us(d.blink_min_s), gap - period)
    far = np.hypot(np.diff(x), np.diff(y)) > 4 * onset(profile) * max(0.012, 1 / rate)
    borders = np.flatnonzero((np.diff(segment) != 0) | (fast[1:] != fast[:-1]) | (far & ~fast[1:] & ~fast[:-1])) + 1
    parts: list[Fast] = []
    for run in np.split(np.arange(len(t)), borders):
        first, last = run[0], run[-1]
        goes_on = last + 1 < len(t) and segment[last + 1] == segment[last]
        end = t[last + 1] if goes_on else t[last] + period
        known = t[last + 1] + gap if goes_on else t[last] + 2 * gap
        if fast[first]:
            if len(run) >= 2 and us(d.saccade_min_s) <= end - t[first] <= us(d.saccade_max_s):
                parts.append(Fast(t[first], end, path[run], pupil[run]))
            continue
        lines = np.arange(0, t[last] + 1, us(d.cut_grid_s))
        lines = lines[(lines - t[first] >= us(d.cut_after_s)) & (t[last] - lines >= us(d.fixation_min_s))]
        knowns = [t[run][t[run] >= line + us(d.fixation_min_s)].min() + gap for line in lines]
        for a, b, c in zip([t[first], *lines], [*lines, end], [*knowns, known], strict=True):
            part = run[(t[run] >= a) & (t[run] < b)]
            p = pupil[part][~np.isnan(pupil[part])]
            sizes = (np.mean(p), np.var(p)) if len(p) else (np.nan, np.nan)
            if b - a >= us(d.fixation_min_s):
                found.fixations.append((a, b, c, np.var(x[part]), np.var(y[part]), *sizes))

    guard = us(d.blink_guard_s)
    wait = guard + loss_known
    if d.algorithm == 2:
        wait = max(wait, max(us(0.4), us(d.fixation_min_s) + us(d.saccade_max_s)) + gap)
    (every_run if d.algorithm == 1 else judged)(found, parts, [(a - guard, b + guard) for a, b in lost], profile)
    found.blinks += [(a, b, c + wait + gap) for a, b, c in found.lids]
    found.saccades = [(a, b, b + wait + gap, *move) for a, b, *move in found.saccades]
    return found


def every_run(found: Found, parts: list["Fast"], lost: list[tuple[int, int]], profile: Profile) -> None:
    """Saccades of algorithm 1, not beside a loss; when they are known comes later."""
    found.saccades = [(p.start, p.end, *p.move) for p in parts if not any(a <= p.end and p.start <= b for a, b in lost)]


def judged(found: Found, parts: list["Fast"], lost: list[tuple[int, int]], profile: Profile) -> None:
    """Saccades and lids of algorithm 2, likewise."""
    rest, longest = us(profile.detection.fixation_min_s), us(profile.detection.saccade_max_s)

    def free(start: int, end: int) -> bool:
        return not any(a <= end and start <= b for a, b in lost)

    pairs = [(a, b) for i, a in enumerate(parts) for b in parts[i:] if lid(a, b)]
    back = [(a, b) for i, a in enumerate(parts) for b in parts[i + 1 :] if b.start - a.end < rest and returns(a, b)]
    closed = [one for pair in pairs + back for one in pair]
    for first in parts:
        ends = [b.end for a, b in pairs if a is first]
        inside = any(a.start < first.start < b.end for a, b in pairs)
        if ends and not inside and free(first.start, min(ends)):
            found.lids.append((first.start, min(ends), first.end))
    chains: list[list[Fast]] = []
    for part in parts:
        if chains and one_way(chains[-1][-1], part):
            chains[-1].append(part)
        else:
            chains.append([part])
    for chain in chains:
        start, end, move = chain[0].start, chain[-1].end, chain[-1].path[-1] - chain[0].path[0]
        near = [p for p in parts if p.start - end < rest and start - p.end < rest]
        rings = any(np.hypot(*p.move) > 2 * np.hypot(*move) for p in near)
        if end - start <= longest and free(start, end) and not rings and not any(p in closed for p in chain):
            found.saccades.append((start, end, *move))


@dataclass(eq=False)
class Fast:
    """A fast run of a length that a saccade may have."""

    start: int
    end: int
    path: Array
    pupil: Array

    @property
    def move(self) -> Array:
        return np.asarray(self.path[-1] - self.path[0])

    @property
    def shrinks(self) -> float:
        sizes = self.pupil[np.isfinite(self.pupil)]
        return float(np.log(sizes[-1] / sizes[0])) if len(sizes) else np.nan


def lid(a: Fast, b: Fast) -> bool:
    """Whether the lid comes down and goes up in a and b, or in one run."""
    if b.end - a.start > us(0.4) or b.start - a.end > us(0.2):
        return False
    if a is b:
        far = np.hypot(*(a.path - a.path[0]).T).max()
        return bool(a.end - a.start >= us(0.06) and far >= 1.0 and np.hypot(*a.move) <= 0.4 * far)
    if a.shrinks <= -0.15 and b.shrinks >= 0.15:
        return True
    if a.shrinks >= 0 or b.shrinks <= 0:
        return False
    upright = all(abs(p.move[1]) >= abs(p.move[0]) for p in (a, b)) and a.move[1] * b.move[1] < 0
    return bool(upright and min(np.hypot(*p.move) for p in (a, b)) >= 1.0 and returns(a, b))


def returns(a: Fast, b: Fast) -> bool:
    """Whether b ends nearly where a began."""
    return bool(np.hypot(*(b.path[-1] - a.path[0])) <= 0.4 * max(np.hypot(*a.move), np.hypot(*b.move)))


def one_way(a: Fast, b: Fast) -> bool:
    """Whether a is followed at once by b in the same direction."""
    straight = a.move @ b.move > 0.5 * np.hypot(*a.move) * np.hypot(*b.move)
    return bool(b.start - a.end <= us(0.03) and straight)


def words(letters: Array, n: int) -> list[float]:
    """Over all 24^n words, one by one."""
    counts = np.zeros(24**n)
    for i in range(len(letters) - n + 1):
        counts[sum(int(letter) * 24**k for k, letter in enumerate(letters[i : i + n]))] += 1
    most, least = counts.max(), counts.min()
    return [np.count_nonzero(counts), most, least, most - least, counts.mean(), counts.var()]


def of(values: Array, how: Any) -> float:
    return float(how(values)) if len(values) else 0.0


def features(found: Found, end: int, any_pupil: bool, small_below: float) -> Array:
    def inside(columns: list[tuple[float, ...]], width: int) -> Array:
        table = np.array(columns, dtype=float).reshape(-1, width)
        return table[(table[:, 2] > end - 30 * US) & (table[:, 2] <= end)]

    f, s, b = inside(found.fixations, 7), inside(found.saccades, 5), inside(found.blinks, 3)
    amplitude, right = np.hypot(s[:, 3], s[:, 4]), s[:, 3] > 0
    angle, small = np.degrees(np.arctan2(s[:, 4], s[:, 3])), amplitude < small_below
    letters = np.where(small, np.round(angle / 45) % 8, 8 + np.round(angle / 22.5) % 16).astype(int)
    counts = [len(s), *(int(those.sum()) for those in (small, ~small, right, ~right))]
    out = [len(f) / 30, *(count / 30 for count in counts), len(s) / len(f) if len(f) else 0.0]
    out += [count / len(s) if len(s) else 0.0 for count in counts[1:]]
    out += [of(amplitude, np.mean), of(amplitude, np.var), of(amplitude, np.max)]
    lasting = (f[:, 1] - f[:, 0]) / US
    out += [of(lasting, np.mean), of(lasting, np.var), of(lasting, np.max)]
    out += [of(f[:, 3], np.mean), of(f[:, 4], np.mean), of(f[:, 3], np.var), of(f[:, 4], np.var)]
    p = f[~np.isnan(f[:, 5])]
    sizes = [of(p[:, 5], np.mean), of(p[:, 5], np.var), of(p[:, 6], np.mean), of(p[:, 6], np.var)]
    out += sizes if any_pupil else [np.nan] * 4
    lids = (b[:, 1] - b[:, 0]) / US
    out += [of(lids, np.mean), of(lids, np.var), len(b) / 30]
    for n in (1, 2, 3, 4):
        out += words(letters, n)
    return np.array(out, dtype=float)


def rows(samples: Samples, profile: Profile) -> tuple[Array, Array]:
    """Times (ticks) and rows up to the last sample, whose times must increase."""
    t = np.array([us(value) for value in (samples.t - samples.t[0]).tolist()])
    ok = samples.valid
    pupil = np.where(ok, samples.pupil_mm, np.nan)
    found = events(t[ok], samples.x[ok], samples.y[ok], pupil[ok], profile)
    ends = np.arange(30 * US, t[-1] + 1, US // 2)
    out = np.full((len(ends), 52), np.nan)
    for i, end in enumerate(ends.tolist()):
        window = (t > end - 30 * US) & (t <= end)
        due = round(30 * profile.rate_hz) if profile.rate_hz else 0
        if 2 * ok[window].sum() > max(window.sum(), due):
            any_pupil = bool(np.isfinite(pupil[window]).any())
            out[i] = features(found, end, any_pupil, profile.detection.small_below_deg)
    return ends, out
