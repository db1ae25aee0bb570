"""Seams: the places of the shipped code where a fault may be planted, each by a name of its own.

A planted fault shows that a check can fail. It replaces one attribute for a moment, and that attribute stands here with
where it is, what its parameters are called and which private names a fault may lean on. When the code changes, the test
of this table says which seam is gone; the fault that used it is then written anew in one place.
"""

import builtins
import importlib
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

__all__ = ["SEAMS", "Seam", "faults_of", "original", "replaced"]


@dataclass(frozen=True)
class Seam:
    """One attribute that may be replaced.

    Attributes
    ----------
    owner
        ``module`` or ``module:Class`` (or a module that it imports).
    attribute
        What is replaced.
    parameters
        Their names in order, with the stars and the slash as in a signature; None for what is no function of ours.
    leans_on
        Private names of the owner's module that planted faults use.
    """

    owner: str
    attribute: str
    parameters: str | None = None
    leans_on: tuple[str, ...] = ()

    def home(self) -> Any:
        """The module or class that has the attribute; ModuleNotFoundError or AttributeError when it is gone."""
        module, _, path = self.owner.partition(":")
        home: Any = importlib.import_module(module)
        for part in filter(None, path.split(".")):
            home = getattr(home, part)
        return home


_ACCOUNT = "eyestream.core.accountant:Account"
_WEARERS = "eyestream.core.wearers:Wearers"
_TRANSFORM = "eyestream.core.additive.signals"
_ORDER = "eyestream.core.release.order:ReleaseOrder"
_STREAM = "eyestream.core.release.stream"
_LEDGER = "eyestream.rim.ledger.ledger:Ledger"

