"""The guarantee of a mechanism in its deployment, as a value; words and a claim for machines are rendered from it.

Every figure is kept apart: chunk, gaze event, second of gaze, window, session, day, lifetime, and what is not
protected. What a deployment counts is counted as the ledger counts it: losses rounded up, ceilings rounded down.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from eyestream.privacy.calibration import Calibration
from eyestream.privacy.calibration.calibration import product
from eyestream.privacy.correlated import NO_CLASS, Correlated
from eyestream.privacy.evaluation import SOURCE, answers
from eyestream.privacy.leakage import leakage
from eyestream.privacy.loss import Loss
from eyestream.privacy.mechanism import Mechanism
from eyestream.privacy.protection import Protection
from eyestream.privacy.scopes import Deployment, Scope, allowed_chunks, chunks_within, scopes_of

__all__ = [
    "NOT_PROTECTED",
    "TRUSTED",
    "Guarantee",
    "Scope",
    "guarantee_of",
    "guarantee_of_recording",
    "text",
]

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
class Guarantee:
    """What is claimed of the releases of one device, and what is not.

    Attributes
    ----------
    statement : the claim about one chunk in words; begins with "none" for noise of a test.
    certified, loss : whether anything is claimed, and what one chunk costs.
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
    error : how much larger than stated the error is on later levels of a lifetime that fades.
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
    streams: tuple[str, ...] = ()
    gain: Fraction | None = None
    window_chunks: int | None = None
    session_chunks: int | None = None
    correlated: Correlated | None = None
    baseline_chunks: int = 0
    purpose: str | None = None
    error: str | None = None

    def sentences(self) -> list[tuple[str, str]]:
        """(topic, sentence) pairs, in the order in which they should be read."""
        if not self.certified:
            return [("claim", self.statement)]
        return [
            ("claim", self.statement),
            *([] if self.purpose is None else [("purpose", self.purpose)]),
            ("unit", self._unit()),
            *([("baseline", self._baseline())] if self.baseline_chunks else []),
            ("chunk", self.loss.figures()),
            ("odds", self._odds()),
            *([("streams", self._streams())] if self.streams else []),
            ("guessing", self._guessing()),
            ("correlation", NO_CLASS if self.correlated is None else self.correlated.words()),
            *((scope.unit, scope.why) for scope in self.scopes),
            *([] if self.error is None else [("error", self.error)]),
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

    def _streams(self) -> str:
        return (
            f"the device releases {', '.join(self.streams)} beside this stream, of the same eyes. What each costs adds "
            "up: a blink or a second of gaze enters them all, and the ceilings below are on their sum"
        )

    def _baseline(self) -> str:
        chunks = f"{self.baseline_chunks} chunks" if self.baseline_chunks > 1 else "chunk"
        return (
            f"the first {chunks} of each session ({self.baseline_chunks * self.seconds:g} s) are never released and "
            "cost nothing by themselves. Their mean is taken off all later ones. So a constant that is added to a "
            "feature through a whole session, in whole steps of its grid (at most a millionth of its range), changes "
            "nothing that is released: of such constants the loss is 0, over any number of sessions; of another one "
            "the sum over the session is what is proved. The other side: a change of a row in these chunks changes "
            "the input of every later release of its session, and costs up to the sum over them. A pause, a jump of "
            "row numbers and a restart of the sidecar begin a session too. Rows are left out before its baseline, so "
            "that no gaze event and no second of gaze enters it and a chunk before it. Nothing is claimed of what is "
            "not constant: how far features move was seen to tell people apart"
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

    def _guessing(self) -> str:
        """Maximal leakage in words (`eyestream.privacy.leakage`)."""
        if self.gain is None:
            return (
                "no figure below the one above: for this mechanism it is not known by how much a release raises, on "
                "average, the chance of guessing something about a chunk"
            )
        several = [
            f"over {chunks} chunks, which {where} can hold, at most {_power(self.gain, chunks)} times"
            for where, chunks in (("a window", self.window_chunks), ("a session", self.session_chunks))
            if chunks is not None
        ]
        return (
            "whatever somebody wants to guess about a chunk, and whatever they knew before: its release raises the "
            f"chance of guessing it right at most {_power(self.gain, 1)} times. That is an average over releases: a "
            "rare one may raise it by more, up to the factor above. Chunks multiply"
            + "".join(f"; {text}" for text in several)
        )

    def _guess_claim(self) -> dict[str, object] | None:
        if self.gain is None:
            return None
        nats = leakage(self.gain)
        return {
            "chunk": float(self.gain) if nats < 700.0 else None,  # no float is larger: the logarithm alone is said
            "chunk_exact": str(self.gain) if nats < 700.0 else None,
            "nats": {
                "chunk": nats,
                "window": None if self.window_chunks is None else nats * self.window_chunks,
                "session": None if self.session_chunks is None else nats * self.session_chunks,
            },
            "of": "maximal leakage: an average over releases",
        }

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
            "streams_beside": list(self.streams),
            "unit": {"rows": self.n, "seconds": self.seconds, "features": self.features},
            "baseline_chunks": self.baseline_chunks,
            "purpose": self.purpose,
            "error": self.error,
            "scopes": [
                {
                    "unit": scope.unit,
                    "chunks": scope.chunks,
                    "loss": None if scope.loss is None else scope.loss.claim(),
                    "ceiling": scope.ceiling,
                    "ceiling_delta": scope.ceiling_delta,
                    "seconds": scope.seconds,
                }
                for scope in self.scopes
            ],
            "guess_factor": self._guess_claim(),
            "correlation": None if self.correlated is None else self.correlated.claim(),
            "floating_point": {"protection": self.protection.floating_point, "exact": self.protection.exact},
            "law": self.protection.law,
            "sampler": self.protection.sampler,
            "entropy": self.protection.entropy,
            "attacker": self.protection.attacker,
            "trusted": list(TRUSTED),
            "not_protected": list(NOT_PROTECTED),
            "evaluation": {
                "of": SOURCE,
                "points": [one.claim() for one in answers(self, TRUSTED, NOT_PROTECTED)],
            },
        }


def guarantee_of(mechanism: Mechanism, deployment: Deployment, correlated: Correlated | None = None) -> Guarantee:
    """The guarantee of a mechanism in a deployment, and under a class of processes where one is named."""
    levels = deployment.lifetime_levels
    session = deployment.session_epsilon if levels == 1 else None
    made = guarantee_of_recording(mechanism, mechanism.calibration, levels)
    return replace(
        made,
        scopes=scopes_of(mechanism.loss, mechanism.n, deployment, anchored=mechanism.calibration.anchor is not None),
        streams=tuple(other.name for other in deployment.beside),
        window_chunks=None if deployment.beside or levels > 1 else allowed_chunks(mechanism.loss, deployment),
        session_chunks=None if session is None else chunks_within(mechanism.loss, session, deployment.session_delta),
        seconds=mechanism.n / deployment.stream.rate_hz,
        correlated=correlated,
    )


def guarantee_of_recording(mechanism: Mechanism, calibration: Calibration, levels: int = 1) -> Guarantee:
    """The guarantee of chunks of a recording, released file to file: no ceilings. FPA derives its own calibration."""
    gains = [mechanism.faded(level).gain for level in range(levels)] if mechanism.noise.certified else [None]
    return Guarantee(
        statement=mechanism.guarantee,
        certified=mechanism.noise.certified,
        loss=mechanism.loss,
        scopes=(),
        baseline_chunks=0 if calibration.anchor is None else calibration.anchor.chunks,
        gain=None if gains[0] is None else max(gain for gain in gains if gain is not None),
        protection=mechanism.protection,
        mechanism=mechanism.name,
        calibration=calibration.content_hash,
        version=product(),
        n=mechanism.n,
        seconds=mechanism.n / calibration.rate_hz,
        features=mechanism.features,
    )


def _power(gain: Fraction, chunks: int) -> str:
    """gain ** chunks for a sentence."""
    nats = leakage(gain) * chunks
    return f"{math.exp(nats):.3g}" if nats < 50 else f"e^{nats:.4g}"


def text(mechanism: Mechanism, deployment: Deployment) -> str:
    """The guarantee of a mechanism in a deployment, as lines of text."""
    return guarantee_of(mechanism, deployment).text()
