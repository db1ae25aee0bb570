"""The laboratory's part of Kaleido."""

import numpy as np
from numpy.typing import NDArray

from eyestream.lab.audit.trials import AuditPart, Case, Cells
from eyestream.privacy.calibration import Calibration
from eyestream.privacy.kaleido import Settings
from eyestream.privacy.mechanisms.kaleido.mechanism import LiveKaleido
from eyestream.privacy.mechanisms.kaleido.tables import calibration_of
from eyestream.privacy.noise import Noise

__all__ = ["AUDIT", "KaleidoTrial"]

Array = NDArray[np.float64]

_W, _WIDTH_DEG, _COLUMNS = 4, 1.0, 8


def synthetic() -> Calibration:
    """Of a field that a movement of r crosses, so that the worst case is Kaleido's own epsilon."""
    return calibration_of(
        Settings(w=_W, r_deg=1.5, skip=1, threshold_deg=0.1, width_deg=_WIDTH_DEG, height_deg=_WIDTH_DEG), 8.0
    )


class KaleidoTrial:
    """A slot in one corner and a slot in the opposite one, as the first of a session; cells across the field.

    No partition reaches 9 tenths of epsilon: publications halve what is left, and a part of it is never spent.
    """

    def __init__(self, case: Case, noise: Noise | None) -> None:
        self.mechanism = LiveKaleido(synthetic(), case.epsilon, noise=noise)
        self.partitions = {"first": _COLUMNS, "last": _COLUMNS}
        corner = np.repeat([_WIDTH_DEG / 2, _WIDTH_DEG / 2, 1.0], _W)[:, None]
        self._slots = corner, corner * np.repeat([-1.0, -1.0, 1.0], _W)[:, None]

    def sharp(self, draws: int) -> bool:
        """Never: see above."""
        return False

    def observe(self) -> tuple[Cells, Cells]:
        """Cells of fifty releases of either neighbour."""
        return self._cells(self._slots[0]), self._cells(self._slots[1])

    def _cells(self, slot: Array) -> Cells:
        x = np.stack([self.mechanism.release(slot)[0] for _ in range(50)])
        column = np.minimum((x / _WIDTH_DEG + 0.5) * _COLUMNS, _COLUMNS - 1).astype(np.int64)
        return {"first": column[:, 0], "last": column[:, -1]}


AUDIT = AuditPart(
    trial=KaleidoTrial,
    shapes=((1, None),),
    draws=(lambda k, epsilon: 1_000, lambda k, epsilon: 50_000),
    synthetic=lambda n, features, width: synthetic(),
)
