"""A mechanism of somebody else that cannot be built: named as ``tests.product.core.failing:ENTRY``."""

from collections.abc import Callable
from typing import Any

import gaussian_mean as example
import numpy as np

from eyestream.core.calibration import Calibration
from eyestream.core.mechanisms import Entry, register
from eyestream.core.noise import Noise

__all__ = ["ENTRY", "PLACE", "claims", "faults"]

PLACE = "tests.product.core.failing:ENTRY"

faults: list[Callable[[float], BaseException | None]] = []
"""What is asked for an exception, for each epsilon; tests put something here."""


claims: list[BaseException] = []
"""What asking for its figures of guessing raises."""


class _Core(example._Core):
    @property
    def gain(self) -> None:
        for error in claims:
            raise error


class Failing(example.GaussianMean):
    """The example, but for its faults."""

    name = "failing"

    def __init__(self, calibration: Calibration, epsilon: float, *, noise: Noise | None = None) -> None:
        for fault in faults:
            if (error := fault(epsilon)) is not None:
                raise error
        frame = example.Frame.of(self.name, calibration, epsilon)
        core = _Core(frame, 1e-6)
        core.delta = example.Fraction(0)  # so that a lifetime may fade; nothing is released here
        example.Mechanism.__init__(self, frame, core, noise, {})


def calibrate(corpus: Any, *, declared: Any = (), description: str = "", progress: Any = None) -> Calibration:
    """The range of every feature."""
    fixed, widths = np.isin(corpus.names, list(declared)), example.Widths(corpus.hi - corpus.lo)
    return corpus.calibration(Failing.name, widths, description=description, declared=fixed)


ENTRY = register(Entry(Failing, example.msgspec.defstruct("NoOptions", [], frozen=True), example.Widths))
