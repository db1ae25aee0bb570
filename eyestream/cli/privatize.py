"""``eyestream privatize``: recorded data sets, file to file."""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.cli.options import positive
from eyestream.errors import ConfigError
from eyestream.privacy.accountant import Request
from eyestream.privacy.calibration import Calibration
from eyestream.privacy.charge import EPSILON_UNITS, Ceilings, Charge
from eyestream.privacy.mechanism import Mechanism
from eyestream.privacy.mechanisms import FPA, build
from eyestream.privacy.whole import chunk_count, release_rows
from eyestream.rim.files import calibrations, recordings
from eyestream.rim.files.recordings import Recording
from eyestream.rim.ledger.ledger import Ledger, Withheld
from eyestream.wire.topics import FEATURE_STREAM

__all__ = ["add_parser", "main"]


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "privatize",
        help="release whole recordings privately, file to file",
        description="Release every chunk of each recording through the mechanism that the calibration was made for. "
        "This is one release: epsilon of all its chunks is spent, and running it again on the same "
        "recording spends as much again.",
    )
    parser.add_argument("recordings", nargs="+", type=Path, metavar="RECORDING", help=".npz, .csv or .csv.gz")
    parser.add_argument("--calibration", required=True, metavar="FILE", help="file, or name of a shipped calibration")
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
        help="book what is spent in this ledger first, made for these chunks with `eyestream budget --new --window 0`",
    )
    parser.add_argument("--device", metavar="ID", help="with --ledger: the pseudonym of the person's device")
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
    if options.whole and (options.shrink or options.clip or options.smooth):
        raise ConfigError("--whole releases plainly: --shrink, --clip and --smooth are not for it")
    if (options.ledger is None) != (options.device is None):
        raise ConfigError("--ledger and --device go together")
    if options.ledger is not None and options.whole:
        raise ConfigError("--ledger counts chunks: it is not for --whole")
    calibration = calibrations.load(options.calibration)
    loaded = [recordings.load(path) for path in options.recordings]
    _check_targets(options.recordings, options.out)
    for recording in loaded:
        calibration.check_stream(recording.names, recording.rate_hz)
    print(_price(options, calibration))
    if options.ledger is not None:
        _book(options, calibration, [len(recording.t) for recording in loaded])
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        for index, (path, recording) in enumerate(zip(options.recordings, loaded, strict=True), start=1):
            mechanism = _mechanism(options, calibration, len(recording.t))
            released = release_rows(mechanism, recording.features)
            t = np.arange(len(recording.t)) / calibration.rate_hz
            recordings.save(replace(recording, t=t, features=released), options.out / path.name)
            print(_line(options, calibration, mechanism, recording, path))
            if sys.stderr.isatty():
                print(f"\rreleased {index} of {len(loaded)} recordings", end="", file=sys.stderr, flush=True)
    except OSError as error:
        raise ConfigError(f"{options.out}: cannot be written: {error.strerror}") from None
    if sys.stderr.isatty():
        print(file=sys.stderr)
    print("This is one release. Another run on the same recordings adds as much again.")


def _mechanism(options: argparse.Namespace, calibration: Calibration, rows: int) -> Mechanism:
    if options.whole:
        return FPA(calibration, options.epsilon, rows, k=calibration.k or 1)
    said = {name: getattr(options, name) or None for name in ("shrink", "clip", "smooth")}
    return build(calibration, options.epsilon, **said)


def _book(options: argparse.Namespace, calibration: Calibration, lengths: list[int]) -> None:
    """Reserve every chunk of every recording, durably, before the first is released; a session for each recording."""
    n, charge = calibration.n, Charge.of(options.epsilon, 0.0)
    with Ledger(options.ledger, chunk=n, ceilings=Ceilings()) as ledger:
        if (ledger.header.chunk, ledger.header.window) != (n, 0):
            raise ConfigError(f"--ledger {options.ledger}: was not made with --chunk {n} --window 0")
        mark = ledger.mark(options.device, FEATURE_STREAM)
        first = 0 if mark is None else mark.session + 1
        requests = [
            Request(options.device, FEATURE_STREAM, session, start, min(start + n, rows) - 1, charge)
            for session, rows in enumerate(lengths, start=first)
            for start in range(0, rows, n)
        ]
        answers = ledger.reserve(requests, int(time.time()) // 86_400)
        if any(isinstance(answer, Withheld) for answer in answers):
            raise ConfigError(f"--ledger {options.ledger}: does not allow the release")
        odometer = ledger.odometer(options.device, FEATURE_STREAM)
        assert odometer is not None
    print(f"{options.ledger}: epsilon {odometer.epsilon / EPSILON_UNITS:g} for {options.device} since the ledger began")


def _check_targets(sources: list[Path], out: Path) -> None:
    names = [path.name for path in sources]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"two recordings are called {twice}: their releases would overwrite each other")
    for path in sources:
        if (out / path.name).resolve() == path.resolve():
            raise ConfigError(f"--out {out}: {path.name} would be overwritten by its own release")


def _price(options: argparse.Namespace, calibration: Calibration) -> str:
    name, length = ("fpa", "the whole recording") if options.whole else (calibration.mechanism, f"{calibration.n} rows")
    return (
        f"{name}, chunks of {length}, epsilon {options.epsilon:g} a chunk (all features together), "
        f"calibration {calibration.content_hash}"
    )


def _line(
    options: argparse.Namespace, calibration: Calibration, mechanism: Mechanism, recording: Recording, path: Path
) -> str:
    chunks = chunk_count(len(recording.t), mechanism.n)
    line = f"{options.out / path.name}: {chunks} chunks, epsilon {chunks * options.epsilon:g} for the recording"
    overlap = calibration.overlap(recording.features)
    if overlap > 0:
        line += f"; no guarantee: calibrated on itself ({overlap:.0%} of its rows, by their fingerprints)"
    if recording.others:
        line += f"; left out: {', '.join(recording.others)}"
    return line
