"""Rows that an attacker or an application may get to see: raw, or as a mechanism or a baseline made them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms import build
from eyestream.core.mechanisms.registry import names
from eyestream.core.noise import Noise
from eyestream.core.whole import release_rows
from eyestream.errors import CalibrationError, ConfigError
from eyestream.rim.files import calibrations as files
from eyestream.rim.files.recordings import Recording
from eyestream_lab.calibration.corpus import Corpus
from eyestream_lab.files.books import with_shipped_books
from eyestream_lab.fpa import WHOLE as WHOLE_NAME
from eyestream_lab.fpa import build_whole
from eyestream_lab.parts import StudyForm, calibrate, part_of
from eyestream_lab.study import steil
from eyestream_lab.study.population import Population
from eyestream_lab.study.ways import of_chunks

Array = NDArray[np.float64]


class Release(Protocol):
    """Released rows (m, F) of the whole chunks of a recording, or of a part of it as a session of its own.

    Anew at each call: another session, with a baseline of its own where there is one.
    """

    def __call__(self, recording: int, part: slice = ..., /) -> Array:
        """Rows of that part of the recording; of all of it without one."""
        ...


_WHOLE = slice(None)
_MOST_NEEDED = 3
"""People that a mechanism needs at most to be calibrated; with more, what it refuses is something else."""


@dataclass(frozen=True)
class Source:
    """One way of releasing, by its name in tables.

    Attributes
    ----------
    label : its name.
    mechanism : name of the mechanism whose calibration it needs.
    colour : the same in every figure.
    chunked : whether it cuts into chunks; if not, epsilon is that of a whole recording.
    options : what the mechanism is built with.
    attacked : whether attacks are run on it; not so where a source differs from another one by a public, invertible
        map, which hides nothing.
    """

    label: str
    mechanism: str
    colour: str
    chunked: bool = True
    options: tuple[tuple[str, Any], ...] = ()
    attacked: bool = True


RAW = Source("raw", "raw", "#000000", chunked=False)


def _key(name: str, form: StudyForm) -> str:
    """Under which the calibration of a form is kept: forms of a mechanism that are calibrated alike share it."""
    own = (key if value is True else f"{key}={value:g}" for key, value in sorted(form.calibration.items()))
    return "-".join([name, *own])


def _registered(*, best: bool) -> list[Source]:
    """Forms of every mechanism in the order of the registry, then those that are not attacked."""
    made = [
        Source(
            form.label,
            _key(name, form),
            form.colour,
            options=tuple(form.options.items()),
            attacked=form.attacked,
        )
        for name in names()
        for form in part_of(name).forms
        if form.best is best
    ]
    return sorted(made, key=lambda source: not source.attacked)


WHOLE = Source(WHOLE_NAME.upper(), WHOLE_NAME, "#CC79A7", chunked=False)
"""One chunk as long as the recording."""

_PLAIN = _registered(best=False)
SOURCES = (*_PLAIN[:1], WHOLE, *_PLAIN[1:])
"""Mechanisms under study."""

BASELINES = (
    Source("Steil as published", "steil-published", "#56B4E9", chunked=False),
    Source("Steil repaired", "steil-repaired", "#7F5539", chunked=False),
)
"""Baselines without a guarantee of this program; see `eyestream_lab.study.steil`."""

BEST_FORMS = tuple(_registered(best=True))
"""Forms beside the plain ones where mechanisms are compared at their best: all post-processing that there is,
and a baseline of each session's own."""

_ALL = (RAW, *SOURCES, *BASELINES, *BEST_FORMS)

COLOURS = {source.label: source.colour for source in _ALL}


def _calibrators(*, best: bool) -> dict[str, Callable[[Corpus], Calibration]]:
    return {
        _key(name, form): partial(calibrate, name, **with_shipped_books(name, form.calibration))
        for name in names()
        for form in part_of(name).forms
        if best or not form.best
    }


CALIBRATORS = _calibrators(best=False)
"""How each mechanism is calibrated."""

BEST_CALIBRATORS = _calibrators(best=True)
"""The same, and for the best forms."""


