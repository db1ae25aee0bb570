"""The laboratory's part of Kaleido."""

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.noise import Noise
from eyestream_lab.audit.estimate import chained_bound
from eyestream_lab.audit.trials import AuditPart, Case, Cells
from eyestream_lab.kaleido import KaleidoSession, Settings
from eyestream_lab.kaleido_live.mechanism import KaleidoCore, LiveKaleido
from eyestream_lab.kaleido_live.tables import calibration_of

Array = NDArray[np.float64]

_PUBLISHED, _SKIP, _EDGE_DEG, _TOGETHER = 4, 2, 1.5, 50


def synthetic() -> Calibration:
    """A calibration of a field whose diagonal is 2.1 r; a test asks whether gaze has crossed it."""
    return calibration_of(
        Settings(
            w=_PUBLISHED * _SKIP,
            r_deg=2.0,
            skip=_SKIP,
            threshold_deg=2**0.5 * 2 * _EDGE_DEG,
            width_deg=2 * _EDGE_DEG,
            height_deg=2 * _EDGE_DEG,
        ),
        8.0,
    )


class KaleidoTrial:
    """Two slots whose gaze is in opposite corners at every sample, and crosses the field before each test.

    The last output is in the second slot's corner, and nothing was spent in the window before. The event: at each test
    the gaze of the first slot is published, the output is clamped to its corner, and the samples until the next test
    repeat it. Each sample is a step, which begins in the public state that the event of the one before leads to. Slots
    are released by the same session, so what is found holds for them.

    Exactly, with D the diagonal, e the epsilon of a slot and four tests: each test is passed with 1/2, and from the
    other slot with exp(-e / 8) / 2. A publication of rate a is clamped to the near corner with 1/4, and to the far one
    with Q(a D), the mass of planar Laplace noise beyond s = a D / sqrt(2) on both axes: log(1 / (4 Q(t))) is 0.91 t for
    a small t and 0.96 t at 2.5. Publications spend 15/32 of e in all. So the event shows about 0.94 of e.
    """

    def __init__(self, case: Case, noise: Noise | None) -> None:
        mechanism = LiveKaleido(synthetic(), case.epsilon, noise=noise)
        assert isinstance(mechanism.core, KaleidoCore)
        self._session = KaleidoSession(mechanism.core.kaleido)
        self._session.noise = mechanism.noise
        self._crossed = [(-1.0) ** (place // _SKIP) * _EDGE_DEG for place in range(_PUBLISHED * _SKIP)]
        self._states = self._reached(mechanism.core.start)
        self.partitions = {str(place): 2 for place in range(len(self._crossed))}

    def sharp(self, draws: int) -> bool:
        """Never: the bounds of eight steps lose more to chance than is left of a tenth."""
        return False

    def observe(self) -> tuple[Cells, Cells]:
        """Whether each step had the event in its releases, of either neighbour."""
        return self._cells(1.0), self._cells(-1.0)

    def _cells(self, sign: float) -> Cells:
        steps = list(zip(self._states, self._crossed, strict=True))
        return {
            str(place): np.array([self._step(state, sign * x, x) for _ in range(_TOGETHER)], dtype=np.int64)
            for place, (state, x) in enumerate(steps)
        }

    def _step(self, state: Array, x: float, wanted: float) -> bool:
        """Whether a sample at (x, x) leaves the output in the corner (wanted, wanted), by a publication where due."""
        self._session.resume(state)
        at = np.array([x])
        [step] = self._session.release(at, at, np.ones(1, np.bool_))
        due = bool(state[3] >= _SKIP)
        return (step.x_deg, step.y_deg) == (wanted, wanted) and due == (step.parts > 0)

    def _reached(self, start: Array) -> list[Array]:
        """The public states that steps begin in, each found by trying until the event comes."""
        state = start.copy()
        state[:4] = *np.negative(self._session.mechanism.edge), 1.0, _SKIP
        states = []
        for x in self._crossed:
            states.append(state)
            assert any(self._step(state, x, x) for _ in range(1_000)), "the event does not come"
            state = self._session.state()
        return states


AUDIT = AuditPart(
    trial=KaleidoTrial,
    shapes=((1, None),),
    draws=(lambda k, epsilon: 10_000 if epsilon > 1 else 1_000, lambda k, epsilon: 400_000),
    synthetic=lambda n, features, width: synthetic(),
    bound=chained_bound,
)
