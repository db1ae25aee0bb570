"""The guarantee of a mechanism in its deployment, as a value; words and a claim for machines are rendered from it.

Every figure is kept apart: chunk, gaze event, second of gaze, window, session, day, lifetime, and what is not
protected. What a deployment counts is counted as the ledger counts it: losses rounded up, ceilings rounded down.
"""

import math
from dataclasses import dataclass

from eyestream.privacy.calibration.calibration import product
from eyestream.privacy.charge import DELTA_UNITS, ceiling_units, charge_units
from eyestream.privacy.loss import Loss
from eyestream.privacy.mechanism import Mechanism
from eyestream.privacy.protection import Protection
from eyestream.streams.spec import StreamSpec

__all__ = ["NOT_PROTECTED", "TRUSTED", "Deployment", "Guarantee", "Scope", "describe", "guarantee_of", "text"]

TRUSTED = ("the tracker", "this process", "its ledger file", "the way from tracker to sidecar")

NOT_PROTECTED = (
    "that a device is in use, when and for how long, and its pseudonym",
    "what several chunks tell together beyond the sums of their losses",
    "features declared constant say nothing, and cost nothing",
    "copies of this process that release the same chunk, each with fresh noise: that costs once for every copy and is "
    "charged once",
    "two sidecars, two pseudonyms or two replays for the same eyes: their losses add up, and no ledger sees both",
    "when rows come: a tracker that leaves rows out while the eye is lost, instead of sending NaN, tells when; so does "
    "the tracker's own time, where it sends it",
    "an older copy of the ledger put back, or its newest records cut off: what was spent since then is forgotten",
    "copies of a whole virtual machine: that they do not repeat each other's noise rests on the kernel inside, which "
    "takes fresh entropy when it is told of the copy",
)
"""What no setting of the product protects."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """What stands around a mechanism; ceilings are sums of epsilon and of delta, None: no such ceiling.

    Attributes
    ----------
    stream : what its rows are.
    window_chunks, window_epsilon : no so many consecutive chunks cost more than this.
    session_epsilon, day_epsilon, lifetime_epsilon : of a session, of a day in UTC, since the ledger began.
    window_delta, session_delta, day_delta, lifetime_delta : the same for delta.
    """

    stream: StreamSpec
    window_chunks: int
    window_epsilon: float
    session_epsilon: float | None = None
    day_epsilon: float | None = None
    lifetime_epsilon: float | None = None
    window_delta: float | None = None
    session_delta: float | None = None
    day_delta: float | None = None
    lifetime_delta: float | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """What one unit costs at most.

    Attributes
    ----------
    unit : `gaze event`, `window`, ...
    chunks : how many released chunks it can take part in; None where only a ceiling bounds them.
    loss : of so many chunks; None where nothing bounds them, or where their deltas sum to 1.
    ceiling, ceiling_delta : of the deployment, on epsilon and on delta.
    why : what the count comes from, in words.
    """

    unit: str
    chunks: int | None
    loss: Loss | None
    ceiling: float | None
    why: str
    ceiling_delta: float | None = None


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What is claimed of the releases of one device, and what is not.

    Attributes
    ----------
    statement : the claim about one chunk in words; begins with "none" for noise of a test.
    certified : whether anything is claimed.
    loss : of one chunk.
    scopes : of larger units.
    protection : what the mechanism's claim rests on, in its own words.
    mechanism, calibration, version : name, content hash, product.
    n, seconds, features : shape and length of a chunk.
    """

    statement: str
    certified: bool
    loss: Loss
    scopes: tuple[Scope, ...]
    protection: Protection
    mechanism: str
    calibration: str
    version: str
    n: int
    seconds: float
    features: int

    def sentences(self) -> list[tuple[str, str]]:
        """(topic, sentence) pairs, in the order in which they should be read."""
        if not self.certified:
            return [("claim", self.statement)]
        return [
            ("claim", self.statement),
            ("unit", self._unit()),
            ("chunk", self.loss.figures()),
            ("odds", self._odds()),
            *((scope.unit, scope.why) for scope in self.scopes),
            (
                "person",
                "the sum over everything ever released from that person, by all devices, sidecars and replays. At "
                "common settings that sum is large: what stands against re-identification then is measured, not proved",
            ),
            ("noise", self.protection.law),
            ("exact", self.protection.exact),
            ("sampler", self.protection.sampler),
            ("entropy", self.protection.entropy),
            (
                "attacker",
                f"anybody {self.protection.attacker}, who may know this code, its configuration and calibration, every "
                f"release, and anything else. Trusted: {', '.join(TRUSTED[:-1])}, and {TRUSTED[-1]}",
            ),
            ("not protected", "; ".join(NOT_PROTECTED)),
            (
                "not claimed",
                "that epsilon of a chunk holds for a whole recording 'by parallel composition over chunks', as "
                "published for CFPA and DCFPA: one person contributes all chunks, so their losses add up",
            ),
        ]

    def _unit(self) -> str:
        return (
            f"one chunk: {self.n} consecutive rows ({self.seconds:g} s) of one device, all {self.features} features "
            "together. Two chunks are neighbours when they differ in any way inside the declared domain (replace-one), "
            "missing values included. Local model: the noise is added before anything leaves the device's sidecar"
        )

    def _odds(self) -> str:
        epsilon = float(self.loss.epsilon)
        factor = f"e^{epsilon:g}" + (f" = {math.exp(epsilon):.3g}" if epsilon < 50 else "")
        bound = f"the odds between two possible contents of that chunk change by a factor of at most {factor}"
        if not self.loss.pure:
            bound = (
                "an event that has some probability under one content of that chunk has under any other one at most "
                f"{factor} times that probability, plus {float(self.loss.delta):g}"
            )
        return (
            f"whoever knows every other chunk learns from the release of one chunk no more than this: {bound}. That is "
            "said of a chunk. Later releases and other chunks tell of the same moments and of the same person too, and "
            "what they tell comes on top: for a session only the sum over its chunks is a bound"
        )

    def text(self) -> str:
        """`sentences` as lines of text."""
        return "\n".join(f"{topic}: {sentence}" for topic, sentence in self.sentences())

    def claim(self) -> dict[str, object]:
        """For machines: plain values that JSON knows. Without a guarantee the loss is null and nothing is claimed."""
        head: dict[str, object] = {
            "claim": 1,
            "version": self.version,
            "mechanism": self.mechanism,
            "calibration": self.calibration,
            "statement": self.statement,
        }
        if not self.certified:
            return head | {"loss": None}
        return head | {
            "model": "local",
            "loss": self.loss.claim(),
            "unit": {"rows": self.n, "seconds": self.seconds, "features": self.features},
            "scopes": [
                {
                    "unit": scope.unit,
                    "chunks": scope.chunks,
                    "loss": None if scope.loss is None else scope.loss.claim(),
                    "ceiling": scope.ceiling,
                    "ceiling_delta": scope.ceiling_delta,
                }
                for scope in self.scopes
            ],
            "floating_point": {"protection": self.protection.floating_point, "exact": self.protection.exact},
            "law": self.protection.law,
            "sampler": self.protection.sampler,
            "entropy": self.protection.entropy,
            "attacker": self.protection.attacker,
            "trusted": list(TRUSTED),
            "not_protected": list(NOT_PROTECTED),
        }


