"""Events as one letter a sample: F fixation, S saccade, B blink, - none."""

import dataclasses
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from eyestream.gaze.detector import Detector
from eyestream.gaze.events import Blink, Event, Fixation, Saccade
from eyestream.gaze.profile import NEWEST, Algorithm, Profile
from eyestream.gaze.samples import Samples
from eyestream.gaze.timeline import Timeline

_DAY_S = 86_400.0

Labels = NDArray[np.str_]


def label(t: NDArray[np.int64], events: Iterable[Event]) -> Labels:
    """(n,) letters of the samples at the increasing ticks `t`; blinks win over saccades, and these over fixations."""
    letters = np.full(len(t), "-")
    ordered = sorted(events, key=lambda event: (Fixation, Saccade, Blink).index(type(event)))
    for event in ordered:
        a, b = np.searchsorted(t, [event.start, event.end])
        letters[a:b] = type(event).__name__[0]
    return letters


def detect(profile: Profile, samples: Samples, algorithm: Algorithm = NEWEST) -> tuple[list[Event], Labels]:
    """The events of a whole recording, in the order of their beginnings, and one letter a sample.

    They are those of an algorithm. Rows are made by the profile's own one, because calibrations belong to it.

    The last samples are followed by silence. A sample whose time does not go forward, is missing, or is more than a day
    ahead, tells nothing, and has the letter of the sample before it: no event ends because of it.
    """
    t, which = Timeline(_DAY_S).take(samples.t)
    if len(t) == 0:
        return [], np.full(len(samples), "-")
    detection = dataclasses.replace(profile.detection, algorithm=algorithm)
    profile = dataclasses.replace(profile, detection=detection)
    values = np.stack((samples.x[which], samples.y[which], samples.pupil_mm[which]))
    tracked = samples.valid[which]
    after = int(t[-1]) + profile.memory_ticks + profile.delay_ticks
    events = Detector(profile).take(t[tracked], values[:, tracked], after)
    events.sort(key=lambda event: event.start)
    letters = np.full(len(samples), "-")
    letters[which] = label(t, events)
    before = np.zeros(len(samples), dtype=np.intp)
    before[which] = which
    return events, letters[np.maximum.accumulate(before)]


def count(samples: Samples, events: Iterable[Event], letters: Labels) -> dict[str, int]:
    """Fixations, saccades and blinks of what `detect` found, by letter: runs of one letter.

    A tracker that sends nothing while the eye is lost leaves a gap in time. A blink in it has no sample, and so no
    letter: it counts, and ends the run before it.
    """
    t, which = Timeline(_DAY_S).take(samples.t)
    told = letters[which]
    begins = np.concatenate((np.ones(min(len(told), 1), dtype=np.bool_), told[1:] != told[:-1]))
    blinks = np.array([(event.start, event.end) for event in events if isinstance(event, Blink)]).reshape(-1, 2)
    first, after = np.searchsorted(t, blinks[:, 0]), np.searchsorted(t, blinks[:, 1])
    unseen = first[first == after]
    begins[unseen[unseen < len(t)]] = True
    runs = {kind: int(np.count_nonzero(begins & (told == kind))) for kind in "FSB"}
    return runs | {"B": runs["B"] + len(unseen)}