@dataclass(frozen=True, eq=False)
class World:
    """Everything that a cell may look at: the people, and calibrations made from those at even positions.

    `noise` is what its mechanisms draw: in a study with a seed a generator of the cell, which nothing else takes
    (`eyestream.core.mechanism.require_real_noise`).
    """

    population: Population
    calibrations: dict[tuple[str, int], Calibration]
    noise: Noise | None = field(default=None, kw_only=True)

    @property
    def active(self) -> NDArray[np.intp]:
        """Features that are released by every mechanism: neither declared nor found constant."""
        constant = np.any([calibration.constant for calibration in self.calibrations.values()], axis=0)
        return np.flatnonzero(~constant)

    def build(self, calibration: Calibration, epsilon: float, **options: Any) -> Mechanism:
        """The mechanism that a calibration was made for, with the noise of this world."""
        return build(calibration, epsilon, noise=self.noise, **options)

    def calibration_hash(self, mechanism: str, n: int) -> str:
        """Content hash of the calibration that a cell uses; empty when it uses none."""
        key = (of_chunks() if mechanism == WHOLE.mechanism else mechanism, n)
        return self.calibrations[key].content_hash if key in self.calibrations else ""

    def rows(self, recording: int, n: int) -> Array:
        """Rows (m, F) of a recording's whole chunks."""
        rows = self.population.recording(recording)
        return rows[: len(rows) // n * n]

    def corpus_rows(self) -> Array:
        """Rows (M, F) of the people who calibrate."""
        return np.concatenate([self.population.recording(i) for i in self.population.calibrating])

    def releases(self, source: str, n: int, epsilon: float, seed: int = 0) -> Release:
        """A function that gives the released rows (m, F) of a recording, with new noise at each call.

        `seed` is for the baselines alone.
        """
        chosen = next(s for s in _ALL if s.label == source)
        if chosen is RAW:
            return lambda recording, part=_WHOLE: self.rows(recording, n)[part]
        if chosen in BASELINES:
            return self._baseline(chosen.mechanism, n, epsilon, seed)
        if chosen is WHOLE:
            return self._whole(n, epsilon)
        mechanism = self.build(self.calibrations[chosen.mechanism, n], epsilon, **dict(chosen.options))
        return lambda recording, part=_WHOLE: release_rows(mechanism, self.rows(recording, n)[part])

    def _whole(self, n: int, epsilon: float) -> Release:
        built, calibration = dict[int, Mechanism](), self.calibrations[of_chunks(), n]

        def release(recording: int, part: slice = _WHOLE) -> Array:
            rows = self.rows(recording, n)[part]
            if len(rows) not in built:
                built[len(rows)] = build_whole(calibration, epsilon, len(rows), noise=self.noise)
            return release_rows(built[len(rows)], rows)

        return release

    def _baseline(self, form: str, n: int, epsilon: float, seed: int) -> Release:
        corpus = self.corpus_rows()
        longest = max(len(self.rows(i, n)) for i in self.population.released)
        scale = steil.Scale(np.ptp(corpus, axis=0), longest, epsilon)
        noise = steil.published if form == "steil-published" else steil.repaired
        rng = np.random.default_rng(seed)

        def release(recording: int, part: slice = _WHOLE) -> Array:
            rows = self.rows(recording, n)[part]
            return rows + noise(scale, len(rows), rng)

        return release


def prepare(
    population: Population,
    chunks: tuple[int, ...],
    progress: Callable[[str], None],
    folder: Path | None = None,
    calibrators: Mapping[str, Callable[[Corpus], Calibration]] = CALIBRATORS,
) -> World:
    """Calibrate every mechanism at every chunk length, on the people at even positions.

    Parameters
    ----------
    folder
        Where calibrations are kept. A study that goes on needs the very same ones: the last bits of a new one depend on
        how the transforms were planned, and on the number of threads of the linear algebra.
    calibrators
        What is calibrated, by the name under which it is kept.

    Raises
    ------
    ConfigError
        A recording is shorter than the longest chunk, or too few people calibrate.
    """
    lengths = np.diff(population.starts)
    if lengths.min() < 4 * max(chunks):
        raise ConfigError(
            f"the study needs recordings of {4 * max(chunks)} rows or more; the shortest, of "
            f"{population.people[int(lengths.argmin())]}, has {lengths.min()}"
        )
    calibrations = {}
    for n in chunks:
        corpus = Corpus.of([_recording(population, i) for i in population.calibrating], n)
        for mechanism, make in calibrators.items():
            progress(f"calibrating {mechanism}, chunks of {n} rows")
            kept = None if folder is None else folder / f"{mechanism}-{n}-{population.content_hash}.npz"
            if kept is not None and kept.is_file():
                calibrations[mechanism, n] = files.load(kept)
                continue
            try:
                calibrations[mechanism, n] = make(corpus)
            except CalibrationError as error:
                if len(population.calibrating) >= _MOST_NEEDED:
                    raise
                said = "the study calibrates on every other person"
                raise ConfigError(f"{error}: {said}, so it needs at least {2 * _MOST_NEEDED - 1} people") from None
            if kept is not None:
                kept.parent.mkdir(parents=True, exist_ok=True)
                partial = kept.with_suffix(".partial")
                files.save(calibrations[mechanism, n], partial)
                partial.replace(kept)  # whole or not at all
    return World(population, calibrations)


def _recording(population: Population, index: int) -> Recording:
    rows = population.as_recorded(index)
    return Recording(np.arange(len(rows)) / population.rate_hz, rows, population.names, population.people[index])