def guarantee_of(mechanism: Mechanism, deployment: Deployment) -> Guarantee:
    """The guarantee of a mechanism in a deployment."""
    return Guarantee(
        statement=mechanism.guarantee,
        certified=mechanism.noise.certified,
        loss=mechanism.loss,
        scopes=_scopes(mechanism.loss, mechanism.n, deployment),
        protection=mechanism.protection,
        mechanism=mechanism.name,
        calibration=mechanism.calibration.content_hash,
        version=product(),
        n=mechanism.n,
        seconds=mechanism.n / deployment.stream.rate_hz,
        features=mechanism.features,
    )


def _scopes(loss: Loss, n: int, deployment: Deployment) -> tuple[Scope, ...]:
    stream, window, day = deployment.stream, deployment.window_chunks, deployment.day_epsilon
    allowed = min(ceiling_units(deployment.window_epsilon) // charge_units(float(loss.epsilon)), window)
    if deployment.window_delta is not None and loss.delta:
        most = ceiling_units(deployment.window_delta, DELTA_UNITS)
        allowed = min(allowed, most // charge_units(loss.delta, DELTA_UNITS))
    hourly = float(loss.epsilon) * 3600 * stream.rate_hz / n * allowed / window
    reach = f"enters every row within {stream.window_s + stream.memory_s:g} s of it"

    def touched(unit: str, seconds: float, what: str) -> Scope:
        chunks = stream.chunks_touched(n, seconds)
        chunks = min(chunks, allowed) if chunks <= window else chunks
        return _counted(unit, chunks, loss, _NO_CEILING, f"{what} {reach}, hence up to {chunks} chunks")

    session = deployment.session_epsilon, deployment.session_delta
    lifetime = deployment.lifetime_epsilon, deployment.lifetime_delta
    around = deployment.window_epsilon, deployment.window_delta
    return (
        touched("gaze event", 0.0, "one blink or saccade"),
        touched("second of gaze", 1.0, "one second"),
        _counted("window", allowed, loss, around, f"in any {window} consecutive chunks"),
        _limited("session", session, "the sum over its chunks"),
        _limited("hour", _NO_CEILING, f"about epsilon {hourly:g} at {stream.rate_hz:g} rows a second"),
        _limited(
            "day",
            (day, deployment.day_delta),
            f"about epsilon {min(24 * hourly, day or math.inf):g}, in UTC by the host's clock",
        ),
        _limited("lifetime", lifetime, "the sum over everything since the ledger began"),
    )


_Pair = tuple[float | None, float | None]
"""Ceilings on epsilon and on delta."""

_NO_CEILING: _Pair = None, None


def _counted(unit: str, chunks: int, loss: Loss, ceilings: _Pair, why: str) -> Scope:
    """A unit that takes part in so many chunks."""
    if chunks * loss.delta >= 1:
        why = f"no bound: the deltas of {chunks} chunks sum to 1 or more; {why}"
        return Scope(unit, chunks, None, ceilings[0], why, ceilings[1])
    total = loss.of(unit, max(chunks, 1))
    limit = "" if ceilings == _NO_CEILING else f" (ceiling {_ceiling_words(ceilings)})"
    return Scope(unit, chunks, total, ceilings[0], f"{total.figures()}: {why}{limit}", ceilings[1])


def _limited(unit: str, ceilings: _Pair, why: str) -> Scope:
    """A unit whose chunks are bounded by a ceiling alone, if at all."""
    limit = "no ceiling" if ceilings == _NO_CEILING else f"at most {_ceiling_words(ceilings)}"
    return Scope(unit, None, None, ceilings[0], f"{why}; {limit}", ceilings[1])


def _ceiling_words(ceilings: _Pair) -> str:
    named = zip(("epsilon", "delta"), ceilings, strict=True)
    return " and ".join(f"{name} {ceiling:g}" for name, ceiling in named if ceiling is not None)


def describe(mechanism: Mechanism, deployment: Deployment) -> list[tuple[str, str]]:
    """The guarantee as (topic, sentence) pairs, in the order in which they should be read."""
    return guarantee_of(mechanism, deployment).sentences()


def text(mechanism: Mechanism, deployment: Deployment) -> str:
    """`describe` as lines of text."""
    return guarantee_of(mechanism, deployment).text()
