"""The facts of a guarantee: a mechanism in its deployment, as one value. Renderers read it and add nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from eyestream.privacy.claims.borders import SessionBorders
from eyestream.privacy.claims.kinds import Claim, DifferentialPrivacy
from eyestream.privacy.correlated import Correlated
from eyestream.privacy.loss import Loss
from eyestream.privacy.protection import Protection
from eyestream.privacy.scopes import Scope

__all__ = ["NOT_PROTECTED", "TRUSTED", "Facts"]

_TRACKER = "the tracker (its rows are of the moments that number and rate say, and its sessions share no gaze)"
TRUSTED = (_TRACKER, "this process", "its ledger file", "the way from tracker to sidecar")

NOT_PROTECTED = (
    "that a device is in use, when and for how long, and its pseudonym",
    "what several chunks tell together beyond the sums of their losses",
    "features declared constant say nothing, and cost nothing",
    "copies of this process that release the same chunk, each with fresh noise: that costs once for every copy and is "
    "charged once",
    "two sidecars, two pseudonyms or two replays for the same eyes: their losses add up, and no ledger sees both",
    "recordings that the calibration was made from: it is published as it is",
    "when rows come: a tracker that leaves rows out while the eye is lost, instead of sending NaN, tells when; with "
    "on_row, the moment of a chunk has in it what its last row took",
    "an older copy of the ledger put back, or its newest records cut off: what was spent since then is forgotten",
    "copies of a whole virtual machine: that they do not repeat each other's noise rests on the kernel inside, which "
    "takes fresh entropy when it is told of the copy",
)
"""What no setting of the product protects."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is claimed of the releases of one device, and what is not.

    Attributes
    ----------
    promise : the claim about one chunk; `NoClaim` for noise of a test.
    scopes : of larger units.
    protection : what the mechanism's claim rests on, in its own words.
    mechanism, calibration, version : name, content hash, product.
    n, seconds, features : shape and length of a chunk.
    streams : names of the other streams of the device, which spend beside this one.
    gain : factor by which a chunk raises the chance of a right guess about it, on average; None where not known.
    window_chunks, session_chunks : released chunks of this stream that they can hold; None: no such figure.
    correlated : what a session tells under a class of processes; None where the configuration names no class.
    baseline_chunks : of each session, that are withheld and taken off the others; 0: there is no baseline.
    purpose : what it is for, and what that came to, where the configuration names a purpose and no calibration.
    shown_by : tests that show what is said of this mechanism, by topic; see `Entry.shown_by`.
    error : how much larger than stated the error is on later levels of a lifetime that fades.
    borders : what decides where sessions begin and end, for live gaze; None where a tracker's rows say it.
    """

    promise: Claim
    scopes: tuple[Scope, ...]
    protection: Protection
    mechanism: str
    calibration: str
    version: str
    n: int
    seconds: float
    features: int
    streams: tuple[str, ...] = ()
    gain: Fraction | None = None
    window_chunks: int | None = None
    session_chunks: int | None = None
    correlated: Correlated | None = None
    baseline_chunks: int = 0
    purpose: str | None = None
    error: str | None = None
    borders: SessionBorders | None = None
    shown_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def statement(self) -> str:
        """The claim about one chunk in words."""
        return self.promise.statement

    @property
    def differential(self) -> bool:
        """Whether differential privacy is claimed."""
        return isinstance(self.promise, DifferentialPrivacy)

    @property
    def loss(self) -> Loss:
        """What one chunk costs; only where differential privacy is claimed."""
        assert isinstance(self.promise, DifferentialPrivacy)
        return self.promise.loss
