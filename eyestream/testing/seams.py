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


_SPAN = ("answers",)
_SLOTS = ("_slots", "_window", "_window_epsilon", "_session", "_last_row", "_chunk", "_day", "_day_epsilon")
_ADDITIVE = ("_parts", "_noise", "_scale")

SEAMS: dict[str, Seam] = {
    # Noise and its entropy
    "system entropy": Seam("eyestream.privacy.noise.bits:os", "urandom"),
    "SystemBits.words": Seam("eyestream.privacy.noise.bits:SystemBits", "words", "self, count"),
    "SecureNoise.draw": Seam("eyestream.privacy.noise:SecureNoise", "draw", "self, law"),
    "LaplaceLaw.sample": Seam("eyestream.privacy.noise.laws:LaplaceLaw", "sample", "self, bits"),
    "LaplaceLaw.clamp": Seam("eyestream.privacy.noise.laws:LaplaceLaw", "clamp", "self, noisy", ("_digits",)),
    "digit thresholds": Seam("eyestream.privacy.noise.laws", "_thresholds", "log_p"),
    "response numerator": Seam("eyestream.privacy.noise.response", "_replace_numerator", "epsilon, bits"),
    "ResponseLaw.__init__": Seam("eyestream.privacy.noise.response:ResponseLaw", "__init__", "self, bits, epsilon"),
    "mechanism threads": Seam("eyestream.privacy.mechanism", "threading"),
    # From a chunk to its release
    "Domain.admit": Seam("eyestream.privacy.domain:Domain", "admit", "self, chunk", ("_padded",)),
    "ball factor": Seam("eyestream.privacy.ball", "_factor", "norm, radius"),
    "L1Lattice.snap": Seam("eyestream.privacy.ball:L1Lattice", "snap", "self, coordinates, factor", ("_per_step",)),
    "L2Lattice.snap": Seam("eyestream.privacy.ball:L2Lattice", "snap", "self, coordinates, factor", ("_per_step",)),
    "noisy integers": Seam("eyestream.privacy.additive:AdditiveMechanism", "_noisy", "self, admitted", _ADDITIVE),
    "AdditiveMechanism.release": Seam("eyestream.privacy.additive:AdditiveMechanism", "release", "self, chunk"),
    "additive finish": Seam("eyestream.privacy.additive:AdditiveMechanism", "_finish", "self, integers"),
    "mechanism completes": Seam("eyestream.privacy.mechanism:Mechanism", "_complete", "self"),
    "transform residual": Seam("eyestream.privacy.transforms:FourierTransform", "residual", "self, chunk"),
    "transform coordinates": Seam("eyestream.privacy.transforms:FourierTransform", "coordinates", "self, residual"),
    "transform chunk": Seam("eyestream.privacy.transforms:FourierTransform", "chunk", "self, coordinates"),
    "ResponseLaw.sample": Seam("eyestream.privacy.noise.response:ResponseLaw", "sample", "self, bits"),
    "KLT scores": Seam("eyestream.privacy.klt:KLT", "_scores", "self, chunk"),
    "KLT chunk": Seam("eyestream.privacy.klt:KLT", "_chunk", "self, scores"),
    "additive law": Seam("eyestream.privacy.mechanisms:_PerFeature", "_law", "self, sensitivity, count, largest"),
    "difference": Seam("eyestream.privacy.transforms", "difference", "signals"),
    "integrate": Seam("eyestream.privacy.transforms", "integrate", "differences"),
    "difference residual": Seam(
        "eyestream.privacy.transforms:DifferenceFourierTransform", "residual", "self, chunk", ("_centre",)
    ),
    "difference coordinates": Seam(
        "eyestream.privacy.transforms:DifferenceFourierTransform", "coordinates", "self, residual"
    ),
    "RealFourier.signals": Seam("eyestream.spectrum.fourier:RealFourier", "signals", "self, coordinates"),
    "KLTSession.release": Seam(
        "eyestream.privacy.mechanisms.klt:KLTSession", "release", "self, chunk", ("_state", "_turn", "_mechanism")
    ),
    # The budget
    "charge units": Seam("eyestream.privacy.charge", "charge_units", "value, units"),
    "ceiling units": Seam("eyestream.privacy.charge", "ceiling_units", "value, units"),
    "Account.obstacle": Seam(
        "eyestream.privacy.accountant:Account", "obstacle", "self, request, chunk, ceilings, today", _SLOTS
    ),
    "Account.take": Seam(
        "eyestream.privacy.accountant:Account", "take", "self, session, last_row, *, chunk, window, day, epsilon, delta"
    ),
    "Account.mark": Seam("eyestream.privacy.accountant:Account", "mark"),
    "newest slots": Seam("eyestream.privacy.accountant:Account", "_newest_slots", "self", ("_slots", "_window")),
    # The ledger
    "Ledger.__init__": Seam("eyestream.rim.ledger.ledger:Ledger", "__init__", "self, path, *, chunk, ceilings"),
    "Ledger.reserve": Seam("eyestream.rim.ledger.ledger:Ledger", "reserve", "self, requests, day"),
    "ledger writing": Seam("eyestream.rim.ledger.ledger:Ledger", "_writing", "self"),
    "LedgerFile.sync": Seam("eyestream.rim.ledger.file:LedgerFile", "sync", "self"),
    "ledger lock": Seam("eyestream.rim.ledger.file:fcntl", "flock"),
    "book reads a record": Seam("eyestream.rim.ledger.book:Book", "_read", "self, record"),
    "book checks the tail": Seam("eyestream.rim.ledger.book:Book", "_check_tail", "self"),
    "book counts a torn record": Seam("eyestream.rim.ledger.book:Book", "_count_as_spent", "self, record"),
    "disk": Seam("os", "fdatasync"),
    # Rows to chunks
    "Device.__init__": Seam("eyestream.chunking.device:Device", "__init__", "self, settings, refused", ("_refused",)),
    "Device.feed": Seam("eyestream.chunking.device:Device", "feed", "self, rows, now"),
    "session is over": Seam("eyestream.chunking.device:Device", "_is_over", "self, session"),
    "Session.take": Seam(
        "eyestream.chunking.session:Session", "take", "self, seq, rows, time", ("_current", "_settings")
    ),
    "Session.last_row": Seam("eyestream.chunking.session:Session", "last_row"),
    "late rows": Seam("eyestream.chunking.session:Session", "_count_late", "self, row, until, time"),
    "ChunkBuffer.values": Seam("eyestream.chunking.chunks:ChunkBuffer", "values", "self"),
    # The wire
    "version of a payload": Seam("eyestream.wire.envelope", "_VERSION_ONE"),
    "Decoder.feed": Seam("eyestream.wire.mqtt:Decoder", "feed", "self, data"),
    # The sidecar
    "pipeline collects": Seam("eyestream.rim.sidecar.pipeline:Pipeline", "_collect", "self, line, chunks", _SPAN),
    "pipeline settles": Seam("eyestream.rim.sidecar.pipeline:Pipeline", "_settle", "self, line, chunk", _SPAN),
    "pipeline releases": Seam(
        "eyestream.rim.sidecar.pipeline:Pipeline", "_release", "self, line, chunk", ("_publish",)
    ),
    "Pipeline.close": Seam("eyestream.rim.sidecar.pipeline:Pipeline", "close", "self, now", ("_lines", *_SPAN)),
    "pipeline charge": Seam("eyestream.rim.sidecar.pipeline", "Charge"),
    "pipeline decoder": Seam("eyestream.rim.sidecar.pipeline", "decode_raw", "payload, features, schema"),
    "pipeline encoder": Seam("eyestream.rim.sidecar.pipeline", "encode_private", "chunk"),
    "pipeline names an error": Seam("eyestream.rim.sidecar.pipeline", "type"),
    "Outbox.first": Seam("eyestream.rim.sidecar.outbox:Outbox", "first", "self, now", ("_waiting",)),
    "Outbox.put": Seam("eyestream.rim.sidecar.outbox:Outbox", "put", "self, topic, payload, now"),
    "sidecar receives": Seam("eyestream.rim.sidecar.sidecar:Sidecar", "_receive", "self, message"),
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
