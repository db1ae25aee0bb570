"""The guarantee of a mechanism in its deployment: the facts, and a renderer for each reader.

Every figure is kept apart: chunk, gaze event, second of gaze, window, session, day, lifetime, and what is not
protected. What a deployment counts is counted as the ledger counts it: losses rounded up, ceilings rounded down.
"""

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from eyestream.claims.facts import NO_CLASS, NOT_PROTECTED, TRUSTED, Facts, TrustModel
from eyestream.core.calibration import Calibration, product
from eyestream.core.kinds import Loss
from eyestream.core.leakage import leakage
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms.registry import entry_of, names
from eyestream.core.noise import is_certified
from eyestream.core.scopes import Deployment, Scope, allowed_chunks, chunks_within, scopes_of
from eyestream.streams import StreamSpec

if TYPE_CHECKING:
    from eyestream.claims.correlation.published import Correlated

__all__ = ["NOT_PROTECTED", "TRUSTED", "Guarantee", "Scope", "guarantee_of", "guarantee_of_recording"]


IN_ANY_S = (1, 2, 10, 60, 3600)
"""Seconds for which a claim says what they cost at most."""


class Guarantee(Facts):
    """The claims about the releases of one device, and their limits; with a renderer for each reader."""

    def sentences(self) -> list[tuple[str, str]]:
        """(topic, sentence) pairs, in the order in which they should be read."""
        if not self.differential:
            return [("claim", self.statement)]
        return [
            ("claim", self.statement),
            *([] if self.in_short is None else [("in short", self.in_short)]),
            *([] if self.purpose is None else [("purpose", self.purpose)]),
            *([] if self.protection.use is None else [("use", f"good for {self.protection.use}")]),
            ("unit", _unit(self)),
            *((fact.topic, fact.words) for fact in self.own),
            (self.loss.unit, self.loss.figures()),
            *([("any time", _any_time(self))] if self.in_any else []),
            ("odds", _odds(self)),
            *([("streams", _streams(self))] if self.streams else []),
            ("guessing", _guessing(self)),
            ("correlation", NO_CLASS if self.correlated is None else self.correlated.words()),
            *((scope.unit, scope.why) for scope in self.scopes),
            *([] if self.borders is None else [("session borders", self.borders.words())]),
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
                f"release, and anything else. Trusted: {', '.join(self.standing.trusted[:-1])}, and "
                f"{self.standing.trusted[-1]}",
            ),
            *([] if self.standing.log is None else [("log", self.standing.log)]),
            ("not protected", "; ".join(self.standing.not_protected)),
            (
                "not claimed",
                "that epsilon of a chunk holds for a whole recording 'by parallel composition over chunks', as "
                "published for CFPA and DCFPA: one person contributes all chunks, so their losses add up",
            ),
        ]

    def text(self) -> str:
        """`sentences` as lines of text."""
        return "\n".join(f"{topic}: {sentence}" for topic, sentence in self.sentences())

    def claim(self) -> dict[str, object]:
        """For machines: plain values that JSON knows."""
        from eyestream.claims.machine import claim  # noqa: PLC0415  a sidecar tells applications in words

        return claim(self)


def guarantee_of(mechanism: Mechanism, deployment: Deployment, correlated: "Correlated | None" = None) -> Guarantee:
    """The guarantee of a mechanism in a deployment, and under a class of processes where one is named."""
    ceilings, takes_off = deployment.ceilings, mechanism.calibration.takes_off
    seconds = mechanism.n / deployment.stream.rate_hz
    made = guarantee_of_recording(mechanism, mechanism.calibration, ceilings.levels)
    fades = ceilings.levels > 1
    return replace(
        made,
        scopes=scopes_of(mechanism.loss, mechanism.n, deployment, takes_off),
        own=mechanism.facts(seconds),
        streams=tuple(other.name for other in deployment.beside),
        window_chunks=None if deployment.beside or fades else allowed_chunks(mechanism.loss, deployment),
        session_chunks=None if fades else chunks_within(mechanism.loss, ceilings.on("session")),
        seconds=seconds,
        correlated=correlated,
        standing=TrustModel(),
        in_any={} if takes_off is not None else _in_any(mechanism.loss, mechanism.n, deployment.stream),
    )


