"""``eyestream fit``: does a calibration fit a tracker?"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eyestream.cli.options import add_profile
from eyestream.cli.progress import load_all
from eyestream.core.calibration import Calibration
from eyestream.core.mechanisms.registry import entry_of
from eyestream.errors import CalibrationError, ConfigError
from eyestream.rim import config
from eyestream.rim.files import calibrations
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.files.recordings import Recording
from eyestream_lab.simulation.fit import FITS, LOST, MOST_UNFIT, STILL, FeatureFit, all_in_all, feature_fits, unfit

USUAL = "everyday-klt-anchored-64"

_REMEDY = (
    "make a calibration for this tracker: eyestream calibrate --adapt BASE, with public or consented recordings of it; "
    "BASE is this one, or everyday-klt-mapped-64 where this one has no maps of features"
)


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "fit",
        help="report which features of a tracker fit a calibration",
        description="Say which features of public or consented recordings of a tracker fit the calibration of --config "
        "or --calibration. It looks at raw values: never use it on live data. Exit code 1 when they do not fit.",
    )
    parser.add_argument("recordings", nargs="+", type=Path, metavar="FILE", help="rows, or with --profile gaze")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--config", type=Path, metavar="FILE", help="the sidecar's configuration")
    which.add_argument("--calibration", metavar="C", help=f"a file or a shipped calibration (default {USUAL})")
    add_profile(parser)


def main(options: argparse.Namespace) -> None:
    """Print how well recordings fit the calibrations.

    Raises
    ------
    ConfigError
        The configuration cannot be used, or no calibration is of features.
    RecordingError, CalibrationError
        A file is not what it should be.
    SystemExit
        With code 1 when a calibration does not fit.
    """
    if options.config is None:
        names = [options.calibration or USUAL]
    else:
        names = list(dict.fromkeys(stream.privacy.calibration for stream in config.load(options.config).stream))
    every = {name: calibrations.load(name) for name in names}
    known = {name: one for name, one in every.items() if entry_of(one.mechanism).front_end is None}
    if not known:
        said = f"{', '.join(every)} is of slots of gaze, and fits every tracker in degrees"
        raise ConfigError(f"{said}; expected a calibration of features")
    profile = load_profile(options.profile) if options.profile else None
    loaded = load_all(options.recordings, profile)
    fine = True
    for name, calibration in known.items():
        lines, fits = _report(name, calibration, loaded)
        print(*lines, sep="\n")
        fine = fine and fits
    if not fine:
        sys.exit(1)


def _report(name: str, calibration: Calibration, recordings: Sequence[Recording]) -> tuple[list[str], bool]:
    """Lines that say which features fit, and whether the calibration is for this tracker.

    Raises
    ------
    CalibrationError
        when the recordings have other features, or another rate.
    """
    for recording in recordings:
        calibration.check_stream(recording.names, recording.rate_hz)
    rows = sum(len(recording.t) for recording in recordings)
    lines = [f"{name}: {rows} rows of {len(recordings)} recordings, calibration {calibration.content_hash}"]
    said, fine = _front_ends(calibration, recordings)
    lines += said
    fits = feature_fits(calibration, [recording.features for recording in recordings])
    good = [fit for fit in fits if fit.verdict == "fits"]
    lines.append(f"{len(good)} of {len(fits)} features fit: at most {FITS:.0%} of their values are clipped")
    lines += [_line(fit) for fit in sorted(fits, key=lambda fit: -fit.clipped) if fit.verdict != "fits"]
    fitting = all_in_all(fits)
    if fitting:
        lines.append(
            f"all in all it fits: at most {MOST_UNFIT:.1%} of the features do not, stand still or lack data, as single "
            f"people may show. None has more than {LOST:.0%} clipped"
        )
    else:
        lines.append(
            f"all in all it does not fit: {len(unfit(fits))} of {len(fits)} features do not, stand still or lack data"
        )
    if not (fine and fitting):
        lines.append(f"remedy: {_REMEDY}")
    fine = fine and fitting
    return lines, fine


def _line(fit: FeatureFit) -> str:
    if fit.verdict == "no data":
        return f"  {fit.name}: no data: it is released as if it stood at the corpus' mean"
    if fit.verdict == "stands still":
        return f"  {fit.name}: stands still: moves less than {STILL:.0%} of what it moved in the corpus"
    return f"  {fit.name}: {fit.verdict}: {fit.clipped:.0%} clipped ({fit.below:.0%} below, {fit.above:.0%} above)"


def _front_ends(calibration: Calibration, recordings: Sequence[Recording]) -> tuple[list[str], bool]:
    """Notes on the front ends that made the rows."""
    made = {recording.front_end for recording in recordings}
    lines, fine = [], True
    for mark in sorted((mark for mark in made if mark is not None), key=lambda mark: mark.front_end):
        try:
            same = calibration.check_front_end(mark)
        except CalibrationError as error:
            lines.append(f"front end: {error}")
            fine = False
            continue
        lines.append(
            f"front end: {'the very one' if same else 'the same detector on another tracker'} ({mark.profile})"
        )
    if None in made:
        lines.append("front end: some rows do not tell who made them; that they mean the same is not known")
    return lines, fine
