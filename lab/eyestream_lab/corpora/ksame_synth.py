"""k-same-synth (David-John, Butler, Jain, TVCG 2023): models of events, averaged over groups, synthesised again.

At each task people are divided into groups of k to 2k - 1. The i-th fixation of each member gets the mean and the
standard deviation that the i-th fixations of the group have on average, and the i-th saccade the profile. An average is
of k members or more: where fewer have an i-th event, the list of averages ends. (The paper pads lists to the longest by
their last event, so that the last averages move as the longest member alone does.) The partition is that of
`eyestream_lab.corpora.ksame`, the same in every release.

**As published (`k-same-synth`)** every member keeps their own timeline: how many events, when, and how long. A released
recording is therefore not alike for the members of a group, and the timeline alone can tell them apart: no k-anonymity
is claimed.

**With one timeline for each group (`k-same-synth-timed`)** durations are averaged too. All that is released is drawn
from the group's one model, so the recordings of its members have one law, and k-anonymity holds for each task.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream.core.kinds import NoClaim
from eyestream.rim.files.gaze import GazeRecording
from eyestream_lab.corpora.claims import EVENTS, PUBLIC, WHO, KAnonymity, Promise
from eyestream_lab.corpora.corpus import Dataset, Part, Survey
from eyestream_lab.corpora.draws import Draws
from eyestream_lab.corpora.events import Canvas, Events, Timeline, events_of, normal_fixation
from eyestream_lab.corpora.ksame import ACROSS, AGAIN, AMONG, KNOWS, OfGroups, parts_of_groups
from eyestream_lab.corpora.system import Unit

Array = NDArray[np.float64]


def _mean_of(lists: Sequence[Array], k: int) -> Array:
    """Index by index over the lists (m_i, d) that have it, as long as k have."""
    length = sorted(map(len, lists), reverse=True)[k - 1]
    return np.array([np.mean([one[i] for one in lists if i < len(one)], axis=0) for i in range(length)])


@dataclass(frozen=True)
class _Average:
    """Models of a group: (f, 2) means and deviations of fixations, (s, 3) profiles."""

    mean: Array
    sd: Array
    profile: Array

    @classmethod
    def of(cls, group: Sequence[Events], k: int) -> "_Average":
        return cls(
            *(_mean_of(lists, k) for lists in zip(*((one.mean, one.sd, one.profile) for one in group), strict=True))
        )

    def synthesised(self, timeline: Timeline, draws: Draws) -> Canvas:
        """Samples at the events of a timeline; a saccade goes to where the next fixation is."""
        canvas, fixation, saccade = Canvas(timeline), 0, 0
        counts = timeline.end - timeline.begin
        for event, fixed in enumerate(timeline.is_fixation.tolist()):
            at = min(fixation, len(self.mean) - 1)
            if fixed:
                canvas.fixation(event, normal_fixation(self.mean[at], self.sd[at], int(counts[event]), draws))
                fixation += 1
            else:
                canvas.saccade(event, self.profile[min(saccade, len(self.profile) - 1)], self.mean[at])
                saccade += 1
        return canvas


def _durations(one: Events) -> tuple[Array, Array]:
    """(f, 1) and (s, 1) samples of fixations and saccades."""
    counts = (one.timeline.end - one.timeline.begin).astype(np.float64)[:, None]
    return counts[one.timeline.is_fixation], counts[~one.timeline.is_fixation]


def _common_timeline(group: Sequence[Events], k: int) -> Timeline:
    """Fixation, saccade, fixation ... with the group's mean durations, as many as k members have."""
    both = [_durations(one) for one in group]
    fixations, saccades = (np.rint(_mean_of([pair[i] for pair in both], k))[:, 0].astype(np.intp) for i in (0, 1))
    count = min(len(fixations), len(saccades))
    lengths = np.stack((fixations[:count], saccades[:count]), axis=1).reshape(-1)
    end = np.cumsum(np.maximum(lengths, 1))
    begin = np.concatenate(([0], end[:-1]))
    return Timeline(int(end[-1]), begin, end, np.arange(len(end)) % 2 == 0)


@dataclass(frozen=True)
class KSameSynth(OfGroups[GazeRecording]):
    """Every member's own timeline, as published."""

    name = "k-same-synth"

    def promise(self, corpus: Dataset[GazeRecording], survey: Survey) -> Promise:
        """None: timelines are released as they are."""
        return Promise(
            NoClaim("each recording keeps the timeline of its person"),
            ("The timeline of events alone can tell people apart.", AGAIN),
            (*PUBLIC, EVENTS),
        )

    def release(
        self, corpus: Dataset[GazeRecording], survey: Survey, unit: Unit, draws: Draws
    ) -> Iterator[tuple[Part, GazeRecording]]:
        """Members of each group, with models of the group in memory."""
        for group in parts_of_groups(unit.parts, self.k):
            events = [events_of(corpus.load(part)) for part in group]
            average = _Average.of(events, self.k)
            for part, one in zip(group, events, strict=True):
                canvas = average.synthesised(one.timeline, draws)
                yield part, canvas.recording(survey.rate_hz)


@dataclass(frozen=True)
class KSameSynthTimed(OfGroups[GazeRecording]):
    """One timeline for each group."""

    name = "k-same-synth-timed"

    def promise(self, corpus: Dataset[GazeRecording], survey: Survey) -> Promise:
        """k-anonymity of each task by itself."""
        return Promise(
            KAnonymity(self.k, AMONG, KNOWS),
            (
                "Who knows k - 1 members of a group computes the models of the last one from what was released.",
                ACROSS,
                AGAIN,
            ),
            (WHO,),
        )

    def release(
        self, corpus: Dataset[GazeRecording], survey: Survey, unit: Unit, draws: Draws
    ) -> Iterator[tuple[Part, GazeRecording]]:
        """Release as many recordings as a group has members, of one law."""
        for group in parts_of_groups(unit.parts, self.k):
            events = [events_of(corpus.load(part)) for part in group]
            average, timeline = _Average.of(events, self.k), _common_timeline(events, self.k)
            for part in group:
                yield part, average.synthesised(timeline, draws).recording(survey.rate_hz)
