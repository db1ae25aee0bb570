"""The laboratory's part: a calibration that learns nothing of people; two neighbours, all flags usual and none."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.mechanisms import build
from eyestream.core.noise import Noise
from eyestream.rim.files.recordings import Recording
from eyestream_lab.audit.estimate import safe_bound
from eyestream_lab.audit.trials import SHARP, AuditPart, Case, Cells
from eyestream_lab.calibration import Corpus
from eyestream_lab.parts import LaboratoryPart, StudyForm, register_part
from tests.product.drill.unary import ENTRY
from tests.product.drill.unary.tables import Counts
from tests.product.drill.unary.usual import Usual

__all__ = ["AUDIT", "ENTRY", "PART", "synthetic"]


def calibrate(corpus: Corpus, *, share: float = 0.5, description: str = "declared", **others: Any) -> Calibration:
    """Of spells of `corpus.n` flags; from which `share` on the right is a session's usual side."""
    one, nothing = np.ones(1), np.zeros(1)
    counts, usual = Counts(one * (corpus.n + 1)), Usual(one * share)
    return corpus.calibration(
        "unary", counts, description=description, lo=nothing, hi=one, fill=nothing, takes_off=usual
    )


def synthetic(n: int, features: int = 1, width: float = 1.0) -> Calibration:
    """Made by hand."""
    flags = (np.arange(4 * n) % 2.0)[:, None]
    return calibrate(Corpus.of([Recording(np.arange(4 * n) / 4.0, flags, ("right",))], n))


class Trial:
    """Of each release the two bits that differ."""

    partitions: Mapping[str, int] = {"bits": 4}

    def __init__(self, case: Case, noise: Noise | None = None) -> None:
        self._case, self._mechanism = case, build(synthetic(case.n), case.epsilon, noise=noise)

    def sharp(self, draws: int) -> bool:
        """By the law that is claimed."""
        flip = 1 / (math.exp(self._case.epsilon / 2) + 1)
        return safe_bound(np.array([(1 - flip) ** 2]), np.array([flip**2]), draws) >= SHARP * self._case.epsilon

    def observe(self) -> tuple[Cells, Cells]:
        """Of several releases of either neighbour."""
        usual, other = (self._released(np.full((1, self._case.n), value)) for value in (0.0, 1.0))
        return {"bits": usual}, {"bits": other}

    def _released(self, chunk: NDArray[np.float64]) -> NDArray[np.int64]:
        session = self._mechanism.session()
        session.anchor(np.zeros_like(chunk))
        return np.array([int(session.release(chunk)[[0, -1], 0] @ (1, 2)) for _ in range(200)])


AUDIT = AuditPart(
    trial=Trial,
    shapes=((4, None),),
    draws=(lambda k, epsilon: 10_000, lambda k, epsilon: 200_000),
    synthetic=synthetic,
)

PART = register_part(
    ENTRY.name,
    LaboratoryPart(
        calibrate,
        calibration_options=("share",),
        forms=(StudyForm("unary", "#777777", calibration={"share": 0.75}),),
        audit=AUDIT,
    ),
)
