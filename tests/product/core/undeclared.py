"""Mechanisms of somebody else, each with one thing wrong; which configurations name by its place."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from eyestream.core.additive.core import PostProcessing
from eyestream.core.calibration import Calibration, PerFeatureTables
from eyestream.core.kinds import Claim, NoClaim
from eyestream.core.mechanisms.entry import Entry
from eyestream.core.mechanisms.fourier import CFPA
from eyestream.core.release_type import InputDomain, OutputSchema
from eyestream.errors import CalibrationError
from eyestream_lab.corpora.claims import KAnonymity

__all__ = [
    "BASELINE",
    "GROUPS",
    "NO_CLAIM",
    "NO_CLASS",
    "NO_WORD",
    "OTHER_DOMAIN",
    "OTHER_SCHEMA",
    "OTHER_STEP",
    "WHOLE_CORPUS",
    "Corpora",
]


def entry(mechanism: Any) -> Entry:
    return Entry(mechanism, PostProcessing, PerFeatureTables)


class _NoClaim(CFPA):
    name = "no-claim"
    protection = "believe me"  # type: ignore[assignment]


class _NoWord(CFPA):
    name = "no-word"

    @property
    def claim(self) -> Claim:
        return "epsilon 4.8"  # type: ignore[return-value]


class _OtherDomain(CFPA):
    name = "other-domain"
    domain = "rows"  # type: ignore[assignment]


class _OtherSchema(CFPA):
    name = "other-schema"

    @property
    def schema(self) -> OutputSchema:
        return OutputSchema(("gaze x", "gaze y"), ("deg", "deg"), (2, 1), 0.5)


class _OtherStep(CFPA):
    name = "other-step"

    @property
    def schema(self) -> OutputSchema:
        return replace(super().schema, step_s=1.0)


@dataclass(frozen=True, slots=True)
class Corpora(InputDomain):
    """A corpus of recordings, whole; offline alone. It has no chunks, and no calibration of them."""

    live: ClassVar[bool] = False

    def takes(self, n: int) -> bool:
        """Never: a corpus has no chunks."""
        return False

    def check(self, calibration: Calibration) -> None:
        """Refuse every calibration of chunks, by a CalibrationError."""
        raise CalibrationError("a corpus is released whole: no calibration of chunks is for it")


class _WholeCorpus(CFPA):
    name = "whole-corpus"
    domain = Corpora()


class _Baseline(CFPA):
    """A mechanism that promises nothing."""

    name = "baseline"

    @property
    def claim(self) -> Claim:
        return NoClaim()


class _Groups(CFPA):
    name = "groups"

    @property
    def claim(self) -> Claim:
        return KAnonymity(4, "the 20 people of the corpus", "which recordings the corpus has")


class NotAMechanism:
    name = "not-a-mechanism"


NO_CLAIM, NO_WORD, OTHER_DOMAIN = entry(_NoClaim), entry(_NoWord), entry(_OtherDomain)
OTHER_STEP = entry(_OtherStep)
OTHER_SCHEMA, WHOLE_CORPUS, NO_CLASS = entry(_OtherSchema), entry(_WholeCorpus), entry(NotAMechanism)
BASELINE, GROUPS = entry(_Baseline), entry(_Groups)
