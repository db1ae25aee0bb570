"""How well found events agree with events that somebody labelled, per sample and per event.

Samples whose true label is none of F, S and B (a pursuit, noise) are left out: nobody knows what should be found there.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

KINDS = "FSB"

Labels = NDArray[np.str_]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Found and true, false alarms, and misses.

    Attributes
    ----------
    hits, false_alarms, misses
        Samples, or events.
    """

    hits: int
    false_alarms: int
    misses: int

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; NaN when there was nothing to find and nothing was found."""
        total = 2 * self.hits + self.false_alarms + self.misses
        return 2 * self.hits / total if total else float("nan")

    def __add__(self, other: "Agreement") -> "Agreement":
        return Agreement(self.hits + other.hits, self.false_alarms + other.false_alarms, self.misses + other.misses)


def _known(truth: Labels, found: Labels) -> NDArray[np.bool_]:
    if truth.shape != found.shape or truth.ndim != 1:
        raise ValueError(f"labels: two arrays of one length wanted, not {truth.shape} and {found.shape}")
    return np.isin(truth, list(KINDS))


def sample_agreement(truth: Labels, found: Labels, kind: str) -> Agreement:
    """Over the samples of two (n,) arrays of letters, for one kind of event."""
    known = _known(truth, found)
    is_true, is_found = truth[known] == kind, found[known] == kind
    hits = int(np.count_nonzero(is_true & is_found))
    return Agreement(hits, int(np.count_nonzero(is_found)) - hits, int(np.count_nonzero(is_true)) - hits)


def _runs(member: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First index and the one after the last, of each run of members."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], member, [False])).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def event_agreement(truth: Labels, found: Labels, kind: str) -> Agreement:
    """Over the runs of one letter in two (n,) arrays.

    A true event is found when a found one overlaps it that has not found another before; the first such one does. Each
    is counted once (Hooge et al. 2018, as Startsev et al. 2019 use it).
    """
    known = _known(truth, found)
    wanted, given = _runs((truth == kind) & known), _runs((found == kind) & known)
    hits = next_free = 0
    for begin, end in wanted:
        while next_free < len(given) and given[next_free][1] <= begin:
            next_free += 1
        if next_free < len(given) and given[next_free][0] < end:
            hits += 1
            next_free += 1
    return Agreement(hits, len(given) - hits, len(wanted) - hits)


@dataclass(frozen=True, slots=True)
class Score:
    """The score of one recording, or the sum of several.

    Attributes
    ----------
    known
        Samples that have one of the three labels.
    samples, events
        Agreement of each kind.
    """

    known: int
    samples: dict[str, Agreement]
    events: dict[str, Agreement]

    @classmethod
    def of(cls, truth: Labels, found: Labels) -> "Score":
        """From two (n,) arrays of letters."""
        known = int(np.count_nonzero(_known(truth, found)))
        samples = {kind: sample_agreement(truth, found, kind) for kind in KINDS}
        return cls(known, samples, {kind: event_agreement(truth, found, kind) for kind in KINDS})

    def __add__(self, other: "Score") -> "Score":
        samples = {kind: self.samples[kind] + other.samples[kind] for kind in KINDS}
        return Score(self.known + other.known, samples, {k: self.events[k] + other.events[k] for k in KINDS})

    def kappa(self, kind: str) -> float:
        """Cohen's kappa of "is of this kind"; NaN without any variety."""
        if self.known == 0:
            return float("nan")
        told = self.samples[kind]
        agreed = 1.0 - (told.false_alarms + told.misses) / self.known
        p, q = (told.hits + told.misses) / self.known, (told.hits + told.false_alarms) / self.known
        chance = p * q + (1 - p) * (1 - q)
        return (agreed - chance) / (1 - chance) if chance < 1 else float("nan")
