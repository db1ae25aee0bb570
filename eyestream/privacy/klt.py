"""KLT: joint transform coding. The whole epsilon goes into few bits about what carries a person's data.

CFPA codes 48 strongly correlated features apart, each with epsilon / 48, and releases mostly noise. Here a chunk of all
features is described by a few scores on the Karhunen-Loeve basis of a public corpus; what the released past does not
already tell of the scores is quantised into one code word of b bits; and the code word is released by randomised
response with the whole epsilon. `KLT.md` beside this file has the derivation, the proof and the measurements.

Guarantee: pure epsilon-differential privacy for one chunk, replace-one, local model, for *every* input: two chunks, in
any state that earlier releases have led to, have at most two different code words, and the response bounds the odds of
every output by e^epsilon. The state is a function of released values and public figures alone. What is computed from
the released code word (filter, reconstruction, clip) is post-processing.
"""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from eyestream.errors import CalibrationError, ConfigError
from eyestream.privacy.calibration import Calibration, JointTables
from eyestream.privacy.mechanism import Mechanism
from eyestream.privacy.noise import Noise
from eyestream.privacy.schedule import Schedule

__all__ = ["KLT", "KLTSession"]

Array = NDArray[np.float64]


class KLT(Mechanism):
    """Joint transform coding of whole chunks.

    Shrinking, smoothing across chunks and the clip to the range are part of it. `release` is the first chunk of a
    session; `session` gives what releases the chunks of one session in order and improves while the person stays the
    same.

    Parameters
    ----------
    calibration, epsilon, noise
        As for every mechanism.
    k
        Must be None: the directions follow from epsilon.
    shrink, clip, smooth
        Part of the mechanism, whatever is asked.

    Attributes
    ----------
    k : the number of code-word coordinates of a session's first chunk.
    noise_sd : (F,) expected error of a value late in a session, root mean square, noise and what is not coded together.
    """

    name: ClassVar[str] = "klt"

    def __init__(
        self,
        calibration: Calibration,
        epsilon: float,
        *,
        k: int | None = None,
        noise: Noise | None = None,
        shrink: bool = True,
        clip: bool = True,
        smooth: bool = True,
    ) -> None:
        super().__init__(calibration, epsilon, noise)
        tables = calibration.tables
        if not isinstance(tables, JointTables):
            raise CalibrationError("the calibration holds no figures for joint coding")
        if k is not None or calibration.k is not None:
            raise ConfigError("klt chooses its directions by itself: k cannot be given")
        active = self._active
        if tables.basis.shape[0] != len(active) * len(tables.modes):
            raise CalibrationError("the basis of the calibration is not of its released features")
        self.tables = tables
        self.schedule = Schedule(tables, self.epsilon)
        self._mean, self._sd = tables.mean[active][:, None], tables.sd[active][:, None]
        self._lo, self._hi = calibration.lo[active][:, None], calibration.hi[active][:, None]
        self.k = (len(self.schedule.steps[0].points),)
        self.noise_sd = np.zeros(self.features)
        self.noise_sd[active] = tables.sd[active] * np.sqrt(self._unknown() + tables.residual[active])

    def _unknown(self) -> Array:
        """(A,) mean square error of a standardised value, as far as the scores describe it, late in a session."""
        tables = self.tables
        shed = np.tensordot((1 - tables.weights) ** 2, tables.covariances, 1)
        blocks = tables.expand.T.reshape(len(self._active), len(tables.modes), -1)
        error: Array = np.einsum("fmi,ij,fmj->f", blocks, self.schedule.unknown + shed, blocks) / self.n
        return error

    def release(self, chunk: Array) -> Array:
        """One private release of a chunk (F, n) as the first of a session; see `Mechanism.release`."""
        return self.session().release(chunk)

    def session(self) -> "KLTSession":
        """What releases the chunks of one session, in order."""
        return KLTSession(self)

    def _scores(self, chunk: Array) -> Array:
        """(d,) scores of a chunk (F, n)."""
        standard = (self._admit(chunk) - self._mean) / self._sd
        scores: Array = (standard @ self.tables.modes.T).reshape(-1) @ self.tables.basis
        return scores

    def _chunk(self, scores: Array) -> Array:
        """(F, n) that scores (d,) stand for, inside the range."""
        modes = (scores @ self.tables.expand).reshape(len(self._active), -1)
        released = modes @ self.tables.modes * self._sd + self._mean
        np.clip(released, self._lo, self._hi, out=self._released)
        return self._complete()


class KLTSession:
    """State of one session: an estimate of the scores' components, from released code words alone."""

    def __init__(self, mechanism: KLT) -> None:
        self._mechanism = mechanism
        self._components = len(mechanism.tables.poles)
        self._state = np.zeros(len(mechanism.schedule.poles))
        self._turn = 0

    def release(self, chunk: Array) -> Array:
        """One private release of the session's next chunk (F, n); see `Mechanism.release`."""
        with self._mechanism._turn:
            return self._release(chunk)

    def _release(self, chunk: Array) -> Array:
        mechanism = self._mechanism
        schedule, tables = mechanism.schedule, mechanism.tables
        step = schedule.steps[min(self._turn, len(schedule.steps) - 1)]
        predicted = self._state * schedule.poles if self._turn else self._state
        innovation = step.directions @ (mechanism._scores(chunk) - predicted.reshape(self._components, -1).sum(axis=0))
        word = [int(np.searchsorted(b, y)) for b, y in zip(step.borders, innovation, strict=True)]
        drawn = mechanism._noise.draw(step.law)
        released = np.where(drawn[0], drawn[1:], word)  # the only line that raw data and randomness meet in
        points = np.array([points[i] for points, i in zip(step.points, released, strict=True)])
        self._state = predicted + step.gain @ points
        self._turn += 1
        return mechanism._chunk(tables.weights @ self._state.reshape(self._components, -1))
