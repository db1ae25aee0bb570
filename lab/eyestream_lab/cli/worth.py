"""What `eyestream privatize` looks at before it spends: whether recordings say enough, and where baselines begin."""

import argparse
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eyestream.cli.options import positive
from eyestream.core.calibration import Calibration
from eyestream.errors import ConfigError
from eyestream.rim.files.recordings import Recording
from eyestream_lab.recordings.worth import better_start, obstacles, without_values

__all__ = ["add_worth", "first_row"]


def add_worth(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--baseline-at",
        type=positive,
        metavar="SECONDS",
        help="begin each recording so much later, where its baseline is taken; nothing of the rows before is released, "
        "nor charged. The release shows this time: one that is chosen after a look at recordings tells of them",
    )
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="release also what is refused: a recording that lost its baseline or nearly all its rows, that is too "
        "short, or that is there twice",
    )


def first_row(
    options: argparse.Namespace, calibration: Calibration, loaded: Sequence[Recording], released: NDArray[np.intp]
) -> int:
    """The row of each recording at which its release begins; says what is missing of the features `released`.

    Raises
    ------
    ConfigError
        Recordings are not worth their epsilon, or --baseline-at is of no baseline.
    """
    anchor = None if options.whole else calibration.anchor
    if anchor is None and options.baseline_at is not None:
        raise ConfigError("--baseline-at: expected a calibration that takes a baseline, and no --whole")
    first = 0 if options.baseline_at is None else int(np.ceil(options.baseline_at * calibration.rate_hz))
    baseline = 0 if anchor is None else anchor.chunks * calibration.n
    if options.baseline_at is not None:
        print(f"baselines begin at {options.baseline_at:g} s: a time chosen after a look at recordings tells of them")
    for recording in loaded:
        missing = without_values(recording, calibration, released, first=first, baseline=baseline)
        if missing:
            print(f"{recording.path}: no value of {', '.join(missing)}: released as if at the corpus' mean")
    found = list(obstacles(loaded, calibration, released, first=first, baseline=baseline))
    for line in found:
        print(line)
    if not found or options.anyway:
        return first
    offer = better_start(loaded, calibration, released, first=first, baseline=baseline) if baseline else None
    instead = "" if offer is None else f", --baseline-at {offer}, from where all have a baseline,"
    raise ConfigError(f"nothing was spent: expected other recordings{instead} or --anyway")
