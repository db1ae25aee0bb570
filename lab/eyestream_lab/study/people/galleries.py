"""Galleries for an attacker: sessions of known people, sessions of unknown ones, and public recordings."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.core.anchor import Baseline
from eyestream.core.calibration import Calibration, JointTables
from eyestream.core.mechanism import Mechanism
from eyestream.errors import ConfigError
from eyestream.rim.files.recordings import Recording
from eyestream_lab.calibration.corpus import Corpus, whole_chunks
from eyestream_lab.files.books import shipped_books, with_shipped_books
from eyestream_lab.parts import calibrate
from eyestream_lab.study.population import Population
from eyestream_lab.study.splits import WINDOW_S

Array = NDArray[np.float64]
Chunks = NDArray[np.float32]

MINUTE_S = 60.0


@dataclass(frozen=True, eq=False)
class Gallery:
    """One attack's material. P people, each with a labelled session and one to be attributed, in the same order.

    Attributes
    ----------
    mechanism : what released them; public. None: raw rows.
    people : P names.
    known, unknown : published chunks (T, F, n) of each.
    minutes : raw chunks of one minute of each known session, (t, F, n) finite: for attackers who have seen that.
    background : raw chunks (T, F, n), finite, of other people whose recordings are public.
    active : (A,) released features.
    rate_hz : rows a second.
    """

    mechanism: Mechanism | None
    people: tuple[str, ...]
    known: list[Chunks]
    unknown: list[Chunks]
    minutes: list[Array]
    background: list[Array]
    active: NDArray[np.intp]
    rate_hz: float

    @property
    def minute(self) -> int:
        """Chunks of a minute, rounded; at least one."""
        return max(1, round(MINUTE_S * self.rate_hz / int(self.known[0].shape[2])))


@dataclass(frozen=True, eq=False)
class Sight:
    """Recordings by person: whose gaze calibrates, and whose is released."""

    calibrating: tuple[int, ...]
    released: tuple[int, ...]


def usable(population: Population, n: int, baseline: int = 0) -> tuple[int, ...]:
    """The first recording of every person that is long enough for two sessions of chunks of `n` rows.

    Each is to have a chunk behind the `baseline` chunks that are taken off it.

    Raises
    ------
    ConfigError
        when there are fewer than six such people.
    """
    least = n * (2 * (1 + baseline) + math.ceil(WINDOW_S * population.rate_hz / n))
    lengths = np.diff(population.starts)
    found = {name: i for i, name in reversed(list(enumerate(population.people))) if lengths[i] >= least}
    if len(found) < 6:
        raise ConfigError(f"attacks on people need recordings of {least} rows or more of at least six people")
    return tuple(sorted(found.values()))


def roles(population: Population, n: int, split: int, baseline: int = 0) -> tuple[Sight, Sight]:
    """A random half of the people calibrates and the other half is released, and the reverse."""
    own = usable(population, n, baseline)
    names = np.array([population.people[i] for i in own])
    first = set(np.random.default_rng(split).permutation(names)[: len(names) // 2].tolist())
    halves = [tuple(i for i in own if (population.people[i] in first) == one) for one in (True, False)]
    return Sight(halves[0], halves[1]), Sight(halves[1], halves[0])


def everybody(population: Population, n: int, baseline: int = 0) -> Sight:
    """Everybody calibrated, and everybody is released: a calibration as it is."""
    every = usable(population, n, baseline)
    return Sight(every, every)


def halves_apart(chunks: int, n: int, rate_hz: float) -> tuple[slice, slice]:
    """First and second half of a recording's chunks, with so many left out between them that they share no gaze."""
    gap = math.ceil(WINDOW_S * rate_hz / n)
    cut = max((chunks - gap) // 2, 1)
    return slice(0, cut), slice(cut + gap, chunks)


def recipe(calibration: Calibration) -> dict[str, Any]:
    """Options of `calibrate` that a calibration was made with, read off it."""
    if isinstance(calibration.tables, JointTables):
        stable = float(calibration.tables.weights[0])
        own: dict[str, Any] = {"shed_identity": 1 / stable - 1} if stable < 1 else {}
        own |= {"ranks": False} if calibration.tables.knots is None else _books(calibration.tables)
        if calibration.anchor is None:
            return own
        return own | {"anchored": True} | ({} if calibration.tables.shares is not None else {"shares": False})
    said = {"coverage": calibration.provenance.coverage, "k": calibration.k}
    return {name: value for name, value in said.items() if value is not None}


def _books(tables: JointTables) -> dict[str, Any]:
    """Whether features on maps are coded by books: if they could be, that is what is usual."""
    fits = tables.basis.shape[1] >= min(book.end for book in shipped_books())
    return {"books": False} if fits and tables.book_shapes is None else {}


_KEPT: dict[tuple[Any, ...], Calibration] = {}


def recalibrated(
    population: Population, calibrating: tuple[int, ...], n: int, mechanism: str, options: dict[str, Any]
) -> Calibration:
    """The same recipe on some of the people alone; kept in this process for the next attacker."""
    key = (population.content_hash, calibrating, n, mechanism, tuple(sorted(options.items())))
    if key not in _KEPT:
        rows = [
            Recording(np.arange(len(r)) / population.rate_hz, r, population.names, population.people[i])
            for i, r in ((i, population.as_recorded(i)) for i in calibrating)
        ]
        _KEPT[key] = calibrate(mechanism, Corpus.of(rows, n), **with_shipped_books(mechanism, options))
    return _KEPT[key]


def gallery(
    population: Population,
    sight: Sight,
    mechanism: Mechanism | None,
    n: int,
    *,
    reverse: bool,
    active: NDArray[np.intp],
) -> Gallery:
    """Release both halves of everybody's recording, a session each; `reverse`: the second half is the labelled one."""
    known, unknown, minutes = [], [], []
    for index in sight.released:
        finite = whole_chunks(population.recording(index), n)
        raw = whole_chunks(population.as_recorded(index), n) if mechanism is not None else finite
        first, second = halves_apart(len(raw), n, population.rate_hz)
        labelled, other = (second, first) if reverse else (first, second)
        known.append(_session(mechanism, raw[labelled]))
        unknown.append(_session(mechanism, raw[other]))
        minutes.append(_as_coded(mechanism, finite[labelled])[: max(1, round(MINUTE_S * population.rate_hz / n))])
    background = [_as_coded(mechanism, whole_chunks(population.recording(i), n)) for i in sight.calibrating]
    names = tuple(population.people[i] for i in sight.released)
    return Gallery(mechanism, names, known, unknown, minutes, background, active, population.rate_hz)


def _session(mechanism: Mechanism | None, raw: Sequence[Array] | Array) -> Chunks:
    """(T, F, n) float32, as published."""
    if mechanism is None:
        return np.asarray(raw, np.float32)
    session, published = mechanism.session(), []
    for chunk in raw:
        if session.awaits_baseline:
            session.anchor(chunk)
        else:
            published.append(session.release(chunk))
    return np.array(published, np.float32)


def _as_coded(mechanism: Mechanism | None, raw: Array) -> Array:
    """Raw chunks (T, F, n) of a session as the mechanism codes them: less their baseline, where it takes one off.

    An attacker who has the rows takes it off too. Chunks of the baseline are left out; what is missing is as the public
    fill.
    """
    anchor = None if mechanism is None else mechanism.calibration.anchor
    if anchor is None or mechanism is None:
        return raw
    baseline = Baseline(anchor)
    for chunk in raw[: anchor.chunks]:
        baseline.take(chunk)
    moved = np.array([baseline.off(chunk) for chunk in raw[anchor.chunks :]])
    return np.where(np.isfinite(moved), moved, mechanism.calibration.fill[:, None])
