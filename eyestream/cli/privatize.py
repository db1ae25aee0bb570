"""``eyestream privatize``: recorded data sets, file to file."""

import argparse
import contextlib
import functools
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from eyestream.cli.options import RECORDING, add_own_options, add_profile, check_targets, own_options, positive
from eyestream.cli.schedule import add_schedule, check_schedule, kept_low
from eyestream.errors import ConfigError
from eyestream.offline.datasets.gaze import front_end_of, save_released_gaze, slots_price, write_claim
from eyestream.offline.datasets.privatize import Booking, RefusedError, Released, privatize, privatize_whole
from eyestream.privacy.calibration import Calibration
from eyestream.privacy.charge import DELTA_UNITS, EPSILON_UNITS, LEVELS, Ceilings, Charge, levels_of
from eyestream.privacy.claims.facts import Correlated
from eyestream.privacy.mechanism import Mechanism
from eyestream.privacy.mechanisms import build
from eyestream.privacy.mechanisms.registry import entry_of, whole
from eyestream.privacy.meter import Odometer
from eyestream.privacy.remaining import left_of
from eyestream.privacy.whole import chunk_count
from eyestream.rim.elsewhere import mechanism_elsewhere
from eyestream.rim.files import calibrations, recordings
from eyestream.rim.files.extraction import load_rows, stem
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.files.recordings import Recording
from eyestream.rim.ledger.ledger import Ledger
from eyestream.rim.plan.ceilings import fading
from eyestream.streams import GAZE, StreamKey
from eyestream.wire.topics import FEATURE_STREAM

__all__ = ["add_parser", "main"]


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "privatize",
        help="release whole recordings privately, file to file",
        description="Release every chunk of each recording through the mechanism that the calibration was made for. "
        "This is one release: epsilon of all its chunks is spent, and running it again on the same "
        "recording spends as much again. Beside each file lies what is claimed of it, for machines "
        "(NAME.claim.json).",
    )
    parser.add_argument("recordings", nargs="+", type=Path, metavar="RECORDING", help=RECORDING)
    add_profile(parser)
    parser.add_argument("--calibration", required=True, metavar="FILE", help="file, or name of a shipped calibration")
    parser.add_argument("--mechanism", metavar="PLACE", help="package.module:NAME of a mechanism that lives elsewhere")
    add_own_options(parser)
    parser.add_argument(
        "--epsilon", type=positive, required=True, metavar="E", help="of a chunk, all features together"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="made if it does not exist")
    parser.add_argument("--shrink", action="store_true", help="shrink toward the corpus mean (free post-processing)")
    parser.add_argument("--smooth", action="store_true", help="filter the chunks of a recording (free post-processing)")
    parser.add_argument("--clip", action="store_true", help="clip to the calibrated range (free post-processing)")
    parser.add_argument(
        "--ledger",
        type=Path,
        metavar="FILE",
        help="book what is spent in this ledger first, made with `eyestream budget --new`",
    )
    parser.add_argument("--device", metavar="ID", help="with --ledger: the pseudonym of the person's device")
    parser.add_argument(
        "--lifetime-epsilon",
        type=positive,
        metavar="L",
        help="with --ledger: release nothing that takes what it has booked for the device above L",
    )
    parser.add_argument(
        "--lifetime-mode",
        choices=("stop", "fade"),
        help="with --lifetime-epsilon: refuse what does not fit (stop, the default), or let epsilon of a chunk halve, "
        f"level by level, on {LEVELS} levels on the way there (fade); give the same at each run",
    )
    add_schedule(parser)
    parser.add_argument(
        "--whole", action="store_true", help="one chunk as long as the recording (FPA), range instead of ball"
    )


