"""Kaleido as a mechanism of a stream: the gaze of a slot goes in, as many samples come out, and so on in the session.

A slot has w samples, which is one window of Kaleido. **Unit**: the content of one slot of one device. **Neighbours**:
two recordings that differ in one slot, in any way (replace-one). **Guarantee**: pure epsilon for a slot, in the local
model, given any released past.

*Proof.* All that decides is an output, or follows from outputs and the number of the sample: where the last output is,
which samples were tested, and what was spent. Fix the past. Then what a slot holds reaches the outputs through its own
w samples, and they are one window, which spends at most Kaleido's own epsilon for movements of r, and `worst` for any
movement inside the clamped field (`eyestream_lab.kaleido`). Kaleido's own epsilon is chosen so that `worst` is at
most the epsilon of the slot. No later slot reads these samples. This holds from any state: the sum over the last w - 1
samples has those of the slot itself, and nothing else is used.

**A second figure.** Any w consecutive samples of one session, each moved by at most r, cost Kaleido's own epsilon, also
where they lie in two slots. It rests on all slots of the session in their order. It is said beside the first one, and
nothing is charged by it.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.frame import Frame
from eyestream.core.kinds import Claim, DifferentialPrivacy
from eyestream.core.mechanism import Mechanism
from eyestream.core.noise import Noise
from eyestream.core.protection import Protection
from eyestream.core.release_type import GazeSlot, OutputSchema
from eyestream.errors import ConfigError
from eyestream.streams import GAZE
from eyestream_lab.kaleido import Kaleido, KaleidoSession, Settings
from eyestream_lab.kaleido.mechanism import PARTS
from eyestream_lab.kaleido_live.tables import NAME, settings_of

Array = NDArray[np.float64]

OUTPUT = {**GAZE, "tested": "1", "spent": "1"}
"""Names and units of what is released of a sample; `spent` is the share of Kaleido's own epsilon."""

_LEAST, _MOST = 0.01, 1000.0


def within(epsilon: float, settings: Settings) -> float:
    """The largest epsilon of Kaleido whose worst case is at most that of a slot; raises ConfigError where none is."""
    factor = Kaleido(1.0, settings).worst.epsilon
    own = float(Fraction(epsilon) / factor)
    while Fraction(own) * factor > Fraction(epsilon):
        own = math.nextafter(own, 0.0)
    if not _LEAST <= own <= _MOST:
        low, high = _LEAST * float(factor), _MOST * float(factor)
        raise ConfigError(
            f"{NAME}: epsilon of a slot: expected {low:.4g} to {high:.4g}, which is {float(factor):.4g} times that for "
            f"movements of {settings.r_deg:g} degrees, not {epsilon:g}"
        )
    return own


class KaleidoStep:
    """One release at a time: a session that is told where it stands."""

    def __init__(self, kaleido: Kaleido) -> None:
        self._session = KaleidoSession(kaleido)

    def release(self, admitted: Array, noise: Noise, turn: int, state: Array | None, out: Array) -> Array:
        """Write the samples of a slot; see `eyestream.core.mechanism.Step`."""
        assert state is not None
        session = self._session
        session.noise = noise
        session.resume(state)
        x, y, seen = admitted[:, 0].reshape(3, -1)
        for place, step in enumerate(session.release(x, y, seen >= 0.5)):
            out[:, place] = step.x_deg, step.y_deg, step.tested, step.parts / PARTS
        return session.state()


class KaleidoCore:
    """Public figures; nothing of it is changed by a release."""

    k, delta = (), Fraction(0)

    def __init__(self, frame: Frame) -> None:
        settings = settings_of(frame.calibration)
        self.kaleido = Kaleido(within(frame.epsilon, settings), settings)
        assert self.kaleido.worst.epsilon <= Fraction(frame.epsilon)
        step_s = 1 / (frame.calibration.rate_hz * settings.w)
        self.start: Array = KaleidoSession(self.kaleido).state()
        self.schema = OutputSchema(tuple(OUTPUT), tuple(OUTPUT.values()), (len(OUTPUT), settings.w), step_s)
        first = settings.r_deg * PARTS / (self.kaleido.epsilon * KaleidoSession(self.kaleido).parts_for_one())
        ends = settings.width_deg, settings.height_deg
        self.noise_sd: Array = np.array([*(min(math.sqrt(3.0) * first, end / 2) for end in ends), 0.0, 0.0])

    def step(self) -> KaleidoStep:
        """A step that releases one slot at a time."""
        return KaleidoStep(self.kaleido)


@dataclass(frozen=True, slots=True)
class KaleidoClaim(DifferentialPrivacy):
    """Pure epsilon for a slot, and beside it the smaller figure for small movements.

    Attributes
    ----------
    small : epsilon of any `w` consecutive samples of a session, each moved by at most `r_deg`.
    w, r_deg : as in `eyestream_lab.kaleido.Settings`.
    """

    small: Fraction
    w: int
    r_deg: float

    def facts(self) -> dict[str, object]:
        """For machines."""
        beside = {"epsilon": float(self.small), "w": self.w, "r_deg": self.r_deg, "charged": False}
        return DifferentialPrivacy.facts(self) | {"small_movements": beside}


class LiveKaleido(Mechanism):
    """Samples of gaze, each repeated or published with planar Laplace noise.

    Parameters
    ----------
    calibration, epsilon, noise
        As for every mechanism; epsilon is of one slot, whatever changes in it.
    """

    name = NAME
    unit = "slot"
    domain: ClassVar[GazeSlot] = GazeSlot()
    protection = Protection(
        law="Kaleido (Li and others, USENIX Security 2021), corrected: a sample repeats the last released one, or is "
        "tested against it with Laplace noise, and is published with planar Laplace noise where it has moved. Noise is "
        "scaled for movements of r. All that a slot spends is bounded by one window of w samples",
        exact="gaze is clamped to the field and rounded to 2^-12 degrees, and noise is integers on that grid. What "
        "rounding adds is in the sensitivity",
        sampler="what the sampler's digits, its rounding and the ends of its reach may add is charged",
        floating_point="integers",
        use="comparing with published work on Kaleido, and attention within a few degrees of the last look. At an "
        "epsilon of a slot that is usual elsewhere, its noise is wider than the field",
    )

    def __init__(self, calibration: Calibration, epsilon: float, *, noise: Noise | None = None) -> None:
        self.domain.check(calibration)
        frame = Frame.of(self.name, calibration, epsilon)
        super().__init__(frame, KaleidoCore(frame), noise)

    @property
    def claim(self) -> Claim:
        """The claim of the mechanism about one released slot, and about small movements."""
        assert isinstance(self.core, KaleidoCore)
        own, settings = self.core.kaleido.epsilon, self.core.kaleido.settings
        slot_s = settings.w * self.schema.step_s
        return KaleidoClaim(
            self.loss,
            f"the gaze of one slot of {slot_s:g} s of one device, whatever it is (any samples, any number of them, or "
            "none), replace-one, local model; losses of slots add up. The ledger is charged this. Beside it, within "
            f"one session: epsilon {own:.4g} for any {settings.w} consecutive samples, each moved by at most "
            f"{settings.r_deg:g} degrees. Movements beyond that are covered by the first figure alone",
            Fraction(own),
            settings.w,
            settings.r_deg,
        )
