"""Faults by which Kaleido costs more than a slot is charged."""

from typing import Any

from eyestream_lab.kaleido.mechanism import _STEPS_PER_DEG, PARTS
from tests.rigs.seams import original
from tools.verification.auditing.planting import Patch, fault


@fault("noise of Kaleido for movements of r, charged as if for any", "epsilon kaleido")
def _() -> list[Patch]:
    make = original("Kaleido.__init__")

    def forgetting_the_field(self: Any, *given: Any, **named: Any) -> None:
        make(self, *given, **named)
        self.worst = self.loss

    return [("Kaleido.__init__", forgetting_the_field)]


@fault("noise of Kaleido's tests that is not scaled by r", "epsilon kaleido")
def _() -> list[Patch]:
    """As it is printed: Lap(1 / epsilon of a test), of distances in degrees."""
    rate = original("rate of Kaleido's tests")
    return [("rate of Kaleido's tests", lambda epsilon, reach, count: rate(epsilon, _STEPS_PER_DEG, count))]


@fault("half of the whole budget for every publication of Kaleido", "epsilon kaleido")
def _() -> list[Patch]:
    return [("parts of a publication", lambda self: PARTS // 4)]