def main(options: argparse.Namespace) -> None:
    """Release every recording and write it under its own name.

    Raises
    ------
    ConfigError
        Epsilon is refused, two recordings share a name, or DIR is where a recording lies or cannot be written.
    LedgerError
        The ledger cannot be used.
    RecordingError, CalibrationError
        A file is not what it should be, or the calibration is for other features.
    """
    _check_options(options)
    if options.mechanism is not None:
        mechanism_elsewhere(options.mechanism, "--mechanism")
    calibration = calibrations.load(options.calibration)
    kind = entry_of(calibration.mechanism).mechanism
    profile = load_profile(options.profile) if options.profile else None
    if not kind.domain.keeps and (profile is None or options.whole):
        raise ConfigError(f"{options.calibration} releases slots of gaze: expected --profile, and no --whole")
    targets = [options.out / (path.name if profile is None else f"{stem(path)}.npz") for path in options.recordings]
    check_targets(options.recordings, targets, what="release", plural="releases")
    check_targets(options.recordings, [_beside(target) for target in targets], what="claim", plural="claims")
    loaded = [load_rows(path, profile, front_end_of(calibration)) for path in options.recordings]
    for recording in loaded:
        calibration.check_stream(recording.names, recording.rate_hz)
        if recording.front_end is not None:
            calibration.check_front_end(recording.front_end)
    print(_price(options, calibration))
    if options.every > 1:
        print(f"one chunk in {options.every} is released; rows of the others are NaN, and cost nothing")
    for said in dict.fromkeys(line for recording in loaded for line in _notes(calibration, recording)):
        print(said)
    with _releases(options, calibration, loaded) as releases:
        try:
            options.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{options.out}: cannot be written: {error.strerror}") from None
        made: list[Released] = []
        for index, (target, released) in enumerate(zip(targets, releases, strict=True), start=1):
            made += [] if kind.domain.keeps else [released]
            _write(released, target, booked=options.ledger is not None)
            print(_line(released, target, fades=options.lifetime_mode == "fade"))
            if sys.stderr.isatty():
                print(f"\rreleased {index} of {len(loaded)} recordings", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    if not kind.domain.keeps:
        write_claim(made, targets, options.out / "claim.json")
    print("This is one release. Another run on the same recordings adds as much again.")


def _check_options(options: argparse.Namespace) -> None:
    """Raise ConfigError for options that do not go together."""
    if options.whole and (options.shrink or options.clip or options.smooth or options.option):
        raise ConfigError("--whole releases plainly: --shrink, --clip, --smooth and --option are not for it")
    check_schedule(options)
    if (options.ledger is None) != (options.device is None):
        raise ConfigError("--ledger and --device go together")
    if options.ledger is not None and options.whole:
        raise ConfigError("--ledger counts chunks: it is not for --whole")
    if options.lifetime_epsilon is not None and options.ledger is None:
        raise ConfigError("--lifetime-epsilon is of what a ledger has booked: expected --ledger too")
    if options.lifetime_mode is not None and options.lifetime_epsilon is None:
        raise ConfigError("--lifetime-mode goes with --lifetime-epsilon")


@contextlib.contextmanager
def _releases(
    options: argparse.Namespace, calibration: Calibration, loaded: list[Recording]
) -> Iterator[Iterator[Released]]:
    """The releases, made as they are taken; with --ledger all are booked before the first is made."""
    if options.whole:
        yield privatize_whole(loaded, calibration, options.epsilon)
        return
    given: dict[str, Any] = {key: True for key in ("shrink", "clip", "smooth") if getattr(options, key)}
    build_at = functools.partial(build, calibration, **own_options(options) | given)
    mechanism, correlated = kept_low(options, calibration, loaded, build_at)
    if options.ledger is None:
        made = privatize(loaded, calibration, mechanism, every=options.every)
        yield (_under_class(released, correlated) for released in made)
        return
    key, today, ceilings = (
        StreamKey(options.device, FEATURE_STREAM),
        int(time.time()) // 86_400,
        _ceilings(options, mechanism),
    )
    with Ledger(options.ledger, ceilings=ceilings) as ledger:
        _check_counted_alike(options, calibration.n, ledger.odometer(options.device))
        _check_room(options, mechanism, loaded, ledger.odometer(options.device), ceilings)
        try:
            booking = Booking(ledger, key, today, ceilings.levels)
            made = privatize(loaded, calibration, mechanism, booking, every=options.every)
            yield (_under_class(released, correlated) for released in made)
        except RefusedError as error:
            raise ConfigError(f"--ledger {options.ledger}: {error}") from None
        odometer = ledger.odometer(options.device)
    if odometer is not None:
        spent = f"epsilon {odometer.epsilon / EPSILON_UNITS:g}"
        spent += f", delta {odometer.delta / DELTA_UNITS:g}" if odometer.delta else ""
        print(f"{options.ledger}: {spent} for {options.device} since the ledger began")


def _beside(target: Path) -> Path:
    return target.with_name(f"{target.name}.claim.json")


def _write(released: Released, target: Path, *, booked: bool) -> None:
    """A release, and what is claimed of it beside it."""
    try:
        save = save_released_gaze if set(GAZE) <= set(released.recording.names) else recordings.save
        save(released.recording, target)
        _beside(target).write_text(json.dumps(released.claim(), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        said = f"{error.filename or target}: cannot be written: {error.strerror or error}"
        raise ConfigError(f"{said}; what was booked stays spent" if booked else said) from None


def _under_class(released: Released, correlated: Correlated | None) -> Released:
    """With what the whole recording tells of one chunk in its guarantee."""
    return replace(released, guarantee=replace(released.guarantee, correlated=correlated))


def _ceilings(options: argparse.Namespace, mechanism: Mechanism) -> Ceilings:
    """Of the person's device in the ledger."""
    ceilings, charge = Ceilings.of(lifetime=options.lifetime_epsilon), Charge.of(mechanism.epsilon, mechanism.delta)
    if options.lifetime_mode != "fade":
        return ceilings
    faded = fading(ceilings, charge, LEVELS, "--lifetime-mode", lifetime="--lifetime-epsilon")
    for level in range(LEVELS):
        mechanism.faded(level)  # one that cannot be is said before anything is booked
    return faded


def _check_room(
    options: argparse.Namespace,
    mechanism: Mechanism,
    loaded: list[Recording],
    odometer: Odometer | None,
    ceilings: Ceilings,
) -> None:
    """What does not fit as a whole is refused before any of it is spent."""
    charges = levels_of(mechanism.epsilon, mechanism.delta, ceilings.levels)
    chunks = [chunk_count(len(recording.t), mechanism.n) - mechanism.baseline_chunks for recording in loaded]
    wanted = sum(-(-max(count, 0) // options.every) for count in chunks)
    for left in left_of(odometer, ceilings, charges, today=0):
        if left.chunks < wanted:
            raise ConfigError(
                f"--lifetime-epsilon {options.lifetime_epsilon:g}: leaves {options.device} {left.chunks} chunks, and "
                f"the recordings have {wanted}; nothing was spent"
            )


def _check_counted_alike(options: argparse.Namespace, n: int, odometer: Odometer | None) -> None:
    """Another chunk length or window would withhold the first chunks, when the others were spent already."""
    if odometer is None:
        return
    stream = odometer.streams.get(FEATURE_STREAM)
    if odometer.window or (stream is not None and stream.chunk != n):
        counted = f"chunks of {stream.chunk} rows" if stream else "other streams"
        raise ConfigError(
            f"--ledger {options.ledger}: counts {options.device} in {counted} and windows of {odometer.window} chunks; "
            f"expected {n} rows and no window: take another --device or ledger"
        )


def _notes(calibration: Calibration, recording: Recording) -> Iterator[str]:
    """What who holds the recording should know of it. It is said on the terminal alone: none of it has noise."""
    if calibration.made_from(recording.features):
        yield (
            f"{recording.path}: the calibration was made from this recording, so nothing is claimed of its release. "
            "The claim beside it cannot say so. Do not publish them, or take a calibration of other people"
        )
    if recording.gaps_s:
        yield f"{recording.path}: gaps of {recording.gaps_s:.0f} s in all are closed: rows stand one behind the other"
    tracker = _tracker(calibration, recording)
    if tracker is not None:
        yield tracker


def _tracker(calibration: Calibration, recording: Recording) -> str | None:
    """What is to be said where the tracker is not the calibration's, or nobody told which it is."""
    ours, made = recording.front_end, calibration.front_end
    if ours is not None and not calibration.check_front_end(ours) and made is not None:
        said = f"rows of another tracker ({ours.profile}) than the calibration's ({made.profile})"
    elif ours is None and made is not None:
        said = f"rows that do not tell what made them; the calibration is of {made.profile}"
    else:
        return None
    return (
        f"{said}: epsilon holds, the expected error may not. eyestream check --recording tells which features fit, "
        "eyestream calibrate --adapt makes a calibration for them"
    )


def _price(options: argparse.Namespace, calibration: Calibration) -> str:
    name, length = (
        (whole().name, "the whole recording") if options.whole else (calibration.mechanism, f"{calibration.n} rows")
    )
    if not entry_of(calibration.mechanism).mechanism.domain.keeps:
        return slots_price(calibration, options.epsilon)
    return (
        f"{name}, chunks of {length}, epsilon {options.epsilon:g} a chunk (all features together), "
        f"calibration {calibration.content_hash}"
    )


def _line(released: Released, target: Path, *, fades: bool) -> str:
    delta = f", delta {released.delta:g}" if released.delta else ""
    if released.epsilon is None:
        return f"{target}: {released.chunks} chunks; {released.guarantee.statement}"
    units = f"{released.chunks} {released.guarantee.loss.unit}s"
    line = f"{target}: {units}, epsilon {released.epsilon:g}{delta} for the recording"
    if fades and released.stretches:
        told = ", then ".join(f"{one.epsilon:g} for each of {one.chunks} chunks" for one in released.stretches)
        line += f" ({told})"
    if released.recording.others:
        line += f"; left out: {', '.join(released.recording.others)}"
    return line
