"""`eyestream extract`: from recordings of gaze to feature recordings."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.cli.options import add_profile, check_targets
from eyestream.cli.progress import Progress
from eyestream.errors import ConfigError
from eyestream.rim.files import recordings
from eyestream.rim.files.extraction import extract, stem
from eyestream.rim.files.gaze import load_gaze
from eyestream.rim.files.profiles import load_profile

__all__ = ["add_parser", "main"]


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "extract",
        help="recordings of gaze to rows of the 52 features",
        description="Find events in recordings of gaze, as the sidecar does live, and write DIR/NAME.npz for each: t, "
        "features, names, and which front end made them. One row each half second over the last 30 s; rows in which "
        "the eye was lost for half of the time are NaN. The same file gives the same bytes. Rows are as private as "
        "gaze.",
    )
    parser.add_argument("gaze", nargs="+", type=Path, metavar="FILE", help="as the profile declares it, also with .gz")
    add_profile(parser, required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="made if it does not exist")


def main(options: argparse.Namespace) -> None:
    """Extract and write, one recording after the other.

    Raises
    ------
    ConfigError
        There is no such profile, two files have one name, or DIR cannot be written.
    RecordingError
        A file is not what the profile declares.
    """
    profile = load_profile(options.profile)
    targets = [options.out / f"{stem(path)}.npz" for path in options.gaze]
    check_targets(options.gaze, targets, what="rows", plural="rows")
    for path, target in zip(options.gaze, targets, strict=True):
        gaze = load_gaze(path, profile)
        progress = Progress(str(path), len(gaze.samples), "samples")
        recording = extract(gaze, progress)
        progress.clear()
        try:
            options.out.mkdir(parents=True, exist_ok=True)
            recordings.save(recording, target)
        except OSError as error:
            raise ConfigError(f"{options.out}: cannot be written: {error.strerror}") from None
        lost = int(np.isnan(recording.features).all(axis=1).sum())
        print(f"{target}: {len(recording.t)} rows{f', {lost} of them NaN' if lost else ''}")
