"""The laboratory's knowledge of a mechanism: one `LaboratoryPart`, which nothing of the product imports.

A distribution names the parts of its mechanisms by the entry points ``eyestream.laboratory``: the name of a mechanism,
and the place of its `LaboratoryPart`. A file of its own calls `register_part` beside
`eyestream.core.mechanisms.register`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint
from typing import Any, TypeVar

from eyestream.core.calibration import Calibration
from eyestream.core.mechanisms.entry import Beginning, referred
from eyestream.core.mechanisms.registry import beginnings, entry_of
from eyestream.doors import installed, loaded
from eyestream.errors import CalibrationError, ConfigError
from eyestream.rim.elsewhere import imported

Wanted = TypeVar("Wanted")

FILTERED = {"shrink": True, "smooth": True, "clip": True}
"""All post-processing that mechanisms of additive noise have; it costs no epsilon."""


@dataclass(frozen=True, slots=True)
class StudyForm:
    """One way in which `eyestream study` releases with a mechanism.

    Attributes
    ----------
    label : its name in tables.
    colour : the same in every figure, #RRGGBB.
    calibration : what the mechanism is calibrated with, beside its defaults; forms that say the same share it.
    options : what it is built with.
    attacked : whether attacks are run on it; not so where a form differs from another one by a public, invertible map,
        which hides nothing.
    best : whether the form is compared only where mechanisms are compared at their best.
    """

    label: str
    colour: str
    calibration: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    attacked: bool = True
    best: bool = False


@dataclass(frozen=True, slots=True)
class LaboratoryPart:
    """The laboratory's knowledge of one mechanism. A field may be a reference, ``package.module:NAME``.

    Attributes
    ----------
    calibrate
        Calibration from a `Corpus`; called with the corpus and, by name, declared, description, progress and what
        `calibration_options` names. None: `uncalibrated` says why.
    calibration_options
        Options of `calibrate` that are its own.
    uncalibrated
        What to take in the place of a calibration from a corpus, in words.
    declare
        Calibration from a declared range alone: called with a calibration and a number of rows. None: a corpus is
        needed.
    adapt
        A calibration for another tracker: called with the one that is there, a `Corpus` of the other tracker, and what
        the recordings are. None: there is no such thing.
    labelled
        A calibration from sessions of people whose tasks are known: called with lists of `LabelledSession`, a number
        of rows and, by name, sessions, declared and description. It gives what is to be said of it, too.
    expecting
        Where the eye is expected in the slot after those that were released, for a gatekeeper: called with a
        calibration, it gives what has `take(session, index, epsilon, told)` for each slot in turn, with the released
        features by name, and gives an `eyestream_lab.gatekeeper.answers.Expected` or None. None: nothing is expected.
    hindsight
        Estimates of the chunks of a whole session from all its releases (`eyestream_lab.hindsight`): called with the
        core, the states after each release, and the arrays to write to. None: nothing is better than what was released.
    forms
        How `eyestream study` releases with it.
    audit, law, study
        Its `eyestream_lab.audit.trials.AuditPart`, its output law as `eyestream_lab.correlation.emissions.emission_of`
        calls it, and its `eyestream_lab.study.ways.StudyPart`. None: it is left out there, or refused by its name.
    """

    calibrate: Callable[..., Calibration] | str | None = None
    calibration_options: tuple[str, ...] = ()
    uncalibrated: str = ""
    declare: Callable[[Calibration, int], Calibration] | str | None = None
    adapt: Callable[..., tuple[Calibration, tuple[str, ...]]] | str | None = None
    labelled: Callable[..., tuple[Calibration, tuple[str, ...]]] | str | None = None
    expecting: Callable[[Calibration], Any] | str | None = None
    hindsight: Callable[..., None] | str | None = None
    forms: tuple[StudyForm, ...] = ()
    audit: Any = None
    law: Any = None
    study: Any = None

    def get(self, what: str, wanted: type[Wanted]) -> Wanted | None:
        """The field `what`, imported where it is a reference; None where there is none.

        Raises
        ------
        ConfigError
            The reference cannot be imported, or is something else than `wanted`.
        """
        place = getattr(self, what)
        return imported(place, wanted, f"{what} of a mechanism") if isinstance(place, str) else place


_PARTS: dict[str, LaboratoryPart] = {}


@cache
def _installed() -> dict[str, EntryPoint]:
    return {point.name: point for point in installed("eyestream.laboratory")}


def register_part(mechanism: str, part: LaboratoryPart) -> LaboratoryPart:
    """Make the part of a mechanism known, by the mechanism's name, and give it back."""
    return _PARTS.setdefault(mechanism, part)


def part_of(mechanism: str) -> LaboratoryPart:
    """The part of a mechanism by its name; an empty one where nobody named one.

    Raises
    ------
    CalibrationError
        There is no such mechanism.
    """
    entry_of(mechanism)
    if mechanism not in _PARTS and mechanism in _installed():
        _PARTS[mechanism] = loaded(_installed()[mechanism], LaboratoryPart)
    return _PARTS.get(mechanism, LaboratoryPart())


def beginning_of_gaze() -> Beginning:
    """How the first mechanism begins that releases gaze slot by slot."""
    return next(one for name, one in beginnings().items() if entry_of(name).front_end is not None)


def calibrate(name: str, corpus: Any, **options: Any) -> Calibration:
    """Calibration of the mechanism `name` from the people of a `Corpus`.

    Parameters
    ----------
    options
        `declared`, `description`, `progress`, and what the mechanism's part names; None is "not given".

    Raises
    ------
    CalibrationError
        when there is no such mechanism, it is not calibrated from rows, or the corpus or an option cannot be used.
    ConfigError
        when the calibration does not take an option.
    """
    part = part_of(name)
    if part.calibrate is None:
        raise CalibrationError(part.uncalibrated or f"{name} is not calibrated from a corpus")
    takes = ("declared", "description", "progress", *part.calibration_options)
    given = {option: value for option, value in options.items() if value is not None}
    unknown = [option for option in given if option not in takes]
    if unknown:
        own = ", ".join(part.calibration_options) or "none"
        raise ConfigError(f"the calibration of {name} has no option {unknown[0]}; it takes {own}")
    made: Calibration = referred(part.calibrate)(corpus, **given)
    return made


def declared_range(calibration: Calibration, n: int) -> Calibration:
    """The same features with figures that hold every chunk of `n` rows inside the range, whatever corpus there was.

    Raises
    ------
    CalibrationError
        when there is no such mechanism, or the mechanism needs a corpus.
    """
    declare = part_of(calibration.mechanism).declare
    if declare is None:
        raise CalibrationError(f"{calibration.mechanism} needs a corpus: it cannot be calibrated from a declared range")
    made: Calibration = referred(declare)(calibration, n)
    return made