SEAMS: dict[str, Seam] = {
    # Noise and its entropy
    "system entropy": Seam("eyestream.core.noise:os", "urandom"),
    "SystemBits.words": Seam("eyestream.core.noise:SystemBits", "words", "self, count"),
    "SecureNoise.draw": Seam("eyestream.core.noise:SecureNoise", "draw", "self, law"),
    "LaplaceLaw.sample": Seam("eyestream.core.noise.laws:LaplaceLaw", "sample", "self, bits"),
    "LaplaceLaw.clamp": Seam("eyestream.core.noise.laws:LaplaceLaw", "clamp", "self, noisy"),
    "digit thresholds": Seam("eyestream.core.noise.digits", "digit_thresholds", "odds"),
    "thresholds verified": Seam("eyestream.core.noise.laws", "digits_within", "rate, digits, deviation"),
    "ResponseLaw.sample": Seam("eyestream.core.noise.response:ResponseLaw", "sample", "self, bits"),
    "response numerator": Seam("eyestream.core.noise.response", "_replace_numerator", "epsilon, rarest"),
    "ResponseLaw.__init__": Seam("eyestream.core.noise.response:ResponseLaw", "__init__", "self, cells, epsilon"),
    "workspace taken": Seam("eyestream.core.frame:Workspaces", "take", "self", ("_free",)),
    "workspace given": Seam("eyestream.core.frame:Workspaces", "give", "self, work"),
    # From a chunk to its release
    "numpy's silence": Seam("eyestream.core.mechanism:np", "errstate"),
    "Domain.admit": Seam("eyestream.core.frame:Domain", "admit", "self, chunk", ("_padded",)),
    "ball factor": Seam("eyestream.core.additive.ball", "_factor", "norm, radius"),
    "L1Lattice.snap": Seam(
        "eyestream.core.additive.ball:L1Lattice", "snap", "self, coordinates, factor", ("_per_step",)
    ),
    "L2Lattice.snap": Seam(
        "eyestream.core.additive.ball:L2Lattice", "snap", "self, coordinates, factor", ("_per_step",)
    ),
    "noisy integers": Seam("eyestream.core.additive.core:AdditiveStep", "noisy", "self, admitted, noise"),
    "mechanism releases": Seam("eyestream.core.mechanism:Mechanism", "release_turn", "self, chunk, turn, state"),
    "chunks of a baseline": Seam("eyestream.core.mechanism:Mechanism", "baseline_chunks"),
    "law of LPA": Seam("eyestream.core.mechanisms.lpa", "law_of", "frame, sensitivity, count, largest"),
    "law of Fourier": Seam("eyestream.core.mechanisms.fourier", "law_of", "frame, sensitivity, count, largest"),
    "difference": Seam(_TRANSFORM, "difference", "signals"),
    "integrate": Seam(_TRANSFORM, "integrate", "differences"),
    "difference residual": Seam(f"{_TRANSFORM}:DifferenceFourierTransform", "residual", "self, chunk", ("_centre",)),
    "difference coordinates": Seam(f"{_TRANSFORM}:DifferenceFourierTransform", "coordinates", "self, residual"),
    "transform residual": Seam(f"{_TRANSFORM}:FourierTransform", "residual", "self, chunk"),
    "transform coordinates": Seam(f"{_TRANSFORM}:FourierTransform", "coordinates", "self, residual"),
    "transform chunk": Seam(f"{_TRANSFORM}:FourierTransform", "chunk", "self, coordinates"),
    "RealFourier.signals": Seam("eyestream.core.spectrum:RealFourier", "signals", "self, coordinates"),
    "additive finish": Seam("eyestream.core.additive.core:AdditiveStep", "plain", "self, integers, out"),
    "KLT scores": Seam("eyestream.core.mechanisms.klt.core:JointStep", "scores", "self, admitted"),
    "KLT chunk": Seam("eyestream.core.mechanisms.klt.core:JointStep", "chunk", "self, scores, out"),
    "mechanism completes": Seam("eyestream.core.frame:Page", "complete", "self"),
    "KLT step": Seam(
        "eyestream.core.mechanisms.klt.core:JointStep", "release", "self, admitted, noise, turn, state, out"
    ),
    "asked step": Seam(
        "eyestream.core.mechanisms.asked.mechanism:_Core", "release", "self, admitted, noise, turn, state, out"
    ),
    "Kaleido.__init__": Seam("eyestream_lab.kaleido:Kaleido", "__init__", "self, epsilon, settings, *, noise"),
    "rate of Kaleido's tests": Seam(
        "eyestream_lab.kaleido.mechanism", "ideal_rate", "epsilon, sensitivity, coordinates", ("_STEPS_PER_DEG",)
    ),
    "parts of a publication": Seam("eyestream_lab.kaleido:KaleidoSession", "parts_for_one", "self"),
    # What is taken off the sessions of a pseudonym
    "OverHistory.off": Seam("eyestream_lab.words.history:OverHistory", "off", "self, chunk", ("_history", "_level")),
    "OverHistory.complete": Seam("eyestream_lab.words.history:OverHistory", "complete"),
    "History.after": Seam("eyestream_lab.words.history:History", "after", "self, level, stated"),
    "order's first of a pseudonym": Seam(_ORDER, "_first_of_pseudonym", "self, wearer", ("_passed",)),
    # What is said and asked of a mechanism
    "options checked": Seam("eyestream.core.mechanisms.entry:Entry", "checked", "self, options"),
    "words of KLT": Seam("eyestream.core.mechanisms.klt:KLT", "protection"),
    "words of CFPA": Seam("eyestream.core.mechanisms.fourier:CFPA", "protection"),
    "words on odds": Seam("eyestream.claims.guarantee", "_odds", "made"),
    # The budget
    "charge units": Seam("eyestream.core.charge", "charge_units", "value, units", ("_written",)),
    "ceiling units": Seam("eyestream.core.charge", "ceiling_units", "value, units"),
    "Account.obstacle": Seam(_ACCOUNT, "obstacle", "self, request, ceilings, today, own", ("_meter", "_streams")),
    "Account.take": Seam(
        _ACCOUNT,
        "take",
        "self, stream, session, last_row, *, day, epsilon, delta, wearer, last_day",
        ("_meter", "_streams"),
    ),
    "Account.level": Seam(_ACCOUNT, "level", "self, request, ceilings", ("_meter",)),
    "Account.mark": Seam(_ACCOUNT, "mark", "self, stream"),
    "wearers forbid": Seam(_WEARERS, "forbids", "self, wearer, ceilings, charge, day"),
    "wearers are announced": Seam(_WEARERS, "announce", "self, wearer"),
    "wearers are charged": Seam(_WEARERS, "merge", "self, day, epsilon, delta, count"),
    "Wearers.take": Seam(_WEARERS, "take", "self, wearer, day, epsilon, delta, last_day", ("_meters",)),
    "Wearers.state": Seam(_WEARERS, "state", "self"),
    "newest slots": Seam("eyestream.core.meter:Meter", "_newest_epsilon", "self", ("_slots",)),
    "Meter.state": Seam("eyestream.core.meter:Meter", "state", "self"),
    # The ledger
    "Ledger.__init__": Seam(_LEDGER, "__init__", "self, path, *, ceilings, suffices, passed, seal", ("_book",)),
    "Ledger.reserve": Seam(_LEDGER, "reserve", "self, requests, day"),
    "ledger writing": Seam(_LEDGER, "_writing", "self"),
    "ledger looks at the day": Seam(_LEDGER, "_day_of", "self, today"),
    "LedgerFile.sync": Seam("eyestream.rim.ledger.file:LedgerFile", "sync", "self"),
    "ledger lock": Seam("eyestream.rim.ledger.file:fcntl", "flock"),
    "ledger rights": Seam("eyestream.rim.ledger.file", "_check_rights", "path, fd"),
    "tail admits a record": Seam(
        "eyestream.rim.ledger.records:Tail", "admit", "self, record", ("_first_damaged", "_checksum")
    ),
    "book adds a stream": Seam("eyestream.rim.ledger.book:Book", "add", "self, key"),
    "book counts the damaged": Seam("eyestream.rim.ledger.book:Book", "_count_as_spent", "self, damaged"),
    "ledger announces": Seam("eyestream.rim.ledger.writer:Writer", "announce", "self, known, announced, wearer"),
    "disk": Seam("os", "fdatasync"),
    # Gaze to rows
    "live gaze taken": Seam("eyestream.gaze.live:LiveFrontEnd", "take", "self, samples, arrived"),
    "live gaze put": Seam("eyestream.gaze.live:LiveFrontEnd", "_put", "self, samples, arrived", ("_began", "_origin")),
    "ClockMap.take": Seam("eyestream.gaze.clock_map:ClockMap", "take", "self, t, arrived"),
    "ClockMap.vote": Seam("eyestream.gaze.clock_map:ClockMap", "vote", "self", ("_new", "_believed", "_others")),
    "RtpClock.report": Seam(
        "eyestream.wire.rtp:RtpClock", "report", "self, source, seconds, count, arrived_s", ("_paired",)
    ),
    "Waiting.put": Seam(
        "eyestream.gaze.live:Waiting", "put", "self, samples", ("_samples", "_tick", "_place", "_order", "_places")
    ),
    # Rows to chunks
    "Device.__init__": Seam(
        "eyestream.core.chunking.device:Device", "__init__", "self, settings, refused", ("_refused",)
    ),
    "Device._refuse": Seam(
        "eyestream.core.chunking.device:Device", "_refuse", "self, session, last_row", ("_refused",)
    ),
    "Device.feed": Seam("eyestream.core.chunking.device:Device", "feed", "self, rows, now"),
    "session is over": Seam("eyestream.core.chunking.device:Device", "_is_over", "self, session"),
    "SessionChunker.take": Seam(
        "eyestream.core.chunking.session:SessionChunker", "take", "self, seq, rows, time, t", ("_current", "_settings")
    ),
    "session closes a chunk": Seam(
        "eyestream.core.chunking.session:SessionChunker", "close_current", "self, ends_session", ("_origin",)
    ),
    "session awaits": Seam("eyestream.core.chunking.session:SessionChunker", "_await", "self, until", ("_due",)),
    "SessionChunker.last_row": Seam("eyestream.core.chunking.session:SessionChunker", "last_row"),
    "late rows": Seam("eyestream.core.chunking.session:SessionChunker", "_count_late", "self, row, until, time"),
    "ChunkBuffer.values": Seam("eyestream.core.chunking.chunks:ChunkBuffer", "values", "self"),
    # Gaze to rows
    "front end hears of a tracker": Seam("eyestream.gaze.live:LiveFrontEnd", "stand", "self, now_s"),
    "tracker is asked every": Seam("eyestream.rim.sources.asked", "ASK_EVERY_S"),
    "tracker stands": Seam("eyestream.rim.sources.asked:AskedTracker", "keep", "self, listening, ask, found"),
    "gaze is handed on": Seam("eyestream.rim.sources.asked:AskedTracker", "take", "self, records"),
    # Recordings
    "privatize releases": Seam(
        "eyestream_lab.recordings.privatize",
        "released",
        "recording, mechanism, guarantee, rows, *, stretches, charges, first_row",
    ),
    # The order of effects
    "order collects": Seam(_ORDER, "_collect", "self, chunks", ("_add", "_ask", "_answers", "_due", "_settle")),
    "order settles": Seam(_ORDER, "_settle", "self", ("_due",)),
    "order answers": Seam(_ORDER, "answer", "self, answers"),
    "order fails": Seam(_ORDER, "fail", "self", ("_answers", "_due", "_settle")),
    "order closes": Seam(_ORDER, "close", "self, now", ("_add", "_device", "_answers", "_due", "_settle")),
    "order restored": Seam(
        _ORDER,
        "restored",
        "settings, charge, data, *, baseline, every, sessions",
        ("_due", "_device", "_answers", "_asked"),
    ),
    "place of an answer": Seam(_ORDER, "_span_of", "self, request", ("_due", "_device")),
    "stream feeds": Seam(f"{_STREAM}:StreamRelease", "feed", "self, rows, now", ("_mechanism",)),
    "stream releases": Seam(f"{_STREAM}:StreamRelease", "_release", "self, chunk, granted, outcome"),
    "stream charges": Seam(_STREAM, "charges_of", "priced, levels"),
    "stream on its level": Seam(f"{_STREAM}:StreamRelease", "_on_level", "self, granted, session", ("_level", "_cost")),
    "stream encoder": Seam(_STREAM, "encode_private", "chunk"),
    "stream names an error": Seam(_STREAM, "type"),
    "rows apart": Seam("eyestream.rim.plan.stream", "rows_apart", "spec"),
    # The wire
    "version of a payload": Seam("eyestream.wire.envelope", "_VERSION_ONE"),
    "Frames.feed": Seam("eyestream.rim.mqtt.carrier:Frames", "feed", "self, data"),
    # The sidecar
    "pipeline decoder": Seam("eyestream.rim.sidecar.pipeline", "decode_raw", "payload, features, schema"),
    "Outbox.first": Seam("eyestream.rim.sidecar.sender:Outbox", "first", "self, now", ("_waiting",)),
    "Outbox.put": Seam("eyestream.rim.sidecar.sender:Outbox", "put", "self, topic, payload, now"),
    "worker receives": Seam("eyestream.rim.sidecar.worker:Worker", "receive", "self, message"),
}
"""Every place, by its name."""


