"""The laboratory's part of asked features: its trial. Two neighbours are as far up and as far down as they can be."""

from itertools import product

import numpy as np

from eyestream.core.anchor import Anchor
from eyestream.core.calibration import Calibration, Provenance
from eyestream.core.mechanisms.asked import Asked
from eyestream.core.mechanisms.asked.tables import AskedTables
from eyestream.core.noise import Noise
from eyestream_lab.audit.estimate import safe_bound
from eyestream_lab.audit.trials import SHARP, AuditPart, Case, Cells

__all__ = ["AUDIT", "AskedTrial", "synthetic_asked"]

_TOGETHER = 100


def synthetic_asked(n: int, features: int, width: float = 1e9) -> Calibration:
    """A calibration made by hand: equal features whose chunk means go a tenth of the width from chunk to chunk."""
    ones, steps = np.ones(features), np.ones((features, 1))
    return Calibration(
        mechanism=Asked.name,
        names=tuple(f"feature{i}" for i in range(features)),
        units=("1",) * features,
        rate_hz=2.0,
        n=n,
        k=None,
        declared=np.zeros(features, dtype=np.bool_),
        lo=-width * ones,
        hi=width * ones,
        fill=0 * ones,
        tables=AskedTables(width / 10 * ones, 0 * ones, 0 * ones, ones, steps, 0.5 * steps, steps),
        provenance=Provenance("none: made for an audit", 0, 0, None, (), "audit"),
        takes_off=Anchor.of(-width * ones, width * ones, 0 * ones, n, 2.0),
    )


class AskedTrial:
    """The first chunk of a session, of two features; a cell for each of its words."""

    def __init__(self, case: Case, noise: Noise | None = None) -> None:
        calibration = synthetic_asked(case.n, 2)
        self.mechanism = Asked(calibration, case.epsilon, noise=noise, features=calibration.names)
        self._epsilon, core = case.epsilon, self.mechanism.core
        chains = core.chains  # type: ignore[attr-defined]
        borders = chains.borders(core.start)
        words = product(range(borders.shape[1] + 1), repeat=2)
        self._cells = {chains.told(core.start, borders, np.array(word)).tobytes(): i for i, word in enumerate(words)}
        self.partitions = {"word": len(self._cells)}

    def sharp(self, draws: int) -> bool:
        """By the own word, and by one other."""
        other = 1 / (np.exp(self._epsilon) + len(self._cells) - 1)
        p = np.array([other * np.exp(self._epsilon), 1 - other])
        return safe_bound(p, np.array([other, 1 - p[0]]), draws // 2) >= SHARP * self._epsilon

    def observe(self) -> tuple[Cells, Cells]:
        """Cells of some releases of either neighbour."""
        return self._observed(-1e300), self._observed(1e300)

    def _observed(self, value: float) -> Cells:
        found, chunk = np.empty(_TOGETHER, dtype=np.int64), np.full((2, self.mechanism.n), value)
        for number in range(_TOGETHER):
            session = self.mechanism.session()
            while session.awaits_baseline:
                session.anchor(0 * chunk)
            session.release(chunk)
            state = session.state
            assert state is not None
            found[number] = self._cells[state.tobytes()]
        return {"word": found}


AUDIT = AuditPart(
    trial=AskedTrial,
    shapes=((64, None),),
    draws=(lambda k, epsilon: 2_000, lambda k, epsilon: 200_000),
    synthetic=synthetic_asked,
)
