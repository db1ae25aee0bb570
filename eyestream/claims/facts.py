"""The facts of a guarantee: a mechanism in its deployment, as one value. Renderers read it and add nothing.

One of them is what a whole session tells under a class of processes, as `eyestream.claims.correlation` finds it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from eyestream.core.kinds import Claim, DifferentialPrivacy, Loss
from eyestream.core.protection import Fact, Protection
from eyestream.core.scopes import Scope

__all__ = ["NOT_PROTECTED", "NO_CLASS", "TRUSTED", "Correlated", "Facts", "SessionBorders", "TrustModel"]

NO_CLASS = (
    "chunks of one person resemble each other, so a whole session tells more about a chunk than its own release does. "
    "The configuration names no class of processes: the sum over the chunks of a session is the only bound"
)
"""What is said where the configuration names no class."""


@dataclass(frozen=True, slots=True)
class Correlated:
    """What a whole session tells if its chunks follow a published class of processes (`eyestream.claims.correlation`).

    Attributes
    ----------
    name, about : of the class: what it is called, and where its margins come from.
    most, time_constant_s : a_max from one chunk to the next, and the time constant that it follows from.
    within : the range that the compared contents lie in, in words.
    chunks : of the session, at most.
    plain : sum of the losses of so many chunks, which holds without the class.
    counted : what `chunks` counts, where that was chosen; None: nothing is said.
    chunk, second : epsilon' of one chunk, and of one second of gaze; never above `plain`. None: nothing is claimed
        of a second, as where it is not known how many chunks it enters.
    """

    name: str
    about: str
    most: float
    time_constant_s: float
    within: str
    chunks: int
    plain: float
    chunk: float
    second: float | None
    counted: str | None = None

    def words(self) -> str:
        """Two sentences: the claim with its class, and what holds outside it."""
        low = f"below the plain sum, {self.plain:g}"
        what = low if self.chunk < self.plain else f"no less than the plain sum, {self.plain:g}"
        counted = "" if self.counted is None else f" ({self.counted})"
        second = shift = ""
        if self.second is not None:
            second = f", and between two contents of one second of gaze by at most e^{self.second:.4g}"
            shift = (
                "; and two contents of a second of gaze shift the means of the chunks that hold it, by no more than "
                "that range, and nothing else"
            )
        return (
            f"if the chunks follow the class {self.name!r}, a whole session of at most {self.chunks} chunks{counted} "
            f"changes the odds between two contents of one chunk by a factor of at most e^{self.chunk:.4g} (epsilon' = "
            f"{self.chunk:.4g}, {what}){second}. The class: about a level of the person's own, which the attacker may "
            "know, chunks are a stationary Gaussian autoregressive process of order one, with a coefficient of at most "
            f"{self.most:.3g} from one chunk to the next (time constant at most {self.time_constant_s:g} s); rows "
            f"are complete; the two contents lie in a range: {self.within}{shift}. "
            f"{self.about}. Outside this class only the plain sum holds, and of the level itself it says nothing"
        )

    def claim(self) -> dict[str, object]:
        """For machines: plain values that JSON knows."""
        return {
            "class": self.name,
            "about": self.about,
            "process": "stationary Gaussian autoregressive of order one, about a level of the person that is known",
            "a_max": self.most,
            "time_constant_s": self.time_constant_s,
            "within": self.within,
            "chunks": self.chunks,
            "counted": self.counted,
            "epsilon_prime": {"chunk": self.chunk, "second_of_gaze": self.second},
            "outside_the_class": {"epsilon": self.plain, "of": "plain sum over the chunks"},
        }


_ROWS = "the recording's rows (they are of the moments that number and rate say)"
_TRACKER = "the tracker (its rows are of the moments that number and rate say, and its sessions share no gaze)"
TRUSTED = (_TRACKER, "this process", "its ledger file", "the way from tracker to sidecar")

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
"""What no setting of the product protects."""


@dataclass(frozen=True, slots=True)
class TrustModel:
    """What is trusted besides the law of the noise, and what is not protected.

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
        """Of a recording that is released file to file."""
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
    def of_fleet(cls, raw_age_s: float, *, tls: bool) -> "TrustModel":
        """Workers on NATS, whose servers keep raw rows in memory for `raw_age_s` seconds."""
        links = (
            "The links to it speak TLS"
            if tls
            else "The links to it do not speak TLS: whoever can listen on that network reads every raw row"
        )
        log = (
            "the log, NATS, is inside the trusted part. Raw rows are in the memory of its servers for "
            f"{raw_age_s:g} s, and on no disk. Whoever may read its raw rows, log in as a worker or "
            "change its servers sees everything: only trackers may write raw rows, and only workers may read them. "
            f"{links}. It is not trusted to keep or order anything: what it loses, repeats or invents releases no "
            "chunk twice"
        )
        trusted = (_TRACKER, "the workers", "their ledgers and outboxes", "the log", "the way from tracker to worker")
        where = "in a worker of the fleet, before anything is published"
        return replace(cls.guarded(), trusted=trusted, where=where, log=log)

    @classmethod
    def guarded(cls) -> "TrustModel":
        """Of a ledger beside a second place that remembers how long it was."""
        both = "older copies of the ledger and of its second place put back together: what was spent is forgotten"
        return cls(not_protected=tuple(both if one is _ROLLBACK else one for one in NOT_PROTECTED))


@dataclass(frozen=True, slots=True)
class SessionBorders:
    """A session's borders are decided by samples, so one gaze event may decide them (`eyestream.gaze.clock_map`).

    Attributes
    ----------
    period_s : the samples of so many seconds decide together whether a session begins, goes on or ends.
    seconds : so many different seconds of samples decide it; one event is in fewer.
    silence_s : after so long without a sign of the tracker its session ends.
    answers : whether that sign is an answer of the tracker; else it is a sample.
    """

    period_s: float
    seconds: int
    silence_s: float
    answers: bool

    def words(self) -> str:
        """What it means for the price of a gaze event."""
        silent = (
            ""
            if self.answers
            else f". The tracker is not asked whether it is there: {self.silence_s:g} s without a sample end the "
            "session, and one sample in them keeps it"
        )
        return (
            "a session's borders are decided by samples. Its first sample decides where its rows begin and when they "
            f"come. The samples of {self.period_s:g} s decide whether it begins, goes on or ends. The price of a gaze "
            "event above does not cover an event that has the first sample in it, or that comes where the other "
            f"samples of these {self.period_s:g} s leave a border open. Such an event can be in all rows of the "
            f"session that begins there, and it can decide how many rows the session before has{silent}"
        )

    def claim(self) -> dict[str, object]:
        """For machines."""
        return {
            "decided_by": "samples",
            "period_s": self.period_s,
            "seconds_that_decide": self.seconds,
            "silence_s": self.silence_s,
            "silence_of": "answers" if self.answers else "samples",
        }


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
    correlated: Correlated | None = None
    in_short: str | None = None
    own: tuple[Fact, ...] = ()
    purpose: str | None = None
    error: str | None = None
    borders: SessionBorders | None = None
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
        """What one chunk costs; only where differential privacy is claimed."""
        assert isinstance(self.promise, DifferentialPrivacy)
        return self.promise.loss
