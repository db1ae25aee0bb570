"""The child at work: replaced after a fault, its prints and its non-finite values noted."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from eyestream_lab.audit.child import Child, Draws, Fault
from eyestream_lab.audit.report import Report
from eyestream_lab.audit.subject import Subject

__all__ = ["Bench"]

Array = NDArray[np.float64]

_LARGEST = 1e75
"""Outputs beyond are taken for this, which hides nothing that is looked at and whose square is finite."""


class Bench:
    """The child at work, replaced after a fault; counts what is drawn and notes what is printed."""

    def __init__(self, subject: Subject, report: Report) -> None:
        self._subject, self._report = subject, report
        self._child: Child | None = None

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *exception: object) -> None:
        self.renew()

    def renew(self) -> None:
        """End the child; the next draw starts another."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def child(self) -> Child:
        """The child, started if there is none."""
        if self._child is None:
            self._child = Child(self._subject)
        return self._child

    def draw(self, inputs: Array, order: NDArray[np.int64], child: Child | None = None) -> Draws:
        """One request, its prints and its non-finite values noted; the latter raise `Fault` then."""
        drawn = (child or self.child()).draw(inputs, order)
        self._report.draws += len(order)
        if drawn.printed:
            self._report.add("extra-output", "bytes were written beside the answers")
        if not np.isfinite(drawn.outputs).all():
            raise Fault("not-finite", "NaN or an infinity came out")
        return replace(drawn, outputs=np.clip(drawn.outputs, -_LARGEST, _LARGEST))
