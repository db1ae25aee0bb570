"""Ways of releasing that stand in one picture: what ships, each at equal epsilon a minute."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["FILTERED", "RAW_ROWS", "WAYS", "Form", "Way"]

FILTERED: Mapping[str, bool] = {"shrink": True, "smooth": True, "clip": True}
"""All post-processing that the plain mechanisms have: it costs no epsilon."""

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
    """

    mechanism: str
    calibration: Mapping[str, Any]
    forms: tuple[Form, ...]


def _plain(mechanism: str, colour: str, mark: str) -> Way:
    forms = (Form(mechanism, colour, mark), Form(f"{mechanism}, filtered", colour, mark, FILTERED))
    return Way(mechanism, {}, forms)


WAYS: dict[str, Way] = {
    "klt": Way("klt", {"ranks": False}, (Form("klt", "#D55E00", "o"),)),
    "klt-one": Way("klt", {"ranks": False, "shed_identity": 1.0}, (Form("klt-one", "#8C2D04", "s"),)),
    "klt-mapped": Way("klt", {}, (Form("klt-mapped", "#CC79A7", "D"),)),
    "klt-anchored": Way("klt", {"anchored": True}, (Form("klt-anchored", "#6A3D9A", "^"),)),
    "cfpa": _plain("cfpa", "#0072B2", "v"),
    "dcfpa": _plain("dcfpa", "#009E73", "P"),
    "lpa": _plain("lpa", "#E69F00", "X"),
}
"""By the names of the shipped calibrations, without `everyday-` and the length of a chunk."""
