"""Kaleido as its pseudocode is printed (David-John, Butler, Jain, TVCG 2023, supplement). **No guarantee of privacy.**

Three things are as in the text, and wrong (`eyestream_lab.kaleido` corrects them): line 24 sums what was spent over
the whole recording, so that the budget never comes back. The noise of a test is not scaled by r, so that tests cost r
times what they are charged. The skip is by the tracker's clock. Gaze is clamped to the field, which the text
does not say.
"""

import math

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.kaleido import Settings

__all__ = ["published_kaleido"]

Array = NDArray[np.float64]
_LEAST = 1e-300


def published_kaleido(
    moments: Array, gaze: Array, epsilon: float, settings: Settings, rng: np.random.Generator
) -> Array:
    """(n, 2) outputs for gaze (n, 2) in degrees; a lost sample is NaN, and repeats the last output.

    Parameters
    ----------
    moments
        (n,) of the tracker's clock, in nominal samples.
    """
    half = np.array([settings.width_deg, settings.height_deg]) / 2
    test_epsilon = epsilon / (settings.h * settings.tests)
    spent, tested, published = 0.0, -math.inf, False
    output, outputs = np.zeros(2), np.empty_like(gaze)
    for i, (now, place) in enumerate(zip(moments.tolist(), gaze, strict=True)):
        outputs[i] = output
        if now - tested < settings.skip or not np.isfinite(place).all():
            continue
        tested = now
        apart = float(np.hypot(*(place - output)))
        if published and apart <= settings.threshold_deg + rng.laplace(0.0, 1.0 / test_epsilon):
            continue
        own = max((epsilon - epsilon / settings.h - spent) / 2, _LEAST)
        spent += own
        angle, radius = rng.uniform(0.0, 2.0 * math.pi), rng.gamma(2.0, settings.r_deg / own)
        noise = radius * np.array([math.cos(angle), math.sin(angle)])
        output, published = np.clip(place + noise, -half, half), True
        outputs[i] = output
    return outputs
