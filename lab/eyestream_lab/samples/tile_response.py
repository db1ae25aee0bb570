"""The tile response of a whole recording, session by session, without a sidecar."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from eyestream.core.kinds import Loss
from eyestream.core.noise import Noise, SecureNoise
from eyestream.core.tiles.calibration import TileCalibration
from eyestream.core.tiles.reader import Gaze, TileCode, WordReader
from eyestream.core.tiles.response import responded
from eyestream_lab.hindsight.tile import gaze_in_hindsight


class TileResponse:
    """A mechanism that releases the slots of sessions.

    Parameters
    ----------
    calibration
        Public statistics.
    epsilon
        Of one slot.
    noise
        Source of noise; tests alone pass another than `SecureNoise`.

    Attributes
    ----------
    loss : of one slot.
    code : what readers need.
    gain : factor by which a slot's release raises the chance of a right guess about its word, exact.

    Raises
    ------
    ConfigError
        when epsilon cannot be used.
    """

    def __init__(self, calibration: TileCalibration, epsilon: float, *, noise: Noise | None = None) -> None:
        self.calibration, self.epsilon = calibration, epsilon
        self.code = TileCode(calibration, epsilon)
        self.loss = Loss("slot", Fraction(epsilon))
        self.gain = self.code.law.gain
        self.noise: Noise = noise if noise is not None else SecureNoise()

    def session(self) -> "TileSession":
        """A session that releases its slots in order."""
        return TileSession(self)

    def hindsight(self, words: list[int]) -> list[Gaze]:
        """Gaze in hindsight of a whole recording's released words; post-processing, so it costs nothing."""
        return gaze_in_hindsight(self.code, words)


class TileSession:
    """One session, slot by slot; for one thread at a time."""

    def __init__(self, mechanism: TileResponse) -> None:
        self._mechanism = mechanism
        self._reader = WordReader(mechanism.code)

    def release(self, occupancy: NDArray[np.int64]) -> tuple[int, Gaze]:
        """One slot's released word, and what it tells together with all earlier ones.

        Parameters
        ----------
        occupancy
            (cells + 1,) of `Field.occupancy`: all that is ever read of the slot.
        """
        word = responded(occupancy, self._reader, self._mechanism.noise)
        return word, self._reader.take(word)
