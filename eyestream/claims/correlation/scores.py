"""What releases of code words of scores tell of one another under a published class of processes."""

import math

from eyestream.claims.correlation.normal_scores import forward_bound
from eyestream.claims.correlation.published import OUTWARD, PublishedClass
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms.klt.core import JointCore

__all__ = ["SCORES", "ScoreBound"]


class ScoreBound:
    """As `eyestream.claims.correlation.published.CrossChunkBound` has it."""

    saturates = True

    def time_constant_s(self, process: PublishedClass) -> float:
        """Of the scores."""
        return process.score_time_constant_s

    def within(self, process: PublishedClass) -> str:
        """The range of the two contents, in words."""
        return f"each uncorrelated score of them within {process.range_sd:g} standard deviations of the level"

    def side(
        self, mechanism: Mechanism, process: PublishedClass, most: float, chunks: int, *, first: int, every: int
    ) -> float:
        """What `chunks` chunks on one side tell, in nats."""
        core, epsilon = mechanism.core, float(mechanism.loss.epsilon)
        assert isinstance(core, JointCore)
        distance = 2 * process.range_sd * math.sqrt(core.tables.basis.shape[1])
        nearest = None if first == every else most**first
        return forward_bound(most**every, epsilon, chunks, distance, nearest) * OUTWARD


SCORES = ScoreBound()
