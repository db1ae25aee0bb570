"""Gaze of simulated eyes with the events that truly happened, blinks as video trackers see them, and its scores.

Not `eyestream simulate`, whose gaze stays the same from version to version. What is here beside it, with its source:

- A saccade lasts 21 ms and 2.2 ms a degree (Carpenter 1988), with the minimum-jerk course. The pupil then swings in the
  iris: a damped wave of 20 to 30 Hz, of 4 to 15 % of the amplitude (Nyström, Hooge and Holmqvist 2013). One coder
  in two calls it saccade, the others fixation.
- Noise is white, with a part that is remembered for some samples.
- A blink closes the lid in about 60 ms and opens it in about 150 ms (Caffier, Erdmann and Ullsperger 2003). The lid
  covers the pupil, of diameter D, from above. Where it covers the share o of it, the middle of the rest lies o D / 2
  lower, which a tracker takes for a turn of the eye: the pupil moves by 0.175 mm a degree (a radius of 10 mm). It sees
  the diameter of a disc with the area that is left.
- What a tracker does in a blink: it loses the eye when much of the pupil is covered ("lost"), it follows what is left,
  because lids do not always close ("kept"), or it says anything in between ("noise").
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.events import Saccade
from eyestream.gaze.profile import TICKS_PER_S, Algorithm, Columns, Profile
from eyestream.gaze.samples import Samples
from eyestream_lab.events.labels import detect

__all__ = ["BLINKS", "Eye", "Spans", "Tally", "recording", "saccades", "tally"]

Array = NDArray[np.float64]
Labels = NDArray[np.str_]
Spans = list[tuple[int, int]]

BLINKS = ("lost", "kept", "noise")
_FINE_HZ = 2_000.0
_FIELD_DEG = 12.0
_DEG_MM = 0.175


@dataclass(frozen=True, slots=True)
class Eye:
    """One simulated eye before one tracker.

    Attributes
    ----------
    rate_hz, noise_deg
        Of the tracker.
    blinks
        What the tracker does in blinks.
    pupil
        Whether it measures diameters.
    """

    rate_hz: float
    noise_deg: float
    blinks: str
    pupil: bool = True


def recording(eye: Eye, seconds: float, rng: np.random.Generator) -> tuple[Samples, Labels]:
    """Samples, and one letter each: F, S, B, or P for a pursuit."""
    ringing = str(rng.choice(["S", "F"]))
    fixation_s, amplitude_deg = rng.uniform(0.15, 0.3), rng.uniform(3.0, 6.0)
    place, made = np.zeros(2), 0
    paths: list[Array] = []
    letters: list[Labels] = []
    blinks: list[tuple[int, Array]] = []
    while made < seconds * _FINE_HZ:
        following = rng.random() < 0.08
        rest = _rest(place, fixation_s * (3.0 if following else 1.0), following, rng)
        parts = [("P" if following else "F", rest)]
        if rng.random() < 0.08:
            lid = _lid(rng, eye.blinks)
            blinks.append((made + len(rest), lid))
            parts.append(("B", np.repeat(rest[-1:], len(lid), axis=0) + rng.normal(0, 0.3, 2) * _course(len(lid))))
        else:
            jump, wave = _saccade(rest[-1], amplitude_deg, rng)
            parts += [("S", jump), (ringing, wave)]
        for letter, path in parts:
            paths.append(path)
            letters.append(np.full(len(path), letter))
            made += len(path)
        place = paths[-1][-1]
    return _seen(eye, np.concatenate(paths), np.concatenate(letters), blinks, rng)


def _course(n: int) -> Array:
    """(n, 1) from 0 to 1 as a hand or an eye goes: the least jerk."""
    s = np.linspace(0.0, 1.0, n)[:, None]
    return 10 * s**3 - 15 * s**4 + 6 * s**5


def _rest(place: Array, mean_s: float, following: bool, rng: np.random.Generator) -> Array:
    n = int((0.09 + rng.gamma(2.0, mean_s / 2)) * _FINE_HZ) + 1
    path = place + np.cumsum(rng.normal(0.0, 0.2 / np.sqrt(_FINE_HZ), (n, 2)), axis=0)
    if following:
        angle, speed = rng.uniform(0.0, 2 * np.pi), rng.uniform(3.0, 18.0)
        path += np.outer(np.arange(n) / _FINE_HZ * speed, (np.cos(angle), np.sin(angle)))
    return path


def _saccade(place: Array, mean_deg: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """The jump, and the swing after it."""
    size = min(0.5 + rng.exponential(mean_deg), 25.0)
    outside = np.hypot(*place) > _FIELD_DEG
    way = rng.normal(0.0, 6.0, 2) - place if outside else rng.normal(0.0, 1.0, 2) * (1.5, 1.0)
    move = size * way / np.hypot(*way)
    jump = place + _course(int((0.021 + 0.0022 * size) * _FINE_HZ)) * move
    t = np.arange(int(0.025 * _FINE_HZ)) / _FINE_HZ
    wave = rng.uniform(0.04, 0.15) * np.exp(-t / 0.012) * np.sin(2 * np.pi * rng.uniform(20.0, 30.0) * t)
    return jump, jump[-1] + np.outer(wave, min(1.0, 8.0 / size) * move)


def _lid(rng: np.random.Generator, blinks: str) -> Array:
    """Share of the pupil that the lid covers, over a blink."""
    depth = 1.0 if blinks != "kept" else rng.uniform(0.25, 0.9)
    close, stay, opening = (int(s * _FINE_HZ) for s in rng.uniform((0.05, 0.01, 0.1), (0.09, 0.08, 0.2)))
    down, up = _course(close)[:, 0], _course(opening)[::-1, 0]
    return np.asarray(depth * np.concatenate((down, np.ones(stay), up)))


def _seen(
    eye: Eye, path: Array, letters: Labels, blinks: list[tuple[int, Array]], rng: np.random.Generator
) -> tuple[Samples, Labels]:
    """What the tracker says of it."""
    covered = np.zeros(len(path))
    for begin, lid in blinks:
        covered[begin : begin + len(lid)] = lid[: len(path) - begin]
    index = np.arange(int(len(path) * eye.rate_hz / _FINE_HZ) - 1) * _FINE_HZ / eye.rate_hz
    kept = index.astype(np.intp)
    n, o = len(kept), covered[kept]
    diameter = 3.5 + 0.2 * np.sin(2 * np.pi * np.arange(n) / eye.rate_hz / rng.uniform(3.0, 9.0))
    gaze = path[kept] - np.outer(o * diameter / 2 / _DEG_MM, (rng.normal(0.0, 0.2), 1.0))
    gaze += eye.noise_deg * (rng.normal(size=(n, 2)) + _remembered(rng.normal(size=(n, 2)))) / np.sqrt(2.0)
    if eye.blinks == "noise":
        wild = o > 0.6
        gaze[wild] += rng.normal(0.0, 8.0, (int(wild.sum()), 2))
    lost = (
        (o > 0.6) if eye.blinks == "lost" else (o > 0.6) & (rng.random(n) < 0.4) if eye.blinks == "noise" else o > 0.95
    )
    gaze[lost] = np.nan
    pupil = diameter * np.sqrt(np.clip(1.0 - o, 0.05, 1.0)) + rng.normal(0.0, 0.02, n)
    t = np.arange(n) / eye.rate_hz
    return Samples.of(t, gaze[:, 0], gaze[:, 1], pupil if eye.pupil else None), letters[kept]


def _remembered(white: Array) -> Array:
    """Of variance 1, with a memory of three samples."""
    out, a = white.copy(), 0.7
    for i in range(1, len(out)):
        out[i] = a * out[i - 1] + np.sqrt(1 - a * a) * white[i]
    return out


def saccades(samples: Samples, rate_hz: float, algorithm: Algorithm) -> Spans:
    """What eyestream finds: first sample and the one after the last, of each."""
    columns = Columns("t_s", ("x_deg", "y_deg"), pupil=("pupil_mm",))
    events, _ = detect(Profile("simulated", rate_hz, "s", "deg", "up", columns, pupil_unit="mm"), samples, algorithm)
    ends = np.array([(e.start, e.end) for e in events if isinstance(e, Saccade)]).reshape(-1, 2)
    t = np.rint((samples.t - samples.t[0]) * TICKS_PER_S)
    return [(int(a), int(b)) for a, b in np.searchsorted(t, ends).tolist()]


@dataclass(frozen=True, slots=True)
class Tally:
    """Saccades found and true, of one recording or of several.

    Attributes
    ----------
    hits
        Pairs that overlap by half of what they cover together.
    first
        True ones whose first found one has found no other.
    in_blinks
        Found ones of which most lies in a true blink.
    splits
        True ones that several found ones overlap.
    """

    true: int = 0
    found: int = 0
    hits: int = 0
    first: int = 0
    in_blinks: int = 0
    splits: int = 0

    @property
    def f1(self) -> float:
        """Of pairs that overlap by half."""
        return 2 * self.hits / max(1, self.true + self.found)

    @property
    def f1_first(self) -> float:
        """Of first overlaps."""
        return 2 * self.first / max(1, self.true + self.found)

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


def tally(truth: Labels, found: Spans) -> Tally:
    """Of found saccades, as first sample and the one after the last, in order; those in pursuits are left out."""
    wanted = _runs(truth == "S")
    found = [(a, b) for a, b in found if (truth[a:b] == "P").mean() < 0.5]
    hits = first = splits = 0
    for a, b in wanted:
        over = [(c, d) for c, d in found if c < b and d > a]
        hits += any(2 * (min(b, d) - max(a, c)) >= max(b, d) - min(a, c) for c, d in over)
        first += bool(over)
        splits += len(over) > 1
    in_blinks = sum((truth[a:b] == "B").mean() > 0.5 for a, b in found)
    return Tally(len(wanted), len(found), hits, first, int(in_blinks), splits)


def _runs(member: NDArray[np.bool_]) -> Spans:
    edges = np.flatnonzero(np.diff(np.concatenate(([0], member.astype(np.int8), [0]))))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
