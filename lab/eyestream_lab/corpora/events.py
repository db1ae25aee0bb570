"""Models of the fixations and saccades of one recording (David-John, Butler, Jain, TVCG 2023), and samples made of
them.

A **fixation** is mean and standard deviation of x and of y, and a number of samples. It is synthesised as so many
independent normal draws.

A **saccade** is a profile of its speed over normalised time u in [0, 1], G(u) = a exp(-(u - b)^2 / c), fitted by least
squares to its speeds, resampled to 30 points. It is synthesised as steps on a straight line, as long as G says at the
event's own number of samples. The steps are scaled so that the saccade ends where the next event begins: without this,
which the paper does not do, a synthetic eye would jump.

Samples outside any event are lost in what is synthesised.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import RecordingError
from eyestream.gaze.events import Fixation, Saccade
from eyestream.rim.files.gaze import GazeRecording
from eyestream_lab.corpora.draws import Draws
from eyestream_lab.corpora.kinds import on_grid
from eyestream_lab.events.labels import detect

Array = NDArray[np.float64]
Whole = NDArray[np.intp]

POINTS = 30
LEAST_SD_DEG = 0.01
"""A fixation whose samples are all alike would have density without bound; this is the published box."""
_ROUNDS = 30


@dataclass(frozen=True)
class Timeline:
    """When the E events of a recording of n samples are, without where the eye was.

    Attributes
    ----------
    samples
        n.
    begin, end
        (E,) first sample of each event, and the one after its last; increasing, without overlap.
    is_fixation
        (E,)
    """

    samples: int
    begin: Whole
    end: Whole
    is_fixation: NDArray[np.bool_]


@dataclass(frozen=True)
class Events:
    """Models of the events of a recording.

    Attributes
    ----------
    timeline
        When they are.
    mean, sd
        (f, 2) of the samples of each fixation, x and y in degrees; sd at least `LEAST_SD_DEG`.
    profile
        (s, 3) a, b, c of each saccade; a in degrees a sample.
    landing
        (s, 2) where each saccade ended.
    speeds
        (s, 30) of each saccade, degrees a sample.
    """

    timeline: Timeline
    mean: Array
    sd: Array
    profile: Array
    landing: Array
    speeds: Array


def events_of(recording: GazeRecording) -> Events:
    """The models of a recording.

    Raises
    ------
    RecordingError
        when it has no fixation or no saccade.
    """
    samples = recording.samples
    events, letters = detect(recording.profile, samples)
    where = np.round((samples.t - samples.t[0]) * 1e6).astype(np.int64)
    found = [event for event in events if isinstance(event, Fixation | Saccade)]
    spans = [np.searchsorted(where, [event.start, event.end]) for event in found]
    kept = [
        (int(a), int(b), isinstance(event, Fixation))
        for event, (a, b) in zip(found, spans, strict=True)
        if b - a >= 2 and samples.valid[a:b].all() and (letters[a:b] == type(event).__name__[0]).all()
    ]
    xy = np.stack((samples.x, samples.y), axis=1)
    fixations = [xy[a:b] for a, b, fixed in kept if fixed]
    saccades = [xy[a:b] for a, b, fixed in kept if not fixed]
    if not fixations or not saccades:
        raise RecordingError(f"{recording.path}: has no {'saccade' if fixations else 'fixation'} to make a model of")
    begin, end = (np.array([one[i] for one in kept], dtype=np.intp) for i in (0, 1))
    speeds = np.array([_resampled(great_circle_deg(one[:-1], one[1:])) for one in saccades])
    return Events(
        Timeline(len(samples), begin, end, np.array([one[2] for one in kept])),
        np.array([one.mean(axis=0) for one in fixations]),
        np.maximum([one.std(axis=0) for one in fixations], LEAST_SD_DEG),
        fitted(speeds),
        np.array([one[-1] for one in saccades]),
        speeds,
    )


def great_circle_deg(start: Array, end: Array) -> Array:
    """Angle between directions (n, 2) of azimuth and elevation in degrees (haversine)."""
    (x0, y0), (x1, y1) = np.radians(start).T, np.radians(end).T
    half = np.sin((y1 - y0) / 2) ** 2 + np.cos(y0) * np.cos(y1) * np.sin((x1 - x0) / 2) ** 2
    return np.asarray(np.degrees(2.0 * np.arcsin(np.sqrt(np.clip(half, 0.0, 1.0)))))


def _resampled(speeds: Array) -> Array:
    """`POINTS` values on the straight lines between the speeds."""
    return np.interp(np.linspace(0, 1, POINTS), np.linspace(0, 1, len(speeds)), speeds)


def fitted(speeds: Array) -> Array:
    """(s, 3) a, b, c of profiles (s, 30) by least squares: Levenberg and Marquardt, all profiles side by side."""
    u = np.linspace(0, 1, POINTS)
    best = np.stack((speeds.max(axis=1), u[speeds.argmax(axis=1)], np.full(len(speeds), 0.1)), axis=1)
    damping, error = np.full(len(speeds), 1e-2), _squares(best, speeds, u)
    for _ in range(_ROUNDS):
        a, b, c = best.T[:, :, None]
        bell = np.exp(-((u - b) ** 2) / c)
        slopes = np.stack((bell, a * bell * 2 * (u - b) / c, a * bell * (u - b) ** 2 / c**2), axis=2)
        square = np.einsum("spi,spj->sij", slopes, slopes)
        toward = np.einsum("spi,sp->si", slopes, speeds - a * bell)
        weight = damping[:, None] * np.einsum("sii->si", square) + 1e-12
        tried = best + np.linalg.solve(square + weight[:, :, None] * np.eye(3), toward[:, :, None])[:, :, 0]
        tried = np.stack((tried[:, 0], np.clip(tried[:, 1], -1.0, 2.0), np.clip(tried[:, 2], 1e-3, 10.0)), axis=1)
        new = _squares(tried, speeds, u)
        better = new < error
        best, error = np.where(better[:, None], tried, best), np.where(better, new, error)
        damping = np.clip(np.where(better, damping / 3, damping * 4), 1e-9, 1e9)
    return best


def _squares(parameters: Array, speeds: Array, u: Array) -> Array:
    a, b, c = parameters.T[:, :, None]
    return np.asarray(((speeds - a * np.exp(-((u - b) ** 2) / c)) ** 2).sum(axis=1))


def steps_of(profile: Array, count: int) -> Array:
    """(count,) shares of a saccade's way after each of its samples, increasing to 1."""
    a, b, c = profile
    u = np.linspace(0, 1, count) if count > 1 else np.array([0.5])
    speed = np.maximum(np.abs(a) * np.exp(-((u - b) ** 2) / max(c, 1e-3)), 1e-12)
    return np.asarray(np.cumsum(speed) / speed.sum())


