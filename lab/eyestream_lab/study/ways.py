"""Ways of releasing that stand in one picture: what ships, each at equal epsilon a minute."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.core.additive.signals import CHUNKS, Signals
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms.registry import names
from eyestream_lab.parts import FILTERED, part_of

Array = NDArray[np.float64]

RAW_ROWS = "raw"


@dataclass(frozen=True)
class Form:
    """How a mechanism of some calibration is built, and its look.

    Attributes
    ----------
    label : its name in tables.
    colour, mark : the same in every figure.
    options : what the mechanism is built with.
    """

    label: str
    colour: str
    mark: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Way:
    """A recipe of a shipped calibration, and the forms that are released with it.

    Attributes
    ----------
    mechanism : its name.
    calibration : what it is calibrated with, beside its defaults.
    forms : the plain one first. White boxes attack that one also in the name of the others: these are made of it.
    place : in pictures and tables, the least first.
    traced : whether traces of one person are drawn.
    """

    mechanism: str
    calibration: Mapping[str, Any]
    forms: tuple[Form, ...]
    place: int = 0
    traced: bool = False


def plain(mechanism: str, colour: str, mark: str, place: int, *, traced: bool = False) -> Way:
    """The plain form and the filtered one of a mechanism that has such options."""
    forms = (Form(mechanism, colour, mark), Form(f"{mechanism}, filtered", colour, mark, FILTERED))
    return Way(mechanism, {}, forms, place, traced)


@dataclass(frozen=True, eq=False)
class Few:
    """What was published of a session.

    Attributes
    ----------
    values : (T, d) of each chunk.
    words : (T, m) which of at most eight cells came out; of mechanisms without cells, eighths of the session's values.
    likely : (T, d, G) chance of each word where the change is the grid's, times any number; None where not known.
    """

    values: Array
    words: NDArray[np.int64]
    likely: Array | None = None


@dataclass(frozen=True)
class StudyPart:
    """The study's knowledge of a mechanism beside its forms.

    Attributes
    ----------
    ways : by the names of the shipped calibrations, without `everyday-` and the length of a chunk.
    statistic : what a release tells best about a chunk (..., n), one number a feature; None where not known.
    signals : what its noise is added to; None where it adds none.
    limit : what it is calibrated with where its model stands for all people; None: its model is no such one.
    white_box : reference to the `eyestream_lab.study.people.white_box.WhiteBox` that knows its law; None: nobody does.
    read : the released words of a session, from the chunks that were published; None: there are none.
    """

    ways: Mapping[str, Way] = field(default_factory=dict)
    statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None = None
    signals: Signals | None = None
    limit: Mapping[str, Any] | None = None
    white_box: str | None = None
    read: Callable[[Mechanism, Sequence[Array]], Few] | None = None


def study_part(mechanism: str) -> StudyPart:
    """The study's part of a mechanism, by its name; an empty one where there is none."""
    return part_of(mechanism).get("study", StudyPart) or StudyPart()


def with_signals() -> dict[str, Signals]:
    """Signals that mechanisms of additive noise add it to, by their names."""
    found = {name: study_part(name).signals for name in names()}
    return {name: signals for name, signals in found.items() if signals is not None}


def of_chunks() -> str:
    """The mechanism that keeps coefficients of the chunk itself: where one mechanism stands for all, it is this one."""
    return next(name for name, signals in with_signals().items() if signals is CHUNKS)


def ways() -> dict[str, Way]:
    """Ways of all mechanisms, in the order of pictures."""
    every = {name: way for mechanism in names() for name, way in study_part(mechanism).ways.items()}
    return dict(sorted(every.items(), key=lambda item: item[1].place))
