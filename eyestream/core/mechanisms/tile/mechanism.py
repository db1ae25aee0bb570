"""The tile response as a mechanism: the counts of a slot go in, gaze in degrees comes out.

**Unit**: the content of one slot of one device: any samples, any number of them, or none. **Neighbours**: two
recordings that differ in one slot, in any way (replace-one). **Guarantee**: pure epsilon for a slot, in the local
model, given any released past. `eyestream/core/tiles/TILES.md` has the proof.

A session's state is what its released words tell: the last word, and the belief of the public model. Gaze is computed
from these alone, so it is post-processing.
"""

from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from eyestream.core.calibration import Calibration
from eyestream.core.frame import Frame
from eyestream.core.kinds import Claim, DifferentialPrivacy
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms.tile.tables import NAME, tiles_of
from eyestream.core.noise import Noise
from eyestream.core.protection import Protection
from eyestream.core.release_type import GazeSlot, OutputSchema
from eyestream.core.tiles.motion import Belief
from eyestream.core.tiles.reader import Gaze, TileCode, WordReader
from eyestream.core.tiles.response import responded
from eyestream.streams import GAZE

Array = NDArray[np.float64]

OUTPUT = {**GAZE, "gaze_error": "deg", "lost": "1", "word": "1"}
"""Names and units of what is released of a slot."""

_NO_WORD = -1.0
_HEAD = 2
"""Numbers of a state before its weights: the word, and how many slots the habit is of."""


class TileCore:
    """Public figures, and releases slot by slot: nothing of it is changed by a release."""

    k, delta = (), Fraction(0)

    def __init__(self, frame: Frame) -> None:
        self.tiles = tiles_of(frame.calibration)
        self.code = TileCode(self.tiles, frame.epsilon)
        self.gain = self.code.law.gain
        self.start: Array = _state(_NO_WORD, self.code.motion.start)
        self.schema = OutputSchema(tuple(OUTPUT), tuple(OUTPUT.values()), (len(OUTPUT), 1), self.tiles.slot_s)
        field = self.tiles.field
        spread = [_spread(self.tiles.prior.sum(axis=i), at) for i, at in ((0, field.x_deg), (1, field.y_deg))]
        self.noise_sd: Array = np.array([*spread, 0.0, 0.0, 0.0])  # `gaze_error` of each slot says more

    def step(self) -> "TileCore":
        """Itself: it needs no arrays to work."""
        return self

    def release(self, admitted: Array, noise: Noise, turn: int, state: Array | None, out: Array) -> Array:
        """Write the gaze of a slot; see `eyestream.core.mechanism.Step`."""
        assert state is not None
        reader = WordReader(self.code, self._belief(state) if turn else None)
        word = responded(admitted[:, 0].astype(np.int64), reader, noise)
        write_gaze(out, reader.take(word), word)
        return _state(word, reader.belief)

    def _belief(self, state: Array) -> Belief:
        start = self.code.motion.start
        lost, seen, habit = np.split(state[_HEAD:], np.cumsum((start.lost.size, start.seen.size)))
        return Belief(seen.reshape(start.seen.shape), lost, habit.reshape(start.habit.shape), int(state[1]))


def _state(word: float, belief: Belief) -> Array:
    return np.concatenate(([word, belief.slots], belief.lost, belief.seen.ravel(), belief.habit.ravel()))


def write_gaze(page: Array, gaze: Gaze, word: int) -> None:
    """Write what is released of a slot to `page`."""
    page[:, 0] = gaze.x_deg, gaze.y_deg, gaze.error_deg, gaze.lost, word


def _spread(weights: NDArray[np.integer], places: Array) -> float:
    """Standard deviation of a place with these weights."""
    mean = np.average(places, weights=weights)
    return float(np.sqrt(np.average((places - mean) ** 2, weights=weights)))


class Tile(Mechanism):
    """One word a slot by randomised response, read as gaze in degrees.

    Parameters
    ----------
    calibration, epsilon, noise
        As for every mechanism; epsilon is of one slot.
    """

    name = NAME
    unit = "slot"
    domain: ClassVar[GazeSlot] = GazeSlot()
    protection = Protection(
        law="k-ary randomised response on one word a slot: on which tile the eye dwelt, or that it was lost. A word is "
        "released as it is, or replaced by one that is drawn uniformly, with a probability that epsilon fixes",
        exact="the probability of a replacement is an integer multiple of 2^-128, rounded toward more privacy. The "
        "proof holds for whatever word a slot has: no floating point is in it",
        sampler="nothing is charged for the sampler: what is drawn has the law itself",
        floating_point="integers",
        use="regions of interest, dwell time, and attention at one or two looks a second. It is not for selecting "
        "things by gaze, and not for foveated rendering: these need gaze within a degree, a hundred times a second, "
        "and no useful epsilon gives that",
    )

    def __init__(self, calibration: Calibration, epsilon: float, *, noise: Noise | None = None) -> None:
        self.domain.check(calibration)
        frame = Frame.of(self.name, calibration, epsilon)
        super().__init__(frame, TileCore(frame), noise)

    @property
    def claim(self) -> Claim:
        """The claim of the mechanism about one released slot."""
        return DifferentialPrivacy(
            self.loss,
            f"the gaze of one slot of {self.schema.step_s:g} s of one device, whatever it is (any samples, any number "
            "of them, or none), replace-one, local model; losses of slots add up",
        )