@dataclass
class Canvas:
    """Samples that are being synthesised, lost where nothing has been put."""

    timeline: Timeline

    def __post_init__(self) -> None:
        self.xy = np.full((self.timeline.samples, 2), np.nan)
        self.letters = np.full(self.timeline.samples, "-")
        self.last: Array | None = None

    def fixation(self, event: int, xy: Array) -> None:
        """Put the samples (t, 2) of a fixation."""
        self._put(event, xy, "F")

    def saccade(self, event: int, profile: Array, landing: Array) -> None:
        """Put a saccade from where the eye was last to `landing`; the first one of a recording has no way."""
        count = int(self.timeline.end[event] - self.timeline.begin[event])
        start = landing if self.last is None else self.last
        self._put(event, start + steps_of(profile, count)[:, None] * (landing - start), "S")

    def recording(self, rate_hz: float) -> GazeRecording:
        """Gaze that was put, on the nominal grid, in degrees, without pupils."""
        return on_grid(self.xy, rate_hz, self.letters)

    def _put(self, event: int, xy: Array, letter: str) -> None:
        span = slice(int(self.timeline.begin[event]), int(self.timeline.end[event]))
        self.xy[span], self.letters[span], self.last = xy, letter, xy[-1]


def normal_fixation(mean: Array, sd: Array, count: int, draws: Draws) -> Array:
    """(count, 2) independent normal draws."""
    return np.asarray(mean + sd * draws.normal(count, 2))
