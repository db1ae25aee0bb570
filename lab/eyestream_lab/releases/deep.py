"""Identification by a dense network on samples (`eyestream_lab.study.people.deep`). Needs the extra `deep`.

Eye Know You Too reads velocities alone. This attacker reads places too, because released gaze may have no other motion
than from place to place. A window has 128 samples: 2.1 s at 60 Hz, where the paper has 5 s.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eyestream.rim.files.gaze import GazeRecording
from eyestream_lab.releases.gaze import GazePeople, places
from eyestream_lab.releases.measures import right
from eyestream_lab.study.people.deep import LearningSettings, sequence_scores

Array = NDArray[np.float64]

SAMPLES = "dense network on samples"
_FASTEST_DEG_PER_S = 1000.0


def recognised_by_samples(
    known: GazePeople,
    unknown: Sequence[GazePeople],
    splits: Sequence[tuple[list[str], list[str]]],
    settings: type[LearningSettings] = LearningSettings,
) -> Array:
    """(u, N) share of splits in which a network, learned from `known`, names each person rightly."""
    people, found = sorted(known), []
    for seed, (learn, test) in enumerate(splits):
        labelled = [[sample_rows(known[name][task]) for task in learn] for name in people]
        others = [[sample_rows(own[name][task]) for name in people for task in test] for own in unknown]
        scores = sequence_scores(labelled, others, (), seed, settings)
        found.append([right(one.reshape(len(people), len(test), -1).mean(axis=1)) for one in scores])
    return np.asarray(np.mean(found, axis=0))


def sample_rows(recording: GazeRecording) -> Array:
    """(n, 5) velocity and place, each of x and y, and whether both are there; zeros where they are not."""
    xy = places(recording)
    speed = np.diff(xy, axis=0, prepend=xy[:1]) * recording.profile.fixed_rate_hz
    speed = np.clip(speed, -_FASTEST_DEG_PER_S, _FASTEST_DEG_PER_S)
    return np.column_stack((np.nan_to_num(speed), np.nan_to_num(xy), np.isfinite(speed).all(axis=1)))
