"""A published class of processes, and what a session tells about one chunk for a real mechanism: epsilon' as claimed.

Class. About a level of the person's own, which the adversary may know, chunks follow a stationary Gaussian
autoregressive process of order one: x_{t+1} - m = a (x_t - m) + w_t with one |a| <= a_max for all values of the chunk,
w_t independent of the past and of any covariance. a_max = exp(-seconds / tau), seconds from one chunk to the next and
tau the time constant of the class. Such a process run backward is the same process. For mechanisms that add noise, x
is the whole chunk, and the two contents that are compared lie in the calibration's ball. For `klt`, x are the scores of
the chunk, with a time constant of their own, and each uncorrelated one lies within `range_sd` standard deviations of
the level. Rows are complete: a rule for missing values could move two chunks apart.

Mechanisms that add noise (LPA, CFPA, DCFPA), whatever k and n and however many features. Run two sessions from x and x'
with the same w. Their chunks s later differ by a^s (x - x') exactly, in every row. Clamping moves no two values apart,
and so no two chunks in the Euclidean norm; the projection onto a Euclidean ball moves no two points apart, that onto a
taxicab ball by scaling at most to twice their distance. (It does: (1, 0) and (1, 0.5) become (1, 0) and (2/3, 1/3).)
The loss of Laplace noise grows in proportion to the distance, by Cauchy-Schwarz as in the proof of epsilon, and
snapping to the grid adds at most one step a coordinate. So the chunk s away loses at most

    min(epsilon, c a^s epsilon + g),   c = 1 for CFPA, 2 for LPA, g = rate and deviation of all integers.

DCFPA's ball is one of differences D x, the first row and each row less the one before. Clamping works on rows, and
makes a jagged difference of a smooth one where every second row lies beyond the range. So its distance is bounded by
way of the rows: |D u'| <= s_max |u'| <= s_max |u| <= (s_max / s_min) |D u| for u' no larger than u in any row, with the
largest and smallest singular value of D, 2 cos(pi / (2n + 1)) and 2 sin(pi / (4n + 2)); c = cot(pi / (4n + 2)) is no
less.

Then the likelihoods of all outputs differ by no more than e to the sum of it, for every w and hence on average.

`klt`. However close two chunks are, a border of the quantiser may lie between them, so coupling alone costs epsilon a
chunk for ever. `normal_scores` bounds what later chunks tell of two scores that are 2 range_sd sqrt(d) standard
deviations apart, for d scores. Which codes are used depends on released values alone, and given all outputs they are
fixed. A smaller |a| gives less: both the coupled distance and the shift grow with |a|.

A second of gaze. It enters c chunks, at c epsilon; it moves the expected chunks at both ends by no more than the range,
and so each side adds what it adds for a chunk.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from eyestream.correlation.normal_scores import forward_bound
from eyestream.errors import ConfigError
from eyestream.privacy.additive.core import AdditiveCore
from eyestream.privacy.correlated import Correlated
from eyestream.privacy.joint.core import JointCore
from eyestream.privacy.mechanism import Mechanism
from eyestream.privacy.mechanisms.cfpa import CFPA
from eyestream.privacy.mechanisms.dcfpa import DCFPA
from eyestream.privacy.mechanisms.klt import KLT
from eyestream.privacy.mechanisms.lpa import LPA
from eyestream.privacy.noise.laws import COORDINATE_DEVIATION

__all__ = ["PublishedClass", "session_claim", "side"]

_OUTWARD = 1 + 2.0**-40
_BLOCKS = 16
_NEAR = 20_000  # chunks beyond it count like the last one before


@dataclass(frozen=True)
class PublishedClass:
    """Gaussian autoregressive chunks about a level, with margins.

    Attributes
    ----------
    name : by which configurations and claims call it.
    time_constant_s, score_time_constant_s : tau of the values, and of the scores of `klt`; margins are part of it.
    range_sd : how far from the level a score may lie, in standard deviations.
    about : corpus, number of people, and how the margins were found; a sentence.

    Raises
    ------
    ConfigError
        unless all figures are positive and finite.
    """

    name: str
    time_constant_s: float
    score_time_constant_s: float
    range_sd: float
    about: str

    def __post_init__(self) -> None:
        for field in ("time_constant_s", "score_time_constant_s", "range_sd"):
            value = getattr(self, field)
            if not (math.isfinite(value) and value > 0):
                raise ConfigError(f"class {self.name!r}: {field} must be positive and finite, not {value}")

    def constant_for(self, mechanism: Mechanism) -> float:
        """tau of what the mechanism releases, in seconds."""
        return self.score_time_constant_s if isinstance(mechanism, KLT) else self.time_constant_s

    def most(self, mechanism: Mechanism, seconds: float) -> float:
        """a_max from one chunk to the next, which begins `seconds` later."""
        return math.exp(-seconds / self.constant_for(mechanism))


def side(mechanism: Mechanism, process: PublishedClass, seconds: float, chunks: int) -> float:
    """What `chunks` chunks on one side of the secret one tell, in nats; infinite where no bound is known.

    Parameters
    ----------
    mechanism
        That releases them.
    process
        The class.
    seconds
        From one chunk to the next.
    chunks
        N, how many lie on that side.
    """
    if mechanism.calibration.anchor is not None:  # the baseline of a session enters every release
        return math.inf
    most, core = process.most(mechanism, seconds), mechanism.core
    epsilon = float(mechanism.loss.epsilon)
    if isinstance(mechanism, LPA | CFPA | DCFPA) and isinstance(core, AdditiveCore):
        stretch = 2.0 if isinstance(mechanism, LPA) else 1.0
        if isinstance(mechanism, DCFPA):
            stretch = 1 / math.tan(math.pi / (4 * mechanism.n + 2))
        grid = _grid_loss(core)
        near = min(chunks, _NEAR)
        terms = [min(epsilon, stretch * most**s * epsilon + grid) for s in range(1, near + 1)]
        return _OUTWARD * (math.fsum(terms) + (chunks - near) * (terms[-1] if terms else 0.0))
    if isinstance(mechanism, KLT) and isinstance(core, JointCore):
        distance = 2 * process.range_sd * math.sqrt(core.tables.basis.shape[1])
        return forward_bound(most, epsilon, chunks, distance) * _OUTWARD
    return math.inf


def session_claim(
    mechanism: Mechanism, process: PublishedClass, seconds: float, *, chunks: int, touched: int
) -> Correlated:
    """epsilon' of one chunk, and of one second of gaze, for a session of at most `chunks` chunks.

    Parameters
    ----------
    mechanism, process, seconds
        As for `side`.
    chunks
        T, of the whole session.
    touched
        How many chunks a second of gaze enters.

    Raises
    ------
    ConfigError
        when there is no chunk.
    """
    if chunks < 1:
        raise ConfigError(f"chunks: a session has at least one, not {chunks}")
    epsilon = float(mechanism.loss.epsilon)
    plain = chunks * epsilon
    around = _both_sides(mechanism, process, seconds, chunks - 1)
    return Correlated(
        name=process.name,
        about=process.about,
        most=process.most(mechanism, seconds),
        time_constant_s=process.constant_for(mechanism),
        within=_range_words(mechanism, process),
        chunks=chunks,
        plain=plain,
        chunk=min(plain, (epsilon + around) * _OUTWARD),
        second=min(plain, (min(touched, chunks) * epsilon + around) * _OUTWARD),
    )


def _both_sides(mechanism: Mechanism, process: PublishedClass, seconds: float, others: int) -> float:
    """The largest sum over where the secret chunk may lie among `others` more; a side grows with its chunks."""
    if isinstance(mechanism, KLT):  # long sessions tell no more than half as long ones: not worth the time
        return min(2 * side(mechanism, process, seconds, others), others * float(mechanism.loss.epsilon))
    borders = sorted({others * i // (2 * _BLOCKS) for i in range(_BLOCKS + 1)})
    return max(
        side(mechanism, process, seconds, high) + side(mechanism, process, seconds, others - low)
        for low, high in zip(borders, borders[1:] or borders, strict=False)
    )


def _grid_loss(core: AdditiveCore) -> float:
    """What one grid step, and the deviation of the sampler, may cost in every integer of a chunk."""
    law = core.private.law
    count = law.shape[1]
    rates = sum((Fraction(rate) for rate in law.rates.tolist()), Fraction(0))
    return float((rates + len(law.rates) * COORDINATE_DEVIATION) * count) * _OUTWARD


def _range_words(mechanism: Mechanism, process: PublishedClass) -> str:
    if isinstance(mechanism, KLT):
        return f"each uncorrelated score of them within {process.range_sd:g} standard deviations of the level"
    return "both in the ball of the calibration"
