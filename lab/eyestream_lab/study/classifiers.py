"""Attackers: the published classifiers, a radial basis function network, and a matcher of means.

All take rows of known people (train) and rows that each belong to one unknown person (test), and score every unknown
against every known one.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

Array = NDArray[np.float64]

CLASSIFIERS = ("k-NN", "SVM", "decision tree", "random forest")
"""The published settings: k = 11; RBF kernel, C = 1, automatic scale; one tree; 10 trees. Features are z-scored on
training rows."""

ATTACKERS = (*CLASSIFIERS, "RBF network", "mean matcher")


class Scorer(Protocol):
    """Learns classes from rows and scores rows."""

    def fit(self, rows: Array, classes: NDArray[np.intp]) -> object:
        """Learn from rows (m, F) of classes (m,) 0 .. P - 1, each present."""
        ...

    def scores(self, rows: Array) -> Array:
        """(m, P), larger is likelier."""
        ...


class _Published:
    """One of the published classifiers behind z-scoring."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def fit(self, rows: Array, classes: NDArray[np.intp]) -> object:
        return self._pipeline.fit(rows, classes)

    def scores(self, rows: Array) -> Array:
        if hasattr(self._pipeline[-1], "predict_proba"):
            probabilities: Array = self._pipeline.predict_proba(rows)
            return probabilities
        decision: Array = self._pipeline.decision_function(rows)
        return np.stack([-decision, decision], axis=1) if decision.ndim == 1 else decision


class RadialBasisNetwork:
    """Radial basis function network with centres for each person (Schroeder et al., CHI 2020; David-John et al., 2021).

    z-scored rows; k-means of each person's rows, 32 centres a person or half as many as there are rows, 100 iterations;
    phi_i(x) = exp(-beta_i |x - mu_i|^2), beta_i = 1 / (2 sigma_i^2), sigma_i the mean distance of a cluster's rows to
    its centre; output weights by the pseudo-inverse against one-hot classes.
    """

    def __init__(self, seed: int, centres: int = 32) -> None:
        self._seed, self._most = seed, centres

    def fit(self, rows: Array, classes: NDArray[np.intp]) -> object:
        """Learn; see `Scorer`."""
        self._mean, deviation = rows.mean(axis=0), rows.std(axis=0)
        self._deviation = np.where(deviation > 0, deviation, 1.0)
        scaled = (rows - self._mean) / self._deviation
        centres, widths = [], []
        for person in range(int(classes.max()) + 1):
            own = scaled[classes == person]
            clusters = min(self._most, max(len(own) // 2, 1), len(np.unique(own, axis=0)))
            found = KMeans(clusters, n_init=1, max_iter=100, random_state=self._seed).fit(own)
            distance = np.linalg.norm(own - found.cluster_centers_[found.labels_], axis=1)
            members = np.bincount(found.labels_, minlength=clusters)
            centres.append(found.cluster_centers_)
            widths.append(np.bincount(found.labels_, distance, clusters) / np.maximum(members, 1) + 1e-5)
        self._centres, self._beta = np.concatenate(centres), 1 / (2 * np.concatenate(widths) ** 2)
        self._weights = np.linalg.pinv(self._activations(scaled)) @ np.eye(int(classes.max()) + 1)[classes]
        return self

    def scores(self, rows: Array) -> Array:
        """See `Scorer`."""
        scores: Array = self._activations((rows - self._mean) / self._deviation) @ self._weights
        return scores

    def _activations(self, scaled: Array) -> Array:
        squares = (scaled**2).sum(axis=1)[:, None] + (self._centres**2).sum(axis=1) - 2 * scaled @ self._centres.T
        activations: Array = np.exp(-self._beta * np.maximum(squares, 0.0))
        return activations


def scorer(name: str, seed: int, rows: int) -> Scorer:
    """A classifier by its name in `CLASSIFIERS` or the RBF network, for `rows` training rows."""
    if name == "RBF network":
        return RadialBasisNetwork(seed)
    made = {
        "k-NN": lambda: KNeighborsClassifier(min(11, rows)),
        "SVM": lambda: SVC(C=1.0, kernel="rbf", gamma="scale", random_state=seed),
        "decision tree": lambda: DecisionTreeClassifier(random_state=seed),
        "random forest": lambda: RandomForestClassifier(10, random_state=seed),
    }
    return _Published(make_pipeline(StandardScaler(), made[name]()))


def window_scores(name: str, train: Sequence[Array], tests: Sequence[Sequence[Array]], seed: int) -> list[list[Array]]:
    """Learn from the rows (m_p, F) of each person; for every set of tests, the scores (m, P) of each person's rows."""
    classes = np.repeat(np.arange(len(train)), [len(rows) for rows in train])
    learned = scorer(name, seed, len(classes))
    learned.fit(np.concatenate(train), classes)
    return [[learned.scores(rows) for rows in test] for test in tests]


def match_means(train: Sequence[Array], test: Sequence[Array], block: int) -> Array:
    """Scores (P, P) of unknown people (first axis) against known ones: minus the Mahalanobis distance of their means.

    The best an attacker can do against Gaussian noise on a person's constant. The covariance is that of the means of
    `block` successive rows around their person's mean, on the training rows, half of its diagonal added for stability.
    """
    blocks = [np.array([part.mean(axis=0) for part in np.array_split(r, max(len(r) // block, 2))]) for r in train]
    within = np.concatenate([means - means.mean(axis=0) for means in blocks])
    covariance = within.T @ within / max(len(within) - len(blocks), 1)
    scale = np.sqrt(np.diag(covariance))
    spread = np.array([rows.mean(axis=0) for rows in train]).std(axis=0)
    scale = np.where(scale > 0, scale, np.where(spread > 0, spread, 1.0))
    correlation = covariance / np.outer(scale, scale)
    correlation = correlation / 1.5 + np.eye(len(scale)) / 3
    whitener = np.linalg.inv(np.linalg.cholesky(correlation + 1e-9 * np.eye(len(scale))))
    known = np.array([rows.mean(axis=0) for rows in train]) / scale @ whitener.T
    unknown = np.array([rows.mean(axis=0) for rows in test]) / scale @ whitener.T
    scores: Array = -np.linalg.norm(unknown[:, None] - known[None], axis=2)
    return scores


def attack(
    attacker: str, known: Sequence[Array], tests: Sequence[Sequence[Array]], *, stride: int, block: int, seed: int
) -> list[Array]:
    """Scores (P, P) of unknown against known people, for each set of unknown rows (m_p, F).

    Classifiers see every `stride`-th row and average their scores over a person's rows; the mean matcher sees all.
    """
    if attacker == "mean matcher":
        return [match_means(known, test, block) for test in tests]
    thinned = [[rows[::stride] for rows in test] for test in tests]
    scored = window_scores(attacker, [rows[::stride] for rows in known], thinned, seed)
    return [np.array([scores.mean(axis=0) for scores in people]) for people in scored]