def original(name: str) -> Any:
    """What stands at a seam: a fault wraps it."""
    seam = SEAMS[name]
    home = seam.home()
    return getattr(home, seam.attribute) if hasattr(home, seam.attribute) else getattr(builtins, seam.attribute)


@contextmanager
def replaced(name: str, value: Any) -> Iterator[None]:
    """The shipped code with `value` at a seam; KeyError when the seam is not declared."""
    seam = SEAMS[name]
    with mock.patch.object(seam.home(), seam.attribute, value, create=hasattr(builtins, seam.attribute)):
        yield


def faults_of(name: str, seam: Seam) -> list[str]:
    """What is wrong with a seam as it is declared; empty when all holds."""
    try:
        home = seam.home()
    except (ImportError, AttributeError) as error:
        return [f"seam {name!r}: {seam.owner} is gone ({error})"]
    if not hasattr(home, seam.attribute) and not hasattr(builtins, seam.attribute):
        return [f"seam {name!r}: {seam.owner} has no {seam.attribute}"]
    wrong = []
    if seam.parameters is not None:
        found = _parameters(getattr(home, seam.attribute))
        if found != seam.parameters:
            wrong.append(f"seam {name!r}: the parameters of {seam.attribute} are ({found}), not ({seam.parameters})")
    source = inspect.getsource(sys.modules[seam.owner.partition(":")[0]]) if seam.leans_on else ""
    wrong += [
        f"seam {name!r}: nothing in {seam.owner} is called {lost}" for lost in seam.leans_on if lost not in source
    ]
    return wrong


def _parameters(function: Any) -> str:
    """Names of the parameters, without types and defaults."""
    bare = [
        parameter.replace(annotation=inspect.Parameter.empty, default=inspect.Parameter.empty)
        for parameter in inspect.signature(function).parameters.values()
    ]
    return str(inspect.Signature(bare)).strip("()")
