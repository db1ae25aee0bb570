"""Figures that the papers report, and a verdict in words on whether they hold here.

Figures as tables and figures of the papers have them, read by eye where there is a figure alone: David-John, Hosfelt,
Butler, Jain (TVCG 2021), *baselines*; David-John, Butler, Jain (ETRA 2022), *Exponential-DP as printed, k-same-select,
Marginals*; the same (TVCG 2023), *Kaleido, k-same-synth, event-synth-PD*; Al Zaidawi, Prinzler, Luehrs, Maneth (ETRA
2022), *raw gaze*. People are named by radial basis function networks, trained on released and tested on raw recordings.

Left out: errors of predicted gaze (the papers' predictor is a network trained for its data set, ours is a linear one),
run times (another machine; `tools.verification.release_hours`), accuracies of event detection (no release).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.releases.gaze import EVENTS
from eyestream_lab.releases.plans import GAMMAS, KALEIDO_EPSILONS, PRINTED_EPSILONS

Array = NDArray[np.float64]

ACTIVITY = "activity"
_ROWS = "RBF network"


@dataclass(frozen=True)
class Paper:
    """The setting of a paper's figures.

    Attributes
    ----------
    corpus
        Whose gaze.
    measure
        An attacker, or `ACTIVITY`.
    people
        How many; infinite where we do not know it, and then the figure counts as exact.
    chance
        Of the measure.
    raw
        Share for gaze as it was recorded; None where that is the figure.
    """

    corpus: str
    measure: str
    people: float
    chance: float
    raw: float | None


@dataclass(frozen=True)
class Published:
    """A share of a paper, for a line of our tables: system and options."""

    line: str
    paper: Paper
    share: float


_EHTASK, _DGAZE = Paper("ehtask", EVENTS, 30, 1 / 30, 0.28), Paper("dgaze", EVENTS, 43, 1 / 43, 0.023)
_ET_DK2, _ET_DK2_ROWS = Paper("et-dk2", EVENTS, 18, 1 / 18, 0.85), Paper("et-dk2", _ROWS, 18, 1 / 18, 1.0)
_MPIIDPEYE = Paper("mpiidpeye", _ROWS, 20, 1 / 20, 0.20)
_TASKS, _DOCUMENTS = Paper("ehtask", ACTIVITY, 30, 1 / 4, 0.828), Paper("mpiidpeye", ACTIVITY, 20, 1 / 3, 0.96)

_KALEIDO = {
    (50, 2): ((10.2, 7.3, 7.7, 7.8), (2.3, 2.3, 1.5, 2.6)),
    (50, 10): ((5.7, 4.0, 10.5, 9.3), (2.3, 2.8, 2.1, 2.3)),
    (200, 2): ((8.0, 6.0, 9.0, 8.3), (2.3, 2.1, 1.9, 4.6)),
    (200, 10): ((6.7, 7.2, 10.3, 6.0), (2.8, 3.0, 2.3, 2.1)),
}
"""Percent by (w, r), for the four epsilons; EHTask, DGaze."""
_EVENT_SYNTH = {
    (2, 1.0): (12.5, 1.2),
    (2, 1.5): (13.5, 1.3),
    (2, 2.0): (11.7, 1.9),
    (2, 3.0): (13.8, 1.5),
    (4, 1.0): (9.2, 1.3),
    (4, 1.5): (12.2, 1.2),
    (4, 2.0): (15.0, 1.5),
    (4, 3.0): (14.2, 1.5),
}
"""Percent by (k, gamma); EHTask, DGaze. Activities are near 72 for all of them."""
_K_SAME_SYNTH = {2: (9.7, 2.0), 4: (8.7, 2.3), 6: (8.5, 2.1), 8: (7.5, 1.1)}
_K_SAME_SELECT = {2: (28, 81), 4: (12, 76), 6: (8, 73), 8: (7, 74)}
"""Percent by k; people of ET-DK2, documents of MPIIDPEye."""
_PRINTED = dict(zip(PRINTED_EPSILONS, (34.5, 80, 67, 42, 42, 32, 34.5, 34.5), strict=True))
"""Percent of documents of MPIIDPEye, by epsilon."""
_RAW = {"ran": 92.62, "tex": 90.90, "vst": 85.69, "gof": 77.91}
"""Percent of people, by stimulus; two sessions stand for tasks."""


def _tvcg_2023() -> Iterator[Published]:
    yield Published("raw", Paper("ehtask", EVENTS, 30, 1 / 30, None), 0.28)
    yield Published("raw", Paper("dgaze", EVENTS, 43, 1 / 43, None), 0.023)
    for (w, r), both in _KALEIDO.items():
        for paper, shares in zip((_EHTASK, _DGAZE), both, strict=True):
            for epsilon, share in zip(KALEIDO_EPSILONS, shares, strict=True):
                line = f"kaleido-as-published, epsilon = {epsilon:g}, w = {w}, r_deg = {r}"
                yield Published(line, paper, share / 100)
    lines = {f"k-same-synth, k = {k}": shares for k, shares in _K_SAME_SYNTH.items()}
    lines |= {f"event-synth-pd, k = {k}, gamma = {g:g}": _EVENT_SYNTH[k, g] for k in (2, 4) for g in GAMMAS}
    for line, (ehtask, dgaze) in lines.items():
        yield Published(line, _EHTASK, ehtask / 100)
        yield Published(line, _DGAZE, dgaze / 100)
        if line.startswith("event"):
            yield Published(line, _TASKS, 0.72)
    yield Published("kaleido-as-published, epsilon = 1, w = 200, r_deg = 10", _TASKS, 0.69)
    yield Published("k-same-synth, k = 2", _TASKS, 0.618)
    yield Published("k-same-synth, k = 8", _TASKS, 0.291)


def _etra_2022() -> Iterator[Published]:
    for k, (people, documents) in _K_SAME_SELECT.items():
        yield Published(f"k-same-select, k = {k}", _ET_DK2_ROWS, people / 100)
        yield Published(f"k-same-select, k = {k}", _DOCUMENTS, documents / 100)
        yield Published(f"marginals-pd, k = {k}", _MPIIDPEYE, 0.05)
        yield Published(f"marginals-pd, k = {k}", _DOCUMENTS, 0.525)
    yield Published("k-same-select, k = 8", _MPIIDPEYE, 0.05)
    for epsilon, percent in _PRINTED.items():
        line = f"exponential-dp-as-printed, epsilon = {epsilon:g}"
        yield Published(line, _MPIIDPEYE, 0.185 if epsilon >= 5 else 0.06)
        yield Published(line, _DOCUMENTS, percent / 100)


PUBLISHED: tuple[Published, ...] = (
    *_tvcg_2023(),
    *_etra_2022(),
    Published("gaussian, sd_deg = 10", _ET_DK2, 0.30),
    Published("gaussian, sd_deg = 5", _ET_DK2, 0.35),
    Published("gaussian, sd_deg = 1", _ET_DK2, 0.53),
    Published("temporal-held, k = 3", _ET_DK2, 0.79),
    Published("spatial, level = 64", _ET_DK2, 0.48),
    Published("spatial, level = 16", _ET_DK2, 0.62),
    *(Published("raw", Paper(name, EVENTS, np.inf, 0.0, None), share / 100) for name, share in _RAW.items()),
)


PIECES = ("everyday",)
"""Corpora whose tasks are pieces of one recording: no activities, which could stand beside those of a paper."""


def verdict(one: Published, corpus: str, own: Array | None, raw: Array, chance: float) -> str:
    """Whether a published share holds for ours.

    On the paper's own corpus shares are compared. On another one, what is left of them: lambda = (share - chance) /
    (raw - chance) in the paper, so lambda (raw - chance) is expected above chance here. Both hold within two standard
    errors, of our people and of the paper's.

    A figure is reproduced only where the comparison could have failed. So the raw recordings, and a guess, take the
    place of ours in the same comparison. Where one of them passes, a pass of ours says nothing.

    Parameters
    ----------
    own, raw
        (N,) shares of our people, released and as recorded; `own` is None where there is no release.
    chance
        Of the measure here.
    """
    paper = one.paper
    if own is None:
        return "not judged: there is no such release"
    obstacle = _obstacle(paper, corpus, raw, chance)
    if obstacle is not None:
        return f"not judged: {obstacle}"
    square, way = one.share * (1 - one.share) / paper.people, ""
    expected = np.full(len(raw), one.share)
    if corpus != paper.corpus and paper.raw is not None:
        kept = (one.share - paper.chance) / (paper.raw - paper.chance)
        expected, way = chance + kept * (raw - chance), "in kind: "
        square *= ((raw.mean() - chance) / (paper.raw - paper.chance)) ** 2
    mean = float((own - expected).mean())
    if not _passes(own - expected, square):
        return f"{way}not reproduced: ours is {'higher' if mean > 0 else 'lower'} by {abs(mean):.2f}"
    others = {"raw gaze": raw, "a guess": np.full(len(raw), chance)}
    if paper.raw is None:
        del others["raw gaze"]  # it is the figure
    passing = [name for name, shares in others.items() if _passes(shares - expected, square)]
    return f"{way}not decided: {' and '.join(passing)} would pass too" if passing else f"{way}reproduced"


def _obstacle(paper: Paper, corpus: str, raw: Array, chance: float) -> str | None:
    """Why the figures of a paper cannot be compared with ours."""
    if paper.measure == ACTIVITY and corpus in PIECES:
        return f"the tasks of {corpus} are pieces of one recording"
    if corpus == paper.corpus:
        return None
    if paper.raw is None:
        return f"the figure is of {paper.corpus}"
    if paper.raw <= paper.chance:
        return f"hardly anybody of {paper.corpus} is recognised in raw gaze"
    if raw.mean() - chance < 2 * _error(raw):
        return "raw gaze is within two standard errors of chance here"
    return None


def _error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _passes(apart: Array, square: float) -> bool:
    """Whether differences (N,) from what is published are within two errors; `square` is the squared error of that."""
    return bool(abs(apart.mean()) <= 2 * np.hypot(_error(apart), np.sqrt(square)))