def guarantee_of_recording(mechanism: Mechanism, calibration: Calibration, levels: int = 1) -> Guarantee:
    """The guarantee of chunks of a recording, released file to file: no ceilings.

    `calibration` is the one that was asked for: a mechanism may have derived its own from it.
    """
    window_s, seconds = mechanism.domain.window_s(calibration), mechanism.n / calibration.rate_hz
    gains = [mechanism.faded(level).gain for level in range(levels)] if is_certified(mechanism.noise) else []
    return Guarantee(
        promise=mechanism.promised,
        scopes=(),
        standing=TrustModel.of_recording(),
        own=mechanism.facts(seconds),
        gain=max((gain for gain in gains if gain is not None), default=None),
        protection=mechanism.protection,
        mechanism=mechanism.name,
        calibration=calibration.content_hash,
        version=product(),
        n=mechanism.n,
        seconds=seconds,
        features=mechanism.features,
        in_any={} if window_s is None else _in_any(mechanism.loss, mechanism.n, _rows_of(calibration, window_s)),
        unit=mechanism.domain.unit(mechanism.n, mechanism.features, seconds),
        shown_by=entry_of(mechanism.name).shown_by if mechanism.name in names() else {},
    )


def _in_any(loss: Loss, n: int, stream: StreamSpec) -> dict[int, Fraction]:
    """Epsilon of all chunks of `n` rows that `IN_ANY_S` seconds of gaze enter, wherever they begin."""
    return {seconds: loss.epsilon * stream.chunks_touched(n, seconds) for seconds in IN_ANY_S}


def _rows_of(calibration: Calibration, window_s: float) -> StreamSpec:
    """Rows of a recording, each of which describes so many seconds of gaze."""
    return StreamSpec("rows", 0, calibration.names, calibration.units, calibration.rate_hz, window_s=window_s)


def _unit(made: Facts) -> str:
    unit = made.loss.unit
    return (
        f"one {unit}: {made.unit}. Two {unit}s are neighbours when they "
        "differ in any way inside the declared domain (replace-one), missing values included. Local model: the noise "
        f"is added {made.standing.where}"
    )


def _any_time(made: Facts) -> str:
    said = ", ".join(f"epsilon {float(epsilon):.4g} in any {seconds} s" for seconds, epsilon in made.in_any.items())
    live = (
        ". Whole slots of live gaze cost one slot more than those of a recording: samples within a few milliseconds of "
        "a slot's border decide which others are taken"
    )
    more = live if made.borders is not None and made.loss.unit == "slot" else ""
    return f"{said}, wherever they begin: every {made.loss.unit} counts that so many seconds of gaze enter{more}"


def _streams(made: Facts) -> str:
    return (
        f"the device releases {', '.join(made.streams)} beside this stream, of the same eyes. What each costs adds "
        "up: a blink or a second of gaze enters them all, and the ceilings below are on their sum"
    )


def _odds(made: Facts) -> str:
    epsilon = float(made.loss.epsilon)
    factor = f"e^{epsilon:g}" + (f" = {math.exp(epsilon):.3g}" if epsilon < 50 else "")
    bound = f"the odds between two possible contents of that chunk change by a factor of at most {factor}"
    if not made.loss.pure:
        bound = (
            "an event that has some probability under one content of that chunk has under any other one at most "
            f"{factor} times that probability, plus {float(made.loss.delta):g}"
        )
    return (
        f"whoever knows every other chunk learns from the release of one chunk no more than this: {bound}. That is "
        "said of a chunk. Later releases and other chunks tell of the same moments and of the same person too, and "
        "what they tell comes on top: for a session only the sum over its chunks is a bound"
    )


def _guessing(made: Facts) -> str:
    """Maximal leakage in words (`eyestream.core.leakage`)."""
    if made.gain is None:
        return (
            "no figure below the one above: for this mechanism it is not known by how much a release raises, on "
            "average, the chance of guessing something about a chunk"
        )
    several = [
        f"over {chunks} chunks, which {where} can hold, at most {_power(made.gain, chunks)} times"
        for where, chunks in (("a window", made.window_chunks), ("a session", made.session_chunks))
        if chunks is not None
    ]
    return (
        "whatever somebody wants to guess about a chunk, and whatever they knew before: its release raises the "
        f"chance of guessing it right at most {_power(made.gain, 1)} times. That is an average over releases: a "
        "rare one may raise it by more, up to the factor above. Each further chunk multiplies it by as much again"
        + "".join(f"; {text}" for text in several)
    )


def _power(gain: Fraction, chunks: int) -> str:
    """gain ** chunks for a sentence."""
    nats = leakage(gain) * chunks
    return f"{math.exp(nats):.3g}" if nats < 50 else f"e^{nats:.4g}"
