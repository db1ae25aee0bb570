"""`eyestream study`: what the mechanisms cost and what they stop, measured on recordings."""

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from eyestream.errors import ConfigError
from eyestream.rim.files import recordings

__all__ = ["add_parser", "main"]

_NEEDS = ("sklearn", "matplotlib", "joblib")
_SUFFIXES = (".npz", ".csv", ".csv.gz")


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "study",
        help="utility of the mechanisms and attacks on them, as a report",
        description="Calibrate on every second person, release the others through every mechanism, measure what is "
        "left of the signal and who is still recognised, and write one page with figures, CSV of every number "
        "and the settings. Needs the extra: pip install 'eyestream[study]'. An interrupted study goes on "
        "where it stopped.",
    )
    parser.add_argument("recordings", nargs="+", type=Path, metavar="RECORDINGS", help="files, or folders of them")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="made if it does not exist")
    parser.add_argument("--labels", type=Path, metavar="FILE", help="CSV recording,person,label... to classify by")
    parser.add_argument("--published", type=Path, metavar="FILE", help="CSV of a paper's NMSE values, to show beside")
    parser.add_argument("--quick", action="store_true", help="small: to see that everything runs")
    parser.add_argument("--jobs", type=int, default=-1, metavar="N", help="processes (default: one for each core)")


def main(options: argparse.Namespace) -> None:
    """Run the study.

    Raises
    ------
    ConfigError
        The extra is not installed, a folder holds no recording, or the study cannot be made of the recordings.
    RecordingError
        A file is not a recording.
    """
    missing = [name for name in _NEEDS if find_spec(name) is None]
    if missing:
        raise ConfigError(f"{', '.join(missing)} not installed: pip install 'eyestream[study]'")
    from eyestream.offline.study.plan import FULL, QUICK  # noqa: PLC0415  only here: the sidecar's environment lacks the extra
    from eyestream.offline.study.population import read_labels  # noqa: PLC0415
    from eyestream.offline.study.run import run  # noqa: PLC0415

    loaded = [recordings.load(path) for path in _files(options.recordings)]
    labels = read_labels(options.labels) if options.labels is not None else None
    page = run(
        loaded,
        options.out,
        QUICK if options.quick else FULL,
        labels=labels,
        published=options.published,
        jobs=options.jobs or None,
        progress=_progress,
    )
    if sys.stderr.isatty():
        print(file=sys.stderr)
    print(f"{len(loaded)} recordings: {page}")


def _files(paths: list[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        found = sorted(p for p in path.iterdir() if p.name.endswith(_SUFFIXES)) if path.is_dir() else [path]
        if not found:
            raise ConfigError(f"{path}: holds no recording")
        files += found
    return files


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text:<60}", end="", file=sys.stderr, flush=True)
