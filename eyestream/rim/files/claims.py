"""Claim about a released recording (`NAME.claim.json` beside it), in words for whoever receives it."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from eyestream.errors import RecordingError
from eyestream.rim.files.recordings import check_file

_MOST_BYTES = 1 << 20


class _Made(msgspec.Struct, frozen=True):
    """The mechanism, as a reader knows it; where no differential privacy is claimed there is less."""

    claim: Literal[1]
    version: str
    mechanism: str
    calibration: str
    statement: str
    law: str = ""
    attacker: str = ""
    trusted: tuple[str, ...] = ()
    not_protected: tuple[str, ...] = ()


class _Recording(msgspec.Struct, frozen=True):
    t: str
    chunks: Annotated[int, msgspec.Meta(ge=0)]
    epsilon: float | None
    delta: float | None
    claim: _Made


def load_claim(path: Path) -> list[tuple[str, str]]:
    """The claim at `path` as (topic, sentence) pairs, in the order in which they should be read.

    Raises
    ------
    RecordingError
        It is missing, or is no claim of a released recording.
    """
    check_file(path)
    try:
        with path.open("rb") as file:
            told = msgspec.json.decode(file.read(_MOST_BYTES), type=_Recording)
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise RecordingError(f"{path}: {_EXPECTED}") from None
    sentences = _sentences(told)
    if not all(sentence.isprintable() for _, sentence in sentences):
        raise RecordingError(f"{path}: {_EXPECTED}")
    return sentences


_EXPECTED = (
    "is no claim of a released recording: expected NAME.claim.json, which eyestream privatize writes beside NAME. "
    "A released corpus says it in CLAIM.md"
)


def _sentences(told: _Recording) -> list[tuple[str, str]]:
    made, cost = told.claim, "No differential privacy is claimed, so no epsilon is summed"
    if told.epsilon is not None:
        delta = f" and delta {told.delta:g}" if told.delta else ""
        cost = f"Together they cost epsilon {told.epsilon:g}{delta}. Another release of the same recording adds to that"
    found = [
        ("claim", made.statement),
        ("recording", f"chunks released: {told.chunks}. {cost}"),
        ("time", told.t),
        ("mechanism", f"{made.mechanism}, calibration {made.calibration}, made by {made.version}"),
        ("law", made.law),
        ("attacker", made.attacker),
        *(("trusted", one) for one in made.trusted),
        *(("not protected", one) for one in made.not_protected),
        ("this file", "it is what the releaser says. Nothing in the recording proves it"),
    ]
    return [(topic, sentence) for topic, sentence in found if sentence]
