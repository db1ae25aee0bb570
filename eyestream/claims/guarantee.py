"""The guarantee of a mechanism in its deployment: the facts, and a renderer for each reader.

Every figure is kept apart: chunk, gaze event, second of gaze, window, session, day, lifetime, and what is not
protected. What a deployment counts is counted as the ledger counts it: losses rounded up, ceilings rounded down.
"""

from dataclasses import replace
from fractions import Fraction

from eyestream.claims import words
from eyestream.claims.facts import NOT_PROTECTED, TRUSTED, Correlated, Facts, TrustModel
from eyestream.core.calibration import Calibration
from eyestream.core.calibration.calibration import product
from eyestream.core.kinds import Loss
from eyestream.core.mechanism import Mechanism
from eyestream.core.mechanisms.registry import entry_of, names
from eyestream.core.scopes import Deployment, Scope, allowed_chunks, chunks_within, scopes_of
from eyestream.streams import StreamSpec

__all__ = [
    "NOT_PROTECTED",
    "TRUSTED",
    "Guarantee",
    "Scope",
    "guarantee_of",
    "guarantee_of_recording",
]


IN_ANY_S = (1, 2, 10, 60, 3600)
"""Seconds for which a claim says what they cost at most."""


class Guarantee(Facts):
    """What is claimed of the releases of one device, and what is not; with a renderer for each reader."""

    def sentences(self) -> list[tuple[str, str]]:
        """(topic, sentence) pairs, in the order in which they should be read."""
        return words.sentences(self)

    def text(self) -> str:
        """`sentences` as lines of text."""
        return words.text(self)

    def claim(self) -> dict[str, object]:
        """For machines: plain values that JSON knows."""
        from eyestream.claims.machine import claim  # noqa: PLC0415  a sidecar tells applications in words

        return claim(self)


def guarantee_of(mechanism: Mechanism, deployment: Deployment, correlated: Correlated | None = None) -> Guarantee:
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
    """The guarantee of chunks of a recording, released file to file: no ceilings. FPA derives its own calibration."""
    window_s = mechanism.domain.window_s(calibration)
    gains = [mechanism.faded(level).gain for level in range(levels)] if mechanism.noise.certified else [None]
    return Guarantee(
        promise=mechanism.promised,
        scopes=(),
        standing=TrustModel.of_recording(),
        own=mechanism.facts(mechanism.n / calibration.rate_hz),
        gain=None if gains[0] is None else max(gain for gain in gains if gain is not None),
        protection=mechanism.protection,
        mechanism=mechanism.name,
        calibration=calibration.content_hash,
        version=product(),
        n=mechanism.n,
        seconds=mechanism.n / calibration.rate_hz,
        features=mechanism.features,
        in_any={} if window_s is None else _in_any(mechanism.loss, mechanism.n, _rows_of(calibration, window_s)),
        unit=mechanism.domain.unit(mechanism.n, mechanism.features, mechanism.n / calibration.rate_hz),
        shown_by=entry_of(mechanism.name).shown_by if mechanism.name in names() else {},
    )


def _in_any(loss: Loss, n: int, stream: StreamSpec) -> dict[int, Fraction]:
    """Epsilon of all chunks of `n` rows that `IN_ANY_S` seconds of gaze enter, wherever they begin."""
    return {seconds: loss.epsilon * stream.chunks_touched(n, seconds) for seconds in IN_ANY_S}


def _rows_of(calibration: Calibration, window_s: float) -> StreamSpec:
    """Rows of a recording, each of which describes so many seconds of gaze."""
    return StreamSpec("rows", 0, calibration.names, calibration.units, calibration.rate_hz, window_s=window_s)
