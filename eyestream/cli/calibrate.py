"""``eyestream calibrate``: what a mechanism must know, from recordings of a public corpus."""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.corpus.calibrate import WORDBOOK_MINIMA, Corpus, calibrate_per_feature
from eyestream.errors import ConfigError
from eyestream.files import calibrations, recordings
from eyestream.privacy.calibration import PerFeatureTables, declared_range

__all__ = ["add_parser", "main"]


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "calibrate",
        help="learn ball and range of every feature from public recordings",
        description="Learn what a mechanism must know before it may see a user: the range of every feature, and the "
        "ball that every chunk is projected onto. A calibration is not private. Use recordings of people who "
        "agreed to publish them, one recording a person, and never those of the people it will protect.",
    )
    parser.add_argument("recordings", nargs="+", type=Path, metavar="RECORDING", help=".npz, .csv or .csv.gz")
    parser.add_argument("--mechanism", required=True, choices=("lpa", "cfpa", "dcfpa"), help="what it is for")
    parser.add_argument("--chunk", type=int, required=True, metavar="N", help="rows a chunk: 32, 64, 128 or so")
    parser.add_argument(
        "--k", type=int, metavar="K", help="Fourier coefficients to keep (default: the best for epsilon)"
    )
    parser.add_argument(
        "--coverage",
        type=float,
        default=0.95,
        metavar="Q",
        help="share of the chunks that the ball holds; 1 for the smallest ball that holds all (default 0.95)",
    )
    parser.add_argument(
        "--constant",
        action="append",
        metavar="NAME",
        help="a feature that is released as a constant and never read (default: the wordbook minima)",
    )
    parser.add_argument(
        "--range", action="store_true", help="use the range of each feature as the domain instead of a ball"
    )
    parser.add_argument("--about", default="recordings given by the user", help="what the recordings are, in words")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the file to write")


def main(options: argparse.Namespace) -> None:
    """Calibrate and write the file.

    Raises
    ------
    ConfigError
        The chunk length is no power of two, a constant is no feature, or FILE cannot be written.
    CalibrationError
        The recordings do not fit together, or hold no whole chunk.
    """
    if options.chunk < 2 or options.chunk & (options.chunk - 1):
        raise ConfigError(f"--chunk must be a power of two, not {options.chunk}")
    loaded = [recordings.load(path) for path in options.recordings]
    names = loaded[0].names
    unknown = [name for name in options.constant or () if name not in names]
    if unknown:
        raise ConfigError(f"--constant {unknown[0]}: the recordings have no such feature")
    corpus = Corpus.of(loaded, options.chunk)
    calibration = calibrate_per_feature(
        corpus,
        options.mechanism,
        coverage=options.coverage,
        k=options.k,
        declared=WORDBOOK_MINIMA if options.constant is None else options.constant,
        description=options.about,
        progress=_progress,
    )
    if options.range:
        calibration = declared_range(calibration, options.chunk)
    try:
        calibrations.save(calibration, options.out)
    except OSError as error:
        raise ConfigError(f"{options.out}: cannot be written: {error.strerror}") from None
    active = ~calibration.constant
    print(
        f"{options.out}: {options.mechanism}, chunks of {options.chunk} rows, {active.sum()} of {len(names)} features "
        f"released, {len(corpus.chunks)} chunks of {len(loaded)} recordings, hash {calibration.content_hash}"
    )
    tables = calibration.tables
    if isinstance(tables, PerFeatureTables) and not options.range:
        covered = np.median(tables.diameter[active] / (2 * tables.radius[active]))
        print(f"largest distance of two chunks over the sensitivity, median feature: {covered:.2f}")


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(
            f"\rcalibrated {done} of {total} features", end="\n" if done == total else "", file=sys.stderr, flush=True
        )
