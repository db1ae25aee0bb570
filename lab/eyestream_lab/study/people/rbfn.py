"""Identification from gaze samples: radial basis function networks on the figures of events.

One network for fixations and one for saccades (George and Routray 2016; Schroeder, Al Zaidawi, Prinzler, Maneth,
Zachmann, CHI 2020; David-John et al. TVCG 2021 and 2023 as attacker). Figures are standardised. Each person's events
are clustered by k-means, 32 centres a person (half as many as events, where there are fewer than 64). phi(x) = exp(-|x
- mu|^2 / (2 sigma^2)), sigma the mean distance of a centre's members (TVCG 2021 prints 1 / (2 sigma), which is no
Gaussian of width sigma). Weights by least squares to one-hot names. A recording's score is the mean over its events;
fixations count 0.4 and saccades 0.6.

What is attacked decides what the scenario is. Trained on private gaze and tested on raw gaze is the papers'. Trained
and tested on private gaze is the stronger one that counts. **Exemplar**: the training is one labelled private minute of
each person.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

from eyestream_lab.study.people.gaze_events import FEATURES, EventFigures

Array = NDArray[np.float64]

CENTRES = 32
SHARES = (0.4, 0.6)
_ROUNDS = 100
_LEAST_WIDTH = 1e-5


def first_minute(t: Array, *columns: Array) -> tuple[Array, ...]:
    """Part of a recording in an exemplar: its first 60 s."""
    end = int(np.searchsorted(t, t[0] + 60.0)) if len(t) else 0
    return tuple(column[:end] for column in (t, *columns))


@dataclass(frozen=True, eq=False)
class Network:
    """One radial basis function network.

    Attributes
    ----------
    mean, sd : (51,) that figures are standardised with.
    centres, widths : (C, 51) and (C,).
    weights : (C, people).
    """

    mean: Array
    sd: Array
    centres: Array
    widths: Array
    weights: Array

    @classmethod
    def trained(cls, people: Sequence[Array], seed: int) -> "Network":
        """From (events, 51) of each person; somebody without events is never named."""
        everything = np.concatenate([np.zeros((0, FEATURES)), *people])
        mean, sd = everything.mean(axis=0), everything.std(axis=0)
        sd = np.where(sd > 0, sd, 1.0)
        clusters = [_clustered((own - mean) / sd, seed) for own in people if len(own)]
        centres, widths = (np.concatenate(parts) for parts in zip(*clusters, strict=True))
        names = np.repeat(np.arange(len(people)), [len(own) for own in people])
        blank = cls(mean, sd, centres, widths, np.zeros((len(centres), len(people))))
        # Least squares of a triangle: the same weights as by `pinv` of all events, in a fifth of the time.
        both = np.hstack([blank.activations(everything), np.eye(len(people))[names]])
        triangle: Array = np.asarray(np.linalg.qr(both, mode="r"))[: len(centres)]
        weights = np.linalg.pinv(triangle[:, : len(centres)]) @ triangle[:, len(centres) :]
        return cls(mean, sd, centres, widths, weights)

    def activations(self, events: Array) -> Array:
        """(events, C)."""
        standard = (events - self.mean) / self.sd
        squares = cdist(standard, self.centres, "sqeuclidean")
        activations: Array = np.exp(-squares / (2 * self.widths**2))
        return activations

    def score(self, events: Array) -> Array:
        """(people,) mean over (events, 51); zeros without events."""
        if len(events) == 0:
            return np.zeros(self.weights.shape[1])
        scores: Array = (self.activations(events) @ self.weights).mean(axis=0)
        return scores


def _clustered(standard: Array, seed: int) -> tuple[Array, Array]:
    """Centres and widths of one person's events."""
    count = CENTRES if len(standard) >= 2 * CENTRES else max(1, len(standard) // 2)
    clusters = KMeans(count, n_init=1, max_iter=_ROUNDS, random_state=seed).fit(standard)
    apart = np.sqrt(((standard - clusters.cluster_centers_[clusters.labels_]) ** 2).sum(axis=1))
    members = np.bincount(clusters.labels_, minlength=count)
    widths = np.bincount(clusters.labels_, apart, count) / np.maximum(members, 1) + _LEAST_WIDTH
    return clusters.cluster_centers_, widths


class EventNetworks:
    """Both networks, trained on the events of each person's recordings."""

    def __init__(self, people: Sequence[Sequence[EventFigures]], seed: int) -> None:
        self._networks = []
        for kind in (0, 1):
            own = [np.concatenate([np.zeros((0, FEATURES)), *(one[kind] for one in events)]) for events in people]
            self._networks.append(Network.trained(own, seed) if any(map(len, own)) else None)
        self._people = len(people)

    def scores(self, recording: EventFigures) -> Array:
        """(people,) of one unknown recording; the largest is who it is taken for."""
        scores = np.zeros(self._people)
        for share, network, events in zip(SHARES, self._networks, recording, strict=True):
            if network is not None:
                scores += share * network.score(events)
        return scores
