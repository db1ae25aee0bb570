"""Usefulness of a release: how far gaze moved, where people looked, how often they moved, and our rows.

A figure has a value for each person, and is told as the median over people, with the interval of that median.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from eyestream.rim.files.extraction import extract
from eyestream.rim.files.gaze import GazeRecording
from eyestream.rim.files.recordings import Recording
from eyestream_lab.benchmark.figures import Interval, interval_of
from eyestream_lab.releases.gaze import STATISTICS, places, saliency, saliency_kl, statistics
from eyestream_lab.releases.measures import activities, usable

Array = NDArray[np.float64]
Released = Mapping[tuple[str, str], GazeRecording | Recording]
"""Recordings by person and task."""
Rows = Mapping[tuple[str, str], Array]
"""Rows (m, 52) by person and task."""
_DRAWS = 400
_FEWEST_ROWS = 8


def rows_of(found: Released) -> dict[tuple[str, str], Array]:
    """(m, 52) rows of each recording that is long enough for one."""
    rows = {key: one if isinstance(one, Recording) else extract(one) for key, one in found.items()}
    return {key: np.asarray(one.features, np.float64) for key, one in rows.items()}


def gaze_of(found: Released) -> dict[str, dict[str, GazeRecording]]:
    """Recordings by person, and by task; nothing where they are rows."""
    by: dict[str, dict[str, GazeRecording]] = defaultdict(dict)
    for (person, task), one in found.items():
        if not isinstance(one, GazeRecording):
            return {}
        by[person][task] = one
    return dict(by)


def useful(
    raw: Released, released: Released, seed: int, rows: tuple[Rows, Rows] | None, tasks: bool
) -> dict[str, Interval]:
    """Figures by name: those that this release has.

    Parameters
    ----------
    rows
        Raw and released rows, where recordings are long enough.
    tasks
        Whether tasks are activities that one may want to tell apart.
    """
    people = sorted({person for person, _ in raw})
    found: dict[str, Interval] = {}
    before, after = gaze_of(raw), gaze_of(released)
    if after:
        away = [_away(before[person], after[person]) for person in people]
        found["degrees from the raw gaze"] = _middle(away, seed)
        found["divergence of saliency, nats"] = Interval(
            *[round(saliency_kl(saliency(before), saliency(after)), 4)] * 3
        )
        own = [statistics(side) for side in (before, after)]
        for name in STATISTICS:
            shares = np.abs(own[1][name] - own[0][name]) / np.maximum(own[0][name], 1e-9)
            found[f"relative error of {name}"] = _middle(np.where(np.isfinite(shares), shares, 1.0), seed)
    if rows is not None:
        found["correlation of changes of rows"] = _middle([_correlation(*rows, person) for person in people], seed)
        if tasks:
            sides = []
            for side in rows:
                by = {p: {task: one for (q, task), one in side.items() if q == p} for p in people}
                sides.append(usable(by, np.zeros(next(iter(side.values())).shape[1])))
            found["activities named"] = _middle(activities(sides[1], sides[0], seed), seed)
    return found


def _away(raw: Mapping[str, GazeRecording], released: Mapping[str, GazeRecording]) -> float:
    """Median distance of a person's released samples from the raw gaze of the same time."""
    found = []
    for task, one in raw.items():
        other = released[task]
        found.append(np.hypot(*(places(other) - places(one)[_at(other, one)]).T))
    apart = np.concatenate(found)
    apart = apart[np.isfinite(apart)]
    return float(np.median(apart)) if len(apart) else float("nan")


def _at(released: GazeRecording, raw: GazeRecording) -> NDArray[np.intp]:
    """The raw sample of each released one: of the same number where there are as many, else of the same time.

    Released times are often regular ones, and those of a tracker that drops samples are not.
    """
    if len(released.samples) == len(raw.samples):
        return np.arange(len(raw.samples))
    t, known = released.samples.t - released.samples.t[0], raw.samples.t - raw.samples.t[0]
    return np.asarray(np.clip(np.searchsorted(known, t - 0.5 / raw.profile.fixed_rate_hz), 0, len(known) - 1))


def _correlation(raw: Rows, released: Rows, person: str) -> float:
    """Median over features of the correlation of rows, each recording's own mean removed."""
    pairs = list(_centred(raw, released, person))
    if not pairs:
        return 0.0
    one, other = (np.concatenate(side) for side in zip(*pairs, strict=True))
    size = np.sqrt((one**2).sum(axis=0) * (other**2).sum(axis=0))
    moving = (one**2).sum(axis=0) > 1e-12 * len(one)
    shares = np.where(size > 0, (one * other).sum(axis=0) / np.where(size > 0, size, 1.0), 0.0)
    return float(np.median(shares[moving])) if moving.any() else 0.0


def _centred(raw: Rows, released: Rows, person: str) -> Iterator[tuple[Array, Array]]:
    for key in raw:
        if key[0] == person and key in released:
            count = min(len(raw[key]), len(released[key]))
            one, other = np.nan_to_num(raw[key][-count:]), np.nan_to_num(released[key][-count:])
            if count >= _FEWEST_ROWS:
                yield one - one.mean(axis=0), other - other.mean(axis=0)


def _middle(values: Array | list[float], seed: int) -> Interval:
    own = np.asarray(values, np.float64)
    own = own[np.isfinite(own)]
    if len(own) == 0:
        return Interval(0.0, 0.0, 0.0)
    drawn = np.random.default_rng(seed).integers(0, len(own), (_DRAWS, len(own)))
    return interval_of(np.concatenate(([np.median(own)], np.median(own[drawn], axis=1))))
