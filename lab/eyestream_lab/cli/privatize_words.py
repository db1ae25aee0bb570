"""Words of ``eyestream privatize``: on the price, on the recordings, on each release."""

import argparse
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from eyestream.cli.ledger_words import plural
from eyestream.core.calibration import Calibration
from eyestream.core.mechanisms.registry import entry_of
from eyestream.rim.files.recordings import Recording
from eyestream_lab.fpa import WHOLE
from eyestream_lab.recordings.released import Released


def before(options: argparse.Namespace, calibration: Calibration, loaded: Sequence[Recording]) -> Iterator[str]:
    """Before anything is released."""
    yield _price(options, calibration)
    if options.every > 1:
        yield f"one chunk in {options.every} is released; rows of the others are NaN, and cost nothing"
    yield from dict.fromkeys(said for recording in loaded for said in _notes(calibration, recording))
    if calibration.sessions:
        yield (
            "the recordings of a person are sessions, in this order. Of every "
            f"{calibration.sessions} sessions the first is withheld: its rows are NaN and cost nothing"
        )


def _notes(calibration: Calibration, recording: Recording) -> Iterator[str]:
    """Notes for the owner of the recording. They go to the terminal alone: none of them has noise."""
    if recording.gaps_s:
        yield f"{recording.path}: gaps of {recording.gaps_s:.0f} s in all are closed: rows stand one after the other"
    known = tracker(calibration, recording)
    if known is not None:
        yield known


def tracker(calibration: Calibration, recording: Recording) -> str | None:
    """Note for a tracker that is not the calibration's, or that nobody named."""
    ours, made = recording.front_end, calibration.front_end
    if ours is not None and not calibration.check_front_end(ours) and made is not None:
        said = f"rows of another tracker ({ours.profile}) than the calibration's ({made.profile})"
    elif ours is None and made is not None:
        said = f"the rows do not say which tracker made them; the calibration is of {made.profile}"
    else:
        return None
    return (
        f"{said}: epsilon holds, the expected error may not. eyestream fit tells which features fit, "
        "eyestream calibrate --adapt makes a calibration for them"
    )


def _price(options: argparse.Namespace, calibration: Calibration) -> str:
    """Cost of a release, in a line."""
    minute = options.epsilon * 60.0 * calibration.rate_hz / (calibration.n * options.every)
    what, unit = f"chunks of {calibration.n} rows", f"a chunk (all features together), so {minute:.3g} a minute"
    if options.whole:
        what, unit = "chunks of the whole recording", "a chunk (all features together)"
    elif entry_of(calibration.mechanism).front_end is not None:
        what, unit = f"slots of {calibration.n / calibration.rate_hz:g} s", "a slot"
    name = WHOLE if options.whole else calibration.mechanism
    return f"{name}, {what}, epsilon {options.epsilon:g} {unit}, calibration {calibration.content_hash}"


def after(loaded: Sequence[Recording], claim: Path) -> Iterator[str]:
    """When everything is released; `claim` lies beside the first release."""
    begins = sorted({float(recording.t[0]) for recording in loaded} - {0.0})
    if begins:
        many = f" (or {begins[-1]:g})" if len(begins) > 1 else ""
        yield (
            f"t of a release counts from the first row. The recordings begin at {begins[0]:g} s{many}: compare row by "
            "row, not by t"
        )
    yield "This is one release. Another run on the same recordings adds as much again."
    yield f"What is claimed of a release, in words for who receives it: eyestream guarantee {shlex.quote(str(claim))}"


def line(released: Released, target: Path, *, fades: bool) -> str:
    """Released part of a recording."""
    delta = f", delta {released.delta:g}" if released.delta else ""
    if released.epsilon is None:
        return f"{target}: {plural(released.chunks)}; {released.guarantee.statement}"
    units = plural(released.chunks, released.guarantee.loss.unit)
    line = f"{target}: {units}, epsilon {released.epsilon:g}{delta} for the recording"
    if fades and released.stretches:
        told = ", then ".join(f"{one.epsilon:g} for each of {plural(one.chunks)}" for one in released.stretches)
        line += f" ({told})"
    if released.recording.others:
        line += f"; left out: {', '.join(released.recording.others)}"
    return line
