"""Gaze of people who do not exist: fixations, saccades, pursuits and blinks, with labels of what truly happened.

The path of the eye is made at four times the sampling rate, and the tracker's noise added at the rate.

- A fixation lasts 0.09 s and a gamma time more; it drifts as a random walk. A few are pursuits of 3 to 15 deg/s.
- A saccade follows the main sequence: 2.2 ms a degree and 21 ms (Carpenter, Movements of the Eyes, 1988), with the
  minimum-jerk course 10 s^3 - 15 s^4 + 6 s^5 (Flash and Hogan 1985). Amplitudes are exponential, at most 25 degrees.
- A blink loses gaze and pupil; the lid drags gaze down before it and up behind it.
- The pupil's diameter is a level with a slow process of a few seconds' memory.

What differs between people: how long they fixate, how far they jump, how much more along the horizontal, how often and
how long they blink, their pupil, and the tracker's noise on them. Nobody's data is in it: the ranges are those that
textbooks give. The seed is of the simulation only, no secret.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import ConfigError
from eyestream.gaze.profile import LONGEST_RATE_HZ, SHORTEST_RATE_HZ
from eyestream.gaze.samples import Samples

Array = NDArray[np.float64]
Labels = NDArray[np.str_]

GENERATOR = 1
"""Version of the generator: the same version, seed, rate and length give the same samples."""

LONGEST_S = 14_400
_FINE = 4
_LARGEST_DEG, _SMALLEST_DEG, _FIELD_DEG = 25.0, 0.5, 12.0
_LID_DEG, _LID_S = 6.0, 0.03
_PUPIL_MEMORY_S = 4.0


@dataclass(frozen=True, slots=True)
class GazePerson:
    """Traits of one person.

    Attributes
    ----------
    noise_deg
        Standard deviation of the tracker's noise, independent from sample to sample.
    drift_deg
        Of the random walk in one second of a fixation.
    fixation_s, amplitude_deg
        Means: of a fixation beyond 0.09 s; of a saccade beyond 0.5 degrees.
    horizontal
        Factor on the horizontal part of where the next saccade goes.
    pursuits, blinks
        Share of the fixations that are pursuits; that end with a blink.
    blink_s
        Shortest and longest loss.
    pupil_mm, pupil_sd_mm
        Mean and standard deviation over time.
    """

    noise_deg: float = 0.03
    drift_deg: float = 0.15
    fixation_s: float = 0.23
    amplitude_deg: float = 5.0
    horizontal: float = 1.0
    pursuits: float = 0.05
    blinks: float = 0.06
    blink_s: tuple[float, float] = (0.1, 0.25)
    pupil_mm: float = 3.0
    pupil_sd_mm: float = 0.2


def gaze_person(rng: np.random.Generator) -> GazePerson:
    """A new person."""
    shortest = float(rng.uniform(0.06, 0.14))
    return GazePerson(
        noise_deg=float(np.exp(rng.normal(np.log(0.04), 0.4))),
        drift_deg=float(rng.uniform(0.1, 0.25)),
        fixation_s=float(np.clip(rng.normal(0.23, 0.05), 0.1, 0.4)),
        amplitude_deg=float(np.clip(rng.normal(5.0, 1.2), 2.0, 9.0)),
        horizontal=float(rng.uniform(1.0, 2.0)),
        pursuits=float(rng.uniform(0.0, 0.1)),
        blinks=float(rng.uniform(0.02, 0.12)),
        blink_s=(shortest, shortest + float(rng.uniform(0.08, 0.2))),
        pupil_mm=float(np.clip(rng.normal(3.6, 0.6), 2.2, 6.0)),
        pupil_sd_mm=float(rng.uniform(0.1, 0.3)),
    )


def simulate_gaze(people: int, rate_hz: float, seconds: float, seed: int) -> Iterator[tuple[Samples, Labels]]:
    """Samples and labels of `people` simulated people, one after the other; person i is the same in any number.

    Raises
    ------
    ConfigError
        A number is out of range.
    """
    fits = SHORTEST_RATE_HZ <= rate_hz <= LONGEST_RATE_HZ and 1.0 <= seconds <= LONGEST_S
    if people < 1 or seed < 0 or not fits:
        wanted = f"{SHORTEST_RATE_HZ:g} to {LONGEST_RATE_HZ:g} samples a second, 1 to {LONGEST_S} seconds"
        raise ConfigError(f"a simulation of gaze needs 1 person or more, {wanted} and a seed of 0 or more")
    for person in range(people):
        rng = np.random.default_rng((GENERATOR, seed, person))
        yield gaze_of(gaze_person(rng), rate_hz, seconds, rng)


def gaze_of(
    person: GazePerson,
    rate_hz: float,
    seconds: float,
    rng: np.random.Generator,
    *,
    jitter_s: float = 0.0,
    start_s: float = 0.0,
) -> tuple[Samples, Labels]:
    """Samples of `person` and one true label each: F fixation, S saccade, B blink, P pursuit.

    Parameters
    ----------
    jitter_s
        Times are off their grid by up to this.
    start_s
        Time of the first sample.
    """
    n = int(seconds * rate_hz)
    dt = 1.0 / (rate_hz * _FINE)
    place, paths, letters, made = np.zeros(2), [np.zeros((0, 2))], [np.zeros(0, dtype="<U1")], 0
    while made < n * _FINE:
        for letter, path, lost in _turn(person, place, dt, rng):
            paths.append(np.full(path.shape, np.nan) if lost else path)
            letters.append(np.full(len(path), letter))
            place, made = path[-1], made + len(path)
    path = np.concatenate(paths)[: n * _FINE : _FINE] + rng.normal(0.0, person.noise_deg, (n, 2))
    t = start_s + np.arange(n) / rate_hz + rng.uniform(-jitter_s, jitter_s, n)
    pupil = _pupil(person, rate_hz, n, rng)
    pupil[np.isnan(path[:, 0])] = np.nan
    return Samples.of(t, path[:, 0], path[:, 1], pupil), np.concatenate(letters)[: n * _FINE : _FINE]


def _turn(person: GazePerson, place: Array, dt: float, rng: np.random.Generator) -> Iterator[tuple[str, Array, bool]]:
    """A fixation or pursuit from `place`, then a saccade or blink: letter, (k, 2) path, whether it is lost."""
    following = rng.random() < person.pursuits
    steps = int((0.09 + rng.gamma(2.0, person.fixation_s / 2)) * (3.0 if following else 1.0) / dt) + 1
    path = place + np.cumsum(rng.normal(0.0, person.drift_deg * np.sqrt(dt), (steps, 2)), axis=0)
    if following:
        angle, speed = rng.uniform(0.0, 2.0 * np.pi), rng.uniform(3.0, 15.0)
        path += np.outer(np.arange(steps) * dt * speed, (np.cos(angle), np.sin(angle)))
    yield "P" if following else "F", path, False
    place = path[-1]
    if rng.random() < person.blinks:
        closing = place - np.outer(np.linspace(0.0, 1.0, int(_LID_S / dt) + 1) ** 2, (0.0, _LID_DEG))
        yield "B", closing, False
        yield "B", np.repeat(closing[-1:], int(rng.uniform(*person.blink_s) / dt) + 1, axis=0), True
        yield "B", closing[::-1], False
        return
    amplitude = min(_SMALLEST_DEG + rng.exponential(person.amplitude_deg), _LARGEST_DEG)
    outside = np.hypot(*place) > _FIELD_DEG
    way = rng.normal(0.0, _FIELD_DEG / 2, 2) - place if outside else rng.normal(0.0, 1.0, 2) * (person.horizontal, 1.0)
    steps = max(2, int((0.021 + 0.0022 * amplitude) / dt))
    s = np.linspace(0.0, 1.0, steps)
    yield "S", place + np.outer(amplitude * (10 * s**3 - 15 * s**4 + 6 * s**5), way / np.hypot(*way)), False


def _pupil(person: GazePerson, rate_hz: float, n: int, rng: np.random.Generator) -> Array:
    """(n,) diameters in mm: nodes of an autoregressive process each half second, joined by lines, and noise."""
    step = 0.5
    nodes = np.zeros(int(n / rate_hz / step) + 3)
    kept = np.exp(-step / _PUPIL_MEMORY_S)
    value = rng.normal()
    for i, push in enumerate(rng.normal(0.0, np.sqrt(1 - kept**2), len(nodes))):
        nodes[i] = value = kept * value + push
    course = np.interp(np.arange(n) / rate_hz, np.arange(len(nodes)) * step, nodes)
    return np.asarray(np.clip(person.pupil_mm + person.pupil_sd_mm * course, 1.5, 8.0) + rng.normal(0.0, 0.01, n))
