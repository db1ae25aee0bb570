"""The mechanisms by name: those of the product, and those that are registered beside them.

`docs/adding-a-mechanism.md` shows how a mechanism is added.
"""

from functools import partial
from typing import Any

from eyestream.errors import CalibrationError, ConfigError
from eyestream.privacy.additive.calibrate import calibrate_per_feature
from eyestream.privacy.additive.fourier import FourierOptions
from eyestream.privacy.additive.per_feature import PostProcessing
from eyestream.privacy.building import building
from eyestream.privacy.calibration import Calibration, JointTables, PerFeatureTables
from eyestream.privacy.calibration.corpus import Corpus
from eyestream.privacy.joint.calibrate import calibrate_joint
from eyestream.privacy.mechanism import Mechanism
from eyestream.privacy.mechanisms.cfpa import CFPA
from eyestream.privacy.mechanisms.dcfpa import DCFPA
from eyestream.privacy.mechanisms.entry import Entry, StudyForm
from eyestream.privacy.mechanisms.klt import KLT, JointOptions
from eyestream.privacy.mechanisms.lpa import LPA
from eyestream.privacy.noise import Noise

__all__ = ["build", "calibrate", "entries", "entry_of", "register"]

_ENTRIES: dict[str, Entry] = {}


def register(entry: Entry) -> Entry:
    """Make a mechanism known, to `build`, calibration files and the commands, and give its entry back.

    Raises
    ------
    ConfigError
        when another mechanism has its name.
    """
    if _ENTRIES.setdefault(entry.name, entry).mechanism is not entry.mechanism:
        raise ConfigError(f"there is a mechanism {entry.name} already")
    return entry


def entries() -> tuple[Entry, ...]:
    """All that are known."""
    return tuple(_ENTRIES.values())


def entry_of(name: str) -> Entry:
    """The entry of the mechanism `name`.

    Raises
    ------
    CalibrationError
        when there is no such mechanism.
    """
    if name not in _ENTRIES:
        raise CalibrationError(f"there is no mechanism {name!r}; there are {', '.join(_ENTRIES)}")
    return _ENTRIES[name]


def build(calibration: Calibration, epsilon: float, *, noise: Noise | None = None, **options: Any) -> Mechanism:
    """The mechanism that `calibration` was made for.

    Parameters
    ----------
    calibration, epsilon, noise
        As for every mechanism.
    options
        As its entry has them; None is "not said".

    Raises
    ------
    CalibrationError
        when there is no such mechanism.
    ConfigError
        when the mechanism does not take an option, or cannot use epsilon or the value of an option.
    MechanismError
        in place of what a library raises meanwhile (`eyestream.privacy.building`).
    """
    entry = entry_of(calibration.mechanism)
    make: Any = entry.mechanism
    given = entry.checked(options)
    with building(entry.name, epsilon):
        made: Mechanism = make(calibration, epsilon, noise=noise, **given)
    return made


def calibrate(name: str, corpus: Corpus, **options: Any) -> Calibration:
    """Calibration of the mechanism `name` from the people of `corpus`.

    Parameters
    ----------
    options
        `declared`, `description`, `progress`, and what the mechanism's entry names; None is "not said".

    Raises
    ------
    CalibrationError
        when there is no such mechanism, or the corpus or an option cannot be used.
    ConfigError
        when the calibration does not take an option.
    """
    return entry_of(name).calibrated(corpus, options)


register(
    Entry(
        mechanism=LPA,
        options=PostProcessing,
        tables=PerFeatureTables,
        calibrate=partial(calibrate_per_feature, mechanism="lpa"),
        calibration_options=("coverage",),
        study=(StudyForm("LPA", "#E69F00"),),
    )
)
register(
    Entry(
        mechanism=CFPA,
        options=FourierOptions,
        tables=PerFeatureTables,
        calibrate=partial(calibrate_per_feature, mechanism="cfpa"),
        calibration_options=("coverage", "k"),
        study=(
            StudyForm("CFPA", "#0072B2"),
            StudyForm("CFPA, shrunk", "#0072B2", options={"shrink": True}, attacked=False),
        ),
    )
)
register(
    Entry(
        mechanism=DCFPA,
        options=FourierOptions,
        tables=PerFeatureTables,
        calibrate=partial(calibrate_per_feature, mechanism="dcfpa"),
        calibration_options=("coverage", "k"),
        study=(
            StudyForm("DCFPA", "#009E73"),
            StudyForm("DCFPA, shrunk", "#009E73", options={"shrink": True}, attacked=False),
        ),
    )
)
register(
    Entry(
        mechanism=KLT,
        options=JointOptions,
        tables=JointTables,
        calibrate=calibrate_joint,
        calibration_options=("shed_identity", "ranks", "anchored", "books"),
        study=(
            StudyForm("KLT", "#D55E00", estimate=True),
            StudyForm("KLT, one score", "#8C2D04", calibration={"shed_identity": 1.0}, estimate=True),
        ),
    )
)
