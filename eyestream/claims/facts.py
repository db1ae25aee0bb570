"""The facts of a guarantee: a mechanism in its deployment, as one value. Renderers read it and add nothing.

One of them is what a whole session tells under a class of processes, as `eyestream.claims.correlation` finds it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from eyestream.core.kinds import Claim, DifferentialPrivacy, Loss
from eyestream.core.protection import Fact, Protection
from eyestream.core.scopes import Scope

if TYPE_CHECKING:
    from eyestream.claims.borders import SessionBorders
    from eyestream.claims.correlation.published import Correlated

NO_CLASS = (
    "chunks of one person resemble each other, so a whole session tells more about a chunk than its own release does. "
    "The configuration names no class of processes: the sum over the chunks of a session is the only bound"
)
"""The sentence for a configuration that names no class."""


_ROWS = "the recording's rows (they are of the moments that number and rate say)"
TRACKER = "the tracker (its rows are of the moments that number and rate say, and its sessions share no gaze)"
TRUSTED = (TRACKER, "this process", "its ledger file", "the way from tracker to sidecar")

_ROLLBACK = (
    "an older copy of the ledger put back, or its newest records cut off: what was spent since then is forgotten"
)
_USE = "that a device is in use, when and for how long, and its pseudonym"
_COPIES = (
    "copies of this process that release the same chunk, each with fresh noise: that costs once for every copy and is "
    "charged once"
)
_TWICE = "two sidecars, two pseudonyms or two replays for the same eyes: their losses add up, and no ledger sees both"
_WHEN = (
    "when rows come: a tracker that leaves rows out while the eye is lost, instead of sending NaN, tells when; with "
    "on_row, the moment of a chunk has in it what its last row took"
)

NOT_PROTECTED = (
    _USE,
    "what several chunks tell together beyond the sums of their losses",
    "features declared constant say nothing, and cost nothing",
    _COPIES,
    _TWICE,
    "recordings that the calibration was made from: it is published as it is",
    _WHEN,
    _ROLLBACK,
    "copies of a whole virtual machine: that they do not repeat each other's noise rests on the kernel inside, which "
    "takes fresh entropy when it is told of the copy",
)
"""Facts that no setting of the product protects."""


@dataclass(frozen=True, slots=True)
class TrustModel:
    """Parties that are trusted besides the law of the noise, and what is not protected.

    Attributes
    ----------
    trusted, not_protected : in words.
    where : the noise is added.
    log : of a fleet: what of its log is trusted, and for how long it holds raw rows; None: there is no log.
    """

    trusted: tuple[str, ...] = TRUSTED
    not_protected: tuple[str, ...] = NOT_PROTECTED
    where: str = "before anything leaves the device's sidecar"
    log: str | None = None

    @classmethod
    def of_recording(cls) -> "TrustModel":
        """Trust in a recording that is released file to file."""
        trusted = (_ROWS, "who released it, and on which computer", "its ledger file, where one counts")
        own = {
            _USE: "that there is a recording, how long it is, and the name of its file",
            _COPIES: "another release of the same recording: it costs as much again",
            _TWICE: "other releases of the same eyes, live or of other recordings: their losses add up",
            _ROLLBACK: f"without a ledger nothing is counted. With one: {_ROLLBACK}",
        }
        kept = tuple(own.get(one, one) for one in NOT_PROTECTED if one != _WHEN)
        return cls(trusted, kept, "before the released file is written")

    @classmethod
    def guarded(cls) -> "TrustModel":
        """Trust in a ledger beside a second place that remembers how long it was."""
        both = "older copies of the ledger and of its second place put back together: what was spent is forgotten"
        return cls(not_protected=tuple(both if one is _ROLLBACK else one for one in NOT_PROTECTED))


@dataclass(frozen=True, slots=True)
class Facts:
    """The claims about the releases of one device, and their limits.

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
    in_short : what the stream gives an application, as measured; None of a recording.
    own : what is said of this mechanism or calibration alone, such as what is taken off its rows.
    purpose : what it is for, and what that came to, where the configuration names a purpose and no calibration.
    shown_by : tests that show what is said of this mechanism, by topic; see `Entry.shown_by`.
    unit : what may differ between neighbours, in words.
    in_any : epsilon of all releases that so many seconds of gaze enter, by the seconds; empty where nothing is said.
    error : how much larger than stated the error is on later levels of a lifetime that fades.
    borders : what decides where sessions begin and end, for live gaze; None where a tracker's rows say it.
    standing : what is trusted, and what is not protected.
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
    correlated: "Correlated | None" = None
    in_short: str | None = None
    own: tuple[Fact, ...] = ()
    purpose: str | None = None
    error: str | None = None
    borders: "SessionBorders | None" = None
    standing: TrustModel = TrustModel()
    unit: str = ""
    in_any: Mapping[int, Fraction] = field(default_factory=dict)
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
        """Cost of one chunk; only where differential privacy is claimed."""
        assert isinstance(self.promise, DifferentialPrivacy)
        return self.promise.loss
