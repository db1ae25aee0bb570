"""`eyestream extract`: from recordings of gaze to feature recordings."""

import argparse
import csv
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from eyestream.cli.options import add_profile
from eyestream.cli.progress import Progress
from eyestream.errors import ConfigError, RecordingError
from eyestream.gaze.doubt import GAZE_DOUBTS
from eyestream.gaze.profile import Profile
from eyestream.rim.files import recordings
from eyestream.rim.files.extraction import extract, stem
from eyestream.rim.files.gaze import load_gaze
from eyestream.rim.files.profiles import load_profile
from eyestream.rim.files.recordings import Recording
from eyestream_lab.cli.options import add_workers, check_targets
from eyestream_lab.files import layouts
from eyestream_lab.files.layouts import SHIPPED, Layout, labels_of, load_features, load_layout
from eyestream_lab.workers import workers


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "extract",
        help="recordings of gaze to rows of the 52 features",
        description="Find events in recordings of gaze, as the sidecar does live, and write DIR/NAME.npz for each: t, "
        "features, names, and which front end made them. One row each half second over the last 30 s; rows in which "
        "the eye was lost for half of the time are NaN. The same file gives the same bytes. Rows are as private as "
        "gaze. With --layout: from the text tables of a data set; if they hold rows of features, these are taken as "
        "they are, and no profile is needed.",
    )
    parser.add_argument("gaze", nargs="+", type=Path, metavar="FILE", help="as the profile declares it, also with .gz")
    add_profile(parser)
    parser.add_argument(
        "--layout", metavar="L", help=f"how a data set's tables are laid out: {', '.join(SHIPPED)} or a TOML file"
    )
    parser.add_argument(
        "--labels", type=Path, metavar="FILE", help="with --layout: write the labels that its files' names tell"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="made if it does not exist")
    add_workers(parser)


def main(options: argparse.Namespace) -> None:
    """Extract and write, one recording after the other.

    Raises
    ------
    ConfigError
        There is no such profile or layout, two files have one name, or DIR cannot be written.
    RecordingError
        A file is not what profile and layout declare.
    """
    layout = load_layout(options.layout) if options.layout is not None else None
    read = _reader(options, layout)
    targets = [options.out / f"{stem(path)}.npz" for path in options.gaze]
    check_targets(options.gaze, targets, what="rows", plural="rows")
    if options.labels is not None:
        _write_labels(options.labels, options.gaze, layout)
    if options.cluster is not None or options.jobs is not None:
        _batch(options, read, targets)
        return
    for number, (path, target) in enumerate(zip(options.gaze, targets, strict=True)):
        try:
            print(_made(read, path, target))
        except RecordingError as error:
            done_before = f"; {number} of {len(targets)} files were written before it" if number else ""
            raise RecordingError(f"{error}{done_before}") from None


def _batch(options: argparse.Namespace, read: Callable[[Path], Recording], targets: list[Path]) -> None:
    """On processes or on a cluster. Rows are the same whenever they are made: one that is there is whole, and stays."""
    given = [
        (path.absolute(), target.absolute())
        for path, target in zip(options.gaze, targets, strict=True)
        if not target.exists()
    ]
    counted = Progress("extract", len(given), "files")
    with workers(options.cluster, options.jobs or 1, read) as several:
        for count, (_, line) in enumerate(several.done(_made, given), start=1):
            counted(count)
            print(line)
    counted.clear()
    if len(given) < len(targets):
        print(f"{len(targets) - len(given)} files of rows were there already")


def _made(read: Callable[[Path], Recording], path: Path, target: Path) -> str:
    """Rows of a file at their target, whole or not at all; what is said of them."""
    recording = read(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            recordings.save(recording, beside / target.name)
            os.replace(beside / target.name, target)
        finally:
            shutil.rmtree(beside)
    except OSError as error:
        raise ConfigError(f"{target.parent}: cannot be written: {error.strerror}") from None
    lost = int(np.isnan(recording.features).all(axis=1).sum())
    return f"{target}: {len(recording.t)} rows{f', {lost} of them NaN' if lost else ''}"


def _reader(options: argparse.Namespace, layout: Layout | None) -> Callable[[Path], Recording]:
    """The front end that makes rows of a file."""
    if layout is not None and layout.holds == "features":
        if options.profile is not None:
            raise ConfigError(f"--profile: layout {layout.name} holds rows of features, no gaze")
        return partial(load_features, layout=layout)
    if options.profile is None:
        raise ConfigError("--profile: wanted, it says what the columns of the gaze are")
    return partial(_rows, load_profile(options.profile), layout)


def _rows(profile: Profile, layout: Layout | None, path: Path) -> Recording:
    if layout is None:
        gaze = load_gaze(path, profile)
    else:
        gaze, head = layouts.load_gaze(path, profile, layout)
        if head:
            print(f"{path}: also holds motion of the head ({', '.join(head)}), which nothing here protects")
    if gaze.doubt is not None:
        print(f"eyestream extract: warning: {path}: {GAZE_DOUBTS[gaze.doubt]}", file=sys.stderr)
    progress = Progress(str(path), len(gaze.samples), "samples")
    recording = extract(gaze, progress)
    progress.clear()
    return recording


def _write_labels(target: Path, paths: Sequence[Path], layout: Layout | None) -> None:
    """The CSV `recording,person,label...` that `eyestream study --labels` reads."""
    if layout is None:
        raise ConfigError("--labels: the names of files tell labels where there is a --layout")
    lines = [{"recording": stem(path)} | labels_of(path, layout) for path in paths]
    try:
        with target.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)
    except OSError as error:
        raise ConfigError(f"{target}: cannot be written: {error.strerror}") from None
