"""Simulated public people at tasks, as a calibration of words takes them."""

from functools import cache

import numpy as np

from eyestream.core.calibration import Calibration
from eyestream.rim.files.recordings import Recording
from eyestream_lab.words.calibrate import calibrate_words
from eyestream_lab.words.directions import LabelledSession
from tests.rigs.linking.people import Parts, simulate_tasks

__all__ = ["NAMES", "RATE_HZ", "SESSIONS", "TASKS", "N", "calibration", "people"]

N, RATE_HZ, SESSIONS = 4, 2.0, 3
TASKS = ("browse", "play", "read")
NAMES = ("rate", "length", "height", "angle", "lost", "constant")


def people(count: int, seed: int, sessions: int = 6) -> list[list[LabelledSession]]:
    """With a feature that is lost everywhere, and one that is constant."""
    found = []
    for own in simulate_tasks(
        Parts(person=4.0, task=4.0, spread=0.1), count, sessions, seed, tasks=len(TASKS), features=len(NAMES) - 2
    ):
        recordings = []
        for session in own:
            rows = np.column_stack([session.rows, np.full(len(session.rows), np.nan), np.full(len(session.rows), 7.0)])
            t = np.arange(len(rows)) / RATE_HZ
            recordings.append(LabelledSession(TASKS[session.task], Recording(t, rows, NAMES, f"p{len(found)}")))
        found.append(recordings)
    return found


@cache
def calibration() -> Calibration:
    """Of 20 people."""
    return calibrate_words(people(20, 1), N, sessions=SESSIONS)
