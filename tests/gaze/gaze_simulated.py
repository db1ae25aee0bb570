"""Labelled gaze that is made up: fixations with drift and noise, saccades of the main sequence, blinks, pursuits."""

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.profile import Profile
from eyestream.gaze.samples import Samples
from eyestream.gaze.tables import Columns, Detection


def profile(rate_hz: float, **detection: float) -> Profile:
    """Degrees, with a pupil."""
    columns = Columns("t_s", ("x_deg", "y_deg"), pupil=("pupil_mm",))
    made = Detection(**detection)
    return Profile("simulated", rate_hz, "s", "deg", "up", columns, detection=made, pupil_unit="mm")


def gaze(
    rate_hz: float,
    seconds: float,
    seed: int = 0,
    *,
    noise_deg: float = 0.03,
    pursuits: float = 0.05,
    jitter_s: float = 0.0,
    start_s: float = 0.0,
) -> tuple[Samples, NDArray[np.str_]]:
    """Samples and true labels: F, S, B, P.

    Saccades follow the main sequence (duration 2.2 ms per degree and 21 ms, Carpenter 1988) with a minimum-jerk course;
    amplitudes are exponential with mean 5 degrees; fixations last 0.09 s and a gamma time with mean 0.23 s more.
    Drift is a random walk of 0.15 deg in a second; a share `pursuits` of the fixations moves at 3 to 15 deg/s.
    Before and after a blink the lid drags gaze down and up.
    """
    rng = np.random.default_rng(seed)
    n = int(seconds * rate_hz)
    fine = 4  # the path is made at four times the rate, and the noise added at the rate
    dt = 1.0 / (rate_hz * fine)
    place, paths, letters, made = np.zeros(2), [], [], 0
    while made < n * fine:
        following = rng.random() < pursuits
        steps = int((0.09 + rng.gamma(2.0, 0.115)) * (3.0 if following else 1.0) / dt) + 1
        drift = np.cumsum(rng.normal(0.0, 0.15 * np.sqrt(dt), (steps, 2)), axis=0)
        if following:
            angle, speed = rng.uniform(0, 2 * np.pi), rng.uniform(3.0, 15.0)
            drift += np.outer(np.arange(steps) * dt * speed, (np.cos(angle), np.sin(angle)))
        paths.append(place + drift)
        letters.append(np.full(steps, "P" if following else "F"))
        place = paths[-1][-1]
        made += steps
        if rng.random() < 0.06:
            for letter, lost, course in (("B", False, -6.0), ("B", True, 0.0), ("B", False, 6.0)):
                steps = int((rng.uniform(0.1, 0.25) if lost else 0.03) / dt) + 1
                path = place + np.outer(np.linspace(0, 1, steps) ** 2, (0.0, course))
                paths.append(np.full((steps, 2), np.nan) if lost else path)
                letters.append(np.full(steps, letter))
                place = place if lost else path[-1]
                made += steps
            continue
        amplitude = min(0.5 + rng.exponential(5.0), 25.0)
        target = rng.normal(0.0, 6.0, 2) if np.hypot(*place) > 12 else place + rng.normal(0.0, 1.0, 2)
        toward = (target - place) / np.hypot(*(target - place))
        steps = max(2, int((0.021 + 0.0022 * amplitude) / dt))
        s = np.linspace(0.0, 1.0, steps)
        paths.append(place + np.outer(amplitude * (10 * s**3 - 15 * s**4 + 6 * s**5), toward))
        letters.append(np.full(steps, "S"))
        place = paths[-1][-1]
        made += steps
    path = np.concatenate(paths)[: n * fine : fine] + rng.normal(0.0, noise_deg, (n, 2))
    t = start_s + np.arange(n) / rate_hz + rng.uniform(-jitter_s, jitter_s, n)
    pupil = 3.0 + 0.3 * np.sin(t / 7.0) + rng.normal(0.0, 0.01, n)
    pupil[np.isnan(path[:, 0])] = np.nan
    return Samples.of(t, path[:, 0], path[:, 1], pupil), np.concatenate(letters)[: n * fine : fine]
